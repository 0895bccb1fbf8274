"""Labels of a chart that lie on its bars, or cannot be read on their ground."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import theme

_LEAST = 3.0
"""Contrast of large text by WCAG 2."""


def chart_faults(chart: Any) -> Iterator[tuple[str, str]]:
    """(what is wrong, what to do) of one chart of python-pptx."""
    for plot in chart.plots:
        kind = type(plot).__name__
        values = [v for s in plot.series for v in s.values if v is not None]
        if kind == "BarPlot" and min(values, default=0) < 0:
            axis = chart.category_axis
            if axis.visible and axis.tick_label_position.name == "NEXT_TO_AXIS":
                yield (
                    "names of the categories lie on the negative bars",
                    "set the tick labels to low",
                )
        stacked = kind == "BarPlot" and plot._element.xpath(
            './c:grouping[@val="stacked" or @val="percentStacked"]'
        )
        if stacked or kind in ("PiePlot", "DoughnutPlot"):
            yield from _inside(plot)


def _inside(plot: Any) -> Iterator[tuple[str, str]]:
    for series in plot.series:
        labels = series._element.xpath("./c:dLbls") or plot._element.xpath("./c:dLbls")
        if not labels or labels[0].xpath('./c:dLblPos[@val="outEnd"]'):
            continue
        shown = labels[0].xpath('./*[self::c:showVal or self::c:showPercent][not(@val="0")]')
        if not shown:
            continue
        found = labels[0].xpath("./c:txPr//a:defRPr/a:solidFill/a:srgbClr/@val")
        ink = str(found[0]) if found else theme.INK
        fills = series._element.xpath(
            "./c:spPr/a:solidFill/a:srgbClr/@val | ./c:dPt/c:spPr/a:solidFill/a:srgbClr/@val"
        )
        worst = min((theme.contrast(ink, str(f)) for f in fills), default=21.0)
        if worst < _LEAST:
            yield (
                f"numbers in {ink} on the colours of {series.name!r} contrast {worst:.1f}",
                "white or dark numbers, or numbers outside",
            )
