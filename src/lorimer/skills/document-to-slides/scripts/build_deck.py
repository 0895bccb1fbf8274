"""Build a .pptx from an outline (JSON or Markdown, see references/outline.md).

Text is measured: a slide whose text does not fit at a readable size is an error that says by how
much; nothing is shrunk out of sight. The deck is only written when every slide fits.

Example: python build_deck.py outline.md --out talk.pptx
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import re
from pathlib import Path
from typing import Any

from needs import fail, need, output_file

need("pptx", "PIL")

import theme
from outline import load
from PIL import Image, UnidentifiedImageError
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import (
    XL_CHART_TYPE,
    XL_LABEL_POSITION,
    XL_LEGEND_POSITION,
    XL_TICK_LABEL_POSITION,
)
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Emu, Inches, Pt
from textfit import LINE, Piece, find_font, lay, unknown_note

_CHARTS = {
    "bar": XL_CHART_TYPE.BAR_CLUSTERED,
    "column": XL_CHART_TYPE.COLUMN_CLUSTERED,
    "stacked": XL_CHART_TYPE.COLUMN_STACKED,
    "line": XL_CHART_TYPE.LINE_MARKERS,
    "pie": XL_CHART_TYPE.PIE,
}
_INSET = Inches(0.1)
_ROOM = 0.97
"""How much of a box text may fill: fonts of other machines differ a little."""


class Builder:
    """One deck in the making."""

    def __init__(self, deck: dict[str, Any], folder: Path) -> None:
        self.deck, self.folder = deck, folder
        self.font = str(deck.get("font", "Arial"))
        self.accent = str(deck.get("accent", "1F5FA8")).lstrip("#").upper()
        self.presentation = Presentation()
        self.layouts = theme.prepare(self.presentation, self.accent, self.font)
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.at = 0

    def build(self) -> None:
        deck = self.deck
        core = self.presentation.core_properties
        core.title, core.author = str(deck["title"]), str(deck.get("author", ""))
        slide = self._new("title", str(deck["title"]))
        below = " · ".join(str(deck[k]) for k in ("author", "date") if deck.get(k))
        lines = [str(deck[k]) for k in ("subtitle",) if deck.get(k)] + ([below] if below else [])
        self._second(slide, lines, 22)
        for one in deck["slides"]:
            getattr(self, f"_{one['kind']}")(one)
            slide = self.presentation.slides[-1]
            if one.get("notes"):
                slide.notes_slide.notes_text_frame.text = str(one["notes"])
            if one["kind"] != "section":
                theme.number(slide)
        self.notes += unknown_note(json.dumps(deck, ensure_ascii=False))
        if not find_font(self.font).exact:
            self.notes.append(
                f"the font {self.font} is not installed here: text was measured with "
                f"{find_font(self.font).family}, so look at the slides where it is"
            )

    # ---- kinds of slide

    def _section(self, one: dict[str, Any]) -> None:
        slide = self._new("section", one["title"])
        self._second(slide, [one["text"]] if one.get("text") else [], 20)

    def _bullets(self, one: dict[str, Any]) -> None:
        slide = self._new("body", one["title"])
        self._list(slide.placeholders[1], one["bullets"])

    def _two_columns(self, one: dict[str, Any]) -> None:
        slide = self._new("two", one["title"])
        sides = [one["left"], one["right"]]
        sizes = [
            self._fitting(self._paragraphs(side.get("bullets") or [], side.get("heading")), box)
            for side, box in zip(sides, (slide.placeholders[1], slide.placeholders[2]), strict=True)
        ]
        for index, side in enumerate(sides, 1):
            bullets, heading = side.get("bullets") or [], side.get("heading")
            self._list(slide.placeholders[index], bullets, heading=heading, size=min(sizes))

    def _quote(self, one: dict[str, Any]) -> None:
        slide = self._new("bare", one["title"])
        box = (theme.MARGIN + Inches(0.3), Inches(1.9), Inches(11), Inches(2.4))
        bare = str(one["text"]).strip('“”"')
        text = f"“{bare}”"
        self._text(slide, box, text, 30, anchor=MSO_ANCHOR.BOTTOM, smallest=22)
        if one.get("source"):
            place = (box[0], Inches(4.45), box[2], Inches(0.6))
            self._text(slide, place, f"— {one['source']}", 18, colour=theme.GREY, smallest=16)

    def _table(self, one: dict[str, Any]) -> None:
        slide = self._new("bare", one["title"])
        caption = self._caption_height(one.get("caption"))
        rows = [[str(cell) for cell in row] for row in one["rows"]]
        width = theme.WIDTH - 2 * theme.MARGIN - 2 * _INSET
        room = theme.BODY_BOTTOM - theme.BODY_TOP - caption - Inches(0.15)
        for size in (18, 16, 14, 12):
            widths = self._column_widths(rows, width, size)
            heights = self._row_heights(rows, widths, size)
            if sum(heights) <= room:
                break
        else:
            most = int(len(rows) * room / sum(heights)) - 1
            self._fault(f"the table is too long at 12 pt: about {most} rows fit; split it")
            return
        spare = min(1.7, room / sum(heights))  # a short table gets higher rows
        heights = [int(height * max(spare, 1.0)) for height in heights]
        grid = slide.shapes.add_table(
            len(rows), len(rows[0]), theme.MARGIN + _INSET, theme.BODY_TOP + Inches(0.1),
            Emu(sum(widths)), Emu(sum(heights)),
        )  # fmt: skip
        grid.name = "Table"
        below = theme.BODY_TOP + Inches(0.2) + sum(heights) + caption
        self._caption(slide, one.get("caption"), bottom=below)
        _describe(grid, f"Table with the columns {', '.join(rows[0])}")
        table = grid.table
        for n, value in enumerate(widths):
            table.columns[n].width = Emu(value)
        numeric = [all(_is_number(row[n]) for row in rows[1:]) for n in range(len(rows[0]))]
        for r, row in enumerate(rows):
            table.rows[r].height = Emu(heights[r])
            for c, text in enumerate(row):
                self._cell(table.cell(r, c), text, size, header=r == 0, right=numeric[c], odd=r % 2)

    def _cell(
        self, cell: Any, text: str, size: int, *, header: bool, right: bool, odd: int
    ) -> None:
        cell.fill.solid()
        colour = self.accent if header else ("FFFFFF" if odd else "EEF2F6")
        cell.fill.fore_color.rgb = RGBColor.from_string(colour)
        cell.vertical_anchor = MSO_ANCHOR.MIDDLE
        paragraph = cell.text_frame.paragraphs[0]
        paragraph.alignment = PP_ALIGN.RIGHT if right else PP_ALIGN.LEFT
        for part, bold in _emphasis(text):
            run = paragraph.add_run()
            run.text = part
            run.font.size, run.font.bold = Pt(size), header or bold
            run.font.color.rgb = RGBColor.from_string("FFFFFF" if header else theme.INK)

    def _picture(self, one: dict[str, Any]) -> None:
        bullets = one.get("bullets")
        slide = self._new("two" if bullets else "bare", one["title"])
        path = self.folder / one["picture"]
        left, width = theme.MARGIN + _INSET, theme.WIDTH - 2 * theme.MARGIN - 2 * _INSET
        if bullets:
            text, other = slide.placeholders[1], slide.placeholders[2]
            other._element.getparent().remove(other._element)
            part = int(width * 0.4)
            text.left, text.top, text.width = theme.MARGIN, theme.BODY_TOP, Emu(part)
            text.height = Emu(theme.BODY_BOTTOM - theme.BODY_TOP)
            self._list(text, bullets)
            left, width = left + part + Inches(0.3), width - part - Inches(0.3)
        caption = self._caption(slide, one.get("caption"), left, width, centred=True)
        top = theme.BODY_TOP + Inches(0.1)
        room = theme.BODY_BOTTOM - top - caption
        try:
            with Image.open(path) as image:
                across, down = image.size
        except (UnidentifiedImageError, OSError) as fault:
            self._fault(f"{one['picture']!r} cannot be read as a picture: {fault}")
            return
        scale = min(width / across, room / down)
        size = (int(across * scale), int(down * scale))
        place = (left + (width - size[0]) // 2, top + (room - size[1]) // 2)
        try:
            shape = slide.shapes.add_picture(str(path), *map(Emu, place), *map(Emu, size))
        except (ValueError, KeyError) as fault:
            self._fault(f"{one['picture']!r} cannot be put on a slide: {fault}; convert it to PNG")
            return
        _describe(shape, one["alt"])
        dots = across / (size[0] / Inches(1))
        if dots < 96:
            self._note(f"{one['picture']!r} has only {dots:.0f} dots per inch at this size")

    def _chart(self, one: dict[str, Any]) -> None:
        slide = self._new("bare", one["title"])
        caption = self._caption(slide, one.get("caption") or _source(one))
        data = CategoryChartData()
        data.categories = [str(c) for c in one["categories"]]
        for series in one["series"]:
            data.add_series(str(series.get("name", "")), series["values"])
        top = theme.BODY_TOP + Inches(0.1)
        frame = slide.shapes.add_chart(
            _CHARTS[one["chart"]], theme.MARGIN + _INSET, top,
            Emu(theme.WIDTH - 2 * theme.MARGIN - 2 * _INSET),
            Emu(theme.BODY_BOTTOM - top - caption), data,
        )  # fmt: skip
        _describe(frame, one["alt"])
        self._style_chart(frame.chart, one)

    def _style_chart(self, chart: Any, one: dict[str, Any]) -> None:
        kind, unit = one["chart"], str(one.get("unit", ""))
        chart.font.size, chart.font.color.rgb = Pt(16), RGBColor.from_string(theme.INK)
        chart.has_title = False
        several = len(one["series"]) > 1 or kind == "pie"
        chart.has_legend = several
        if several:
            chart.legend.position = XL_LEGEND_POSITION.BOTTOM
            chart.legend.include_in_layout = False
            chart.legend.font.size = Pt(16)
        plot = chart.plots[0]
        colours = [self.accent, *theme.SERIES[1:]] if len(one["series"]) == 1 else theme.SERIES
        if kind == "pie":
            plot.has_data_labels = True
            plot.data_labels.show_percentage = True
            plot.data_labels.show_value = False
            plot.data_labels.font.size = Pt(16)
            plot.data_labels.position = XL_LABEL_POSITION.OUTSIDE_END
            for n, point in enumerate(one["categories"]):
                del point
                fill = plot.series[0].points[n].format.fill
                fill.solid()
                fill.fore_color.rgb = RGBColor.from_string(theme.SERIES[n % 6])
            return
        for n, series in enumerate(plot.series):
            colour = RGBColor.from_string(colours[n % len(colours)])
            if kind == "line":
                series.smooth = False
                series.format.line.width = Pt(3)
                series.format.line.color.rgb = colour
                series.marker.format.fill.solid()
                series.marker.format.fill.fore_color.rgb = colour
                series.marker.format.line.color.rgb = colour
            else:
                series.format.fill.solid()
                series.format.fill.fore_color.rgb = colour
        values, names = chart.value_axis, chart.category_axis
        values.major_gridlines.format.line.color.rgb = RGBColor.from_string("D5DCE3")
        values.format.line.fill.background()
        values.tick_labels.font.size = names.tick_labels.font.size = Pt(14)
        names.format.line.color.rgb = RGBColor.from_string("9AA5B1")
        every = [v for s in one["series"] for v in s["values"] if v is not None]
        if kind != "line":
            plot.gap_width = 60
            if kind != "stacked" and min(every, default=0) >= 0:
                values.minimum_scale = 0  # bars are read by their length
            if min(every, default=0) < 0:  # beside the axis they would lie on the bars
                names.tick_label_position = XL_TICK_LABEL_POSITION.LOW
            if kind == "bar":
                names.reverse_order = True
                values.tick_label_position = values.tick_label_position.HIGH
        whole = all(float(v).is_integer() for v in every)
        values.tick_labels.number_format = "#,##0" if whole else "#,##0.0#"
        values.tick_labels.number_format_is_linked = False
        if len(every) <= 12 and kind != "line":
            plot.has_data_labels = True
            plot.data_labels.show_value = True
            plot.data_labels.font.size = Pt(14)
            plot.data_labels.number_format = "#,##0" if whole else "#,##0.0##"
            plot.data_labels.number_format_is_linked = False
            if kind == "stacked":
                for n, series in enumerate(plot.series):
                    _readable(series, colours[n % len(colours)], plot.data_labels.number_format)
        if unit:
            values.has_title = True
            values.axis_title.text_frame.text = unit
            run = values.axis_title.text_frame.paragraphs[0].runs[0]
            run.font.size, run.font.bold = Pt(14), False

    # ---- parts of a slide

    def _new(self, layout: str, title: str) -> Any:
        self.at += 1
        slide = self.presentation.slides.add_slide(self.layouts[layout])
        slide.shapes.title.text_frame.text = title
        large = {"title": (44, 40, 36, 32), "section": (38, 34, 30)}.get(layout, (30, 28, 26, 24))
        shape = slide.shapes.title
        bold = find_font(self.font, bold=True)
        for size in large:
            height = lay([Piece(title, size, bold)], _inner(shape)[0]).height
            if height <= _inner(shape)[1]:
                break
        else:
            self._fault(f"the title is too long ({len(title)} signs): {title[:50]!r}…")
        if size != large[0]:
            shape.text_frame.paragraphs[0].runs[0].font.size = Pt(size)
        return slide

    def _second(self, slide: Any, lines: list[str], size: int) -> None:
        shape = slide.placeholders[1]
        if not lines:
            shape._element.getparent().remove(shape._element)
            return
        shape.text_frame.text = "\n".join(lines)
        pieces = [[Piece(line, size, find_font(self.font))] for line in lines]
        width, height = _inner(shape)
        if sum(lay(p, width).height + 8 for p in pieces) > height:
            self._fault("the text below the title is too long")

    def _paragraphs(self, bullets: list[Any], heading: str | None = None) -> list[tuple[str, int]]:
        out = [(heading, -1)] if heading else []
        for bullet in bullets:
            text, level = (bullet, 0) if isinstance(bullet, str) else (
                str(bullet.get("text", "")), int(bullet.get("level", 0)),
            )  # fmt: skip
            out.append((text, min(max(level, 0), 2)))
        return out

    def _fitting(self, paragraphs: list[tuple[str, int]], shape: Any) -> int:
        """The largest size at which the paragraphs fit; the smallest where none does."""
        width, height = _inner(shape)
        need_height = 0.0
        for size in theme.BODY_SIZES:
            need_height = sum(self._height(p, width, size) for p in paragraphs)
            if need_height <= height * _ROOM:
                return size
        over = need_height - height * _ROOM
        self._fault(
            f"the text is too long by about {over / (theme.BODY_SIZES[-1] * LINE):.0f} lines at "
            f"{theme.BODY_SIZES[-1]} pt; say less, or make two slides"
        )
        return theme.BODY_SIZES[-1]

    def _height(self, paragraph: tuple[str, int], width: float, size: int) -> float:
        text, level = paragraph
        if level < 0:
            heading = find_font(self.font, bold=True)
            return lay([Piece(text, size, heading)], width).height + 10
        pieces = [
            Piece(part, _level_size(size, level), find_font(self.font, bold=bold))
            for part, bold in _emphasis(text)
        ]
        indent = (0.28 + 0.35 * level) * 72
        return lay(pieces, width - indent).height + (10 if level == 0 else 4)

    def _list(
        self, shape: Any, bullets: list[Any], *, heading: str | None = None, size: int = 0
    ) -> None:
        paragraphs = self._paragraphs(bullets, heading)
        size = size or self._fitting(paragraphs, shape)
        frame = shape.text_frame
        for n, (text, level) in enumerate(paragraphs):
            paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
            paragraph.level = max(level, 0)
            for part, bold in _emphasis(text):
                run = paragraph.add_run()
                run.text = part
                if bold or level < 0:
                    run.font.bold = True
                if size != theme.BODY_SIZES[0] or level < 0:
                    run.font.size = Pt(_level_size(size, max(level, 0)))
                if level < 0:
                    run.font.color.rgb = RGBColor.from_string(self.accent)
            if level < 0:
                _no_bullet(paragraph)

    def _text(
        self, slide: Any, box: tuple[int, int, int, int], text: str, size: int, *,
        colour: str = theme.INK, anchor: Any = MSO_ANCHOR.TOP, smallest: int,
    ) -> Any:  # fmt: skip
        shape = slide.shapes.add_textbox(*map(Emu, box))
        shape.text_frame.word_wrap = True
        shape.text_frame.vertical_anchor = anchor
        width, height = _inner(shape)
        font = find_font(self.font)
        while size > smallest and lay([Piece(text, size, font)], width).height > height:
            size -= 2
        if lay([Piece(text, size, font)], width).height > height:
            self._fault(f"the text is too long: {text[:40]!r}…")
        run = shape.text_frame.paragraphs[0].add_run()
        run.text, run.font.size = text, Pt(size)
        run.font.color.rgb = RGBColor.from_string(colour)
        return shape

    def _caption_height(self, text: str | None, width: int = 0) -> int:
        """What a caption takes with the gap above it; 0 where there is none."""
        if not text:
            return 0
        width = width or theme.WIDTH - 2 * theme.MARGIN
        piece = Piece(text, theme.CAPTION_SIZE, find_font(self.font))
        tall = lay([piece], (width - 2 * _INSET) / 12700).height
        return int(tall * 12700) + Inches(0.22)

    def _caption(
        self, slide: Any, text: str | None, left: int = 0, width: int = 0, *,
        bottom: int = theme.BODY_BOTTOM, centred: bool = False,
    ) -> int:  # fmt: skip
        """A caption that ends at `bottom`; the height that it takes."""
        height = self._caption_height(text, width)
        if text:
            size, gap = theme.CAPTION_SIZE, Inches(0.1)
            width, left = width or theme.WIDTH - 2 * theme.MARGIN, left or theme.MARGIN
            box = (left, bottom - height + gap, width, height - gap)
            shape = self._text(slide, box, text, size, colour=theme.GREY, smallest=size)
            if centred:
                shape.text_frame.paragraphs[0].alignment = PP_ALIGN.CENTER
        return height

    def _column_widths(self, rows: list[list[str]], width: int, size: int) -> list[int]:
        font = find_font(self.font, bold=True)
        wanted = []
        for column in zip(*rows, strict=True):
            longest = max(font.width(cell, size) for cell in column)
            word = max((font.width(w, size) for cell in column for w in cell.split()), default=0)
            wanted.append((max(word, min(longest, 260)) + 18) * 12700)
        scale = width / sum(wanted)
        return [int(w * scale) for w in wanted]

    def _row_heights(self, rows: list[list[str]], widths: list[int], size: int) -> list[int]:
        out = []
        for n, row in enumerate(rows):
            font = find_font(self.font, bold=n == 0)
            cells = [
                lay([Piece(text, size, font)], width / 12700 - 15).height
                for text, width in zip(row, widths, strict=True)
            ]
            out.append(int((max(cells) + 14) * 12700))
        return out

    def _fault(self, text: str) -> None:
        self.faults.append(f"slide {self.at}: {text}")

    def _note(self, text: str) -> None:
        self.notes.append(f"slide {self.at}: {text}")


def _level_size(size: int, level: int) -> int:
    return max(size - 2 * level, 14)


def _inner(shape: Any) -> tuple[float, float]:
    """Width and height for text inside a shape with the usual margins, in points."""
    return (shape.width - Inches(0.2)) / 12700, (shape.height - Inches(0.1)) / 12700


def _emphasis(text: str) -> list[tuple[str, bool]]:
    """`**bold**` as runs; other Markdown signs of emphasis and links become plain text."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "")
    parts = re.split(r"\*\*(.+?)\*\*", text)
    return [(part, n % 2 == 1) for n, part in enumerate(parts) if part] or [("", False)]


