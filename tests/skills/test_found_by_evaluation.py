"""Kinds of faults that files of users showed: each is found, said, and not drawn or summed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

openpyxl = pytest.importorskip("openpyxl")
SHEETS, PLOT, DECK = "spreadsheet-analysis", "data-plot", "document-to-slides"


@pytest.mark.parametrize("word", ["Total", "Summe", "(all)", "Grand total:", "Gesamtsumme", "合計"])
def test_totals_are_left_out_aloud_by_every_script(run: Any, folder: Path, word: str) -> None:
    path = folder / "t.csv"
    path.write_text(f"Region,Betrag\nNord,10\nSüd,20\n{word},30\n", encoding="utf-8")
    ask = [path, "--by", "Region", "--measure", "sum:Betrag", "--json"]
    report = run(f"{SHEETS}/summarise_table", *ask).json
    assert report["total"][-1] == "30" and report["groups"] == 2
    assert any("row(s) 4 are totals" in note for note in report["notes"])
    kept = run(f"{SHEETS}/summarise_table", *ask, "--keep-totals").json
    assert kept["total"][-1] == "60" and kept["groups"] == 3
    drawn = run(
        f"{PLOT}/plot", path, "--kind", "bar", "--x", "Region", "--y", "Betrag", "--title", "T",
        "--out", folder / "a.png", "--json",
    ).json  # fmt: skip
    assert word not in drawn["alt"] and any("totals" in note for note in drawn["notes"])


def test_a_pivot_is_drawn_as_months_only(run: Any, folder: Path) -> None:
    path, pivot = folder / "o.csv", folder / "p.csv"
    path.write_text(
        "Datum,Status,Betrag\n2025-01-02,a,1\n2025-02-02,a,2\n,a,4\n2025-02-03,b,8\n", "utf-8"
    )
    run(
        f"{SHEETS}/summarise_table", path, "--by", "Datum:month", "--pivot", "Status", "--measure",
        "sum:Betrag", "--out", pivot,
    )  # fmt: skip
    for source, x in ((pivot, "Datum:month"), (path, "Datum:month")):
        y = "a" if source == pivot else "Betrag"
        ran = run(
            f"{PLOT}/plot", source, "--kind", "line", "--x", x, "--y", y, "--title", "T",
            "--agg", "sum", "--out", folder / f"{y}.png", "--json",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        assert "(all)" not in ran.json["alt"] and "no date" not in ran.json["alt"]
        assert any("without" in note for note in ran.json["notes"])


def test_percent_among_money_is_said(run: Any, folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text("city,pop\nA,12%\nB,500\nC,20\n", "utf-8")
    for script in ("inspect_table", "summarise_table"):
        more = ["--measure", "sum:pop"] if script == "summarise_table" else []
        notes = run(f"{SHEETS}/{script}", path, "--json", *more).json["notes"]
        assert any("with % (rows 2)" in note for note in notes)
    path.write_text("city,share\nA,12%\nB,50%\n", "utf-8")
    assert not run(f"{SHEETS}/inspect_table", path, "--json").json["notes"]


@pytest.mark.parametrize("text", ['a,b\n"x\n1,2\n3,4\n', 'a,b\n1,2\n3,"x\n4,5'])
def test_an_open_quote_is_an_error(run: Any, folder: Path, text: str) -> None:
    path = folder / "q.csv"
    path.write_text(text, "utf-8")
    ran = run(f"{SHEETS}/inspect_table", path)
    assert ran.code == 2 and "never closed" in ran.err
    plain = run(f"{SHEETS}/inspect_table", path, "--no-quotes", "--json")
    assert plain.code == 0 and plain.json["rows"] == text.strip().count("\n")
    path.write_text('a,b\n"x\ny",2\n3,"z"', "utf-8")
    assert run(f"{SHEETS}/inspect_table", path, "--json").json["rows"] == 2


def test_the_row_that_is_too_wide_is_named(run: Any, folder: Path) -> None:
    path = folder / "w.csv"
    path.write_text("a;b\n1;2\n3;4\n5;6;7\n", "utf-8")
    report = run(f"{SHEETS}/inspect_table", path, "--json").json
    assert len(report["columns"]) == 2
    assert any("1 row(s)" in note and "(4)" in note for note in report["notes"])


def test_formulas_never_calculated_show_their_faults(run: Any, folder: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    for row in range(2, 12):
        page[f"B{row}"] = page[f"C{row}"] = page[f"D{row}"] = row
    page["B12"], page["C12"], page["D12"] = "=SUM(B2:B10)", "=SUM(C2:C11)", "=D12+1"
    page["F1"], page["F2"], page["F3"] = "=#REF!+1", "=1/0", "=Nowhere!A1"
    page["F4"], page["F5"] = "=FROBNICATE(B2)", "=SUM(B2:B4)/0.5"
    for row in range(20, 32):
        page[f"H{row}"] = f"=B2*{row}"
    path = folder / "f.xlsx"
    book.save(path)
    ran = run(f"{SHEETS}/check_formulas", path, "--json")
    found = ran.json["findings"]
    places = {kind: [p.split(" ")[0] for p in found[kind]] for kind in found}
    assert places["broken reference"] == ["Sheet!F1"]
    assert places["division by zero"] == ["Sheet!F2"]
    assert places["sheet is missing"] == ["Sheet!F3"]
    assert places["unknown function"] == ["Sheet!F4"]
    assert places["refers to itself"] == ["Sheet!D12"]
    assert places["range shorter than its neighbour's"] == ["Sheet!B12"]
    text = run(f"{SHEETS}/check_formulas", path).out
    assert "--all shows them" in text and "without a saved value to compare" in text
    every = run(f"{SHEETS}/check_formulas", path, "--all").out
    assert "more: --all" not in every and "H31" in every


def test_names_in_capitals_and_large_others_are_said(run: Any, folder: Path) -> None:
    path = folder / "n.csv"
    rows = "".join(f"k{n},5\n" for n in range(30))
    path.write_text(f"k,v\nNord,9\nnord,8\n{rows}", "utf-8")
    ran = run(
        f"{PLOT}/plot", path, "--kind", "bar", "--x", "k", "--y", "v", "--top", "3", "--title",
        "T", "--out", folder / "n.png", "--json",
    )  # fmt: skip
    notes = "\n".join(ran.json["notes"])
    assert "'Nord' / 'nord'" in notes and "longer than any named one" in notes


def _chart(kind: str, values: list[list[float]]) -> dict[str, Any]:
    series = [{"name": f"s{n}", "values": v} for n, v in enumerate(values)]
    names = ["a", "b", "c"]
    return {
        "kind": "chart", "title": f"A {kind}", "chart": kind, "categories": names,
        "series": series, "alt": "x",
    }  # fmt: skip


def test_labels_of_charts_are_built_readable_and_checked(run: Any, folder: Path) -> None:
    pptx = pytest.importorskip("pptx")
    slides = [
        _chart("bar", [[-3, 2, 5]]), _chart("stacked", [[1, 2, 3], [3, 2, 1]]),
        _chart("pie", [[3, 2, 1]]),
    ]  # fmt: skip
    outline, deck = folder / "o.json", folder / "o.pptx"
    outline.write_text(json.dumps({"title": "T", "slides": slides}), "utf-8")
    assert run(f"{DECK}/build_deck", outline, "--out", deck).code == 0
    assert "chart labels" not in run(f"{DECK}/check_deck", deck).out
    opened = pptx.Presentation(deck)
    charts = [s.chart for slide in opened.slides for s in slide.shapes if s.has_chart]
    axis = charts[0].category_axis
    axis.tick_label_position = axis.tick_label_position.NEXT_TO_AXIS
    from pptx.dml.color import RGBColor

    dark = charts[1].plots[0].series[0].data_labels.font.color
    dark.rgb = RGBColor(0, 0x50, 0xA0)
    opened.save(deck)
    ran = run(f"{DECK}/check_deck", deck)
    assert ran.code == 1 and "lie on the negative bars" in ran.out and "contrast" in ran.out


@pytest.mark.parametrize("fence", ["```chart line", "```python", "~~~"])
def test_an_unknown_block_is_an_error_of_its_slide(run: Any, folder: Path, fence: str) -> None:
    outline = folder / "o.md"
    outline.write_text(f"---\ntitle: T\n---\n## One\n- a\n## Two\n{fence}\n1,2\n```\n", "utf-8")
    ran = run(f"{DECK}/build_deck", outline, "--out", folder / "o.pptx")
    assert ran.code == 2 and "slide 3" in ran.err and fence in ran.err
