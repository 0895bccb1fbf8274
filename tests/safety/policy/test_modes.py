"""The modes alone: what runs, is asked, is refused."""

from __future__ import annotations

import pytest

from harness.facts import WORK, because, facts, policy, shell, touch
from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Traits, Verdict
from lorimer.core.effects import CallEffects, Concern
from lorimer.core.errors import ConfigError
from lorimer.safety.effects import UNASSESSED
from lorimer.safety.policy import MODES, ModePolicy
from lorimer.safety.policy.modes import CONCERNS, LEVELS

_WORDS = {"r": Verdict.ALLOW, "a": Verdict.ASK, "d": Verdict.DENY}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("read", "rrrr"), ("write", "darr"), ("irreversible", "daar"),
        ("runs_code", "darr"), ("network", "daar"), ("destructive", "daar"),
        ("privilege", "daaa"), ("persistence", "daaa"), ("secrets", "daar"),
        ("outside", "daar"), ("unknown", "daar"), ("forbidden", "dddd"),
    ],
)  # fmt: skip
def test_what_each_mode_does_with_each_kind_of_change(what: str, expected: str) -> None:
    for mode, letter in zip(MODES, expected, strict=True):
        if what in list(Effects):
            call = facts(touches=CallEffects(Effects(what)))
        else:
            call = facts(touches=CallEffects(Effects.WRITE, reasons=(because(what),)))
        assert ModePolicy(mode).decide(call).verdict is _WORDS[letter], mode
        assert policy(mode).decide(call) == ModePolicy(mode).decide(call)


@pytest.mark.parametrize("concern", ["secrets", "outside"])
def test_a_read_of_concern_asks_except_where_everything_is_trusted(concern: str) -> None:
    call = facts(touches=CallEffects(Effects.READ, reasons=(because(concern),)))
    found = [str(ModePolicy(mode).decide(call).verdict) for mode in MODES]
    assert found == ["ask", "ask", "ask", "allow"]


def test_every_concern_and_level_has_a_verdict_in_every_mode() -> None:
    assert set(CONCERNS) == set(Concern) and set(LEVELS) == set(Effects)
    assert all(set(row) == set(MODES) for row in [*CONCERNS.values(), *LEVELS.values()])


def test_no_higher_mode_is_stricter_than_a_lower_one() -> None:
    for row in [*CONCERNS.values(), *LEVELS.values()]:
        ranks = [row[mode].rank for mode in MODES]
        assert ranks == sorted(ranks, reverse=True)


def test_all_concerns_are_told_not_only_the_first() -> None:
    call = shell(reasons=[because("network", text="it connects to a.org"),
                          because("destructive", text="it deletes build")])  # fmt: skip
    decision = ModePolicy("auto").decide(call)
    assert "a.org" in decision.reason and "deletes build" in decision.reason


def test_a_call_that_could_not_be_assessed_asks_even_in_mode_trusted() -> None:
    class Broken(dict):  # type: ignore[type-arg]
        def get(self, *_: object) -> object:
            raise RuntimeError("no")

    call = facts(arguments={}, traits=Traits(command_argument="command"))
    broken = CallFacts(
        "t", Effects.READ, "execution", Broken(), (), "ada", "s", WORK, traits=call.traits
    )
    decision = ModePolicy("trusted").decide(broken)
    assert decision.verdict is Verdict.ASK and "RuntimeError" in decision.reason
    assert policy("trusted").judge(broken).facts.touches.reasons[0].where == UNASSESSED  # type: ignore[union-attr]


def test_plan_tells_the_model_what_to_do_instead() -> None:
    decision = ModePolicy("plan").decide(facts())
    assert decision.verdict is Verdict.DENY and "Describe" in decision.next


def test_a_confined_tool_is_not_asked_about_paths_it_refuses_itself() -> None:
    touches = CallEffects(
        Effects.WRITE, (touch("/etc/passwd", inside=False),),
        reasons=(because("outside", "/etc/passwd"),),
    )  # fmt: skip
    free, confined = Traits(), Traits(confined=True)
    assert ModePolicy("auto").decide(facts(touches=touches, traits=free)).verdict is Verdict.ASK
    decided = ModePolicy("auto").decide(facts(touches=touches, traits=confined))
    assert decided.verdict is Verdict.ALLOW
    secret = CallEffects(Effects.READ, reasons=(because("secrets", ".env"),))
    decided = ModePolicy("auto").decide(facts(touches=secret, traits=confined))
    assert decided.verdict is Verdict.ASK, "it does not refuse secrets itself"


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    for make in (ModePolicy, policy):
        with pytest.raises(ConfigError, match="no mode 'yolo'") as caught:
            make("yolo")
        assert "plan, ask, auto, trusted" in caught.value.next
