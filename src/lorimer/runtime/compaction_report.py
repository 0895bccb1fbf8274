"""What a compaction did or would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lorimer.context.compaction.depth import WHOLE
from lorimer.context.compaction.digest import Digest
from lorimer.context.compaction.plan import Made
from lorimer.context.compaction.summary import Checked


@dataclass(frozen=True, slots=True)
class Report:
    """What a compaction did, or would do.

    Attributes:
        done: whether it was recorded.
        level: `notes` (code alone), `model` (with a summary of the model), or empty.
        why: why nothing was done.
        calls, kept: calls that are replaced; calls that stay, and why.
        tokens_before, tokens_after: of the next request, estimated.
        characters_before, characters_after: of what is replaced, and of what stands in its place.
        dropped: lines of the model's summary that no source holds.
        texts: what would stand in the context.
    """

    strategy: str
    done: bool = False
    level: str = ""
    why: str = ""
    calls: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    characters_before: int = 0
    characters_after: int = 0
    dropped: int = 0
    texts: tuple[str, ...] = ()


def cannot_help(report: Report, goal: float) -> bool:
    """Whether even a very short summary would leave the request over its goal: what is large then
    is what may not be replaced."""
    saved = report.characters_before - report.characters_after
    tokens_each = (report.tokens_before - report.tokens_after) / max(1, saved)
    return report.tokens_after - 0.7 * tokens_each * report.characters_after > goal


def is_small(digests: Sequence[Digest]) -> bool:
    """Whether most of what is replaced are short results: a model has little to shorten there."""
    sizes = [len(d.text) for d in digests]
    return 2 * sum(size for size in sizes if size <= WHOLE.small) > sum(sizes)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to compact, and the checked summary that it used."""

    report: Report
    made: Made
    model: Checked | None
