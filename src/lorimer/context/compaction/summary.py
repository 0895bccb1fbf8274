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
from lorimer.context.compaction.extracts import Extracts
from lorimer.context.compaction.statements import statements_of

INVENTED = "no source holds it"
NOT_TOGETHER = "no source says it like that"
REWORDED = "a rule that no source states in these words"
UNCITED = "it names no source that holds it"

_BULLET = re.compile(r"^\s*[-*•‣]\s+")
_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")
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
    """A line of a summary that was dropped, and why; `quote` is the statement of the source that
    stands there instead, where one was near."""

    text: str
    why: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is left of a summary.

    Attributes:
        lines: by call id, the lines that its result holds, and in “ ” what is quoted of it instead
            of lines that were dropped.
        dropped: lines that no source holds.
        refused: why the whole of it cannot be used, when it cannot.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    refused: Refused | None = None

    @property
    def kept(self) -> int:
        """How many lines of the model stay; quotations are not its lines."""
        return sum(map(len, self.lines.values())) - sum(bool(one.quote) for one in self.dropped)


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
    sources = [
        _Source(d.text, d.call.id, f"{d.result.name} {d.call.raw} {d.source}") for d in digests
    ]
    context = _Source("\n".join(known))
    lines: dict[str, list[str]] = {d.call.id: [] for d in digests}
    dropped: list[Dropped] = []
    for written in _lines(plain):
        asked, line = _citation(written, digests) if cited else (None, written)
        if cited and asked is None:
            dropped.append(Dropped(written, UNCITED))
            continue
        places = sources if asked is None else [sources[asked]]
        for piece in _pieces(line, places):
            source = _holder(piece, places)
            if source is not None:
                if piece not in lines[source.call]:
                    lines[source.call].append(piece)
            elif not context.words.has_words(piece):
                why = _why(piece, places)
                call, quote = _quoted(piece, places)
                if quote and not any(quote in (one, one[1:-1]) for one in lines[call]):
                    lines[call].append(f"“{quote}”")
                    dropped.append(Dropped(piece, why, quote))
                else:
                    dropped.append(Dropped(piece, why))
    if not any(lines.values()):
        words = f"none of its {len(dropped)} lines is in what it stands for"
        return Checked(dropped=tuple(dropped), refused=Refused("nothing_left", words))
    return Checked(lines, tuple(dropped))


def told(dropped: Sequence[Dropped]) -> list[str]:
    """What is said in the context of lines that were dropped; never the lines themselves."""
    counts = Counter(one.why for one in dropped)
    out = [f"{count} line(s) of the summary were dropped: {why}." for why, count in counts.items()]
    quotes = sum(bool(one.quote) for one in dropped)
    if quotes:
        out.append(f"For {quotes} of them the source itself is quoted, in “ ”.")
    return out


class _Source:
    """A text with what it says and the words in it; `call` is the id of the call it came from."""

    def __init__(self, text: str, call: str = "", head: str = "") -> None:
        self.call = call
        self.says, self.head = Extracts(text), Extracts(head)
        self.words = SourceText(text)


def _lines(text: str) -> list[str]:
    out = []
    for written in text.splitlines():
        line = _BULLET.sub("", written).strip().strip("*_`").strip()
        if line and not (_HEADING.match(line) and not read_line(line).anchors):
            out.append(line)
    return out


def _pieces(line: str, sources: Sequence[_Source]) -> list[str]:
    """`line` as it is checked: as it stands or without its number, where a source says that; else
    in its statements."""
    bare = _NUMBER.sub("", line)
    for whole in (line, bare):
        if _holder(whole, sources):
            return [whole]
    return statements_of(bare)


def _holder(line: str, sources: Sequence[_Source]) -> _Source | None:
    """The first source that says `line`."""
    rule = binds(line)
    for source in sources:
        if source.says.has(line, word_for_word=rule) or source.head.has(line, word_for_word=True):
            return source
    return None


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


def _why(line: str, sources: Sequence[_Source]) -> str:
    """Why `line`, which no source says, is dropped."""
    if binds(line):
        return REWORDED
    reading = read_line(line)
    if not reading.anchors and not reading.words:
        return INVENTED
    everywhere = [set(source.words.missing(reading)) for source in sources]
    return INVENTED if set.intersection(*everywhere) else NOT_TOGETHER


def _quoted(line: str, sources: Sequence[_Source]) -> tuple[str, str]:
    """The call and the words of the statement that is nearest to `line`; empty where none is."""
    found = [(*source.says.nearest(line), source.call) for source in sources]
    _, quote, call = max(found, key=lambda one: one[0])
    return call, quote
