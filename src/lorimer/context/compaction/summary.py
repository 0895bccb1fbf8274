"""A summary that a model wrote, held against its sources line by line.

What a source says stays, under the result that says it and with its trust label. A figure, name or
rule that no source holds is dropped, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lorimer.context.compaction.anchors import SourceText, read_line
from lorimer.context.compaction.constraints import binds
from lorimer.context.compaction.digest import Digest
from lorimer.context.compaction.sentences import sentences_of

INVENTED = "no source holds it"
NOT_TOGETHER = "no source says it like that"
REWORDED = "a rule that no source states in these words"
UNCITED = "it names no source that holds it"

_MARK = re.compile(r"^\s*(?:[-*•‣]|\d{1,2}[.)])\s+")
_CITE = re.compile(r"\s*[\[(](?:source|src|from)?:?\s*([\w.:/?=&%#~+@-]+)[\])]\s*[.;]?\s*$", re.I)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s.*|[^.!?]{1,60}:)\s*$")
_TAGS = re.compile(r"</?(?:context_summary|external_content|summary)\b[^>]*>")


@dataclass(frozen=True, slots=True)
class Refused:
    """The whole answer cannot be used. `code`: `called_a_tool`, `empty`, `too_long`, `cut_off`,
    `nothing_left`, `failed` (no answer came)."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line of a summary that was dropped, and why."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What is left of a summary.

    Attributes:
        lines: by call id, the lines that its result holds.
        dropped: lines that no source holds.
        refused: why the whole of it cannot be used, when it cannot.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    refused: Refused | None = None

    @property
    def kept(self) -> int:
        return sum(map(len, self.lines.values()))


def check_summary(
    text: str,
    digests: Sequence[Digest],
    *,
    called: Sequence[str] = (),
    cut_off: bool = False,
    cited: bool = False,
    known: Sequence[str] = (),
) -> Checked:
    """What of the answer `text` may stand for the results of `digests`.

    Args:
        called: names of tools that the answer calls; none of them ran.
        cut_off: the answer did not come to its end.
        cited: each line must end with the id or source of a result that holds it, in brackets.
        known: what stays in the context anyway (the user's messages, the model's own words): lines
            that only say that again are left out.
    """
    if called:
        return Checked(refused=Refused("called_a_tool", f"it called {', '.join(called)}"))
    plain = _TAGS.sub("", text).strip()
    if not plain:
        return Checked(refused=Refused("empty", "it is empty"))
    if cut_off:
        return Checked(refused=Refused("cut_off", "it was cut off before its end"))
    size = sum(len(d.text) for d in digests)
    if len(plain) >= size:
        words = f"it is longer ({len(plain):,} characters) than its input ({size:,})"
        return Checked(refused=Refused("too_long", words))
    sources = [SourceText(d.text) for d in digests]
    heads = [SourceText(f"{d.result.name} {d.call.raw} {d.source}") for d in digests]
    context = SourceText("\n".join(known))
    lines: dict[str, list[str]] = {d.call.id: [] for d in digests}
    dropped: list[Dropped] = []
    for line in _lines(plain):
        asked, line_text = _citation(line, digests) if cited else (None, line)
        if cited and asked is None:
            dropped.append(Dropped(line, UNCITED))
            continue
        only = None if asked is None else asked
        where, why = _place(line_text, sources, heads, only)
        if where is not None:
            call = digests[where].call.id
            if line_text not in lines[call]:
                lines[call].append(line_text)
        elif not _known(line_text, context):
            dropped.append(Dropped(line_text, UNCITED if cited and not why else why))
    if not any(lines.values()):
        words = f"none of its {len(dropped)} lines is in what it stands for"
        return Checked(dropped=tuple(dropped), refused=Refused("nothing_left", words))
    return Checked(lines, tuple(dropped))


def told(dropped: Sequence[Dropped]) -> list[str]:
    """What is said in the context of lines that were dropped; never the lines themselves."""
    counts = Counter(one.why for one in dropped)
    return [f"{count} line(s) of the summary were dropped: {why}." for why, count in counts.items()]


def _lines(text: str) -> list[str]:
    out = []
    for written in text.splitlines():
        line = _MARK.sub("", written).strip().strip("*_`").strip()
        if line and not (_HEADING.match(line) and not read_line(line).anchors):
            cite = _CITE.search(line)
            pieces = sentences_of(line[: cite.start()] if cite else line)
            out += [f"{piece} {cite.group().strip()}" if cite else piece for piece in pieces]
    return out


def _citation(line: str, digests: Sequence[Digest]) -> tuple[int | None, str]:
    """The number of the result that the line cites, and the line without that."""
    found = _CITE.search(line)
    if found is None:
        return None, line
    named = found.group(1)
    for at, digest in enumerate(digests):
        if named in (digest.call.id, digest.source, str(at + 1)):
            return at, line[: found.start()].strip()
    return None, line[: found.start()].strip()


def _place(
    line: str, sources: Sequence[SourceText], heads: Sequence[SourceText], only: int | None
) -> tuple[int | None, str]:
    """The number of the source that says `line`; else `None` and why it is dropped."""
    places = range(len(sources)) if only is None else (only,)
    for at in places:
        if sources[at].has_words(line):
            return at, ""
    if binds(line):
        return None, REWORDED
    reading = read_line(line)
    if not reading.anchors and not reading.words:
        return None, INVENTED
    for at in places:
        if sources[at].says(reading) or heads[at].says(reading):
            return at, ""
    everywhere = [set(source.missing(reading)) for source in sources]
    if reading.anchors and set.intersection(*everywhere):
        return None, INVENTED
    return None, NOT_TOGETHER


def _known(line: str, context: SourceText) -> bool:
    return context.has_words(line) or (not binds(line) and context.says(read_line(line)))
