"""What a run gives back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.usage import Usage
from lorimer.tools.dispatch.parse import Fault, read
from lorimer.tools.dispatch.state import CallState

if TYPE_CHECKING:
    from lorimer.context.answers.records import Derived, Flag


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call of a run: what was asked, what became of it, what the model was told.

    `arguments` are the parsed arguments, `None` when they could not be parsed; `raw` is what the
    model wrote, byte for byte.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    raw: str
    outcome: Outcome
    code: str
    result: str
    duration_s: float | None

    @staticmethod
    def of(state: CallState) -> CallReport:
        assert state.result is not None
        value = state.value
        if value is None and state.journal is not None:
            value = state.journal.value
        if value is None:
            with suppress(Fault):
                value = read(state.call.raw)[0]
        code = state.code
        if state.replayed and state.journal is not None:
            code = state.journal.code
        text = "".join(
            p.text if isinstance(p, TextPart) else f"[{p.media_type} image]"
            for p in state.result.content
            if isinstance(p, TextPart | ImagePart)
        )
        return CallReport(
            state.call.id,
            state.name,
            value if isinstance(value, Mapping) else None,
            state.call.raw,
            state.outcome,
            code,
            text,
            state.duration_s,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "arguments": self.arguments,
            "raw": self.raw,
            "outcome": str(self.outcome),
            "code": self.code,
            "result": self.result,
            "duration_s": self.duration_s,
        }


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    Attributes:
        answer: the model's last words; empty when it had none.
        stop: `answered`, or why it ended before: `cancelled`, `max_steps`, `max_tokens`,
            `max_cost`, `max_time`, `length` (the answer is cut), `refusal`, `empty`, `failures`,
            `breaker` (too much was rejected).
        usage: of all requests of the run; `delegated` is what sub-agents have used of it. What they
            use after the run has ended counts into the next one.
        session: id of the session, to go on with.
        steps: answers of the model.
        notes: what the harness did or noticed besides: requests that failed and were repeated.
        flags: what the answer says and nothing recorded bears out (`Agent(answers=…)`).
        derived: what it says that follows from results by one simple step.
        answer_raw: what the model wrote, where templates in it were filled; that is recorded.
    """

    answer: str
    stop: str
    calls: tuple[CallReport, ...]
    usage: Usage
    session: str
    steps: int
    notes: tuple[str, ...] = ()
    delegated: Usage = field(default_factory=Usage)
    flags: tuple[Flag, ...] = ()
    derived: tuple[Derived, ...] = ()
    answer_raw: str | None = None

    @property
    def ok(self) -> bool:
        return self.stop == "answered"

    def to_json(self) -> dict[str, Any]:
        raw = {} if self.answer_raw is None else {"answer_raw": self.answer_raw}
        return {
            "answer": self.answer,
            **raw,
            "flags": [flag.to_json() for flag in self.flags],
            "derived": [one.to_json() for one in self.derived],
            "stop": self.stop,
            "calls": [call.to_json() for call in self.calls],
            "usage": self.usage.to_json(),
            **({"delegated": self.delegated.to_json()} if self.delegated.requests else {}),
            "session": self.session,
            "steps": self.steps,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return self.answer
