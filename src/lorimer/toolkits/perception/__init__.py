"""Tools that look: they change nothing, may run beside each other and be repeated."""
