"""What an answer is filled from and checked against, and what came of that. Plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from lorimer.core.errors import ConfigError

Mode = Literal["check", "fill"]
Severity = Literal["contradicts", "unsupported"]
_ALWAYS_SHOWN: Final = frozenset({"money", "date", "id", "url", "email", "status", "template"})


class Numeral(str):
    """A JSON number as it was written: `1234.50` stays that."""

    __slots__ = ()


class _Nothing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
"""The value of a result that is text, not JSON."""


@dataclass(frozen=True, slots=True)
class Source:
    """One recorded result.

    Attributes:
        call_id, tool: of the call; empty for what is no result (the user's words).
        text: what the result says, without the tags and notes of the harness.
        value: its JSON object or list, with `Numeral` for each number; `NOTHING` for text.
        whole: whether all of it entered the context; of a long result only a preview does.
        done: whether the call was done; an error says nothing that a template may use.
        acted: arguments of a call that changed something: they say what was done.
    """

    call_id: str
    tool: str
    text: str
    value: Any = NOTHING
    whole: bool = True
    done: bool = True
    acted: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """Something in an answer that nothing recorded bears out, or a template that was not filled.

    Attributes:
        kind: `number`, `money`, `percent`, `date`, `time`, `id`, `url`, `email`, `status` or
            `template`.
        text: as it stands in the answer.
        span: where, as character positions in the (filled) answer.
        why: what is wrong, for a person.
        nearest: the recorded value that is most like it, with where it stands; may be empty.
        severity: `contradicts` where a recorded value is one slip away, or says otherwise;
            `unsupported` where only nothing bears it out.
    """

    kind: str
    text: str
    span: tuple[int, int]
    why: str
    nearest: str = ""
    severity: Severity = "unsupported"

    @property
    def worth_showing(self) -> bool:
        """Whether a person is told without asking: not of an unsupported number, share or time,
        which often is the model's own knowledge or reckoning."""
        return self.severity == "contradicts" or self.kind in _ALWAYS_SHOWN

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "text": self.text, "span": list(self.span), "why": self.why,
            "nearest": self.nearest, "severity": self.severity,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that no result holds, and that code could work out from values they hold."""

    kind: str
    text: str
    span: tuple[int, int]
    how: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "span": list(self.span), "how": self.how}


@dataclass(frozen=True, slots=True)
class Filled:
    """A template that was replaced: where its value stands in the filled answer."""

    template: str
    value: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer as it is shown, and what was found in it."""

    answer: str
    flags: tuple[Flag, ...] = ()
    derived: tuple[Derived, ...] = ()
    filled: tuple[Filled, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """What is done with the answers of a session.

    Attributes:
        check: flag numbers, dates, ids and states that nothing recorded bears out.
        fill: replace `{{call.field}}` by the recorded value, and teach the model to write that.
        kinds: the kinds of `Flag` that are looked for.
        without_results: check as well while no tool has given anything; then all that the model
            knows by itself is flagged.
        allowed: texts that count as borne out wherever they stand, e.g. a telephone number.
    """

    check: bool = True
    fill: bool = False
    kinds: frozenset[str] = frozenset(
        {"number", "money", "percent", "date", "time", "id", "url", "email", "status", "template"}
    )
    without_results: bool = False
    allowed: tuple[str, ...] = field(default=())

    @staticmethod
    def of(given: str | AnswerSettings | None) -> AnswerSettings | None:
        """From the option `Agent(answers=…)`: `None`, `"check"`, `"fill"` (which checks as well).

        Raises:
            ConfigError: for anything else.
        """
        match given:
            case None | AnswerSettings():
                return given
            case "check":
                return AnswerSettings()
            case "fill":
                return AnswerSettings(fill=True)
        raise ConfigError(
            f"answers={given!r} is not known.", next='Use "check", "fill", AnswerSettings or None.'
        )
