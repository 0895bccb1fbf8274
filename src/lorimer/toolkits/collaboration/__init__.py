"""Tools by which an agent works with others."""
