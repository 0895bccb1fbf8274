"""`lorimer`: the command line.

Exit codes: 0 answered · 1 something failed · 2 wrong use or configuration · 3 the run ended
without a full answer · 4 the model could not answer · 5 the store failed · 6 the session is in use
· 7 a limit was reached · 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `lorimer` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from lorimer import __version__

        print(f"lorimer {__version__}")
        return
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a character that the terminal has not is no reason to end
            reconfigure(errors="backslashreplace")
    from lorimer.cli.app import run_app

    sys.exit(run_app())
