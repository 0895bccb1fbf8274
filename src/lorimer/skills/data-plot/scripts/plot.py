"""Draw a chart from a table (CSV, TSV, XLSX) as a PNG that can be read at its final size.

Kinds: line, bar, grouped (bars side by side), stacked, histogram, scatter, box, heatmap.
Bars begin at zero. Gaps stay gaps. Colours can be told apart by colour-blind people. Labels are
measured: what overlaps or is too small is told, exit code 1 (the picture is written all the same).

Beside OUT.png lies OUT.alt.txt, the text for people who cannot see it.

Examples:
  python plot.py sales.csv --kind bar --x Region --y Amount --agg sum --unit EUR \\
      --title "North sells most" --out north.png
  python plot.py temps.xlsx --kind line --x Date --y Indoor --y Outdoor --unit °C \\
      --title "Indoors stays even" --size slide --out temps.png
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import os
from pathlib import Path
from typing import Any

from needs import fail, need, output_file

need("matplotlib")
os.environ.setdefault("MPLCONFIGDIR", os.path.join(os.environ.get("TMPDIR", "/tmp"), "mpl"))

import drawing
from alt_text import describe
from figure_record import save
from series import HOW, choose, keep_largest, rows_of
from table_io import add_reading_options, open_table

KINDS = ("line", "bar", "grouped", "stacked", "histogram", "scatter", "box", "heatmap")
_MOST_CATEGORIES, _MOST_SERIES = 20, 8


def parse() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    add_reading_options(parser)
    parser.add_argument("--kind", required=True, choices=KINDS)
    parser.add_argument("--x", metavar="COLUMN", help="across, e.g. Region or Date:month")
    parser.add_argument("--y", metavar="COLUMN", action="append", default=[], help="repeat it")
    parser.add_argument("--group", metavar="COLUMN", help="a series for each of its values")
    parser.add_argument("--agg", choices=tuple(HOW), help="for several rows of one x")
    parser.add_argument("--unit", default="", help="of the numbers, e.g. EUR, °C, %%")
    parser.add_argument("--x-unit", default="", help="of the numbers across (scatter)")
    parser.add_argument("--title", required=True, help="what is to be seen, as a sentence")
    parser.add_argument("--x-label", default="", help="default: the column's name")
    parser.add_argument("--y-label", default="", help="default: the column's name")
    parser.add_argument("--source", default="", help="where the numbers are from")
    parser.add_argument("--size", choices=tuple(drawing.SIZES), default="page")
    parser.add_argument("--keep-totals", action="store_true", help="draw rows like 'Total' too")
    parser.add_argument("--top", type=int, help="only so many categories, the largest")
    parser.add_argument("--sort", choices=("value", "none"), help="bars; default: value")
    parser.add_argument("--bins", type=int, help="of a histogram; default: by the data")
    parser.add_argument("--log", action="store_true", help="numbers on a logarithmic axis")
    parser.add_argument("--out", required=True, metavar="FILE.png")
    parser.add_argument("--force", action="store_true", help="replace --out where it exists")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.y and options.agg == "count" and options.x:
        options.y = [options.x]
    if not options.y:
        fail("--y is missing.", "give the column with the numbers.")
    if options.kind not in ("histogram", "box") and not options.x:
        fail(f"a {options.kind} chart needs --x.", "give the column that goes across.")
    if options.log and options.kind in ("bar", "grouped", "stacked", "heatmap"):
        fail("bars on a logarithmic axis have no honest length.", "use --kind line or scatter.")
    if options.kind == "heatmap" and not options.group:
        fail("a heatmap needs --group for its rows.", "give a second column of categories.")
    return options


def build(options: Any) -> tuple[Any, str, list[str]]:
    """The figure, its alternative text, and notes."""
    table = open_table(options.file, options)
    table.keep_totals = options.keep_totals
    if options.kind in ("histogram", "box"):
        rows, notes = rows_of(table, None, options.y, options.group)
        groups: dict[str, list[float]] = {}
        for _, name, value in rows:
            groups.setdefault(name or options.y[0], []).append(value)
        _not_too_many(len(groups), "groups", 12 if options.kind == "box" else 4)
        figure = drawing.spread(groups, options)
        return figure, describe(options, groups=groups), [*table.notes, *notes]
    if options.kind == "scatter":
        rows, notes = rows_of(table, options.x, options.y, options.group)
        points: dict[str, list[tuple[float, float]]] = {}
        left = 0
        for across, name, value in rows:
            number = table.reading.number(across)
            if number is None:
                left += 1
                continue
            points.setdefault(name or options.y[0], []).append((float(number), value))
        if not points:
            fail(f"{options.x} holds no numbers.", "a scatter plot needs numbers on both axes.")
        if left:
            notes.append(f"{left} point(s) whose {options.x} is no number left out")
        _not_too_many(len(points), "series", _MOST_SERIES)
        figure = drawing.scatter(points, options)
        return figure, describe(options, points=points), [*table.notes, *notes]
    if options.agg == "count" and options.y == [options.x]:
        return _counted(table, options)
    chosen = choose(table, options)
    return _drawn(chosen, options)


def _counted(table: Any, options: Any) -> tuple[Any, str, list[str]]:
    """Rows for each value of x; no numbers are needed."""
    from cells import is_gap, shown
    from series import Chosen, across_of, twins

    across, counts = across_of(table, options.x), {}
    for _, cells in table.rows():
        found = across(cells)
        name = "(missing)" if is_gap(found) else shown(found, 60).strip()
        counts[name] = counts.get(name, 0) + 1
    options.y_label = options.y_label or "rows"
    chosen = Chosen(list(counts), {"rows": [float(n) for n in counts.values()]})
    chosen.notes = [*table.notes, *twins(chosen.x)]
    return _drawn(chosen, options)


def _drawn(chosen: Any, options: Any) -> tuple[Any, str, list[str]]:
    bars = options.kind in ("bar", "grouped", "stacked")
    if bars and options.top:
        keep_largest(chosen, options.top, options.agg)
    if options.kind == "bar" and len(chosen.series) > 1:
        fail("a bar chart has one series.", "use --kind grouped or stacked.")
    if options.kind == "stacked" and any((v or 0) < 0 for s in chosen.series.values() for v in s):
        fail("negative numbers cannot be stacked.", "use --kind grouped.")
    if bars and not (chosen.dates or chosen.numbers):
        _not_too_many(len(chosen.x), f"values of {options.x}", _MOST_CATEGORIES + 1)
    if options.kind != "heatmap":
        _not_too_many(len(chosen.series), "series", _MOST_SERIES)
    if options.log and any(v is not None and v <= 0 for s in chosen.series.values() for v in s):
        fail("a logarithmic axis cannot show zero or less.", "leave --log out.")
    figure = drawing.draw(chosen, options)
    return figure, describe(options, chosen=chosen), chosen.notes


def _not_too_many(count: int, what: str, most: int) -> None:
    if count > most:
        fail(
            f"{count} {what} cannot be told apart in one chart (at most {most}).",
            "use --top N, a coarser column, or several charts.",
        )


def main() -> int:
    options = parse()
    figure, alt, notes = build(options)
    out = Path(options.out)
    with output_file(options.out, (".png",), force=options.force) as path:
        faults = save(figure, path, alt, dpi=drawing.SIZES[options.size].dpi)
        made = path.with_suffix(".alt.txt")
        made.replace(out.with_suffix(".alt.txt"))
    if not options.unit and options.agg != "count":
        notes.append("no --unit was given: say what the numbers are counted in")
    report = {
        "written": [options.out, str(out.with_suffix(".alt.txt"))],
        "alt": alt, "faults": faults, "notes": notes,
    }  # fmt: skip
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(f"written: {options.out} and {out.with_suffix('.alt.txt')}")
        print(f"alt text: {alt}")
        for fault in faults[:10]:
            print(f"fault: {fault}. → shorter labels, --top N, or a larger --size")
        if len(faults) > 10:
            print(f"fault: and {len(faults) - 10} more")
        for note in notes:
            print(f"note: {note}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
