"""Rules that are made: for one call, and from what people approved."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.facts import because, command, facts, layer, policy, shell, touch
from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Traits
from lorimer.core.effects import CallEffects
from lorimer.safety.policy.examples import KnownTool
from lorimer.safety.policy.learn import Evidence, propose
from lorimer.safety.policy.suggest import to_toml

PATH = Traits(path_arguments=("path",))


def write(path: str) -> CallFacts:
    return facts("write_file", {"path": path}, traits=PATH)


@pytest.mark.parametrize(
    ("call", "others"),
    [
        (shell(command("make", "all")),
         [shell(command("make", "install")), shell(command("make", "all", "x"))]),
        (shell(command("rm", "-rf", "build"), paths=[touch("build", "delete")],
               reasons=[because("destructive", "rm -rf build")]),
         [shell(command("rm", "-rf", "build"), paths=[touch("sub/build", "delete")],
                reasons=[because("destructive", "rm -rf build")])]),
        (shell(command("echo", "a"), text="echo a > a.txt", paths=[touch("a.txt")]),
         [shell(command("echo", "a"), text="echo a > b.txt", paths=[touch("b.txt")])]),
        (shell(command("echo", "*"), paths=[touch("a*")]),
         [shell(command("echo", "x"), paths=[touch("a*")]),
          shell(command("echo", "*", "x"), paths=[touch("a*")]),
          shell(command("echo", "*"), paths=[touch("ab")])]),
        (write("docs/a.md"), [write("docs/b.md")]),
        (facts("fetch", {"url": "https://a.org/x"}, traits=Traits(host_arguments=("url",))),
         [facts("fetch", {"url": "https://b.org/x"}, traits=Traits(host_arguments=("url",)))]),
        (facts("mail", {"to": "a@x.org", "text": "hi"}, traits=Traits(sinks=("to",))),
         [facts("mail", {"to": "b@x.org", "text": "hi"}, traits=Traits(sinks=("to",)))]),
        (facts("pay", {"n": 3, "all": True}, effects="irreversible"),
         [facts("pay", {"n": 4, "all": True}, effects="irreversible")]),
        (facts("note", {"text": "a"}),
         [facts("notes", {"text": "a"}), facts("note", {"text": "b"}),
          facts("note", {"text": "a", "more": "b"}), facts("note", {})]),
        (facts("mail", {"to": "a@x.org", "text": "hi"}, traits=Traits(sinks=("to",))),
         [facts("mail", {"to": "a@x.org", "text": "ho"}, traits=Traits(sinks=("to",)))]),
        (facts("sync", {}), [facts("sync", {"all": True})]),
        (facts("tag", {"names": ["a", "b"]}),
         [facts("tag", {"names": ["a"]}), facts("tag", {"names": ["b", "a"]}),
          facts("tag", {"names": ["a", "b", "b"]}), facts("tag", {"names": []})]),
        (facts("tag", {"names": []}), [facts("tag", {"names": ["a"]})]),
        (facts("tag", {"n": [1]}), [facts("tag", {"n": [True]}), facts("tag", {"n": 1})]),
        (facts("runfile", {"path": "x*.sh"}), [facts("runfile", {"path": "xy.sh"})]),
        (facts("run_python", {"code": "1"}, traits=Traits(runs_code=True)), []),
    ],
)  # fmt: skip
def test_the_rule_for_a_call_allows_it_and_nothing_else(
    call: CallFacts, others: Sequence[CallFacts]
) -> None:
    made = policy("ask")
    text = made.rule_for(call)
    assert text.startswith("[[policy.rule]]\n")
    with_it = made.with_session_rule(text)
    assert str(with_it.decide(call).verdict) == "allow"
    for other in others:
        assert str(with_it.decide(other).verdict) == "ask", other


@pytest.mark.parametrize(
    "call",
    [
        shell(command("x", None)),
        shell(command("x"), reasons=[because("unknown", "x")]),
        shell(command("x"), reasons=[because("privilege", "x")]),
        shell(command("x"), reasons=[because("persistence", "x")]),
        shell(command("x"), reasons=[because("secrets", "x")]),
        shell(command("x"), reasons=[because("forbidden", "x")]),
        shell(text="(("),
        facts("read", effects="read"),
        facts("pay", {"to": {"deep": 1}}, effects="irreversible"),
        facts("note", {"text": {"deep": 1}}),
        facts("note", {"text": None}),
        facts("note", {"texts": [["a"]]}),
        facts("note", {"text": "x" * 5_000}),
        shell(command("x", "y" * 5_000)),
    ],
)
def test_for_some_calls_there_is_no_rule(call: CallFacts) -> None:
    assert policy("ask").rule_for(call) == ""


def test_there_is_no_rule_where_it_would_not_help() -> None:
    ask = '[[policy.rule]]\ntool = "*"\ndecision = "ask"\n'
    assert policy("ask", organisation=ask).rule_for(write("a")) == ""
    assert policy("ask", organisation="[policy]\ndelegate = []\n").rule_for(write("a")) == ""


_values = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), _values))
def test_what_is_written_as_toml_is_read_back(rule: dict[str, str]) -> None:
    read: dict[str, Any] = tomllib.loads(to_toml({"x": rule, "y": list(rule.values())}))
    assert read["policy"]["rule"] == [{"x": rule, "y": list(rule.values())}]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30))
def test_the_rule_for_a_command_means_these_words_only(word: str) -> None:
    call = shell(command("x", word), text="x …")
    text = policy("ask").rule_for(call)
    made = policy("ask").with_session_rule(text)
    assert str(made.decide(call).verdict) == "allow"
    assert str(made.decide(shell(command("x", word + "y"), text="x …")).verdict) == "ask"
    assert str(made.decide(shell(command("x"), text="x …")).verdict) == "ask"


# --- learning ---

KNOWN = {
    "write_file": KnownTool(Effects.WRITE, PATH),
    "mail": KnownTool(Effects.WRITE, Traits(sinks=("to",))),
    "note": KnownTool(Effects.WRITE),
}


def said(tool: str, approved: bool = True, **arguments: Any) -> Evidence:
    return Evidence(tool, arguments, approved, "Ada", "s_1")


def test_a_folder_is_learnt_from_approved_writes_with_examples() -> None:
    found = propose(
        [said("write_file", path=f"docs/{n}.md") for n in "abc"], policy("ask"), known=KNOWN
    )
    (one,) = found
    assert (one.approved, one.different, one.people, one.sessions) == (3, 3, ("Ada",), 1)
    rule = layer(one.toml).rules[0]
    assert rule.paths is not None and rule.paths[0].source == "docs/*" and len(rule.match) == 3
    made = policy("ask", user=one.toml)
    assert str(made.decide(write("docs/new.md")).verdict) == "allow"
    assert str(made.decide(write("src/new.md")).verdict) == "ask"


def test_one_file_stays_one_file() -> None:
    (one,) = propose([said("write_file", path="a.md")] * 3, policy("ask"), known=KNOWN)
    assert 'paths = ["a.md"]' in one.toml and (one.approved, one.different) == (3, 1)


def test_too_little_evidence_is_none_and_a_rejection_stands_against_a_rule() -> None:
    given_ = [said("write_file", path=f"docs/{n}.md") for n in "abc"]
    assert not propose(given_[:2], policy("ask"), known=KNOWN)
    assert propose(given_[:2], policy("ask"), known=KNOWN, least=2)
    no = said("write_file", approved=False, path="docs/d.md")
    assert not propose([*given_, no], policy("ask"), known=KNOWN)
    elsewhere = said("write_file", approved=False, path="src/d.md")
    assert propose([*given_, elsewhere], policy("ask"), known=KNOWN)


def test_nothing_is_learnt_that_runs_without_a_question_or_is_approved_one_by_one() -> None:
    given_ = [said("write_file", path=f"docs/{n}.md") for n in "abc"]
    assert not propose(given_, policy("auto"), known=KNOWN)
    secrets = [said("write_file", path=f"k{n}/.env") for n in "abc"]
    assert not propose(secrets, policy("auto"), known=KNOWN)
    handles = [said("note", text="secret:x")] * 3
    assert not propose(handles, policy("ask"), known=KNOWN)


def test_recipients_and_tools_are_learnt_apart() -> None:
    mails = [said("mail", to="a@x.org", text=str(n)) for n in range(3)] + [
        said("mail", to="b@x.org")
    ]
    notes = [said("note", text=str(n)) for n in range(4)]
    found = propose([*mails, *notes], policy("ask"), known=KNOWN)
    assert [p.tool for p in found] == ["note", "mail"] and "a@x.org" in found[1].toml


def test_a_proposal_is_never_added() -> None:
    made = policy("ask")
    propose([said("note", text="x")] * 3, made, known=KNOWN)
    assert not made.rules and made.digest == policy("ask").digest


def test_effects_of_hand_made_facts_are_what_they_say() -> None:
    assert facts("x", touches=CallEffects(Effects.READ)).level is Effects.READ
