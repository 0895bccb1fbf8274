"""Render a .pptx with LibreOffice and look at every page.

Writes into the folder --out: deck.pdf, page-01.png …, and contact-sheet.png with all pages, which
is the one to look at (read_file shows it). Finds blank pages, missing pages, text that runs over
its box or off the page in the rendered picture. Nothing is sent anywhere.

LibreOffice is run as a program where that works, or else as a library in a process of its own (a
sandbox without Unix sockets, as that of shell_exec and run_python).

Exit code 0: nothing found. 1: faults. 3: no LibreOffice, or no package for pictures of pages.

Example: python render_deck.py talk.pptx --out "talk pages"
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from needs import fail, need

need("pptx", "PIL", "pypdfium2")

import pypdfium2
from check_deck import _is_title, items, open_deck
from office import NoOffice, OfficeFailed, to_pdf
from PIL import Image, ImageDraw
from textfit import unknown_note

_WIDE = 1280
_SHEET = 420
_EDGE = 3


def look(path: Path, presentation: Any, out: Path) -> list[dict[str, Any]]:
    """Pictures of all pages, and what is wrong with them."""
    document = pypdfium2.PdfDocument(path)
    slides = [s for s in presentation.slides if s._element.get("show") != "0"]
    findings: list[dict[str, Any]] = []
    if len(document) != len(slides):
        what = f"{len(document)} pages were rendered for {len(slides)} slides"
        findings.append({"slide": 0, "rule": "missing pages", "what": what})
    pages = []
    for number, page in enumerate(document, 1):
        image = page.render(scale=_WIDE / page.get_width()).to_pil().convert("RGB")
        image.save(out / f"page-{number:02}.png", optimize=True)
        pages.append(image)
        if _blank(image):
            findings.append({"slide": number, "rule": "blank page", "what": "nothing is drawn"})
        if number <= len(slides):
            findings += _texts(number, page, slides[number - 1], presentation)
    _sheet(pages).save(out / "contact-sheet.png", optimize=True)
    document.close()
    return findings


def _blank(image: Image.Image) -> bool:
    """Whether the middle of the page has one colour only, but for a slide number."""
    wide, tall = image.size
    middle = image.crop((_EDGE, _EDGE, wide - _EDGE, int(tall * 0.92)))
    low = middle.convert("L").getextrema()
    return int(low[1]) - int(low[0]) < 12


def _texts(number: int, page: Any, slide: Any, presentation: Any) -> list[dict[str, Any]]:
    """Where the last words of each shape were drawn, against the shape's box."""
    findings = []
    text_page = page.get_textpage()
    scale = page.get_width() / presentation.slide_width
    tall = page.get_height()
    for item in items(slide.shapes):
        words = item.text.split()
        if len(words) < 2 or (_is_title(item.shape) and len(words) < 3):
            continue
        place = _last(text_page, words, item, scale, tall)
        if place is None:
            continue
        left, bottom, right, _ = place
        over_bottom = (tall - bottom) - item.bottom * scale
        over_right = right - item.right * scale
        for side, over in (("below", over_bottom), ("right of", over_right)):
            if over > 6:
                what = f"text is drawn {over:.0f} pt {side} its box"
                findings.append(
                    {"slide": number, "rule": "text over its box", "shape": item.shape.name,
                     "what": what}
                )  # fmt: skip
        if tall - bottom > tall + 1 or left < -1 or right > page.get_width() + 1:
            findings.append(
                {"slide": number, "rule": "text off the page", "shape": item.shape.name,
                 "what": "text is drawn beyond the page"}
            )  # fmt: skip
    text_page.close()
    return findings


