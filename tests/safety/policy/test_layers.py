"""Layers: what a lower one may do to the policy of an upper one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.facts import WORK, because, command, facts, layer, policy, shell, touch
from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Traits, Verdict
from lorimer.core.effects import CallEffects
from lorimer.core.errors import ConfigError
from lorimer.safety.policy import MODES, load_policy
from lorimer.safety.policy.faults import PolicyError
from lorimer.safety.policy.layers import LayeredPolicy

ALLOW = '[[policy.rule]]\ntool = "t"\ndecision = "allow"\n'
ASK, DENY = ALLOW.replace("allow", "ask"), ALLOW.replace("allow", "deny")


def verdict(mode: str = "ask", **layers: str) -> str:
    return str(policy(mode, **layers).decide(facts("t")).verdict)


def delegate(*names: str) -> str:
    return f"[policy]\ndelegate = {list(names)}\n".replace("'", '"')


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ({"organisation": ALLOW}, "allow"),
        ({"user": ALLOW}, "allow"),
        ({"session": ALLOW}, "allow"),
        ({"project": ALLOW}, "ask"),
        ({"project": DENY}, "deny"),
        ({"user": delegate("project"), "project": ALLOW}, "allow"),
        ({"user": delegate("project"), "session": ALLOW}, "ask"),
        ({"organisation": delegate(), "user": ALLOW}, "ask"),
        ({"organisation": delegate("session"), "user": ALLOW}, "ask"),
        ({"organisation": delegate("session"), "session": ALLOW}, "allow"),
        ({"organisation": delegate("user"), "user": delegate("project"), "project": ALLOW}, "ask"),
        ({"organisation": delegate("user", "project"), "user": delegate("project"),
          "project": ALLOW}, "allow"),
        ({"organisation": delegate("user", "project"), "user": delegate(), "project": ALLOW},
         "ask"),
        ({"organisation": delegate("project"), "user": delegate("session"), "project": ALLOW},
         "ask"),
        ({"project": delegate("session"), "session": ALLOW}, "allow"),
        ({"project": delegate(), "session": ALLOW}, "ask"),
        ({"organisation": delegate(), "project": delegate("session"), "session": ALLOW}, "ask"),
        ({"organisation": ASK, "session": ALLOW}, "ask"),
        ({"organisation": DENY, "user": ALLOW, "session": ALLOW}, "deny"),
        ({"organisation": ALLOW, "project": DENY}, "deny"),
    ],
)  # fmt: skip
def test_who_may_allow(layers: dict[str, str], expected: str) -> None:
    assert verdict(**layers) == expected


def test_a_rule_without_effect_is_said() -> None:
    made = policy("ask", project=ALLOW)
    assert "project.toml:1" in made.notices[0] and "no effect" in made.notices[0]
    assert not policy("ask", user=ALLOW, project=DENY).notices


def test_modes_may_be_ruled_out() -> None:
    text = '\n[policy]\nmodes = ["plan", "ask"]\n'
    assert policy("ask", organisation=text).mode == "ask"
    with pytest.raises(ConfigError, match=r"organisation\.toml, line 3") as caught:
        policy("trusted", organisation=text)
    assert "plan, ask" in caught.value.next


# --- files ---


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "home"))
    return {
        "organisation": tmp_path / "org.toml",
        "user": tmp_path / "home" / "policy.toml",
        "project": tmp_path / "work" / "lorimer.toml",
        "session": tmp_path / "extra.toml",
    }


def test_the_layers_come_from_their_files(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = places["project"].parent
    assert not load_policy("ask", work).layers
    for name, file in places.items():
        file.write_text(f'[[policy.rule]]\nid = "{name}"\ntool = "t"\ndecision = "ask"\n')
    monkeypatch.setenv("LORIMER_ORG_POLICY", str(places["organisation"]))
    made = load_policy("ask", work, extra=[places["session"]])
    assert [(x.name, x.rules[0].id) for x in made.layers] == [(n, n) for n in places]
    made = load_policy("ask", work, extra=[places["session"]], extra_layer="organisation")
    assert [(x.name, x.rules[0].id) for x in made.layers] == [
        ("organisation", "session"), ("user", "user"), ("project", "project")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (None, "cannot be read"),
        (b"\n\xff", "line 2: this is not UTF-8"),
        (b"[policy]\nx = 1", "line 2"),
        (b"x = " + b"[" * 100_000, "nested too deep"),
        (b"#" * (1 << 20) + b"\n#", "larger than 1 MiB"),
        (b"x = " + b"9" * 5_000, "not TOML"),
    ],
)
def test_a_layer_that_cannot_be_read_stops_the_start(
    places: dict[str, Path], write: bytes | None, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = places["organisation"]
    if write is not None:
        file.write_bytes(write)
    monkeypatch.setenv("LORIMER_ORG_POLICY", str(file))
    with pytest.raises(PolicyError, match=what):
        load_policy("ask", places["project"].parent)


def test_what_is_no_file_is_not_read(places: dict[str, Path]) -> None:
    os.mkfifo(places["project"])
    with pytest.raises(PolicyError, match="it is no file"):
        load_policy("ask", places["project"].parent)


def test_a_link_to_nowhere_is_no_missing_policy(places: dict[str, Path]) -> None:
    places["user"].symlink_to("nowhere")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy("ask", places["project"].parent)


def test_without_files_nothing_is_parsed(tmp_path: Path) -> None:
    code = (
        "import sys; from lorimer.safety.policy import load_policy; load_policy('auto', "
        "sys.argv[1]);"
        "print([m for m in ('tomllib', 'tree_sitter', 'lorimer.safety.policy.load') "
        "if m in sys.modules])"
    )
    env = {**os.environ, "LORIMER_HOME": str(tmp_path), "LORIMER_ORG_POLICY": ""}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=env,
        check=True,
    )  # fmt: skip
    assert ended.stdout.strip() == "[]"


# --- rules of a session ---


def test_a_session_rule_holds_in_its_session_and_the_first_policy_stays(tmp_path: Path) -> None:
    first = policy("ask")
    other = first.with_session_rule(ALLOW, session="s_1")
    assert str(first.decide(facts("t")).verdict) == "ask"
    assert str(other.decide(facts("t")).verdict) == "allow"
    assert str(other.decide(facts("t", session="s_2")).verdict) == "ask"
    assert first.digest == other.digest
    third = other.with_session_rule(ALLOW.replace('"t"', '"u"'))
    assert [r.id for r in third.rules] == ["approved-1", "approved-2"]
    assert str(third.decide(facts("t")).verdict) == "allow"


def test_a_session_rule_needs_leave_and_lifts_no_rule() -> None:
    with pytest.raises(PolicyError, match="does not let a session"):
        policy("ask", organisation=delegate("user")).add_session_rule(ALLOW)
    made = policy("ask", organisation=delegate("user"))
    made.add_session_rule(DENY)
    assert str(made.decide(facts("t")).verdict) == "deny"
    made = policy("ask", user=ASK)
    made.add_session_rule(ALLOW)
    assert str(made.decide(facts("t")).verdict) == "ask"
    for text in ("", ALLOW + DENY.replace('"t"', '"u"')):
        with pytest.raises(PolicyError, match="not one"):
            made.add_session_rule(text)


def test_the_digest_is_of_mode_and_layers() -> None:
    digests = [
        policy("ask").digest,
        policy("auto").digest,
        policy("ask", user=ASK).digest,
        policy("ask", project=ASK).digest,
        policy("ask", user=ASK + "\nreason = 'x'").digest,
    ]
    assert len(set(digests)) == 5
    assert policy("ask", user=ASK).digest == policy("ask", user="# a note\n" + ASK).digest


# --- never weaker ---

_TOOLS = ("shell_exec", "write_file", "t")
_globs = st.sampled_from(["*", "t", "shell_*", "write_file", "?"])
_commands = st.lists(
    st.sampled_from(["git status", "git *", "rm *", "sudo *", "* -rf *", "*"]),
    min_size=1,
    max_size=3,
)
_conditions = st.fixed_dictionaries(
    {"tool": _globs},
    optional={
        "command": _commands,
        "paths": st.lists(st.sampled_from(["**", "docs/**", "/**", "*.md"]), min_size=1,
         max_size=2),
        "hosts": st.lists(st.sampled_from(["*", "a.org", "*.org"]), min_size=1, max_size=2),
        "concerns": st.lists(
            st.sampled_from(["network", "privilege", "secrets", "unknown", "destructive"]),
            min_size=1, max_size=3, unique=True,
        ),
        "effects": st.lists(
            st.sampled_from(["write", "irreversible"]), min_size=1, max_size=2, unique=True
        ),
        "tainted": st.booleans(),
        "roles": st.just(["dev"]),
        "not_roles": st.just(["dev"]),
        "arguments": st.just({"a": "x*"}),
    },
)  # fmt: skip
_rules = st.tuples(_conditions, st.sampled_from(["allow", "review", "ask", "deny"]))


@st.composite
def _layer(draw: Any, name: str, *, below: tuple[str, ...]) -> str:
    from lorimer.safety.policy.suggest import to_toml

    text = ""
    if below and draw(st.booleans()):
        text += delegate(*draw(st.lists(st.sampled_from(below), unique=True)))
    for number, (conditions, decision) in enumerate(draw(st.lists(_rules, max_size=3))):
        text += to_toml({"id": f"{name}{number}", "decision": decision, **conditions})
    try:
        layer(text, name)
    except PolicyError:  # rules that contradict each other
        return ""
    return text


@st.composite
def _call(draw: Any) -> CallFacts:
    commands = draw(
        st.lists(
            st.sampled_from([
                command("git", "status"), command("rm", "-rf", "docs"), command(None, "x"),
                command("rm", "x", via=["sudo"]), command("git", "push", via=["env"]),
            ]), max_size=2,
        )
    )  # fmt: skip
    paths = draw(
        st.lists(
            st.sampled_from([touch("docs/a"), touch("a.md", "read"), touch("docs", "delete"),
                             touch("/etc/x", "read", inside=False)]), max_size=2)
    )  # fmt: skip
    concerns = draw(st.lists(st.sampled_from(
        ["network", "privilege", "secrets", "unknown", "destructive", "forbidden", "outside"]
    ), max_size=2, unique=True))  # fmt: skip
    touches = CallEffects(
        Effects(draw(st.sampled_from(["write", "irreversible"]))), tuple(paths),
        tuple(draw(st.lists(st.sampled_from(["a.org", "b.net"]), max_size=1))), tuple(commands),
        reasons=tuple(because(c, commands[0].text if commands else "x") for c in concerns),
    )  # fmt: skip
    return facts(
        draw(st.sampled_from(_TOOLS)), {"command": "x", "a": draw(st.sampled_from(["x", "y"]))},
        touches=touches, traits=Traits(command_argument="command" if commands else ""),
        roles=frozenset(draw(st.lists(st.just("dev"), max_size=1))),
        tainted_by=draw(st.lists(st.just("web"), max_size=1)), group="",
    )  # fmt: skip


_ORDER = ("organisation", "user", "project", "session")


@settings(max_examples=400, deadline=None)
@given(st.data(), st.sampled_from(MODES), _call())
def test_a_lower_layer_never_weakens_any_decision(data: Any, mode: str, call: CallFacts) -> None:
    """Whatever a layer says that no layer above has named: no call is decided more mildly."""
    drawn = [layer(data.draw(_layer(n, below=_ORDER[i + 1 :])), n) for i, n in enumerate(_ORDER)]
    for number, name in enumerate(_ORDER):
        above = policy_of(mode, drawn[:number])
        below = policy_of(mode, drawn[: number + 1])
        before, after = above.decide(call).verdict, below.decide(call).verdict
        if name not in above.allowing:
            assert after.rank >= before.rank, (name, before, after)
        if before is Verdict.DENY:
            assert after is Verdict.DENY
        restricted = above.judge(call).met
        if restricted:
            floor = max(m.verdict.rank for m in restricted)
            assert after.rank >= floor, "not even with leave: a rule of an upper layer stays"


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(MODES), _call())
def test_rules_that_restrict_never_weaken(data: Any, mode: str, call: CallFacts) -> None:
    text = data.draw(_layer("organisation", below=()))
    strict = text.replace('decision = "allow"', 'decision = "ask"').replace(
        'decision = "review"', 'decision = "deny"'
    )
    try:
        made = policy_of(mode, [layer(strict, "organisation")])
    except PolicyError:
        return
    assert made.decide(call).verdict.rank >= policy_of(mode, []).decide(call).verdict.rank


def policy_of(mode: str, layers: list[Any]) -> LayeredPolicy:
    from harness.facts import PLACE

    assert PLACE.workspace == WORK
    return LayeredPolicy(mode, layers, place=PLACE)


def test_the_calls_of_the_property_reach_every_verdict() -> None:
    calls = [shell(command("git", "status")), facts("t", effects="read"),
             shell(command("x"), reasons=[because("forbidden")])]  # fmt: skip
    assert {str(policy("ask").decide(c).verdict) for c in calls} == {"allow", "ask", "deny"}
