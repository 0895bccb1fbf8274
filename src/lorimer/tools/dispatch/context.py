"""The `ToolContext` of one call."""

from __future__ import annotations

from lorimer.core.watch import CallOutput
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.tool import ToolContext


def make_context(state: CallState, around: Surroundings) -> ToolContext:
    call_id, name = state.call.id, state.name

    def on_output(text: str) -> None:
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
        on_output=on_output,
    )
