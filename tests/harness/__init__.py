"""What the guarantee tests act on: a small world of effects, tools that act on it, and programs
that run as processes of their own."""
