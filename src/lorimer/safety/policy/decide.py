"""The decision about a call: the mode, what rules lift of it, what rules add to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lorimer.core.decisions import CallFacts, Decision, Verdict
from lorimer.safety.policy.coverage import Coverage
from lorimer.safety.policy.modes import ModeVoice, mode_voices, of_voices
from lorimer.safety.policy.rules import Place, Rule, Ruling


@dataclass(frozen=True, slots=True)
class Met:
    """A rule that restricts and was met; `verdict` is what it comes to here. `sure` is false when
    it depends on a word of a command that is not known: then it asks at most."""

    rule: Rule
    verdict: Verdict
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """A decision, and all that went into it.

    Attributes:
        lifted: by place in `voices`: the rule that lifts that question of the mode.
        missing: the part that rules which allow do not speak for; empty when there is none.
    """

    decision: Decision
    facts: CallFacts
    voices: Sequence[ModeVoice]
    lifted: dict[int, Rule]
    met: Sequence[Met]
    missing: str = ""


def judge(
    mode: str,
    facts: CallFacts,
    restricting: Sequence[Rule],
    lifting: Sequence[Rule],
    place: Place,
) -> Judgement:
    """The decision about the assessed call `facts`.

    Args:
        restricting: rules that ask, deny or want a review, of every layer.
        lifting: rules that allow or want a review, of the layers that may.
    """
    voices = mode_voices(mode, facts)
    met = _met(facts, restricting, place)
    lifted: dict[int, Rule] = {}
    missing = ""
    if any(v.verdict is Verdict.ASK for v in voices):
        fitting = [r for r in lifting if r.fits(facts, every=True)]
        if fitting:
            coverage = Coverage(fitting, facts, place)
            lifted = _lifted(voices, coverage)
            missing = coverage.missing
    left = [v for at, v in enumerate(voices) if at not in lifted]
    return Judgement(_decision(mode, facts, left, lifted, met), facts, voices, lifted, met, missing)


def _met(facts: CallFacts, rules: Sequence[Rule], place: Place) -> list[Met]:
    found = []
    for rule in rules:
        if not rule.fits(facts, every=False):
            continue
        parts = rule.meets_parts(facts, place)
        if parts:
            found.append(Met(rule, rule.decision.verdict))
        elif parts is None:
            found.append(Met(rule, Verdict.ASK, sure=False))
    return found


def _lifted(voices: Sequence[ModeVoice], coverage: Coverage) -> dict[int, Rule]:
    out: dict[int, Rule] = {}
    open_ones = 0
    level: int | None = None
    for at, voice in enumerate(voices):
        if voice.verdict is not Verdict.ASK:
            continue
        if voice.about is None:
            level = at
        elif (rule := coverage.lifts(voice.about)) is not None:
            out[at] = rule
        else:
            open_ones += 1
    if level is None:
        return out
    if coverage.complete:
        speaker = coverage.speaker()
        if speaker is not None:
            out[level] = speaker
    elif out and not open_ones and _only_concerns(coverage):
        out[level] = next(iter(out.values()))
    return out


def _only_concerns(coverage: Coverage) -> bool:
    """Whether the call consists of its concerns: it has some, all are named by rules about
    concerns alone, and it changes no path."""
    named = {
        c for r in coverage.rules if not r.has_parts and r.concerns is not None for c in r.concerns
    }
    reasons = coverage.touches.reasons
    return (
        bool(reasons)
        and all(r.concern in named for r in reasons)
        and not any(map(coverage.needs_rule, coverage.touches.paths))
    )


def _decision(
    mode: str,
    facts: CallFacts,
    left: Sequence[ModeVoice],
    lifted: dict[int, Rule],
    met: Sequence[Met],
) -> Decision:
    """The strictest of what is left of the mode and of the rules that were met."""
    of_mode = of_voices(mode, facts.level, list(left))
    worst = max((m.verdict for m in met), key=lambda v: v.rank, default=Verdict.ALLOW)
    if worst is Verdict.ALLOW or worst.rank < of_mode.verdict.rank:
        if of_mode.verdict is Verdict.ALLOW and lifted:
            rule = next(iter(lifted.values()))
            return Decision(Verdict.ALLOW, rule.label, rule.reason or "a rule allows it")
        return of_mode
    loud = [m for m in met if m.verdict is worst]
    first = max(loud, key=lambda m: m.sure)
    texts = [_text(m) for m in loud]
    review = False
    if worst is Verdict.ASK:
        if of_mode.verdict is Verdict.ASK:
            texts.append(of_mode.reason)
        else:
            review = all(m.rule.decision is Ruling.REVIEW and m.sure for m in loud)
    return Decision(
        worst, first.rule.label, "; ".join(dict.fromkeys(texts)), first.rule.next, review
    )


def _text(met: Met) -> str:
    rule = met.rule
    verb = {"ask": "asks about it", "deny": "refuses it", "review": "wants it reviewed"}
    text = rule.reason or f"{rule.label} {verb[rule.decision.value]}"
    return text if met.sure else f"{text} (perhaps: a word of the command is not known)"
