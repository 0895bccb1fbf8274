"""The modes: what runs, what is asked, what is refused.

| mode | reads | writes | irreversible |
|---|---|---|---|
| `plan` | run | refused | refused |
| `ask` | run | asked | asked |
| `auto` | run | run, inside the workspace | asked |
| `trusted` | run | run | run |
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Decision, Verdict
from lorimer.core.errors import ConfigError

MODES = ("plan", "ask", "auto", "trusted")


@dataclass(frozen=True, slots=True)
class ModePolicy:
    """The policy of a mode alone.

    Raises:
        ConfigError: when there is no such mode.
    """

    mode: str = "ask"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(
                f"There is no mode {self.mode!r}.", next=f"Use one of: {', '.join(MODES)}."
            )

    def decide(self, facts: CallFacts) -> Decision:
        if facts.effects is Effects.READ:
            return Decision(Verdict.ALLOW, f"mode {self.mode}", "it only reads")
        kind = "cannot be undone" if facts.effects is Effects.IRREVERSIBLE else "changes something"
        if self.mode == "plan":
            return Decision(
                Verdict.DENY,
                "mode plan",
                f"it {kind}, and mode plan only reads.",
                "Describe what you would do; do not do it.",
            )
        if self.mode == "trusted":
            return Decision(Verdict.ALLOW, "mode trusted", "mode trusted allows every call")
        if self.mode == "ask":
            return Decision(Verdict.ASK, "mode ask", f"it {kind}")
        if facts.effects is Effects.IRREVERSIBLE:
            return Decision(Verdict.ASK, "mode auto", f"it {kind}")
        outside = [path for path in facts.paths if not _inside(path, facts.cwd)]
        if outside:
            return Decision(
                Verdict.ASK, "mode auto", f"it touches {outside[0]!r}, outside the workspace"
            )
        if facts.paths:
            return Decision(Verdict.ALLOW, "mode auto", "a change inside the workspace")
        return Decision(Verdict.ALLOW, "mode auto", "mode auto runs the tools it was given")


def _inside(path: str, workspace: str) -> bool:
    """For the decision only; the tool itself opens the path by descriptor (`safety/paths.py`)."""
    try:
        real = os.path.realpath(os.path.join(workspace, path))
    except (OSError, ValueError):
        return False
    root = os.path.realpath(workspace)
    return real == root or real.startswith(root.rstrip("/") + "/")
