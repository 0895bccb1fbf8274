"""Many small calls as one: which tools, how many, what they gave, and how each is read again.

A call by itself costs more words than a short result has; a run of them is told in lines without
ids, as many as there is room for, and read again by one reference to all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from lorimer.context.compaction.depth import Depth
from lorimer.context.compaction.digest import Digest, References
from lorimer.context.events import escaped
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust

FRAME: Final = 60
"""Characters that a call, and a result, take besides their text: ids, keys, quotes."""
_ARGUMENTS: Final = 80
_LINE: Final = 1_000
_NAMED: Final = 6


def replaced(digest: Digest) -> int:
    """The characters that a call and its result take in the context."""
    return len(digest.text) + len(digest.call.raw) + len(digest.result.name) + 2 * FRAME


def runs_of(digests: Sequence[Digest], depth: Depth) -> Iterator[list[Digest]]:
    """`digests` in order: small neighbours of one kind together, all others alone."""

    def kind(digest: Digest) -> object:
        if digest.images or len(digest.text) > depth.small:
            return digest.call.id
        name = "" if depth.mixed else digest.result.name
        return (digest.trust is Trust.EXTERNAL, name)

    for _, run in groupby(digests, kind):
        yield list(run)


def group_text(run: Sequence[Digest], references: References, depth: Depth) -> str:
    """One run of calls, at most `depth.share` of what they take, and a line."""
    counts = Counter(d.result.name for d in run)
    tools = ", ".join(f"{name} ×{count}" for name, count in counts.most_common(_NAMED))
    if len(counts) > _NAMED:
        tools += f" and {len(counts) - _NAMED} other tools"
    how = references.group([d.call.id for d in run])
    size = sum(len(d.text) for d in run)
    head = f"[{len(run)} calls] {tools} → done, {size:,} characters in all; read again: {how}"
    lines: list[str] = []
    room = depth.share * sum(map(replaced, run)) - len(head)
    mixed = len(counts) > 1
    for digest in reversed(run):
        line = _line(digest, mixed)
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        lines.append(line)
    lines.reverse()
    if not lines:
        first, last = (_brief(d.call.raw) for d in (run[0], run[-1]))
        lines.append(f"- first {first}, last {last}")
    elif len(lines) < len(run):
        left = len(run) - len(lines)
        lines.insert(0, f"- first {_brief(run[0].call.raw)}; {left} are not listed; then:")
    body = escaped("\n".join(lines))
    if run[0].trust is Trust.EXTERNAL:
        sources = list(dict.fromkeys(d.source for d in run))
        more = f" and {len(sources) - 1} others" if len(sources) > 1 else ""
        body = wrap_external(body, escaped(sources[0]) + more, run[0].call.id)
    return f"{escaped(head)}\n{body}"


def _line(digest: Digest, mixed: bool) -> str:
    text = " / ".join(digest.lines) or digest.text
    if digest.low_value:
        text = "used, left out"
    text = " ".join(text.split())
    if len(text) > _LINE:
        text = f"{text[:_LINE]}…"
    name = f"{digest.result.name} " if mixed else ""
    return f"- {name}{_brief(digest.call.raw)} → {text}"


def _brief(raw: str) -> str:
    flat = " ".join(raw.split())
    return flat if len(flat) <= _ARGUMENTS else f"{flat[:_ARGUMENTS]}…"
