"""Tool calls, what became of them, and what the model reads about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class Effects(StrEnum):
    """What a call does to the world. `READ` may run beside others and be repeated; `WRITE` runs in
    order; `IRREVERSIBLE` runs in order, is reviewed, and cannot be undone."""

    READ = "read"
    WRITE = "write"
    IRREVERSIBLE = "irreversible"


class Idempotency(StrEnum):
    """What may be done when a call's outcome is not known.

    `NATURAL`: running twice is the same as once. `KEYED`: the far side drops a second call with the
    same operation key. `QUERYABLE`: the tool can say what became of a key. `NONE`: never again."""

    NATURAL = "natural"
    KEYED = "keyed"
    QUERYABLE = "queryable"
    NONE = "none"


class Outcome(StrEnum):
    """How a call ended; exactly one of these, on disk before the model is told (G1)."""

    DONE = "done"
    FAILED_BEFORE_EFFECT = "failed_before_effect"
    FAILED_AFTER_EFFECT = "failed_after_effect"
    UNKNOWN = "unknown"
    NOT_STARTED = "not_started"


class JournalState(StrEnum):
    """Where a call stands in the journal."""

    PLANNED = "planned"
    STARTED = "started"
    FINISHED = "finished"


class _Unparsed:
    """The value of arguments that were not parsed (yet)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNPARSED"


UNPARSED: Final = _Unparsed()


@dataclass(frozen=True, slots=True)
class Diff:
    """One change between what the model wrote and what the tool gets (G4).

    `path` is a JSON pointer; `rule` names the declared normaliser, repair or reading rule.
    """

    path: str
    written: Any
    used: Any
    rule: str

    def __str__(self) -> str:
        where = self.path or "the arguments"
        return f"{where}: {_short(self.written)} was read as {_short(self.used)} ({self.rule})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it.

    Attributes:
        id: unique in the session; the provider's own id where it gave a usable one.
        name: the tool's name as written, known or not.
        raw: the arguments exactly as they were written: JSON text (for providers that send an
            object: the text of that object as it stood on the wire).
        value: the parsed arguments, `UNPARSED` before the parse station.
        diffs: every change between `raw` and `value`.
        opaque: what the provider wants back beside the call (e.g. a Gemini thought signature,
            a Responses item id), untouched.
    """

    id: str
    name: str
    raw: str
    value: Any = UNPARSED
    diffs: tuple[Diff, ...] = ()
    opaque: Mapping[str, Any] | None = None

    @property
    def raw_bytes(self) -> bytes:
        return self.raw.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a call: where (JSON pointer), what was given, what is allowed."""

    path: str
    given: Any
    expected: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call did not succeed, in a form that the model can act on (G11).

    Attributes:
        code: one of the codes of `docs/how-a-call-runs.md`, e.g. `unknown_tool`, `timeout`.
        message: what was wrong.
        next: one concrete step.
        retryable: whether the same tool may be called again with a corrected call.
    """

    code: str
    message: str
    problems: tuple[Problem, ...] = ()
    next: str = ""
    retryable: bool = False
    outcome: Outcome = Outcome.NOT_STARTED
    attempt: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The error object of `docs/how-a-call-runs.md`; the keys stand in reading order."""
        out: dict[str, Any] = {"error": self.code, "message": self.message}
        if self.problems:
            out["problems"] = [
                {"path": p.path, "given": p.given, "expected": p.expected} for p in self.problems
            ]
        out["next"] = self.next
        out["retryable"] = self.retryable
        if self.attempt is not None:
            out["attempt"] = self.attempt
        out["outcome"] = str(self.outcome)
        return out | {key: value for key, value in self.details.items() if key not in out}
