"""Attempts to get out of the sandbox, run on this machine, each with its control outside."""
