"""The command line: one file per command. Heavy imports stand inside the functions."""
