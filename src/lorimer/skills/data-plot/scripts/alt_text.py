"""What a chart shows, in two or three sentences, with its numbers."""

from __future__ import annotations

import datetime as dt
import statistics
from typing import Any

_NAMES = {
    "line": "Line chart", "bar": "Bar chart", "grouped": "Bar chart with groups",
    "stacked": "Stacked bar chart", "histogram": "Histogram", "scatter": "Scatter plot",
    "box": "Box plot", "heatmap": "Heat map",
}  # fmt: skip
_MOST = 6


def number(value: float) -> str:
    """Four figures are enough to hear."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    text = f"{value:,.4g}"
    return f"{value:,.0f}" if "e" in text and abs(value) < 1e15 and abs(value) >= 1 else text


def across(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d")
    return number(value) if isinstance(value, float) else str(value)


def describe(options: Any, *, chosen: Any = None, groups: Any = None, points: Any = None) -> str:
    """The alternative text of a chart."""
    unit = f" in {options.unit}" if options.unit else ""
    what = options.y_label or ", ".join(options.y)
    head = f"{_NAMES[options.kind]}: {options.title.rstrip('.')}. "
    if chosen is not None:
        body = _by_x(chosen, f"{what}{unit} by {options.x_label or options.x}")
    elif groups is not None:
        parts = []
        for name, values in list(groups.items())[:_MOST]:
            parts.append(
                f"{name}: {len(values):,} values from {number(min(values))} to "
                f"{number(max(values))}, median {number(statistics.median(values))}"
            )
        body = f"{what}{unit}. " + _rest(parts, len(groups))
    else:
        parts = []
        for name, pairs in list(points.items())[:_MOST]:
            text = f"{name}: {len(pairs):,} points"
            xs, ys = [p[0] for p in pairs], [p[1] for p in pairs]
            if len(pairs) > 2 and len(set(xs)) > 1 and len(set(ys)) > 1:
                text += f", correlation {statistics.correlation(xs, ys):.2f}"
            parts.append(text)
        body = f"{what}{unit} against {options.x_label or options.x}. " + _rest(parts, len(points))
    return head + body.rstrip(". ") + "."


def _by_x(chosen: Any, what: str) -> str:
    parts = []
    for name, values in list(chosen.series.items())[:_MOST]:
        known = [(x, v) for x, v in zip(chosen.x, values, strict=True) if v is not None]
        if not known:
            continue
        label = f"{name}: " if len(chosen.series) > 1 and name else ""
        ordered = chosen.dates or chosen.numbers
        if not ordered and len(known) <= 8:
            parts.append(label + ", ".join(f"{across(x)} {number(v)}" for x, v in known))
            continue
        low, high = min(known, key=lambda k: k[1]), max(known, key=lambda k: k[1])
        first = ""
        if ordered:
            first = (
                f"from {number(known[0][1])} ({across(known[0][0])}) to "
                f"{number(known[-1][1])} ({across(known[-1][0])}), "
            )
        parts.append(
            f"{label}{first}lowest {number(low[1])} ({across(low[0])}), highest "
            f"{number(high[1])} ({across(high[0])})"
        )
    return f"{what}. " + _rest(parts, len(chosen.series))


def _rest(parts: list[str], count: int) -> str:
    more = f"; and {count - _MOST} more" if count > _MOST else ""
    return "; ".join(parts) + more
