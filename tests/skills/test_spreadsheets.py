"""spreadsheet-analysis on files as people have them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

openpyxl = pytest.importorskip("openpyxl")
SKILL = "spreadsheet-analysis"
GERMAN = """Order ID;Date;Region;Amount;Status
0001;31.01.2025;North;1.234,50;open
0002;01.02.2025;South;99,90;paid
0003;05.02.2025;north;abc;paid
0003;05.02.2025;north;abc;paid
0004;;East;;"two
lines "
Total;;;1.334,40;
"""


@pytest.fixture
def german(folder: Path) -> Path:
    path = folder / "Umsätze 2025.csv"
    path.write_bytes(GERMAN.encode("utf-8"))
    return path


def test_a_table_is_summed_up_with_everything_odd(run: Any, german: Path) -> None:
    report = run(f"{SKILL}/inspect_table", german, "--json").json
    facts = report["read_as"]
    assert (facts["delimiter"], facts["decimal"], facts["encoding"]) == ("semicolon", ",", "utf-8")
    assert report["rows"] == 6 and report["duplicate_rows"] == {"count": 1, "examples": [[5, 4]]}
    amount = report["columns"][3]
    assert amount["type"] == "mixed" and amount["missing"] == 1 and amount["max"] == "1,334.4"
    notes = "\n".join(report["notes"])
    assert "look like totals" in notes and "only in capitals" in notes
    assert "mostly number, but 2 text (first in row 4)" in notes and "end with spaces" in notes


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8-sig", "utf-8-sig"), ("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"),
     ("cp1252", "cp1252")],
)  # fmt: skip
def test_encodings_are_found_or_guessed_aloud(
    run: Any, folder: Path, encoding: str, found: str
) -> None:
    path = folder / "a.csv"
    path.write_bytes("Stadt,Zahl\nKöln,1\nMünchen,2\n".encode(encoding))
    report = run(f"{SKILL}/inspect_table", path, "--json", "--rows", 1).json
    assert report["read_as"]["encoding"] == found
    assert report["first_rows"] == [["Köln", "1"]]
    guessed = any("guess" in note for note in report["notes"])
    assert guessed == (encoding in ("cp1252", "utf-16-le"))


def test_groups_and_pivot_are_exact_and_say_what_is_left_out(
    run: Any, german: Path, folder: Path
) -> None:
    out = folder / "monate.xlsx"
    arguments = ["--by", "Date:month", "--pivot", "Region", "--measure", "sum:Amount",
                 "--where", "Order ID!=Total"]  # fmt: skip
    ran = run(f"{SKILL}/summarise_table", german, *arguments, "--out", out, "--json")
    report = ran.json
    assert report["rows_used"] == 5 and report["rows_read"] == 5  # the total is no row of data
    assert report["total"][-1] == "1334.40"
    assert any("2 cell(s) that are no numbers left out (rows 4, 5)" in n for n in report["notes"])
    sheet = openpyxl.load_workbook(out).active
    assert sheet["A2"].value == "(no date)" and sheet.freeze_panes == "A2"
    assert run(f"{SKILL}/summarise_table", german, *arguments, "--out", out).code == 2  # exists


def test_many_tenths_add_up_exactly(run: Any, folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text("k,v\n" + "a,0.1\n" * 1000, encoding="utf-8")
    report = run(f"{SKILL}/summarise_table", path, "--measure", "sum:v", "--json").json
    assert report["rows"] == [["100.0"]]


def test_differences_are_found_by_key_and_written(run: Any, folder: Path) -> None:
    old, new, out = folder / "old.csv", folder / "new.xlsx", folder / "d.csv"
    old.write_text('id,name,price\n1,a,"1,000.00"\n2,b,5.00\n3,c,7\n', encoding="utf-8")
    book = openpyxl.Workbook()
    for row in (["id", "name", "price"], [1, "a", 1000], [3, "c", 7.5], [4, "d", 1]):
        book.active.append(row)
    book.save(new)
    ran = run(f"{SKILL}/compare_tables", old, new, "--key", "id", "--out", out, "--json")
    report = ran.json
    assert ran.code == 1
    assert (report["added"], report["removed"], report["changed_rows"]) == (1, 1, 1)
    assert report["changes"][0][:4] == ["3", "price", "7", "7.5"]
    rows = list(csv.reader(out.read_text("utf-8-sig").splitlines()))
    assert sorted(row[0] for row in rows[1:]) == ["added", "changed", "removed"]
    near = run(f"{SKILL}/compare_tables", old, old, "--key", "id")
    assert near.code == 0


def test_formulas_are_checked_against_saved_values(run: Any, folder: Path) -> None:
    """A workbook with saved values, as a spreadsheet program writes it: made by XlsxWriter."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = folder / "plan.xlsx"
    book = xlsxwriter.Workbook(str(path))
    page = book.add_worksheet("Plan")
    for row in range(1, 7):
        page.write(f"A{row}", row * 10)
        page.write_formula(f"B{row}", f"=A{row}*2", None, row * 20)
    page.write("B3", 61)  # typed over
    page.write_formula("B5", "=A5*3", None, 150)  # unlike its neighbours
    page.write_formula("A8", "=SUM(A1:A6)", None, 200)  # is 210
    page.write_formula("A9", "=AVERAGE(A1:A6)-2^2%", None, 35 - 2**0.02)
    page.write_formula("A10", "=1/0", None, "#DIV/0!")
    page.write_formula("A11", "=VLOOKUP(1,A1:B6,2)", None, 5)
    book.close()
    ran = run(f"{SKILL}/check_formulas", path, "--json")
    found = ran.json["findings"]
    assert ran.code == 1
    assert list(found["number typed over a formula"]) == ["Plan!B3 is 61"]
    assert found["formula unlike its neighbours"] == ["Plan!B5 =A5*3"]
    assert found["saved value is not right"] == [
        "Plan!A8 =SUM(A1:A6) is saved as 200, but gives 210"
    ]
    assert found["error value"][0].startswith("Plan!A10 is #DIV/0!")
    assert ran.json["sheets"][0]["because"] == {"VLOOKUP": 1}


