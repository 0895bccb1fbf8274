"""Events on their way to those who watch."""

from __future__ import annotations

from lorimer.core.calls import Outcome
from lorimer.core.watch import CallBegan, CallEnded, CallOutput, Warned, redacted_event


def redact(text: str) -> str:
    return text.replace("hunter22", "[x]")


def test_texts_in_any_depth_are_redacted() -> None:
    given = CallBegan("c", "t", {"a": [{"hunter22": "is hunter22"}, 1], "b": ("hunter22",)}, "read")
    clean = redacted_event(given, redact)
    assert clean == CallBegan("c", "t", {"a": [{"[x]": "is [x]"}, 1], "b": ("[x]",)}, "read")
    assert given.arguments["b"] == ("hunter22",)
    assert redacted_event(Warned("hunter22"), redact) == Warned("[x]")
    ended = CallEnded("c", "t", Outcome.DONE, "", "got hunter22", 1.5)
    assert redacted_event(ended, redact).text == "got [x]"


def test_what_has_nothing_to_hide_is_the_same_object() -> None:
    for event in (
        CallOutput("c", "t", "fine"),
        CallBegan("c", "t", {"a": [1, {}]}, "read"),
        "text",
    ):
        assert redacted_event(event, redact) is event
