"""What somebody said, in the smallest pieces that mean the same when they stand alone.

A part of a sentence can mean the opposite of it ("never delete the branch"). So a piece is one
whole sentence, with what belongs to it: the sentence that leads up to a colon, a list, a block of
code or a quotation, and a sentence after it that takes something back ("Unless I say so.", "Außer
ich sage es."). Where it is not plain that a sentence ends, it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"\s*(```+|~~~+)")
_ITEM = re.compile(r"(\s*)(?:[-*+•–]|\d{1,3}[.)]|[A-Za-z][.)])\s+\S")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_FORWARDED = re.compile(
    r"\s*[-_=]{2,}.*\b(?:forwarded|original message|weitergeleitete|urspr\w+ nachricht)\b", re.I
)
_END = re.compile(r"[.!?…]+[\"'”“»«’)\]*_]*$")
_BREAK = re.compile(r"(?P<stop>[.!?…]+)[\"'”“»«’)\]*_]*\s+(?P<next>\S)")
_PAIRS = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "‚": "‘’", "‘": "’", "`": "`",
          "'": "'", "(": ")"}  # fmt: skip
_SHORT = frozenset(
    re.findall(
        r"\S+",
        "e.g i.e z.b d.h u.a o.ä u.ä s.o s.u bzw usw ca vgl nr dr mr mrs ms prof st etc vs no fig "
        "abs art inkl exkl ggf evtl bspw str max min approx resp incl excl zzgl bzgl sog tel jan "
        "feb mar apr jun jul aug sep sept oct okt nov dec dez mind mio mrd vol ver",
    )
)
"""Words before a full stop that need not end a sentence."""
_TAKES_BACK = re.compile(
    r"(?:unless|except|but|only|not|however|otherwise|though|although|just|no|instead|"
    r"außer|ausser|aber|nur|nicht|es sei denn|allerdings|jedoch|sonst|ansonsten|obwohl|doch|"
    r"nein|stattdessen|ausgenommen|vorausgesetzt)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or list item. `lead`: what it cannot do without, which stands before it."""

    text: str
    lead: str = ""
    foreign: bool = False  # somebody else's words, or code, that no sentence leads up to

    @property
    def whole(self) -> str:
        return f"{self.lead}\n{self.text}" if self.lead else self.text


def pieces_of(text: str) -> list[Piece]:
    """The pieces of a message, in order."""
    out: list[Piece] = []
    leads: list[tuple[int, str]] = []  # of the list items above: indent, text
    lead = ""
    for kind, block in _blocks(text):
        if kind == "item":
            indent = len(block) - len(block.lstrip())
            leads = [one for one in leads if one[0] < indent]
            item = " ".join(block.split())
            above = "\n".join(filter(None, [lead, *(words for _, words in leads)]))
            out.append(Piece(item, above))
            leads.append((indent, item))
        elif kind == "foreign":
            out.append(Piece(block.strip(), lead, foreign=not lead))
        elif kind == "forwarded":
            out.append(Piece(block.strip(), foreign=True))
        else:
            lead = "" if leads else lead
            leads = []
            open_end = bool(lead) and not _END.search(lead)
            for number, sentence in enumerate(_sentences(" ".join(block.split()))):
                out.append(Piece(sentence, lead if open_end and number == 0 else ""))
                lead = out[-1].whole
    return _with_what_takes_back(out)


def _with_what_takes_back(pieces: Sequence[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for piece in pieces:
        if out and not piece.lead and not piece.foreign and _TAKES_BACK.match(piece.text):
            before = out.pop()
            out.append(Piece(f"{before.text} {piece.text}", before.lead, before.foreign))
        else:
            out.append(piece)
    return out


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs, list items, and blocks that are `foreign`: fenced code and quoted lines."""
    kind, lines = "", list[str]()
    fence = ""
    rest = text.splitlines()
    for at, line in enumerate(rest):
        if fence:
            lines.append(line)
            if line.strip().startswith(fence):
                yield "foreign", "\n".join(lines)
                fence, kind, lines = "", "", []
            continue
        found = _FENCE.match(line)
        next_kind = (
            "fence" if found else
            "forwarded" if _FORWARDED.match(line) else
            "foreign" if line.lstrip().startswith((">", "|>")) else
            "item" if _ITEM.match(line) else
            "heading" if _HEADING.match(line) else
            "" if not line.strip() else
            kind if kind in ("item", "text") else "text"
        )  # fmt: skip
        begins = _ITEM.match(line) or next_kind == "heading"
        if lines and (next_kind != kind or begins):
            yield ("text" if kind == "heading" else kind), "\n".join(lines)
            lines = []
        if next_kind == "forwarded":
            yield "forwarded", "\n".join(rest[at:])
            return
        if next_kind == "fence":
            assert found is not None
            fence, lines, kind = found[1], [line], "fence"
            continue
        kind = next_kind
        if next_kind:
            lines.append(line)
    if lines:
        yield ("foreign" if fence else "text" if kind == "heading" else kind), "\n".join(lines)


def _sentences(text: str) -> list[str]:
    out, start = [], 0
    closed = _quoted(text)
    for found in _BREAK.finditer(text):
        end = found.start("next")
        if any(first < found.start("stop") and end <= last for first, last in closed):
            continue
        if found["next"].islower() or not _ends(text[start : found.start("stop")], found["stop"]):
            continue
        out.append(text[start:end].strip())
        start = end
    if text[start:].strip():
        out.append(text[start:].strip())
    return out


def _ends(before: str, stop: str) -> bool:
    """Whether `stop` ends the sentence that stands `before` it."""
    if stop != ".":
        return stop != "..." and stop != "…"
    word = re.split(r"[\s(\"'„“]", before.rstrip("\"'”“»«’)]*_"))[-1].lower()
    return (
        (len(word) > 1 or not word.isalnum())
        and word not in _SHORT
        and not word.isdigit()
        and "." not in word[-2:]
    )


def _quoted(text: str) -> list[tuple[int, int]]:
    """Where something stands in quotation marks or brackets; one that is not closed goes on to the
    end."""
    out, at = [], 0
    while at < len(text):
        mark = text[at]
        opens = mark in _PAIRS and (at == 0 or not text[at - 1].isalnum())
        if not opens:
            at += 1
            continue
        ends = [
            n for n in range(at + 1, len(text))
            if text[n] in _PAIRS[mark]
            and (mark != "'" or n + 1 == len(text) or not text[n + 1].isalnum())
        ]  # fmt: skip
        last = ends[0] if ends else len(text)
        if mark in "'‘(" and not ends:
            at += 1
            continue
        out.append((at, last + 1))
        at = last + 1
    return out
