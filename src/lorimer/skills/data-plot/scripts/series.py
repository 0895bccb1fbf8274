"""From a table to what is drawn: numbers by x and by group, with what was left out."""

from __future__ import annotations

import datetime as dt
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cells import CUTS, MISSING, NO_DATE, is_gap, is_percent, percent_note, shown
from needs import fail
from table_io import Table

HOW: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": statistics.fmean,
    "median": statistics.median,
    "count": len,
    "min": min,
    "max": max,
}


@dataclass
class Chosen:
    """The points of a chart.

    Attributes:
        x: the values across, in order: texts, numbers or dates.
        series: by name, a value for each x; `None` is a gap.
        dates, numbers: what x is.
    """

    x: list[Any] = field(default_factory=list)
    series: dict[str, list[float | None]] = field(default_factory=dict)
    dates: bool = False
    numbers: bool = False
    notes: list[str] = field(default_factory=list)


def across_of(table: Table, text: str) -> Callable[[list[Any]], Any]:
    """What stands across for a row: a column's cell, or a part of its date (`Date:month`)."""
    column, _, cut = text.rpartition(":")
    if cut in CUTS and column and text not in table.header:
        place, form = table.column(column), CUTS[cut]

        def by_date(cells: list[Any]) -> str | None:
            date = table.reading.date(cells[place])
            return form(date) if date is not None else None

        return by_date
    place = table.column(text)
    return lambda cells: cells[place]


def twins(names: list[Any]) -> list[str]:
    """A note where names differ only in capitals or spaces, and so are drawn apart."""
    seen: dict[str, list[str]] = defaultdict(list)
    for name in map(str, names):
        seen[" ".join(name.casefold().split())].append(name)
    pairs = [" / ".join(map(repr, same)) for same in seen.values() if len(same) > 1]
    if not pairs:
        return []
    return [f"drawn apart, though they differ only in capitals: {', '.join(pairs[:4])}"]


def rows_of(
    table: Table, x: str | None, ys: list[str], group: str | None, *, ordered: bool = False
) -> tuple[list[tuple[Any, str, float]], list[str]]:
    """(x, series, number) of each usable cell, and what was left out.

    Args:
        ordered: x is a course (of time): "(no date)" has no place on it.
    """
    percents: dict[str, list[int]] = defaultdict(list)
    places = [(name, table.column(name)) for name in ys]
    find = across_of(table, x) if x else None
    group_place = table.column(group) if group else None
    out: list[tuple[Any, str, float]] = []
    gaps, wrong, no_x = 0, [], 0
    for row, cells in table.rows():
        across = find(cells) if find is not None else row
        if is_gap(across) or (across in (MISSING, NO_DATE) and ordered):
            no_x += 1
            continue
        part = ""
        if group_place is not None:
            part = "(missing)" if is_gap(cells[group_place]) else shown(cells[group_place]).strip()
        for name, place in places:
            if is_gap(cells[place]):
                gaps += 1
                continue
            value = table.reading.number(cells[place])
            if value is None:
                wrong.append(row)
                continue
            if is_percent(cells[place]):
                percents[name].append(row)
            series = part if len(ys) == 1 and part else f"{part} {name}".strip()
            out.append((across, series, float(value)))
    notes = [n for y in ys for n in percent_note(y, percents[y], len(out) // len(ys))]
    if gaps:
        notes.append(f"{gaps} empty cell(s) left out")
    if no_x:
        notes.append(f"{no_x} row(s) without {x} left out")
    if wrong:
        few = ", ".join(map(str, wrong[:5]))
        notes.append(f"{len(wrong)} cell(s) that are no numbers left out (rows {few})")
    if not out:
        fail(f"there are no numbers in {', '.join(ys)}.", "look with inspect_table.py; --decimal.")
    return out, notes


def choose(table: Table, options: Any) -> Chosen:
    """One value for each x and series."""
    rows, notes = rows_of(
        table, options.x, options.y, options.group, ordered=options.kind == "line"
    )
    chosen = Chosen(notes=[*table.notes, *notes])
    reading = table.reading
    dates = [reading.date(across) for across, _, _ in rows]
    numbers = [reading.number(across) for across, _, _ in rows]
    chosen.dates = all(d is not None for d in dates)
    chosen.numbers = not chosen.dates and all(n is not None for n in numbers)
    cells: dict[tuple[str, Any], list[float]] = defaultdict(list)
    for (across, name, value), date, number in zip(rows, dates, numbers, strict=True):
        key: Any = shown(across, 60).strip()
        if chosen.dates:
            key = (date or dt.datetime.min).replace(tzinfo=None)
        elif chosen.numbers:
            key = float(number or Decimal(0))
        cells[name, key].append(value)
    doubles = [key for key, values in cells.items() if len(values) > 1]
    if doubles and not options.agg:
        name, key = doubles[0]
        fail(
            f"{options.x} {shown(key)!r} stands {len(cells[doubles[0]])} times"
            + (f" in {name!r}" if name else "") + ".",
            "say how to put them together: --agg sum, mean, median, count, min or max.",
        )  # fmt: skip
    join = HOW[options.agg or "sum"]
    if chosen.dates or chosen.numbers:
        chosen.x = sorted({key for _, key in cells})
    else:
        chosen.x = list(dict.fromkeys(key for _, key in cells))
    for name in dict.fromkeys(name for name, _ in cells):
        column = [cells.get((name, key)) for key in chosen.x]
        chosen.series[name] = [join(values) if values else None for values in column]
    chosen.notes += twins(chosen.x) + twins(list(chosen.series))
    return chosen


def keep_largest(chosen: Chosen, top: int, agg: str | None) -> None:
    """Only the `top` largest categories; the rest becomes one, where sums mean something."""
    if len(chosen.x) <= top:
        return
    totals = [sum(v[n] or 0 for v in chosen.series.values()) for n in range(len(chosen.x))]
    order = sorted(range(len(chosen.x)), key=lambda n: -totals[n])
    kept, rest = sorted(order[:top], key=lambda n: -totals[n]), order[top:]
    add = agg in (None, "sum", "count")
    names = [chosen.x[n] for n in kept]
    for name, values in chosen.series.items():
        left = [v for v in (values[n] for n in rest) if v is not None]
        chosen.series[name] = [values[n] for n in kept] + ([sum(left)] if add else [])
    chosen.x = [*names, f"{len(rest)} others"] if add else names
    told = "as 'others'" if add else "not shown"
    if add and kept and sum(totals[n] for n in rest) > totals[kept[0]]:
        chosen.notes.append(
            f"the bar of the {len(rest)} others together is longer than any named one: it is grey; "
            "say so, or take a larger --top"
        )
    chosen.notes.append(f"the {top} largest of {top + len(rest)} are drawn, the rest is {told}")
