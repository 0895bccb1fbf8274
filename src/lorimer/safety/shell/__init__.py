"""What a shell command would do, worked out before it runs. See `README.md`."""

from lorimer.safety.shell.analyse import Verdict, analyse, verdict

__all__ = ["Verdict", "analyse", "verdict"]
