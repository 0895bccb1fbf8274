"""A decision in words: what the call touches, every voice, what would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lorimer.core.decisions import Verdict
from lorimer.core.effects import Concern, SimpleCommand
from lorimer.safety.policy.modes import MODES, mode_voices, of_voices

if TYPE_CHECKING:
    from lorimer.safety.policy.decide import Judgement
    from lorimer.safety.policy.layers import LayeredPolicy

UNTRUSTED_FOLDER = "repository configuration can run code, and this folder is not trusted"
"""What the analysis of commands says of git in a folder that nobody has trusted."""

_ANSWERS = {Verdict.ALLOW: "runs", Verdict.ASK: "asks a person", Verdict.DENY: "is refused"}


def lines(policy: LayeredPolicy, judgement: Judgement) -> list[str]:
    """The decision step by step."""
    decision, facts = judgement.decision, judgement.facts
    out = [f"It {_ANSWERS[decision.verdict]}: {decision.rule}: {decision.reason}"]
    if decision.review:
        out[0] += " (a reviewer's approval is enough)"
    out += ["", f"What {facts.tool} would touch (level {facts.level}):"]
    effects = effect_rows(judgement)
    out += [f"  {kind:<9} {text}" for kind, text in effects] or ["  nothing that is known"]
    out += ["", "What is said about it:"]
    said = []
    for at, voice in enumerate(judgement.voices):
        by = judgement.lifted.get(at)
        end = f", lifted by {by.label} ({by.where})" if by is not None else ""
        said.append(f"  {voice.verdict:<6} mode {policy.mode}: {voice.text}{end}")
    out += dict.fromkeys(said)
    for met in judgement.met:
        text = met.rule.reason or "(no reason given)"
        sure = "" if met.sure else ", perhaps: a word of the command is not known"
        out.append(f"  {met.verdict:<6} {met.rule.label} ({met.rule.where}): {text}{sure}")
    change = what_would_change(policy, judgement)
    if change:
        out += ["", "What would change it:", *(f"  {line}" for line in change)]
    return out


def effect_rows(judgement: Judgement) -> list[tuple[str, str]]:
    """Kind and text of everything the call touches."""
    touches = judgement.facts.touches
    assert touches is not None
    rows = [("command", _command(c)) for c in touches.commands]
    rows += [(str(p.access), p.path + ("" if p.inside else "  (outside)")) for p in touches.paths]
    rows += [("host", host) for host in touches.hosts]
    rows += [("secret", name) for name in touches.secrets]
    rows += [("concern", f"{r.concern}: {r.text}") for r in touches.reasons]
    return rows


def _command(command: SimpleCommand) -> str:
    """As it stands in the text; inside a wrapper, its own words."""
    if not command.via:
        return command.text
    words = " ".join("…" if word is None else word for word in command.words)
    return f"{words}  (in {' › '.join(command.via)})"


def what_would_change(policy: LayeredPolicy, judgement: Judgement) -> list[str]:
    """How the call could be decided otherwise; empty when it runs."""
    decision, facts = judgement.decision, judgement.facts
    if decision.verdict is Verdict.ALLOW:
        return []
    touches = facts.touches
    assert touches is not None
    if touches.has(Concern.FORBIDDEN):
        return ["Nothing: what is forbidden is refused in every mode and by every policy."]
    out = []
    for met in judgement.met:
        if met.verdict is decision.verdict:
            out.append(f"Rule {met.rule.id} ({met.rule.where}) stands in the way of every other.")
    if out:
        return out
    if any(r.text == UNTRUSTED_FOLDER for r in touches.reasons):
        out.append("If you trust the files of this folder: lorimer trust")
    rule = policy.rule_for(facts)
    if rule:
        out += ["This rule, in your policy.toml or with --policy FILE:"]
        out += [f"  {line}" for line in rule.splitlines()]
    elif decision.verdict is Verdict.ASK:
        if judgement.missing and any(r.fits(facts, every=True) for r in policy.lifting):
            out.append(f"Rules that allow do not speak for {judgement.missing}.")
        out.append("No rule is proposed: calls like this are approved one by one.")
    for mode in MODES[MODES.index(policy.mode) + 1 :]:
        other = of_voices(mode, facts.level, mode_voices(mode, facts))
        if other.verdict.rank < decision.verdict.rank:
            out.append(f"In mode {mode} it {_ANSWERS[other.verdict]}.")
            break
    return out


def as_json(policy: LayeredPolicy, judgement: Judgement) -> dict[str, Any]:
    """The same for programs."""
    decision, facts = judgement.decision, judgement.facts
    assert facts.touches is not None
    return {
        "tool": facts.tool,
        "mode": policy.mode,
        "verdict": str(decision.verdict),
        "rule": decision.rule,
        "reason": decision.reason,
        "next": decision.next,
        "review": decision.review,
        "effects": facts.touches.to_json(),
        "voices": [
            {
                "by": f"mode {policy.mode}",
                "verdict": str(v.verdict),
                "about": None if v.about is None else str(v.about.concern),
                "reason": v.text,
                "lifted_by": by.label if (by := judgement.lifted.get(at)) is not None else None,
            }
            for at, v in enumerate(judgement.voices)
        ]
        + [
            {
                "by": m.rule.label, "at": m.rule.where, "verdict": str(m.verdict),
                "reason": m.rule.reason, "sure": m.sure,
            }
            for m in judgement.met
        ],
        "would_change": what_would_change(policy, judgement),
    }  # fmt: skip