def _no_bullet(paragraph: Any) -> None:
    properties = paragraph._p.get_or_add_pPr()
    properties.set("marL", "0")
    properties.set("indent", "0")
    properties.insert(0, properties.makeelement(theme.qn("a:buNone"), {}))


def _describe(shape: Any, text: str) -> None:
    """Alternative text, for people who cannot see the shape."""
    shape._element.xpath(".//p:cNvPr")[0].set("descr", text)


def _readable(series: Any, fill: str, form: str) -> None:
    """Numbers inside the bars of a series, dark or white, whichever stands out."""
    labels = series.data_labels
    labels.show_value, labels.number_format = True, form
    labels.number_format_is_linked = False
    labels.font.size = Pt(14)
    ink = max((theme.INK, "FFFFFF"), key=lambda colour: theme.contrast(colour, fill))
    labels.font.color.rgb = RGBColor.from_string(ink)


def _source(one: dict[str, Any]) -> str | None:
    return f"Source: {one['source']}" if one.get("source") else None


def _is_number(text: str) -> bool:
    return bool(
        re.fullmatch(r"[-+−(]?[€$£]?\s?\d[\d.,' ]*\)?\s?[%€$£A-Za-z]{0,4}|[-–—]?", text.strip())
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("outline", help=".json or .md")
    parser.add_argument("--out", required=True, help="the .pptx")
    parser.add_argument("--force", action="store_true", help="replace --out where it exists")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    deck = load(options.outline)
    builder = Builder(deck, Path(options.outline).resolve().parent)
    builder.build()
    if builder.faults:
        fail("; ".join(builder.faults), "change these slides in the outline, then build again.")
    with output_file(options.out, (".pptx",), force=options.force) as path:
        builder.presentation.save(str(path))
    report = {"written": options.out, "slides": builder.at, "notes": builder.notes}
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(f"written: {options.out} ({builder.at} slides)")
        for note in builder.notes:
            print(f"note: {note}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
