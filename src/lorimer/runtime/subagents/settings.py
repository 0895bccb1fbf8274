"""How far sub-agents may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import TYPE_CHECKING

from lorimer.context.agents import Definition
from lorimer.core.errors import ConfigError

if TYPE_CHECKING:
    from lorimer.models.protocol import Model


@dataclass(frozen=True, slots=True)
class Budget:
    """What one sub-agent may use for one task; `None` means no bound of its own.

    Whatever it uses counts against the limits of the run that started it, too.

    Attributes:
        max_steps: model requests.
        max_tokens: tokens read and written, over all its requests.
        max_cost: US dollars, as far as prices are known.
        max_time_s: seconds from its start.
    """

    max_steps: int | None = 25
    max_tokens: int | None = 400_000
    max_cost: Decimal | None = None
    max_time_s: float | None = 900.0


@dataclass(frozen=True, slots=True)
class SubagentSettings:
    """What an agent may delegate.

    Attributes:
        max_depth: how many sub-agents may stand below each other; 0: none at all.
        max_at_once: how many of one session work at the same time.
        max_total: how many a run may start, those that its sub-agents start included.
        retries: how often one may correct an answer that does not fit its schema.
        max_failures: calls in a row of one that may fail before it is stopped.
        models: what model names in definitions stand for here: another name, or a model. The names
            of `inherit` and of nothing here are those of `lorimer models list`.
        definitions: kinds of sub-agents besides those in files; they come first.
        files: whether the files of the user and of a trusted project are read.
    """

    max_depth: int = 2
    max_at_once: int = 4
    max_total: int = 16
    budget: Budget = field(default_factory=Budget)
    retries: int = 2
    max_failures: int = 6
    models: Mapping[str, str | Model] = field(default_factory=dict)
    definitions: Sequence[Definition] = ()
    files: bool = True

    def __post_init__(self) -> None:
        for one in ("max_depth", "max_at_once", "max_total", "retries"):
            _number(one, getattr(self, one), 0)
        _number("max_failures", self.max_failures, 1)
        for bound in fields(Budget):
            value = getattr(self.budget, bound.name)
            if value is not None and not value > 0:
                raise ConfigError(
                    f"Budget({bound.name}={value!r}) leaves nothing to do.",
                    next="Use a number above 0, or None for no bound.",
                )


def _number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"SubagentSettings({name}={value!r}) is no number of {least} or more.")
