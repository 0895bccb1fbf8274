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

    for word in sys.argv[1:]:
        if any(0xD800 <= ord(c) < 0xE000 for c in word):  # bytes that are no UTF-8
            from lorimer.cli.app import wants_json

            if wants_json(sys.argv[1:]):
                from lorimer.cli.execute import emit, fault_json
                from lorimer.core.errors import UsageFault

                step = "Write it in UTF-8; rename a file or folder that is not."
                emit(fault_json(UsageFault(f"The argument {word!a} is not UTF-8.", next=step)))
                sys.exit(2)
            print(f"lorimer: the argument {word!a} is not UTF-8.", file=sys.stderr)
            print("  → Write it in UTF-8; rename a file or folder that is not.", file=sys.stderr)
            sys.exit(2)
    sys.exit(run_app())