def _last(
    text_page: Any, words: list[str], item: Any, scale: float, tall: float
) -> tuple[float, float, float, float] | None:
    """The box (points from the lower left) of the last words of a shape, nearest to it."""
    for count in (3, 2):
        found = text_page.search(" ".join(words[-count:]), match_case=True)
        best: tuple[float, tuple[float, float, float, float]] | None = None
        while (at := found.get_next()) is not None:
            boxes = [text_page.get_charbox(n) for n in range(at[0], at[0] + at[1])]
            boxes = [b for b in boxes if b[2] > b[0] and b[3] > b[1]]
            if not boxes:
                continue
            box = (
                min(b[0] for b in boxes), min(b[1] for b in boxes),
                max(b[2] for b in boxes), max(b[3] for b in boxes),
            )  # fmt: skip
            far = abs(box[0] - item.left * scale) + abs((tall - box[3]) - item.top * scale)
            if best is None or far < best[0]:
                best = (far, box)
        if best is not None:
            return best[1]
    return None


def _sheet(pages: list[Image.Image]) -> Image.Image:
    """All pages in rows of three, numbered."""
    small = [p.resize((_SHEET, round(p.height * _SHEET / p.width))) for p in pages]
    tall = max((p.height for p in small), default=10) + 22
    rows = (len(small) + 2) // 3
    sheet = Image.new("RGB", (3 * (_SHEET + 10) + 10, max(rows, 1) * tall + 10), "#6B7280")
    draw = ImageDraw.Draw(sheet)
    for n, page in enumerate(small):
        left, top = 10 + n % 3 * (_SHEET + 10), 10 + n // 3 * tall
        sheet.paste(page, (left, top))
        draw.text((left + 2, top + page.height + 3), f"slide {n + 1}", fill="white")
    return sheet


def _inner_texts(presentation: Any) -> list[str]:
    """Words in tables and charts."""
    out: list[str] = []
    for slide in presentation.slides:
        for item in items(slide.shapes):
            if getattr(item.shape, "has_table", False):
                out += [cell.text for row in item.shape.table.rows for cell in row.cells]
            elif getattr(item.shape, "has_chart", False):
                for plot in item.shape.chart.plots:
                    out += [str(c) for c in plot.categories]
                    out += [series.name for series in plot.series]
    return out


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("deck")
    parser.add_argument("--out", required=True, help="a new or empty folder")
    parser.add_argument("--timeout", type=float, default=100, help="most seconds (default 100)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    presentation = open_deck(options.deck)
    out = Path(options.out)
    ours = {"deck.pdf", "contact-sheet.png"}
    if out.exists() and not out.is_dir():
        fail(f"{options.out!r} is a file.", "give a folder.")
    strange = [p.name for p in out.iterdir()] if out.is_dir() else []
    strange = [n for n in strange if n not in ours and not n.startswith("page-")]
    if strange:
        fail(f"{options.out!r} holds other files ({strange[0]}).", "give a new folder.")
    with tempfile.TemporaryDirectory(prefix="render-") as temporary:
        copy = Path(temporary) / "deck.pptx"
        shutil.copyfile(options.deck, copy)
        try:
            how = to_pdf(copy, Path(temporary) / "deck.pdf", options.timeout)
        except NoOffice as fault:
            fail(
                str(fault),
                "rely on check_deck.py and tell the user that the slides were measured, not "
                "rendered (Debian: apt-get install libreoffice-impress-nogui)",
                code=3,
            )
        except OfficeFailed as fault:
            fail(str(fault), "rely on check_deck.py; or try again with a larger --timeout.")
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("page-*.png"):
            old.unlink()
        shutil.copyfile(Path(temporary) / "deck.pdf", out / "deck.pdf")
    texts = (item.text for slide in presentation.slides for item in items(slide.shapes))
    notes = unknown_note(" ".join([*texts, *_inner_texts(presentation)]))
    findings = look(out / "deck.pdf", presentation, out)
    pages = len(list(out.glob("page-*.png")))
    if options.json:
        report = {
            "pages": pages, "findings": findings, "notes": notes, "how": how,
            "look_at": str(out / "contact-sheet.png"),
        }  # fmt: skip
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(f"{options.deck}: {pages} pages rendered ({how})")
        for one in findings:
            shape = f" [{one['shape']}]" if one.get("shape") else ""
            print(f"fault: slide {one['slide']}{shape}: {one['rule']}: {one['what']}")
        for note in notes:
            print(f"note: {note}")
        print(f"look at: {out / 'contact-sheet.png'} and at single pages beside it")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
