"""G9. The prefix is proven: a break is named before the request is sent, and nothing else is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.habits import Loop, chatml
from harness.naive_loops import sdk
from lorimer.context.auditor import Auditor, CacheBreak, Cause, Finding
from wire.answers import Say
from wire.kit import WIRES
from wire.server import WireServer

TURNS = 6
SDKS = {
    "openai_chat": "openai", "openai_responses": "openai", "anthropic": "anthropic",
    "gemini": "google.genai",
}  # fmt: skip
CAUSES = {
    "dynamic_system": Cause.TIME,
    "spoken_date": Cause.TIME,
    "counter": Cause.COUNTER,
    "random_id": Cause.RANDOM_ID,
    "dynamic_profile": Cause.USER_DATA,
    "profile_message": Cause.USER_DATA,
    "shuffled_tools": Cause.TOOLS_REORDERED,
    "tool_added": Cause.TOOL_ADDED,
    "tool_removed": Cause.TOOL_REMOVED,
    "tool_changed": Cause.TOOL_CHANGED,
    "sliding_window": Cause.HISTORY_TRIMMED,
    "last_message_only": Cause.HISTORY_TRIMMED,
    "summarised": Cause.HISTORY_TRIMMED,
    "flattened_text": Cause.FLATTENED,
    "rewritten": Cause.MESSAGE_REWRITTEN,
    "key_order": Cause.KEY_ORDER,
}
WHERE = {
    "dynamic_system": "system", "spoken_date": "system", "counter": "system",
    "random_id": "system", "dynamic_profile": "system", "profile_message": "message 0 (user)",
    "tool_added": "tool close_shop", "tool_removed": "tool get_price",
    "tool_changed": "tool list_stock", "sliding_window": "message 0 (user)",
    "flattened_text": "message 0 (user)",
}  # fmt: skip
FIRST_BREAK = {
    "tool_added": 2, "tool_removed": 2, "tool_changed": 2, "sliding_window": 3, "summarised": 3,
    "rewritten": 2,
}  # fmt: skip
"""The turn of the first break, where it is not turn 1."""


def play(wire: str, habit: str, auditor: Auditor) -> tuple[list[Finding], WireServer, Any]:
    """A naive loop on a vendor's SDK; what the auditor said of each body, and how it ended."""
    pytest.importorskip(SDKS[wire])
    found: list[Finding] = []

    def hook(body: bytes) -> None:
        found.append(auditor.check(wire, body))

    answers = [Say(f"That is answer {n}.") for n in range(TURNS)]
    with WireServer(wire, answers) as server:
        ask, close = sdk(wire, server, hook)
        ended: Any = None
        try:
            Loop(habit).run(ask, TURNS)
        except Exception as fault:  # noqa: BLE001 - the SDKs wrap what their HTTP client raised
            ended = fault
        finally:
            close()
    assert server.faults == []
    return found, server, ended


def broke_with(fault: Any) -> CacheBreak | None:
    while fault is not None and not isinstance(fault, CacheBreak):
        fault = fault.__cause__ or fault.__context__
    return fault


class TestOtherClients:
    """Loops on the vendors' SDKs, over HTTP."""

    @pytest.mark.parametrize("wire", WIRES)
    def test_a_loop_that_only_appends_is_never_blamed(self, wire: str) -> None:
        found, server, ended = play(wire, "correct", Auditor(strict=True))
        assert ended is None and len(server.received) == len(found) == TURNS
        assert [f.cause for f in found] == [Cause.NONE] * TURNS
        for before, now in itertools.pairwise(found):
            assert now.new == 2 and now.shared_bytes == now.before_bytes == before.prompt_bytes
        assert len({f.chain for f in found}) == TURNS

    @pytest.mark.parametrize("habit", CAUSES)
    @pytest.mark.parametrize("wire", WIRES)
    def test_each_anti_pattern_is_named(self, wire: str, habit: str) -> None:
        found, _, ended = play(wire, habit, Auditor())
        assert ended is None
        first = FIRST_BREAK.get(habit, 1)
        assert [f.cause for f in found[:first]] == [Cause.NONE] * first
        assert found[first].cause is CAUSES[habit], found[first].words()
        assert found[first].segment == WHERE.get(habit, found[first].segment)
        assert found[first].advice and found[first].shared_bytes < found[first].before_bytes
        # Every break that follows has the same name.
        assert {f.cause for f in found[first:]} <= {CAUSES[habit], Cause.NONE}

    @pytest.mark.parametrize("habit", CAUSES)
    @pytest.mark.parametrize("wire", WIRES)
    def test_in_strict_mode_the_server_never_sees_it(self, wire: str, habit: str) -> None:
        _, server, ended = play(wire, habit, Auditor(strict=True))
        fault = broke_with(ended)
        assert fault is not None, ended
        assert fault.finding.cause is CAUSES[habit]
        assert len(server.received) == FIRST_BREAK.get(habit, 1)
        assert fault.finding.segment in str(fault) and "not sent" in str(fault)
        assert fault.finding.advice in fault.next

    @pytest.mark.parametrize("habit", ["correct", *CAUSES])
    def test_rendered_prompts_of_a_local_model(self, habit: str) -> None:
        auditor, causes = Auditor(), []
        loop = Loop(habit)
        loop.run(
            lambda *_: (
                causes.append(auditor.check("local", chatml(loop.last)).cause) or "That is it."
            ),
            TURNS,
        )
        first = FIRST_BREAK.get(habit, 1)
        if habit == "correct":
            assert causes == [Cause.NONE] * TURNS
        else:
            assert causes[:first] == [Cause.NONE] * first
            assert causes[first] is CAUSES[habit]
