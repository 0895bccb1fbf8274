"""The plan of one compaction: which entries are replaced, by what, and what that saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lorimer.context.compaction.depth import WHOLE, Depth
from lorimer.context.compaction.digest import Digest, References
from lorimer.context.compaction.groups import FRAME
from lorimer.context.compaction.telling import label_of, summary_text
from lorimer.context.compaction.units import UNSEEN, Unit
from lorimer.context.view import Span
from lorimer.core.messages import Entry, ImagePart, Kind, Part, ResultPart, TextPart

CALLS = "calls"
"""In the meta of a summary: the ids of the calls it stands for."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of neighbouring units that one summary replaces.

    Attributes:
        first, last: numbers of the first and last entry.
        digests: the calls in it, in order.
        said: what the model said beside them, word for word.
        answer: the answer that ended a thinking loop; it stays, without its reasoning.
        newest: calls whose results stand whole in the summary.
        characters: what it takes now.
    """

    first: int
    last: int
    digests: tuple[Digest, ...]
    said: tuple[str, ...]
    answer: Entry | None
    newest: tuple[str, ...]
    characters: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Attributes:
    blocks: what is replaced.
    kept: calls that stay, and why.
    """

    blocks: tuple[Block, ...]
    kept: tuple[tuple[str, str], ...] = ()

    @property
    def digests(self) -> list[Digest]:
        return [d for block in self.blocks for d in block.digests]

    @property
    def characters(self) -> int:
        return sum(block.characters for block in self.blocks)

    def with_digests(self, made: Iterable[Digest]) -> Plan:
        """The same plan with other digests of the same calls."""
        by_id = {d.call.id: d for d in made}
        blocks = tuple(
            replace(b, digests=tuple(by_id.get(d.call.id, d) for d in b.digests))
            for b in self.blocks
        )
        return replace(self, blocks=blocks)


@dataclass(frozen=True, slots=True)
class Made:
    """The spans of a plan, ready to be recorded; `characters` of all that then stands where the
    plan's blocks are; the `calls` that the spans stand for."""

    spans: tuple[Span, ...] = ()
    characters: int = 0
    texts: tuple[str, ...] = field(default=())
    calls: tuple[str, ...] = ()


def plan_of(
    view: Sequence[Entry],
    covers: Sequence[tuple[int, int]],
    units: Sequence[Unit],
    digest: Callable[[Entry, Entry], list[Digest]],
    *,
    again: Mapping[str, Digest] | None = None,
    whole_loop: bool = False,
) -> Plan:
    """The plan that replaces every unit that may be replaced.

    Args:
        covers: for each entry of `view` the numbers it stands for.
        digest: makes the digests of one answer with calls and its results.
        again: digests of calls that an earlier compaction left out, by id: their summaries are
            replaced too. Without it they stay as they are.
        whole_loop: the last unit is a thinking loop that is still open: its newest results stand
            whole.
    """
    blocks: list[Block] = []
    kept: list[tuple[str, str]] = []
    run: list[Unit] = []

    def close() -> None:
        if run:
            blocks.append(_block(view, covers, tuple(run), digest, again or {}, whole_loop))
            run.clear()

    end = -1
    for unit in units:
        if run and not _touch(view, end, unit.first):
            close()
        end = unit.last
        if not unit.turns and again is None:
            close()
            continue
        if unit.why_kept:
            close()
            names = {r.name for t in unit.turns for r in view[t.results].results}
            kept.append((", ".join(sorted(names)), unit.why_kept))
            continue
        run.append(unit)
        if unit.answer >= 0:
            close()
    close()
    return Plan(tuple(blocks), tuple(kept))


def _touch(view: Sequence[Entry], end: int, first: int) -> bool:
    """Whether only status bars stand between two units."""
    return all(view[at].kind is Kind.STATUS for at in range(end + 1, first))


def _block(
    view: Sequence[Entry],
    covers: Sequence[tuple[int, int]],
    run: tuple[Unit, ...],
    digest: Callable[[Entry, Entry], list[Digest]],
    again: Mapping[str, Digest],
    whole_loop: bool,
) -> Block:
    digests: list[Digest] = []
    said: list[str] = []
    newest: tuple[str, ...] = ()
    for unit in run:
        if not unit.turns:
            old = view[unit.first]
            digests += [again[one] for one in old.meta.get(CALLS, ()) if one in again]
            said += [str(one) for one in old.meta.get("said", ())]
        for turn in unit.turns:
            made = digest(view[turn.calls], view[turn.results])
            digests += made
            if view[turn.calls].text.strip():
                said.append(view[turn.calls].text)
            if whole_loop and turn is run[-1].turns[-1]:
                newest = tuple(d.call.id for d in made)
    answer = view[run[-1].answer] if run[-1].answer >= 0 else None
    first, last = covers[run[0].first][0], covers[run[-1].last][1]
    size = sum(characters_of(view[at]) for at in range(run[0].first, run[-1].last + 1))
    return Block(first, last, tuple(digests), tuple(said), answer, newest, size)


def make(
    plan: Plan,
    references: References,
    at: datetime,
    notes: Sequence[str] = (),
    *,
    depth: Depth = WHOLE,
) -> Made:
    """The spans of `plan`. `notes` stand in the last summary. A block whose summary would not be
    shorter than what it replaces stays as it is."""
    spans: list[Span] = []
    texts: list[str] = []
    calls: list[str] = []
    size = 0
    for number, block in enumerate(plan.blocks):
        newest = [d for d in block.digests if d.call.id in block.newest]
        rest = [d for d in block.digests if d.call.id not in block.newest]
        last = number + 1 == len(plan.blocks)
        text = summary_text(
            rest, references, said=block.said, newest=newest, notes=notes if last else (),
            depth=depth,
        )  # fmt: skip
        meta = {CALLS: [d.call.id for d in block.digests], "said": list(block.said)}
        entries = [Entry(Kind.COMPACTION, (TextPart(text, *label_of(block.digests)),), at,
                         block.first, meta)]  # fmt: skip
        if block.answer is not None:
            parts = tuple(p for p in block.answer.parts if isinstance(p, TextPart))
            facts = {k: v for k, v in block.answer.meta.items() if k not in ("usage", "cache")}
            entries.append(Entry(Kind.ASSISTANT, parts, block.answer.at, block.first, facts))
        new = sum(characters_of(entry) for entry in entries)
        if new >= block.characters and not (last and notes):
            size += block.characters
            continue
        spans.append(Span(block.first, block.last, tuple(entries)))
        texts.append(text)
        calls += [d.call.id for d in block.digests]
        size += new
    return Made(tuple(spans), size, tuple(texts), tuple(calls))


def characters_of(entry: Entry) -> int:
    """The characters of the text in `entry`, with what its calls and results take besides; images
    are none."""
    return sum(_size(part) for part in entry.parts)


def _size(part: Part) -> int:
    match part:
        case TextPart(text=text):
            return len(text)
        case ResultPart(content=content):
            return FRAME + sum(_size(one) for one in content if not isinstance(one, ImagePart))
        case _:
            call = getattr(part, "call", None)
            return 0 if call is None else FRAME + len(call.raw) + len(call.name)


__all__ = ["CALLS", "UNSEEN", "Block", "Made", "Plan", "characters_of", "make", "plan_of"]
