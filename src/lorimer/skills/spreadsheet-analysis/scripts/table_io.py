"""Opening a table, row by row: CSV and TSV in any usual encoding, XLSX; writing one."""

from __future__ import annotations

import codecs
import csv
import itertools
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cells import Reading, is_gap, is_total
from needs import fail, input_file, need

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SAMPLE_ROWS = 2_000
_LARGEST_UNPACKED = 2 << 30
_EXCEL = (".xlsx", ".xlsm")
csv.field_size_limit(min(sys.maxsize, 1 << 27))
Rows = Iterator[tuple[int, list[Any]]]


class Table:
    """An open table.

    Attributes:
        header: the names of the columns, each once.
        facts: how the file was read, in words.
        notes: what was guessed or is odd; complete only when `rows` is at its end.
        reading: how its cells are read.
        first_row: the row number of the first row of data, as a spreadsheet counts.
    """

    def __init__(self, header: list[str], rows: Rows, reading: Reading) -> None:
        self.header = header
        self.reading = reading
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []
        self._rows = rows
        self.ragged: list[int] = []
        self.short_is_odd = True
        self.keep_totals = True
        self.totals: list[int] = []

    def rows(self) -> Rows:
        """(row number, cells), each as wide as the header; empty rows are left out. Once only.

        Rows that are totals of others are left out too unless `keep_totals`; `notes` tells it.
        """
        width = len(self.header)
        for number, cells in self._rows:
            if all(cell is None or cell == "" for cell in cells):
                continue
            if len(cells) != width:
                extra = [cell for cell in cells[width:] if cell not in (None, "")]
                if extra or (len(cells) < width and self.short_is_odd):
                    self.ragged.append(number)
                cells = [*cells[:width], *[None] * (width - len(cells))]
            if is_total(cells):
                self.totals.append(number)
                if not self.keep_totals:
                    continue
            yield number, cells
        if self.totals and not self.keep_totals:
            self.notes.append(
                f"row(s) {few(self.totals)} are totals and were left out (--keep-totals keeps them)"
            )

    def column(self, name: str) -> int:
        """The place of a column, by its name, or by its letter where no name fits."""
        folded = [title.casefold() for title in self.header]
        if name in self.header:
            return self.header.index(name)
        if folded.count(name.casefold()) == 1:
            return folded.index(name.casefold())
        names = ", ".join(repr(title) for title in self.header[:40])
        return fail(f"there is no column {name!r}.", f"choose one of: {names}")


def few(numbers: list[int], most: int = 5) -> str:
    """The first of some row numbers, and how many more there are."""
    text = ", ".join(map(str, numbers[:most]))
    return text + (f" and {len(numbers) - most} more" if len(numbers) > most else "")


def add_reading_options(parser: Any) -> None:
    """The options of every script that opens a table."""
    parser.add_argument("--sheet", help="of a workbook; default: the first visible one")
    parser.add_argument(
        "--header", type=int, metavar="ROW", help="its row; 0: none. Default: found"
    )
    parser.add_argument("--encoding", help="of a text file, e.g. cp1252. Default: found")
    parser.add_argument("--delimiter", help="of a text file; 'tab' for a tab. Default: found")
    parser.add_argument("--decimal", choices=("auto", ".", ","), default="auto")
    parser.add_argument(
        "--no-quotes", action="store_true", help='of a text file: " is a sign like others'
    )


def open_table(path_text: str, options: Any) -> Table:
    """Open a file with the options of `add_reading_options`."""
    path = input_file(path_text)
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"PK\x03\x04"):
        return _open_workbook(path, options)
    refuse_others(path, start)
    return _open_text(path, options)


def refuse_others(path: Path, start: bytes) -> None:
    """End for files that are no table we can read, by their first bytes."""
    name = str(path)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        fail(
            f"{name!r} is an old .xls workbook, or a workbook with a password.",
            "ask the user for an .xlsx without a password, or a CSV.",
        )
    for magic, what in (
        (b"%PDF", "a PDF"),
        (b"\x1f\x8b", "gzip"),
        (b"\x89PNG", "an image"),
        (b"SQLite f", "an SQLite database"),
        (b"PAR1", "a Parquet file"),
    ):
        if start.startswith(magic):
            fail(f"{name!r} is {what}, not a table.", "convert it to CSV or .xlsx first.")
    if path.stat().st_size == 0:
        fail(f"{name!r} is empty.", "check that it is the right file.")
    if path.suffix.lower() in _EXCEL:
        fail(f"{name!r} is named like a workbook but is none.", "ask for the file again.")


# ---- text


