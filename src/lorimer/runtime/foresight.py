"""The sidecar beside the stream: it begins to judge a call as soon as the model has written it.

Only the call that it judges waits for it, and only when that call's turn to run has come. What it
says of an answer that was cut off or asked again is thrown away.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from lorimer.core.calls import Effects, ToolCall
from lorimer.core.decisions import CallFacts, Decision, Opinion, Sidecar, Verdict
from lorimer.tools.dispatch.find import find
from lorimer.tools.dispatch.parse import parse
from lorimer.tools.dispatch.permit import permit
from lorimer.tools.dispatch.shape import shape
from lorimer.tools.dispatch.state import CallState, Surroundings


@dataclass(slots=True)
class _Begun:
    facts: CallFacts | None = None
    decision: Decision | None = None
    task: asyncio.Task[Opinion] | None = None


class Foresight:
    """Opinions that were asked for before their calls came to the dispatcher."""

    def __init__(self, sidecar: Sidecar, around: Surroundings) -> None:
        self._sidecar = sidecar
        self._around = around
        self._begun: dict[tuple[str, str], list[_Begun]] = defaultdict(list)
        self._looking: set[asyncio.Task[None]] = set()

    def see(self, call: ToolCall) -> None:
        """The model has written `call` to its end."""
        begun = _Begun()
        self._begun[call.name, call.raw].append(begun)
        looking = asyncio.get_running_loop().create_task(self._look(call, begun))
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)

    async def _look(self, call: ToolCall, begun: _Begun) -> None:
        """Work out the facts as the stations will, without anything that counts or lasts."""
        state = CallState(call)
        try:
            for station in (parse, find, shape, permit):
                if await station(state, self._around) is not None:
                    return
        except Exception:  # noqa: BLE001 - the call's own way through the stations says what it is
            return
        facts, decision = state.facts, state.decision
        assert facts is not None and decision is not None
        if decision.verdict is Verdict.ASK or facts.level is not Effects.READ:
            begun.facts, begun.decision = facts, decision
            begun.task = asyncio.ensure_future(self._sidecar.judge(facts, decision))

    def take(
        self, call: ToolCall, facts: CallFacts, decision: Decision
    ) -> asyncio.Task[Opinion] | None:
        """The opinion on `call`, when it was asked for on these facts; each is taken once."""
        waiting = self._begun.get((call.name, call.raw))
        if not waiting:
            return None
        begun = waiting.pop(0)
        if begun.task is None:
            return None
        if _judged(begun.facts, begun.decision) != _judged(facts, decision):
            begun.task.cancel()
            return None
        return begun.task

    async def drop(self) -> None:
        """Throw away what was not taken, and wait for its end."""
        tasks: list[asyncio.Task[object]] = [*self._looking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        begun = [b.task for group in self._begun.values() for b in group if b.task is not None]
        self._begun.clear()
        for one in begun:
            one.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    def drop_soon(self) -> None:
        """`drop` without waiting: the answer so far is void."""
        for group in self._begun.values():
            for begun in group:
                if begun.task is not None:
                    begun.task.cancel()
        for task in self._looking:
            task.cancel()
        self._begun.clear()


def _judged(facts: CallFacts | None, decision: Decision | None) -> object:
    """What an opinion rests on."""
    if facts is None:
        return None
    touches = None if facts.touches is None else facts.touches.to_json()
    words = tuple(facts.conversation.user_words)
    tainted = tuple(facts.conversation.tainted_by)
    return (facts.tool, facts.arguments, facts.cwd, touches, words, tainted, decision)
