"""Look for faults in a .pptx by measuring it; no office program is needed.

Finds: text that does not fit its box, shapes outside the slide, shapes on top of each other, text
that is too small, pictures without alternative text, empty placeholders, stretched or coarse
pictures, text too near in colour to what lies behind it, slides without a title or with nothing on
them, two slides of one title, filler text, too much text, charts and tables without content.

Exit code 0: nothing found (hints do not count). 1: faults.

Example: python check_deck.py talk.pptx --slides 10-15
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from needs import fail, input_file, need

need("pptx", "PIL")

import inherit
from chart_labels import chart_faults
from PIL import Image
from pptx import Presentation
from pptx.exc import PackageNotFoundError
from pptx.oxml.ns import qn
from textfit import lay
from theme import contrast as _contrast

_POINT = 12700
_NEAR = 0.02 * 914400
_FILLER = re.compile(
    r"lorem ipsum|click to add|klicken sie|\bto ?do\b|\btbd\b|\bxxx+\b|your text here|\[insert",
    re.IGNORECASE,
)
_MOST_WORDS, _MOST_BULLETS = 90, 8


@dataclass(frozen=True)
class Finding:
    """One fault, or a hint.

    Attributes:
        rule: which check found it.
        level: `fault` or `hint`.
    """

    slide: int
    rule: str
    shape: str
    what: str
    next: str
    level: str = "fault"


@dataclass(frozen=True)
class Item:
    """A shape with its place on the slide (EMU), groups resolved."""

    shape: Any
    left: float
    top: float
    width: float
    height: float
    group: int

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def text(self) -> str:
        return self.shape.text_frame.text.strip() if self.shape.has_text_frame else ""


def items(shapes: Any, move: tuple[float, ...] = (0, 0, 1, 1), group: int = 0) -> Iterator[Item]:
    """All shapes, those in groups too."""
    for number, shape in enumerate(shapes, 1):
        if shape.left is None or shape.width is None:
            continue
        left = move[0] + shape.left * move[2]
        top = move[1] + shape.top * move[3]
        wide, tall = shape.width * move[2], shape.height * move[3]
        if shape.shape_type is not None and shape.shape_type.name == "GROUP":
            frame = shape._element.grpSpPr.find(qn("a:xfrm"))
            off, ext = frame.find(qn("a:chOff")), frame.find(qn("a:chExt"))
            sx = wide / max(int(ext.get("cx")), 1)
            sy = tall / max(int(ext.get("cy")), 1)
            inner = (left - int(off.get("x")) * sx, top - int(off.get("y")) * sy, sx, sy)
            yield from items(shape.shapes, inner, group or number)
        else:
            yield Item(shape, left, top, wide, tall, group)


class Deck:
    """One deck under inspection."""

    def __init__(self, presentation: Any, smallest: float) -> None:
        self.presentation, self.smallest = presentation, smallest
        self.width, self.height = presentation.slide_width, presentation.slide_height
        self.findings: list[Finding] = []
        self.guessed: set[str] = set()
        self.titles: dict[str, int] = {}

    def check(self, wanted: tuple[int, int] | None) -> None:
        slides = list(self.presentation.slides)
        if not slides:
            self.add(0, "no slides", "", "the deck has no slide", "build it again")
        for number, slide in enumerate(slides, 1):
            self._slide(number, slide)
        if wanted and not wanted[0] <= len(slides) <= wanted[1]:
            text = f"{len(slides)} slides; {wanted[0]} to {wanted[1]} are wanted"
            self.add(0, "number of slides", "", text, "merge or split slides")

    def add(
        self, slide: int, rule: str, shape: Any, what: str, next_step: str, level: str = "fault"
    ) -> None:
        name = getattr(shape, "name", str(shape))
        self.findings.append(Finding(slide, rule, name, what, next_step, level))

    def _slide(self, number: int, slide: Any) -> None:
        every = list(items(slide.shapes))
        self._title(number, slide, every)
        for item in every:
            self._empty(number, item)
            self._outside(number, item)
            self._alternative(number, item)
            self._picture(number, item)
            self._content(number, item)
            if getattr(item.shape, "has_chart", False):
                for what, step in chart_faults(item.shape.chart):
                    self.add(number, "chart labels", item.shape, what, step)
            if item.text:
                self._text(number, slide, item)
                self._contrast(number, slide, item)
        for a, b in combinations(every, 2):
            self._overlap(number, a, b)
        if not any(_has_content(item) for item in every):
            self.add(number, "blank slide", "", "nothing is on this slide", "fill or remove it")
        body = " ".join(i.text for i in every if not _is_title(i.shape))
        if len(body.split()) > _MOST_WORDS:
            text = f"{len(body.split())} words"
            self.add(number, "much text", "", text, "say less; move detail to the notes", "hint")

    def _title(self, number: int, slide: Any, every: list[Item]) -> None:
        title = slide.shapes.title
        text = " ".join(title.text_frame.text.split()) if title is not None else ""
        if not text:
            if any(_has_content(item) for item in every):
                self.add(
                    number, "no title", "", "the slide has no title",
                    "give one that says what is to be learned from it",
                )  # fmt: skip
            return
        first = self.titles.setdefault(text.casefold(), number)
        if first != number:
            what = f"the same title as slide {first}: {text[:40]!r}"
            self.add(number, "same title", title, what, "say what is different", "hint")

    def _empty(self, number: int, item: Item) -> None:
        mark = inherit.placeholder_of(item.shape)
        if mark is None or mark.get("type") in ("sldNum", "dt", "ftr"):
            return
        if item.shape.has_text_frame and not item.text:
            kind = mark.get("type") or "body"
            self.add(
                number, "empty placeholder", item.shape, f"the placeholder ({kind}) is empty",
                "fill it or remove it",
            )  # fmt: skip

    def _outside(self, number: int, item: Item) -> None:
        over = {
            "left": -item.left, "top": -item.top,
            "right": item.right - self.width, "bottom": item.bottom - self.height,
        }  # fmt: skip
        for side, much in over.items():
            if much > _NEAR:
                what = f"{much / 914400:.2f} in beyond the {side} edge of the slide"
                self.add(number, "outside", item.shape, what, "move it in or make it smaller")

    def _alternative(self, number: int, item: Item) -> None:
        if item.shape._element.tag not in (qn("p:pic"), qn("p:graphicFrame")):
            return
        marks = item.shape._element.xpath(".//p:cNvPr")[0]
        if not (marks.get("descr") or "").strip() and not marks.xpath(
            './/*[local-name()="decorative"][@val="1"]'
        ):
            kind = "picture" if item.shape._element.tag == qn("p:pic") else "chart or table"
            self.add(
                number, "no alternative text", item.shape, f"the {kind} has no alternative text",
                "say in one sentence what it shows",
            )  # fmt: skip

    def _picture(self, number: int, item: Item) -> None:
        shape = item.shape
        if shape._element.tag != qn("p:pic") or item.height <= 0:
            return
        try:
            with Image.open(io.BytesIO(shape.image.blob)) as image:
                across, down = image.size
        except (OSError, KeyError, ValueError, AttributeError):
            return
        across *= 1 - shape.crop_left - shape.crop_right
        down *= 1 - shape.crop_top - shape.crop_bottom
        if across <= 0 or down <= 0:
            return
        ratio = (item.width / item.height) / (across / down)
        if abs(ratio - 1) > 0.03:
            side = "wide" if ratio > 1 else "tall"
            what = f"stretched: {max(ratio, 1 / ratio):.2f} times too {side}"
            self.add(number, "stretched", shape, what, "keep the picture's own proportions")
        dots = across / (item.width / 914400)
        if dots < 72 and item.width * item.height > 0.02 * self.width * self.height:
            what = f"only {dots:.0f} dots per inch at this size"
            self.add(
                number, "coarse picture", shape, what, "use a larger picture, or show it smaller"
            )

    def _content(self, number: int, item: Item) -> None:
        shape = item.shape
        if getattr(shape, "has_chart", False):
            plots = list(shape.chart.plots)
            if not any(v is not None for p in plots for s in p.series for v in s.values):
                self.add(number, "empty chart", shape, "the chart has no values", "give it data")
        elif getattr(shape, "has_table", False):
            self._table(number, item)

    def _table(self, number: int, item: Item) -> None:
        table = item.shape.table
        texts = [cell.text_frame.text.strip() for row in table.rows for cell in row.cells]
        if not any(texts):
            self.add(number, "empty table", item.shape, "the table is empty", "fill or remove it")
            return
        needed = 0.0
        slide = item.shape.part.slide
        for row in table.rows:
            tall = row.height / _POINT
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell.is_spanned or cell.is_merge_origin:
                    continue
                width = (column.width - cell.margin_left - cell.margin_right) / _POINT
                high = (cell.margin_top + cell.margin_bottom) / _POINT
                for paragraph in cell.text_frame._txBody.findall(qn("a:p")):
                    runs = inherit.pieces(paragraph, item.shape, slide)
                    self._sizes(number, item, runs, "in the table")
                    high += lay(runs, width).height
                tall = max(tall, high)
            needed += tall
        over = item.top + needed * _POINT - self.height
        if over > _NEAR:
            self.add(
                number, "text too long", item.shape,
                f"with its text the table grows {over / 914400:.2f} in beyond the slide",
                "fewer rows or words, or two slides",
            )  # fmt: skip

    def _text(self, number: int, slide: Any, item: Item) -> None:
        shape = item.shape
        body = shape._element.find(qn("p:txBody")).find(qn("a:bodyPr"))
        shrink = body.find(qn("a:normAutofit"))
        scale = (
            int(shrink.get("fontScale", "100000").rstrip("%")) / 100_000
            if shrink is not None
            else 1
        )
        insets = [
            int(inherit.body_of(shape, slide, name, default)) / _POINT
            for name, default in (
                ("lIns", "91440"), ("rIns", "91440"), ("tIns", "45720"), ("bIns", "45720")
            )
        ]  # fmt: skip
        wrap = inherit.body_of(shape, slide, "wrap", "square") != "none"
        turned = inherit.body_of(shape, slide, "vert", "horz") != "horz"
        if turned:
            return
        room = item.width / _POINT - insets[0] - insets[1]
        tall = item.height / _POINT - insets[2] - insets[3]
        high = wide = 0.0
        bullets = 0
        size = 18.0
        for place, paragraph in enumerate(shape._element.find(qn("p:txBody")).findall(qn("a:p"))):
            runs = inherit.pieces(paragraph, shape, slide, scale)
            text = "".join(run.text for run in runs)
            size = max(run.size for run in runs)
            indent = inherit.indent_of(paragraph, shape, slide)
            line, around = inherit.spacing_of(paragraph, shape, slide, size)
            laid = lay(runs, room - indent, spacing=line, wrap=wrap)
            high += laid.height + (around if place else 0)
            wide = max(wide, laid.widest + indent)
            bullets += bool(text.strip())
            self._sizes(number, item, runs, repr(text.strip()[:30]))
            if _FILLER.search(text):
                what = f"filler text: {text.strip()[:40]!r}"
                self.add(number, "filler text", shape, what, "replace or remove it")
        exact = not self.guessed
        if high - tall > max(3.0, 0.03 * tall):
            lines = (high - tall) / (size * 1.2)
            what = f"the text is {high:.0f} pt high, its box {tall:.0f} ({lines:.1f} lines over)"
            grows = body.find(qn("a:spAutoFit")) is not None
            bottom = item.top / _POINT + insets[2] + insets[3] + high
            if grows and bottom <= self.height / _POINT:
                what += "; it grows over what is below"
            self.add(
                number, "text too long", shape, what if exact else f"{what}, by a similar font",
                "say less, make the box higher, or split the slide",
            )  # fmt: skip
        if wide - room > max(2.0, 0.02 * room):
            what = f"a line or word is {wide:.0f} pt wide, the box {room:.0f}"
            self.add(number, "text too wide", shape, what, "a shorter word, or a wider box")
        if bullets > _MOST_BULLETS and not _is_title(shape):
            what = f"{bullets} paragraphs"
            self.add(number, "many bullets", shape, what, "keep the six that matter", "hint")

    def _sizes(self, number: int, item: Item, runs: list[Any], where: str) -> None:
        for run in runs:
            if not run.font.exact:
                self.guessed.add(run.font.family)
        mark = inherit.placeholder_of(item.shape)
        if mark is not None and mark.get("type") in ("sldNum", "dt", "ftr"):
            return
        small = [run.size for run in runs if run.text.strip() and run.size < self.smallest]
        if small:
            what = f"{min(small):g} pt is too small to read ({where})"
            self.add(number, "small text", item.shape, what, f"use {self.smallest:g} pt or more")

    def _contrast(self, number: int, slide: Any, item: Item) -> None:
        """Only where both colours stand on the shape itself: what is inherited is not judged."""
        back = _solid(item.shape._element.find(qn("p:spPr")))
        for run in item.shape._element.iter(qn("a:rPr")):
            ink = _solid(run)
            if back and ink and _contrast(back, ink) < 3.0:
                what = f"text #{ink} on #{back}: contrast {_contrast(back, ink):.1f}, 3 is needed"
                self.add(
                    number, "low contrast", item.shape, what, "darker text or a lighter ground"
                )
                return

    def _overlap(self, number: int, a: Item, b: Item) -> None:
        if (a.group and a.group == b.group) or _is_line(a) or _is_line(b):
            return
        wide = min(a.right, b.right) - max(a.left, b.left)
        tall = min(a.bottom, b.bottom) - max(a.top, b.top)
        if wide <= _NEAR or tall <= _NEAR:
            return
        share = wide * tall / max(1.0, min(a.width * a.height, b.width * b.height))
        inside = share > 0.98
        plain = [_is_ground(i) for i in (a, b)]
        if any(plain) and (inside or all(plain)):
            return  # a card or a coloured ground with something on it
        if not (_has_content(a) and _has_content(b)) or share < 0.02:
            return
        what = f"covers {share:.0%} of {b.shape.name!r}, or is covered by it"
        self.add(number, "overlap", a.shape, what, "move one of them")


def _is_title(shape: Any) -> bool:
    mark = inherit.placeholder_of(shape)
    return mark is not None and mark.get("type") in ("title", "ctrTitle")


def _has_content(item: Item) -> bool:
    """Text, a picture, a chart or a table; not a coloured shape or a slide number."""
    mark = inherit.placeholder_of(item.shape)
    if mark is not None and mark.get("type") in ("sldNum", "dt", "ftr"):
        return False
    return bool(item.text) or item.shape._element.tag in (qn("p:pic"), qn("p:graphicFrame"))


def _is_ground(item: Item) -> bool:
    return not item.text and item.shape._element.tag == qn("p:sp")


def _is_line(item: Item) -> bool:
    return item.shape._element.tag == qn("p:cxnSp") or min(item.width, item.height) < 0.1 * 914400


def _solid(parent: Any) -> str | None:
    fill = parent.find(qn("a:solidFill")) if parent is not None else None
    colour = fill.find(qn("a:srgbClr")) if fill is not None else None
    return str(colour.get("val")).upper() if colour is not None else None


def open_deck(text: str) -> Any:
    path = input_file(text)
    if path.suffix.lower() == ".ppt":
        fail(f"{text!r} is an old .ppt.", "ask for a .pptx.")
    try:
        return Presentation(str(path))
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as fault:
        return fail(f"{text!r} is no .pptx that can be read ({fault}).", "check the file.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("deck")
    parser.add_argument("--min-size", type=float, default=12, help="smallest text in points")
    parser.add_argument("--slides", metavar="A-B", help="how many slides are wanted, e.g. 10-15")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted = None
    if options.slides:
        found = re.fullmatch(r"(\d+)-(\d+)", options.slides)
        if not found:
            fail(f"--slides {options.slides!r} is no range.", "e.g. 10-15")
        wanted = (int(found[1]), int(found[2]))
    presentation = open_deck(options.deck)
    deck = Deck(presentation, options.min_size)
    deck.check(wanted)
    faults = [f for f in deck.findings if f.level == "fault"]
    note = ""
    if deck.guessed:
        note = (
            f"some fonts of the deck are not here; measured with {', '.join(sorted(deck.guessed))}"
        )
    count = len(presentation.slides)
    if options.json:
        report = {
            "slides": count, "faults": len(faults), "notes": [note] if note else [],
            "findings": [asdict(f) for f in deck.findings],
        }  # fmt: skip
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        kinds = Counter(f.rule for f in faults)
        summary = ", ".join(f"{rule} ×{n}" for rule, n in kinds.most_common()) or "no faults"
        print(f"{options.deck}: {count} slides: {summary}")
        for f in deck.findings:
            where = f"slide {f.slide}" if f.slide else "deck"
            shape = f" [{f.shape}]" if f.shape else ""
            print(f"{f.level}: {where}{shape}: {f.rule}: {f.what}. → {f.next}")
        if note:
            print(f"note: {note}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