def _open_text(path: Path, options: Any) -> Table:
    encoding, notes = _encoding(path, options.encoding)
    delimiter = {"tab": "\t", "\\t": "\t"}.get(options.delimiter, options.delimiter)
    if delimiter is not None and len(delimiter) != 1:
        fail(f"--delimiter {delimiter!r} is not one character.", "give one, or 'tab'.")
    sample = list(itertools.islice(_text_rows(path, encoding, delimiter or ",", raw=True), 300))
    lines = [cells[0] for _, cells in sample]
    if delimiter is None:
        delimiter = _delimiter(lines, path.suffix.lower())
        if delimiter is None:
            notes.append("no delimiter was found: read as one column (--delimiter says it)")
            delimiter = ","
    quotes = not options.no_quotes
    rows = _text_rows(path, encoding, delimiter, quotes=quotes)
    head = list(itertools.islice(rows, _SAMPLE_ROWS))
    start, header, more = _header(head, options.header, usual=True)
    reading = Reading.of(
        (c for _, row in head[start:] for c in row), decimal=options.decimal, delimiter=delimiter
    )
    rows = _text_rows(path, encoding, delimiter, quotes=quotes)
    table = Table(header, itertools.islice(rows, start, None), reading)
    table.facts = {
        "kind": "text",
        "encoding": encoding,
        "delimiter": _NAMES.get(delimiter, delimiter),
        "decimal": reading.decimal,
        "header_row": head[start - 1][0] if start else None,
    }
    table.notes = [*notes, *more, *reading.notes]
    return table


def _encoding(path: Path, given: str | None) -> tuple[str, list[str]]:
    if given:
        try:
            codecs.lookup(given)
        except LookupError:
            fail(f"there is no encoding {given!r}.", "e.g. utf-8, cp1252, utf-16, shift_jis.")
        fault = _fault_in(path, given)
        if fault is not None:
            fail(f"{str(path)!r} is not {given}: {fault}.", "leave --encoding out, or try another.")
        return given, []
    with path.open("rb") as file:
        start = file.read(4096)
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return name, []
    if b"\0" in start:
        even, odd = start[0::2].count(0), start[1::2].count(0)
        if odd > len(start) // 4 > even:
            return "utf-16-le", ["encoding is a guess: UTF-16 without a mark"]
        fail(f"{str(path)!r} is no text: it holds zero bytes.", "check what kind of file it is.")
    fault = _fault_in(path, "utf-8")
    if fault is None:
        return "utf-8", []
    return "cp1252", [f"encoding is a guess: not UTF-8 ({fault}), read as cp1252 (--encoding)"]


def _fault_in(path: Path, encoding: str) -> str | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    at = 0
    with path.open("rb") as file:
        while True:
            piece = file.read(1 << 20)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as fault:
                wrong = fault.object[fault.start : fault.start + 1].hex()
                return f"byte 0x{wrong} near {at + fault.start:,}"
            at += len(piece)
            if not piece:
                return None


def _delimiter(lines: list[str], suffix: str) -> str | None:
    """The sign that cuts the lines into the same number of cells, more than one."""
    best, choice = 0.0, None
    for sign in "\t;,|":
        widths = [len(row) for row in csv.reader(lines, delimiter=sign) if row]
        if not widths:
            continue
        usual = max(set(widths), key=widths.count)
        if usual < 2:
            continue
        score = widths.count(usual) / len(widths) + min(usual, 20) / 200
        if (suffix == ".tsv" and sign == "\t") or (suffix == ".csv" and sign in ",;"):
            score += 0.05
        if score > best:
            best, choice = score, sign
    return choice


def _text_rows(
    path: Path, encoding: str, delimiter: str, *, raw: bool = False, quotes: bool = True
) -> Rows:
    """Numbered rows; `raw` gives whole lines, each as one cell."""
    errors = "replace" if encoding == "cp1252" else "strict"
    with path.open(encoding=encoding, errors=errors, newline="") as file:
        if raw:
            for number, line in enumerate(file, 1):
                yield number, [line]
            return
        taken: list[str] = []
        lines = (taken.append(line) or line for line in file)  # type: ignore[func-returns-value]
        how = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=delimiter, quoting=how)
        try:
            for number, row in enumerate(reader, 1):
                if (quotes and len(taken) != 1) or (taken and not taken[-1].endswith("\n")):
                    _refuse_open_quote(taken, delimiter, reader.line_num, quotes=quotes)
                taken.clear()
                yield number, list(row)
        except csv.Error as fault:
            fail(f"line {reader.line_num} cannot be read: {fault}.", "check its quotes.")


