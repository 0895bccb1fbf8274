"""The `ToolContext` of one call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from lorimer.core.secrets import SecretPort, TextStream
from lorimer.core.watch import CallOutput
from lorimer.tools.dispatch.recorded import journaled_calls, recorded_call
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.tool import CallTool, ToolContext
from lorimer.tools.tool_context import PastCall


def make_context(state: CallState, around: Surroundings) -> ToolContext:
    call_id, name = state.call.id, state.name

    def tell(text: str) -> None:
        around.tell(CallOutput(call_id, name, text))

    return ToolContext(
        session=around.session,
        call_id=call_id,
        principal=around.principal,
        operation_key=state.operation_key,
        workspace=around.workspace,
        scratch=around.scratch,
        clock=around.clock,
        views=around.views,
        on_output=tell if around.secrets is None else _WithoutSecrets(around.secrets, tell),
        belongings=around.belongings,
        without_secrets=None if around.secrets is None else around.secrets.byte_stream,
        call_tool=_inner(state, around),
        touches=None if state.facts is None else state.facts.touches,
        past=functools.partial(past_calls, around),
        recorded=functools.partial(recorded_call, around.store, around.session),
        subagents=around.subagents,
        readable=around.readable(),
    )


def past_calls(around: Surroundings, *tools: str) -> list[PastCall]:
    """The ended calls of `tools` (none named: of all, also those that stand in it as a copy) in
    this session, in the order they were made."""
    found = []
    store, session = around.store, around.session
    for call in store.calls(session) if tools else journaled_calls(store, session):
        if tools and call.tool not in tools:
            continue
        if call.outcome is not None and call.result is not None:
            arguments = call.value if isinstance(call.value, dict) else {}
            text = "".join(part.get("text", "") for part in call.result["content"])
            found.append(
                PastCall(call.id, call.tool, arguments, call.outcome, call.entry_seq, text)
            )
    return found


def _inner(state: CallState, around: Surroundings) -> CallTool | None:
    if around.inner is None or state.tool is None or not state.tool.calls_tools:
        return None
    return around.inner(state)


class _WithoutSecrets:
    """Output on its way to those who watch: a secret is found also where two pieces share it. A
    tool may report from several threads."""

    def __init__(self, secrets: SecretPort, tell: Callable[[str], None]) -> None:
        self._secrets, self._tell = secrets, tell
        self._stream: TextStream | None = None
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            if self._stream is None:
                self._stream = self._secrets.stream()
            clean = self._stream.feed(text)
        if clean:
            self._tell(clean)

    def end(self) -> None:
        with self._lock:
            rest = "" if self._stream is None else self._stream.end()
            self._stream = None
        if rest:
            self._tell(rest)


def end_output(context: ToolContext) -> None:
    """Tell what was held back of the output."""
    if isinstance(context.on_output, _WithoutSecrets):
        context.on_output.end()
