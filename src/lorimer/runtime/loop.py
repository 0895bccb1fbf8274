"""The loop of one run: ask the model, run its calls, tell it the results, until it answers.

Reads top to bottom. Every line that changes the record is a `session.record_…`: on disk when it
returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome, Refusal
from lorimer.core.usage import Usage
from lorimer.core.watch import RequestBegan, RequestEnded, Warned
from lorimer.models.protocol import StopReason
from lorimer.models.retry import Retry, stream_with_retry
from lorimer.runtime.reply import Reply, read_reply
from lorimer.runtime.results import CallReport, RunResult
from lorimer.tools.dispatch.state import CallState

if TYPE_CHECKING:
    from lorimer.runtime.session import Session

_EMPTY_NOTE = "Your last answer was empty. Answer the user in words, or call a tool."
_NOTHING_LEFT_NOTE = (
    "Your last answer was cut off ({why}) before it said anything. Think less, and answer in words "
    "or call one tool."
)
_MOST_BAD_REPLIES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; `None` means none.

    Attributes:
        max_steps: model requests, those of sub-agents included.
        max_cost: US dollars, as far as prices are known.
        max_time_s: seconds; what runs then is stopped and recorded.
        max_tokens: tokens read and written, over all requests.
        max_failures: calls in a row that failed, of any tools.
        request_attempts: how often one model request is sent when the provider fails.
        request_deadline_s: seconds for one model request, with its repetitions.
    """

    max_steps: int | None = 50
    max_cost: Decimal | None = None
    max_time_s: float | None = None
    max_failures: int = 12
    max_tokens: int | None = None
    request_attempts: int = 3
    request_deadline_s: float = 1800.0


@dataclass(slots=True)
class Run:
    """What a run has gathered so far; `delegated` is what sub-agents have used of `usage`."""

    calls: list[CallReport] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    delegated: Usage = field(default_factory=Usage)
    steps: int = 0
    bad_replies: int = 0
    failures: int = 0
    last_text: str = ""
    notes: list[str] = field(default_factory=list)


async def run_loop(session: Session, run: Run, limits: Limits) -> str:
    """Run until the model answers; why the run ended (`RunResult.stop`).

    Raises:
        ModelError: when the model cannot answer; the record is true and the run can be resumed.
        StoreError: when the record cannot be written; nothing runs that is not recorded.
    """
    while True:
        await session.record_late_results()
        stop = _limit(run, limits)
        if stop is not None:
            return stop
        if session.cancel_requested:
            return session.cancel_requested
        await session.prepare()
        run.usage += session.take_side_usage()
        if session.cancel_requested:
            return session.cancel_requested
        run.steps += 1
        reply = await _ask(session, limits, run)
        if reply is None:
            return session.cancel_requested
        run.usage += reply.usage
        if not reply.calls and not reply.text.strip():
            run.bad_replies += 1
            if reply.stop is StopReason.REFUSAL:
                return "refusal"
            if run.bad_replies >= _MOST_BAD_REPLIES:
                return "length" if reply.cut else "empty"
            why = reply.raw_stop or str(reply.stop)
            note = _NOTHING_LEFT_NOTE.format(why=why) if reply.cut else _EMPTY_NOTE
            await session.record_note(note, **session.request_facts(reply))
            continue
        calls = await session.record_reply(reply)
        run.last_text = reply.text or run.last_text
        if reply.cut:
            run.bad_replies += 1
            if not calls:
                return "refusal" if reply.stop is StopReason.REFUSAL else "length"
            states = await session.dispatcher.refuse_all(calls, _cut_off(reply))
            await session.record_results(states)
            run.calls += map(CallReport.of, states)
            if run.bad_replies >= _MOST_BAD_REPLIES:
                return "length"
            continue
        run.bad_replies = 0
        if not calls:
            await session.compaction.after_turn()
            return "answered"
        states = await session.dispatcher.run(calls)
        if session.foresight is not None:
            await session.foresight.drop()
        await session.compaction.entering(states)
        await session.record_results(states)
        run.calls += map(CallReport.of, states)
        _count_failures(run, states)
        if session.dispatcher.cancelled:
            raise asyncio.CancelledError
        if session.dispatcher.around.halted:
            return session.dispatcher.around.halted


async def _ask(session: Session, limits: Limits, run: Run) -> Reply | None:
    """One model request, repeated when the provider fails; `None` when the run was cancelled. Each
    repetition is in the result and in the record."""
    failed: list[str] = []

    def on_retry(retry: Retry) -> None:
        words = f"Attempt {retry.attempt} of {retry.of} failed: {retry.error}"
        failed.append(session.agent.secrets.redact(words))
        session.tell(Warned(failed[-1]))

    events = stream_with_retry(
        session.model,
        session.cache.watched(session.trajectory.request(session.settings, session.tail)),
        attempts=limits.request_attempts,
        deadline_s=limits.request_deadline_s,
        on_retry=on_retry,
    )
    watch: Callable[[Any], None] | None = None if session.watch is None else session.tell
    if watch is not None and session.answers is not None:
        watch = session.answers.streamed(watch)
    name, reply, error = session.model.name, None, ""
    session.tell(RequestBegan(name, run.steps, session.model.profile.wire))
    try:
        reply = await session.until_cancelled(read_reply(events, watch, session.foresight))
        return reply
    except BaseException as fault:
        error = type(fault).__name__
        raise
    finally:
        if session.foresight is not None and (reply is None or reply.cut):
            await session.foresight.drop()
        if reply is None:
            ended = RequestEnded(name, run.steps, error=error or "cancelled")
        else:
            ended = RequestEnded(name, run.steps, reply.raw_stop or str(reply.stop), reply.usage)
        session.tell(replace(ended, attempts=len(failed) + 1))
        if failed:
            run.notes += failed
            run.usage = replace(run.usage, requests=run.usage.requests + len(failed))
            await session.record_retries(failed)


def _limit(run: Run, limits: Limits) -> str | None:
    failed = "failures" if run.failures >= limits.max_failures else None
    return limit_reached(run, limits) or failed


def limit_reached(run: Run, limits: Limits) -> str | None:
    """The bound on requests, tokens or money that is reached; what sub-agents have used counts."""
    steps = run.steps + run.delegated.requests
    if limits.max_steps is not None and steps >= limits.max_steps:
        return "max_steps"
    tokens = run.usage.input_tokens + run.usage.output_tokens
    if limits.max_tokens is not None and tokens >= limits.max_tokens:
        return "max_tokens"
    if (
        limits.max_cost is not None
        and run.usage.cost is not None
        and run.usage.cost >= limits.max_cost
    ):
        return "max_cost"
    return None


def _count_failures(run: Run, states: list[CallState]) -> None:
    for state in states:
        run.failures = 0 if state.outcome is Outcome.DONE else run.failures + 1


def _cut_off(reply: Reply) -> Refusal:
    return Refusal(
        "truncated",
        f"Your answer was cut off before its end ({reply.raw_stop or reply.stop}), so "
        "none of its calls "
        "was run, not even those that look complete.",
        next="Call again with less text: one call at a time, or the content in smaller pieces.",
        retryable=True,
    )


def finish(session_id: str, run: Run, stop: str) -> RunResult:
    """The result of a run that ended with `stop`."""
    answer = run.last_text if stop in ("answered", "length", "refusal") else ""
    calls, notes = tuple(run.calls), tuple(run.notes)
    return RunResult(
        answer, stop, calls, run.usage, session_id, run.steps, notes, delegated=run.delegated
    )
