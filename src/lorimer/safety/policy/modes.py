"""The modes, as data: what runs, what is asked, what is refused where no rule says otherwise.

| mode | reads | writes | irreversible | concerns |
|---|---|---|---|---|
| `plan` | run | refused | refused | asked or refused |
| `ask` | run | asked | asked | asked |
| `auto` | run | run | asked | asked, but for code in the sandbox |
| `trusted` | run | run | run | run, but for more rights and what runs later |

What is `forbidden` is refused in every mode.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Decision, Verdict
from lorimer.core.effects import Concern, Reason
from lorimer.core.errors import ConfigError
from lorimer.safety.effects import UNASSESSED, CallAssessor

MODES = ("plan", "ask", "auto", "trusted")

_A, _Q, _D = Verdict.ALLOW, Verdict.ASK, Verdict.DENY

LEVELS: Mapping[Effects, Mapping[str, Verdict]] = {
    Effects.READ: dict(zip(MODES, (_A, _A, _A, _A), strict=True)),
    Effects.WRITE: dict(zip(MODES, (_D, _Q, _A, _A), strict=True)),
    Effects.IRREVERSIBLE: dict(zip(MODES, (_D, _Q, _Q, _A), strict=True)),
}
"""What the level of a call comes to in each mode."""

CONCERNS: Mapping[Concern, Mapping[str, Verdict]] = {
    Concern.RUNS_CODE: dict(zip(MODES, (_D, _Q, _A, _A), strict=True)),
    Concern.NETWORK: dict(zip(MODES, (_Q, _Q, _Q, _A), strict=True)),
    Concern.DESTRUCTIVE: dict(zip(MODES, (_D, _Q, _Q, _A), strict=True)),
    Concern.PRIVILEGE: dict(zip(MODES, (_D, _Q, _Q, _Q), strict=True)),
    Concern.PERSISTENCE: dict(zip(MODES, (_D, _Q, _Q, _Q), strict=True)),
    Concern.SECRETS: dict(zip(MODES, (_Q, _Q, _Q, _A), strict=True)),
    Concern.OUTSIDE: dict(zip(MODES, (_Q, _Q, _Q, _A), strict=True)),
    Concern.UNKNOWN: dict(zip(MODES, (_Q, _Q, _Q, _A), strict=True)),
    Concern.FORBIDDEN: dict(zip(MODES, (_D, _D, _D, _D), strict=True)),
}
"""What each concern of a call comes to in each mode."""

_LEFT_TO_THE_TOOL = (Concern.OUTSIDE, Concern.PERSISTENCE)
_PLAN_NEXT = "Describe what you would do; do not do it."
_KINDS = {
    Effects.READ: "it only reads",
    Effects.WRITE: "it changes something",
    Effects.IRREVERSIBLE: "it cannot be undone",
}


@dataclass(frozen=True, slots=True)
class ModeVoice:
    """What a mode says of one side of a call: of its level (`about` is `None`) or of a concern."""

    verdict: Verdict
    about: Reason | None
    text: str


def check_mode(mode: str) -> str:
    """`mode`.

    Raises:
        ConfigError: when there is no such mode.
    """
    if mode not in MODES:
        raise ConfigError(f"There is no mode {mode!r}.", next=f"Use one of: {', '.join(MODES)}.")
    return mode


def assessed(facts: CallFacts) -> CallFacts:
    """`facts` with what the call touches; worked out here when nobody did."""
    if facts.touches is not None:
        return facts
    from dataclasses import replace

    return replace(facts, touches=CallAssessor().assess(facts))


def mode_voices(mode: str, facts: CallFacts) -> list[ModeVoice]:
    """What `mode` says of the level and of every concern of an assessed call."""
    touches = facts.touches
    assert touches is not None
    level = touches.level
    found = [ModeVoice(LEVELS[level][mode], None, _KINDS[level])]
    for reason in touches.reasons:
        if _left_to_the_tool(reason, facts):
            continue
        verdict = CONCERNS[reason.concern][mode]
        if reason.where == UNASSESSED and verdict is Verdict.ALLOW:
            verdict = Verdict.ASK
        found.append(ModeVoice(verdict, reason, reason.text))
    return found


def _left_to_the_tool(reason: Reason, facts: CallFacts) -> bool:
    """A confined tool refuses such paths itself, with an error that says what to do: a question
    about them could not be answered with yes."""
    return (
        facts.traits.confined
        and not facts.traits.command_argument
        and reason.concern in _LEFT_TO_THE_TOOL
    )


@functools.lru_cache(maxsize=64)
def _allowed(mode: str, level: Effects) -> Decision:
    text = {
        Effects.READ: "it only reads",
        Effects.WRITE: f"mode {mode} runs changes inside the workspace",
    }.get(level, f"mode {mode} allows it")
    return Decision(Verdict.ALLOW, f"mode {mode}", text)


def of_voices(mode: str, level: Effects, voices: list[ModeVoice]) -> Decision:
    """The decision that `voices` of `mode` come to; its reason holds all of the strictest."""
    worst = max((v.verdict for v in voices), key=lambda v: v.rank, default=Verdict.ALLOW)
    if worst is Verdict.ALLOW:
        return _allowed(mode, level)
    loud = [v for v in voices if v.verdict is worst]
    if len(loud) > 1:  # a concern says more than the level
        loud = [v for v in loud if v.about is not None]
    text = "; ".join(dict.fromkeys(v.text for v in loud))
    if worst is Verdict.ASK:
        return Decision(worst, f"mode {mode}", text)
    if all(v.about is not None and v.about.concern is Concern.FORBIDDEN for v in loud):
        return Decision(worst, "forbidden", text, "Do it another way; no mode allows this.")
    if mode == "plan":
        return Decision(worst, "mode plan", f"{text}, and mode plan only reads.", _PLAN_NEXT)
    return Decision(worst, f"mode {mode}", text)


@dataclass(frozen=True, slots=True)
class ModePolicy:
    """The policy of a mode alone, without any file.

    Raises:
        ConfigError: when there is no such mode.
    """

    mode: str = "ask"

    def __post_init__(self) -> None:
        check_mode(self.mode)

    def decide(self, facts: CallFacts) -> Decision:
        facts = assessed(facts)
        return of_voices(self.mode, facts.level, mode_voices(self.mode, facts))
