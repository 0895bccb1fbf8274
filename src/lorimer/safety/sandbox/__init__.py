"""Sandbox levels, one file each. `choose.run` is the way in."""
