"""document-to-slides: a good deck is clean, planted faults are found one by one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pptx = pytest.importorskip("pptx")
pytest.importorskip("PIL")
from PIL import Image, ImageDraw  # noqa: E402
from pptx.dml.color import RGBColor  # noqa: E402
from pptx.util import Inches, Pt  # noqa: E402

SKILL = "document-to-slides"
OUTLINE = """---
title: Cold storage costs less than it seems
subtitle: Two years of measurements
author: Archive team
---
# Where we stand
Three sites, 41 TB
## The archive doubles every 30 months
- **41 TB** today
  - Scans: 70 % of new data
Notes: page 2
## Two ways
### Stay
- No migration
:::
### Move
- Four weeks of copying
## What each way costs
| Item | Stay | Move |
|---|---:|---:|
| Power | 60,000 | 9,500 |
| **Total** | 145,000 | 44,000 |
All figures in EUR
## Power is the largest cost
```chart
{"chart": "bar", "categories": ["Power", "Repair"], "unit": "EUR", "alt": "Power 7,200, repair 900",
 "series": [{"name": "2025", "values": [7200, 900]}]}
```
## Restores are rare
![Line falling from 5 to 3](<bild ü.png>)
- None was urgent
## What users say
> Never on the same day.
— Accounting
"""


def picture(path: Path, size: tuple[int, int] = (1200, 800)) -> Path:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).line((20, 20, size[0] - 20, size[1] - 20), fill="navy", width=9)
    image.save(path)
    return path


@pytest.fixture
def deck(run: Any, folder: Path) -> Path:
    picture(folder / "bild ü.png")
    (folder / "o.md").write_text(OUTLINE, encoding="utf-8")
    out = folder / "vortrag ü.pptx"
    ran = run(f"{SKILL}/build_deck", folder / "o.md", "--out", out, "--json")
    assert ran.code == 0 and ran.json["slides"] == 8
    return out


def test_a_deck_is_made_of_real_parts(deck: Path) -> None:
    slides = list(pptx.Presentation(str(deck)).slides)
    assert slides[0].shapes.title.text_frame.text.startswith("Cold storage")
    assert slides[2].notes_slide.notes_text_frame.text == "page 2"
    assert slides[2].placeholders[1].text_frame.paragraphs[0].runs[0].font.bold
    table = next(s for s in slides[4].shapes if s.has_table).table
    assert [c.text for c in table.rows[2].cells] == ["Total", "145,000", "44,000"]
    chart = next(s for s in slides[5].shapes if s.has_chart).chart
    assert list(chart.plots[0].series[0].values) == [7200.0, 900.0]
    assert chart.value_axis.minimum_scale == 0
    shape = next(s for s in slides[6].shapes if s.shape_type.name == "PICTURE")
    assert shape._element.xpath(".//p:cNvPr")[0].get("descr") == "Line falling from 5 to 3"
    assert abs(shape.width / shape.height - 1.5) < 0.01


def test_a_good_deck_is_clean(run: Any, deck: Path) -> None:
    ran = run(f"{SKILL}/check_deck", deck, "--json", "--slides", "5-15")
    assert ran.code == 0 and ran.json["findings"] == []
    assert run(f"{SKILL}/check_deck", deck, "--slides", "10-15").code == 1


def test_an_outline_as_json_gives_the_same_kinds(run: Any, folder: Path) -> None:
    slides = [{"kind": "bullets", "title": "A", "bullets": ["x", {"text": "y", "level": 1}]}]
    (folder / "o.json").write_text(json.dumps({"title": "T", "slides": slides}), encoding="utf-8")
    ran = run(f"{SKILL}/build_deck", folder / "o.json", "--out", folder / "a.pptx")
    assert ran.code == 0, ran.err


def test_text_that_does_not_fit_is_an_error_with_its_slide(run: Any, folder: Path) -> None:
    bullets = "".join(f"- {'many words in a long line ' * 6}\n" for _ in range(14))
    (folder / "o.md").write_text(f"---\ntitle: T\n---\n## A\n{bullets}", encoding="utf-8")
    ran = run(f"{SKILL}/build_deck", folder / "o.md", "--out", folder / "a.pptx")
    assert ran.code == 2 and "slide 2: the text is too long by about" in ran.err
    assert not (folder / "a.pptx").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("## A\n- x\n", "title is missing"),
        ("---\ntitle: T\n---\n## A\n![](none.png)\n", "there is no picture 'none.png'"),
        ("---\ntitle: T\n---\n## A\n| a | b |\n|---|---|\n| 1 |\n", "different lengths"),
        ("---\ntitle: T\n---\n## A\n```chart\n{oops\n```\n", "its JSON is wrong"),
        ("---\ntitle: T\n---\nwords\n## A\n- x\n", "before the first heading"),
    ],
)
def test_a_wrong_outline_says_where(run: Any, folder: Path, text: str, told: str) -> None:
    (folder / "o.md").write_text(text, encoding="utf-8")
    ran = run(f"{SKILL}/build_deck", folder / "o.md", "--out", folder / "a.pptx", "--json")
    assert ran.code == 2 and told in ran.json["error"]


def _box(slide: Any, text: str, left: float, top: float, wide: float, tall: float) -> Any:
    shape = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(wide), Inches(tall))
    shape.text_frame.word_wrap = True
    shape.text_frame.text = text
    shape.text_frame.paragraphs[0].runs[0].font.name = "Arial"
    return shape


def _long(slide: Any, _: Path) -> None:
    _box(slide, "far too many words for this box " * 12, 1, 2, 3, 0.6)


def _outside(slide: Any, _: Path) -> None:
    _box(slide, "words", 9, 3, 3, 0.6)


def _overlap(slide: Any, _: Path) -> None:
    _box(slide, "one text", 1, 3, 3, 0.6)
    _box(slide, "another", 2, 3.2, 3, 0.6)


def _small(slide: Any, _: Path) -> None:
    _box(slide, "tiny", 1, 3, 3, 0.6).text_frame.paragraphs[0].runs[0].font.size = Pt(7)


def _no_alt(slide: Any, folder: Path) -> None:
    shape = slide.shapes.add_picture(
        str(picture(folder / "p.png")), Inches(1), Inches(2), Inches(3)
    )
    shape._element.xpath(".//p:cNvPr")[0].set("descr", "")


def _stretched(slide: Any, folder: Path) -> None:
    path = str(picture(folder / "p.png"))
    slide.shapes.add_picture(path, Inches(1), Inches(2), Inches(4), Inches(1))


def _coarse(slide: Any, folder: Path) -> None:
    path = str(picture(folder / "p.png", (90, 60)))
    slide.shapes.add_picture(path, Inches(1), Inches(2), Inches(6), Inches(4))


def _contrast(slide: Any, _: Path) -> None:
    shape = _box(slide, "pale", 1, 3, 3, 0.6)
    shape.fill.solid()
    shape.fill.fore_color.rgb = RGBColor(250, 250, 250)
    shape.text_frame.paragraphs[0].runs[0].font.color.rgb = RGBColor(220, 220, 220)


def _filler(slide: Any, _: Path) -> None:
    _box(slide, "Lorem ipsum dolor", 1, 3, 5, 0.6)


def _wide(slide: Any, _: Path) -> None:
    _box(slide, "Donaudampfschifffahrtsgesellschaftskapitän", 1, 3, 2, 3)


def _title(slide: Any, _: Path) -> None:
    slide.shapes.title.text_frame.text = ""
    _box(slide, "words", 1, 3, 3, 0.6)


FAULTS: list[tuple[Callable[[Any, Path], None], str]] = [
    (_long, "text too long"), (_outside, "outside"), (_overlap, "overlap"), (_small, "small text"),
    (_no_alt, "no alternative text"), (_stretched, "stretched"), (_coarse, "coarse picture"),
    (_contrast, "low contrast"), (_filler, "filler text"), (_wide, "text too wide"),
    (_title, "no title"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "rule"), FAULTS, ids=[rule for _, rule in FAULTS])
def test_a_planted_fault_is_found_and_nothing_else(
    run: Any, folder: Path, plant: Callable[[Any, Path], None], rule: str
) -> None:
    presentation = pptx.Presentation()
    for name in ("First", "Second"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text_frame.text = name
    plant(slide, folder)
    presentation.save(str(folder / "a.pptx"))
    ran = run(f"{SKILL}/check_deck", folder / "a.pptx", "--json")
    found = [f for f in ran.json["findings"] if f["level"] == "fault"]
    wanted = {rule, "empty placeholder"} if rule == "no title" else {rule}
    assert ran.code == 1 and {f["rule"] for f in found} == wanted
    assert {f["slide"] for f in found} == {2} and all(f["next"] for f in found)


def test_blank_slides_and_empty_placeholders_are_found(run: Any, folder: Path) -> None:
    presentation = pptx.Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[6])
    presentation.slides.add_slide(presentation.slide_layouts[1])
    presentation.save(str(folder / "a.pptx"))
    rules = [
        (f["slide"], f["rule"])
        for f in run(f"{SKILL}/check_deck", folder / "a.pptx", "--json").json["findings"]
    ]
    assert (1, "blank slide") in rules and rules.count((2, "empty placeholder")) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"%PDF-1.4"])
def test_what_is_no_deck_is_said(run: Any, folder: Path, content: bytes) -> None:
    (folder / "a.pptx").write_bytes(content)
    ran = run(f"{SKILL}/check_deck", folder / "a.pptx", "--json")
    assert ran.code == 2 and "no .pptx" in ran.json["error"]


needs_office = pytest.mark.skipif(
    not (shutil.which("soffice") or shutil.which("libreoffice")), reason="LibreOffice is not here"
)


@needs_office
def test_a_rendered_deck_has_a_picture_of_each_page(run: Any, deck: Path, folder: Path) -> None:
    ran = run(f"{SKILL}/render_deck", deck, "--out", folder / "seiten", "--json")
    assert ran.code == 0 and ran.json["pages"] == 8, ran.out
    with Image.open(folder / "seiten" / "page-01.png") as first:
        red, green, blue = first.convert("RGB").getpixel((20, 20))
        assert blue > red and blue > green  # the title slide has a coloured ground
    with Image.open(folder / "seiten" / "contact-sheet.png") as sheet:
        assert sheet.width > 1000


@needs_office
def test_rendering_finds_blank_pages_and_text_over_its_box(run: Any, folder: Path) -> None:
    presentation = pptx.Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[6])
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    _box(slide, "far too many words for this box " * 12 + "the very end", 1, 2, 3, 0.6)
    presentation.save(str(folder / "a.pptx"))
    ran = run(f"{SKILL}/render_deck", folder / "a.pptx", "--out", folder / "p", "--json")
    rules = {(f["slide"], f["rule"]) for f in ran.json["findings"]}
    assert ran.code == 1 and rules == {(1, "blank page"), (2, "text over its box")}


def test_documents_are_read_by_their_headings(run: Any, folder: Path) -> None:
    docx = pytest.importorskip("docx")
    source = docx.Document()
    source.add_heading("Über alles", 1)
    source.add_paragraph("Some words here.")
    source.add_paragraph("Point", style="List Bullet")
    table = source.add_table(rows=2, cols=2)
    table.cell(0, 0).text, table.cell(1, 1).text = "a|b", "2"
    source.add_picture(str(picture(folder / "p.png")))
    source.save(str(folder / "a.docx"))
    ran = run(f"{SKILL}/read_document", folder / "a.docx", "--text", folder / "a.md",
              "--pictures", folder / "bilder", "--json")  # fmt: skip
    assert ran.json["headings"][0]["title"] == "Über alles" and ran.json["tables"] == 1
    text = (folder / "a.md").read_text("utf-8")
    assert "# Über alles" in text and "- Point" in text and "a\\|b" in text
    assert [p.name for p in (folder / "bilder").iterdir()] == ["picture-01.png"]


def test_pages_and_regions_of_a_pdf(run: Any, folder: Path) -> None:
    pytest.importorskip("pypdfium2")
    image = Image.new("RGB", (600, 800), "white")
    ImageDraw.Draw(image).rectangle((300, 400, 600, 800), fill="red")
    image.save(folder / "a.pdf")
    ran = run(f"{SKILL}/read_document", folder / "a.pdf", "--json")
    assert ran.json["pages"] == 1 and any("hold no text" in n for n in ran.json["notes"])
    out = folder / "cut.png"
    ran = run(f"{SKILL}/read_document", folder / "a.pdf", "--crop", "1:55,55,95,95", "--out", out)
    assert ran.code == 0
    with Image.open(out) as cut:
        red, green, _ = cut.convert("RGB").getpixel((5, 5))
        assert red > 200 and green < 60
    ran = run(f"{SKILL}/read_document", folder / "a.pdf", "--crop", "4:0,0,9,9", "--out", out,
              "--force")  # fmt: skip
    assert ran.code == 2 and "1 pages" in ran.err
