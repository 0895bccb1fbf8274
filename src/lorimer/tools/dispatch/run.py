"""Station 8, run: the function, with its deadline and a way to stop it.

What is known of the effect decides the outcome. A read has none. For the others: the function said
so itself (`ToolContext.effect`), or a `ToolError` did, or the far side can be asked; otherwise a
call that did not end by itself is `unknown`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lorimer.core.calls import Effects, Idempotency, Outcome, Refusal
from lorimer.core.watch import CallBegan, Warned
from lorimer.tools.dispatch.context import end_output
from lorimer.tools.dispatch.once import ask_outcome
from lorimer.tools.dispatch.secret_arguments import put_secrets_in, without_secrets
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.tool import EffectMark, Tool
from lorimer.tools.units.units import End, Ending, Stop

_CHECK_FIRST = "Look whether it happened before you call again."


async def run(state: CallState, around: Surroundings) -> Refusal | None:
    tool, context = state.tool, state.context
    assert tool is not None and context is not None
    stop = state.stop = Stop()
    begun = around.clock.monotonic()
    if tool.timeout_s is not None:
        context.deadline = begun + tool.timeout_s
    arguments = await put_secrets_in(state, around)
    if isinstance(arguments, Refusal):
        return arguments
    around.tell(CallBegan(state.call.id, tool.name, state.value, str(tool.effects)))

    async def late(end: End) -> None:
        try:
            if around.on_late is not None:
                text = end.error or "".join(getattr(p, "text", "") for p in end.parts)
                await around.on_late(state, _outcome(tool, end), around.clean(text))
        finally:
            for lock in reversed(state.locks):
                lock.release()

    timer = None
    if tool.timeout_s is not None:
        timer = asyncio.get_running_loop().call_later(tool.timeout_s, stop.set, "timeout")
    around.stops.add(stop)
    if around.cancel_reason:
        stop.set(around.cancel_reason)
    try:
        end = await around.units.run(
            tool, arguments, context, stop, grace_s=around.grace_s, late=late,
            held=[lock.descriptor for lock in state.locks if lock.descriptor is not None],
        )  # fmt: skip
    finally:
        around.stops.discard(stop)
        if timer is not None:
            timer.cancel()
    del arguments  # with the values of secrets
    end_output(context)
    state.duration_s = around.clock.monotonic() - begun
    return await _judge(state, around, tool, end, stop.reason)


def _outcome(tool: Tool, end: End) -> Outcome:
    """What is true of the effect."""
    if end.ending is Ending.RETURNED:
        return Outcome.DONE
    if end.tool_error is not None and end.tool_error.outcome is not None:
        return end.tool_error.outcome
    if end.ending is Ending.NOT_BEGUN or tool.effects is Effects.READ:
        return Outcome.FAILED_BEFORE_EFFECT
    match end.mark:
        case EffectMark.NOT_BEGUN if end.ending is not Ending.LEFT:
            return Outcome.FAILED_BEFORE_EFFECT
        case EffectMark.COMPLETE:
            return Outcome.FAILED_AFTER_EFFECT
        case _:
            return Outcome.UNKNOWN


async def _judge(
    state: CallState, around: Surroundings, tool: Tool, end: End, reason: str
) -> Refusal | None:
    outcome = _outcome(tool, end)
    if end.ending is Ending.RETURNED:
        state.content, state.result_value = without_secrets(end.parts, end.value, around)
        state.outcome = Outcome.DONE
        if reason:
            state.notes.append(f"It ended by itself while it was being stopped ({reason}).")
        return None
    if (
        outcome is Outcome.UNKNOWN
        and tool.recovery is Idempotency.QUERYABLE
        and end.ending is not Ending.LEFT
    ):
        refusal = await ask_outcome(state, around, tool)
        if state.outcome is Outcome.DONE:
            return None
        outcome = Outcome.UNKNOWN if refusal is not None else Outcome.FAILED_BEFORE_EFFECT
    if end.ending is Ending.RAISED and end.tool_error is not None:
        state.said, _ = without_secrets(end.tool_error.said, None, around)
    return _refuse(state, around, tool, end, reason, outcome)


def _refuse(
    state: CallState, around: Surroundings, tool: Tool, end: End, reason: str, outcome: Outcome
) -> Refusal:
    details: dict[str, Any] = {}
    if end.quiet_after_s is not None and end.ending is not Ending.LEFT:
        details["stopped_in_s"] = round(end.quiet_after_s, 3)
    if end.ending is Ending.RAISED:
        return _raised(tool, end, outcome)
    if end.ending is Ending.NOT_BEGUN and not reason:
        return Refusal("crashed", f"{tool.name} could not be started: {end.error}",
                       next="The tool is at fault, not the call: go on without it and say so.",
                       outcome=outcome)  # fmt: skip
    if end.ending is Ending.DIED:
        return Refusal(
            "crashed",
            f"{tool.name} did not return: {end.error}. {_effect_words(outcome)}",
            next=_CHECK_FIRST
            if outcome is Outcome.UNKNOWN
            else "Call it once more, or go on without it.",
            retryable=outcome is not Outcome.UNKNOWN,
            outcome=outcome,
        )
    running = ""
    if end.ending is Ending.LEFT:
        how = "cannot be stopped"
        if end.quiet_after_s is not None:
            how = f"did not stop within {end.quiet_after_s:.1f} s"
        running = f" It {how} and is still running; if it ends, a note will say how."
        details["still_running"] = True
        state.left = True
        around.tell(Warned(f"{tool.name} ({state.call.id}) would not stop and is still running."))
    if reason == "timeout":
        message = (
            f"{tool.name} took longer than {tool.timeout_s:g} s and was stopped.{running} "
            f"{_effect_words(outcome)}"
        )
        step = (
            _CHECK_FIRST if outcome is Outcome.UNKNOWN
            else "Ask for less at a time, or go on without it."
        )  # fmt: skip
        return Refusal("timeout", message, next=step, retryable=outcome is not Outcome.UNKNOWN,
                       outcome=outcome, details=details)  # fmt: skip
    return Refusal(
        "cancelled",
        f"{tool.name} was cancelled after {state.duration_s or 0:.1f} s.{running} "
        f"{_effect_words(outcome)}",
        next=_CHECK_FIRST if outcome is Outcome.UNKNOWN else "Wait for what the user wants now.",
        outcome=outcome,
        details=details,
    )


def _raised(tool: Tool, end: End, outcome: Outcome) -> Refusal:
    error = end.tool_error
    if error is not None:
        return Refusal(
            error.code,
            error.message,
            next=error.next or "Correct the call, or go on without it.",
            retryable=error.retryable,
            outcome=outcome,
            details=error.details,
        )
    step = "Correct the call if the message shows what is wrong; else go on without it and say so."
    if outcome is Outcome.UNKNOWN:
        step = f"{_CHECK_FIRST} Then correct the call if the message shows what is wrong."
    if outcome is Outcome.FAILED_AFTER_EFFECT:
        step = "Do not call it again: the change is made. Say what failed, or mend what is missing."
    return Refusal(
        "tool_error",
        f"{tool.name} failed: {end.error}. {_effect_words(outcome)}".replace(".. ", ". "),
        next=step,
        retryable=outcome is not Outcome.FAILED_AFTER_EFFECT
        and (outcome is not Outcome.UNKNOWN or tool.recovery is not Idempotency.NONE),
        outcome=outcome,
    )


def _effect_words(outcome: Outcome) -> str:
    match outcome:
        case Outcome.UNKNOWN:
            return "Whether its effect happened is not known."
        case Outcome.FAILED_AFTER_EFFECT:
            return "Its effect has happened."
        case _:
            return "Nothing was changed."
