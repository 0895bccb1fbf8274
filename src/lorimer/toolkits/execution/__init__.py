"""Tools that act: they change files or run programs."""