def test_formulas_without_a_saved_value_are_told(run: Any, folder: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = "=1+1"
    book.save(folder / "a.xlsx")
    ran = run(f"{SKILL}/check_formulas", folder / "a.xlsx")
    assert ran.code == 1 and "no saved value" in ran.out


def test_what_is_written_keeps_types_and_never_becomes_a_formula(run: Any, folder: Path) -> None:
    path, out = folder / "a.csv", folder / "a.xlsx"
    path.write_text("id,n,d,t\n007,1.5,2025-02-03,=1+1\n008,2,2025-02-04,x\n", encoding="utf-8")
    assert run(f"{SKILL}/write_table", path, "--out", out).code == 0
    row = [cell.value for cell in openpyxl.load_workbook(out).active[2]]
    assert row[0] == "007" and row[1] == 1.5 and row[2].year == 2025 and row[3] == "=1+1"
    assert openpyxl.load_workbook(out).active["D2"].data_type == "s"
    told = run(f"{SKILL}/write_table", path, "--out", folder / "b.tsv")
    assert "would run" in told.out
    again = run(f"{SKILL}/write_table", path, "--into", out, "--out", folder / "c.xlsx")
    assert again.code == 2 and "has a sheet" in again.err
    named = ["--sheet-name", "Zwei", "--out", folder / "c.xlsx"]
    assert run(f"{SKILL}/write_table", path, "--into", out, *named).code == 0
    assert openpyxl.load_workbook(folder / "c.xlsx").sheetnames == ["Result", "Zwei"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old .xls"),
        ("a.pdf", b"%PDF-1.7\n", "a PDF"),
        ("a.csv", b"", "is empty"),
        ("a.xlsx", b"PK\x03\x04broken", "damaged"),
        ("a.xlsx", b"a,b\n1,2\n", "named like a workbook"),
        ("a.csv", b"\x00\x01\x02\x03" * 50, "no text"),
    ],
)
def test_a_wrong_file_is_named_with_the_reason(
    run: Any, folder: Path, name: str, content: bytes, told: str
) -> None:
    (folder / name).write_bytes(content)
    ran = run(f"{SKILL}/inspect_table", folder / name, "--json")
    assert ran.code == 2 and told in ran.json["error"] and ran.json["next"]


def test_wrong_columns_sheets_and_paths_are_errors(run: Any, german: Path, folder: Path) -> None:
    ran = run(f"{SKILL}/summarise_table", german, "--by", "Land")
    assert ran.code == 2 and "'Region'" in ran.err
    assert run(f"{SKILL}/inspect_table", folder / "none.csv").code == 2
    assert run(f"{SKILL}/inspect_table", folder).code == 2
    ran = run(f"{SKILL}/write_table", german, "--out", folder / "no" / "a.xlsx")
    assert ran.code == 2 and "does not exist" in ran.err
    assert run(f"{SKILL}/write_table", german, "--out", german, "--force").code == 2
    assert not list(folder.glob(".new-*"))