def _refuse_open_quote(taken: list[str], delimiter: str, last: int, *, quotes: bool) -> None:
    """End where the lines of one row hold a quote that is never closed."""
    if not quotes:
        return
    try:
        list(csv.reader(taken, delimiter=delimiter, strict=True))
    except csv.Error as fault:
        if "end of data" in str(fault):
            first = last - len(taken) + 1
            fail(
                f"a quote that opens in line {first} is never closed: lines {first} to {last} "
                "would be one row.",
                "put the quote right in a copy, or read with --no-quotes.",
            )


# ---- workbooks


def load_workbook(path: Path, **how: Any) -> Any:
    """A workbook of openpyxl, after a look at what is inside.

    Args:
        how: `read_only`, `data_only`.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            names = set(packed.namelist())
            unpacked = sum(one.file_size for one in packed.infolist())
    except zipfile.BadZipFile as fault:
        fail(f"{str(path)!r} is damaged: {fault}.", "ask for the file again.")
    if "xl/workbook.xml" not in names:
        what = "a .xlsb workbook" if "xl/workbook.bin" in names else "no workbook"
        if "content.xml" in names:
            what = "an OpenDocument file"
        fail(f"{str(path)!r} is {what}.", "ask for an .xlsx, or a CSV.")
    if unpacked > _LARGEST_UNPACKED:
        fail(f"{str(path)!r} unpacks to {unpacked:,} bytes.", "ask for the needed sheet as CSV.")
    need("openpyxl")
    import openpyxl

    try:
        return openpyxl.load_workbook(path, **how)
    except (KeyError, ValueError, TypeError, OSError, SyntaxError) as fault:
        return fail(f"{str(path)!r} cannot be read: {fault}.", "ask for a copy saved again.")


def choose_sheet(book: Any, name: str | None, path: Path) -> Any:
    """The sheet of that name, or the first visible one."""
    sheets = book.worksheets
    if name is None:
        visible = [s for s in sheets if s.sheet_state == "visible"]
        return (visible or sheets)[0]
    for sheet in sheets:
        if sheet.title.casefold() == name.casefold():
            return sheet
    names = ", ".join(repr(s.title) for s in sheets)
    return fail(f"{str(path)!r} has no sheet {name!r}.", f"choose one of: {names}")


def _open_workbook(path: Path, options: Any) -> Table:
    book = load_workbook(path, read_only=True, data_only=True)
    sheet = choose_sheet(book, options.sheet, path)
    sheet.reset_dimensions()
    head = list(itertools.islice(_sheet_rows(sheet), _SAMPLE_ROWS))
    if not any(any(c is not None for c in row) for _, row in head):
        fail(f"sheet {sheet.title!r} is empty.", _others(book, sheet))
    start, header, notes = _header(head, options.header)
    cells = (c for _, row in head[start:] for c in row)
    reading = Reading.of(cells, decimal=options.decimal)
    table = Table(header, itertools.islice(_sheet_rows(sheet), start, None), reading)
    table.short_is_odd = False
    table.facts = {
        "kind": "workbook",
        "sheet": sheet.title,
        "sheets": [s.title for s in book.worksheets],
        "hidden_sheets": [s.title for s in book.worksheets if s.sheet_state != "visible"],
        "header_row": head[start - 1][0] if start else None,
    }
    table.notes = [*notes, *reading.notes]
    if len(book.worksheets) > 1:
        table.notes.append(_others(book, sheet))
    return table


def _others(book: Any, sheet: Any) -> str:
    others = [
        repr(s.title) + (" (hidden)" if s.sheet_state != "visible" else "")
        for s in book.worksheets
        if s.title != sheet.title
    ]
    return f"other sheets: {', '.join(others)} (--sheet)" if others else "there is no other sheet."


def _sheet_rows(sheet: Any) -> Rows:
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = list(row)
        while cells and cells[-1] is None:
            cells.pop()
        yield number, cells


# ---- header


def _header(
    head: list[tuple[int, list[Any]]], given: int | None, *, usual: bool = False
) -> tuple[int, list[str], list[str]]:
    """How many rows lie before the data, the names of the columns, and what was guessed.

    With `usual` a table is as wide as its header or most of its rows, not as its widest row.
    """
    width = max((len(row) for _, row in head), default=0)
    notes: list[str] = []
    if given == 0:
        return 0, [letter(n) for n in range(width)], notes
    place = next((n for n, (number, _) in enumerate(head) if number == given), None)
    if given is not None and place is None:
        fail(f"there is no row {given} among the first {len(head)}.", "choose another --header.")
    if place is None:
        place = _guess_header(head)
        if place is None:
            notes.append("no header was found: columns are called by their letters (--header ROW)")
            return 0, [letter(n) for n in range(width)], notes
        above = [row for _, row in head[:place] if any(not is_gap(c) for c in row)]
        if above:
            notes.append(f"{len(above)} rows above the header were left out (--header ROW)")
    if usual:
        widths = [len(row) for _, row in head[place + 1 :] if row]
        width = max(widths, key=widths.count) if widths else 0
    return place + 1, _names(head[place][1], width, notes), notes


def _guess_header(head: list[tuple[int, list[Any]]]) -> int | None:
    filled = [sum(not is_gap(c) for c in row) for _, row in head[:200]]
    usual = max(filled, default=0)
    for place, (_, row) in enumerate(head[:50]):
        if filled[place] < max(1, (usual + 1) // 2):
            continue
        reading = Reading()
        cells = [c for c in row if not is_gap(c)]
        titles = all(isinstance(c, str) and reading.kind(c) == "text" for c in cells)
        return place if titles and len(set(cells)) == len(cells) else _numbered(row, place)
    return None


def _numbered(row: list[Any], place: int) -> int | None:
    """A row of titles may hold years or the same title twice; it begins with text, though."""
    kinds = [Reading().kind(c) for c in row if not is_gap(c)]
    years = all(
        k == "text" or (str(c).strip().isdigit() and 1900 <= int(str(c)) <= 2100)
        for k, c in zip(kinds, (c for c in row if not is_gap(c)), strict=True)
    )
    return place if kinds and kinds[0] == "text" and kinds.count("text") and years else None


def _names(row: list[Any], width: int, notes: list[str]) -> list[str]:
    names: list[str] = []
    for n in range(max(width, len(row))):
        cell = row[n] if n < len(row) else None
        name = " ".join(str(cell).split()) if cell is not None and str(cell).strip() else letter(n)
        if name in names:
            notes.append(
                f"two columns are called {name!r}; the later one is now '{name} ({letter(n)})'"
            )
            name = f"{name} ({letter(n)})"
        names.append(name)
    return names


def letter(place: int) -> str:
    """A for 0, Z for 25, AA for 26."""
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(65 + rest) + text
    return text


# ---- writing


def write_table(path: Path, header: list[str], rows: Iterable[list[Any]], sheet: str = "") -> int:
    """Write a table as CSV (UTF-8 with a mark, so that Excel reads it) or as a formatted sheet.

    Returns:
        the number of rows without the header.
    """
    if path.suffix.lower() == ".xlsx":
        need("openpyxl")
        import openpyxl

        book = openpyxl.Workbook()
        page = book.active
        page.title = sheet_title(sheet or "Result")
        count = fill_sheet(page, header, rows)
        book.save(path)
        return count
    sign = "\t" if path.suffix.lower() == ".tsv" else ","
    count = 0
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=sign)
        writer.writerow(header)
        for row in rows:
            writer.writerow(["" if cell is None else cell for cell in row])
            count += 1
    return count


def sheet_title(text: str) -> str:
    """A name that a sheet may have: at most 31 characters, none of []:*?/\\."""
    return "".join("_" if c in "[]:*?/\\" else c for c in text)[:31] or "Sheet"


def fill_sheet(page: Any, header: list[str], rows: Iterable[list[Any]]) -> int:
    """Header bold and frozen, widths by content, numbers right; text never becomes a formula."""
    import datetime as dt
    from decimal import Decimal

    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Alignment, Font, PatternFill

    widths = [len(name) for name in header]
    for n, name in enumerate(header, 1):
        cell = page.cell(1, n, ILLEGAL_CHARACTERS_RE.sub("", name))
        cell.data_type = "s"
        cell.font = Font(bold=True)
        cell.fill = PatternFill("solid", fgColor="DDE6F0")
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    count = 0
    for count, row in enumerate(rows, 1):
        for n, value in enumerate(row, 1):
            if value is None:
                continue
            if isinstance(value, str):
                value = ILLEGAL_CHARACTERS_RE.sub("", value)
            cell = page.cell(count + 1, n, value)
            if isinstance(value, str):
                cell.data_type = "s"  # '=1+1' from a file stays text
            elif isinstance(value, Decimal):
                whole = value == value.to_integral_value()
                cell.number_format = "#,##0" if whole else "#,##0.00"
            elif isinstance(value, dt.datetime):
                cell.number_format = (
                    "yyyy-mm-dd" if value.hour == value.minute == 0 else ("yyyy-mm-dd hh:mm")
                )
            if n <= len(widths):
                widths[n - 1] = max(widths[n - 1], len(str(value)) + 2)
    for n, width in enumerate(widths):
        page.column_dimensions[letter(n)].width = min(max(width + 2, 8), 48)
    page.freeze_panes = "A2"
    if count:
        page.auto_filter.ref = f"A1:{letter(len(header) - 1)}{count + 1}"
    return count
