"""The picture of `lorimer cache report --plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import MissingExtra, UsageFault

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lorimer.cli.cache import RequestRow

_FORMS = (".png", ".svg", ".pdf")
_CACHED, _READ, _EXPECTED, _BREAK = "#3b7dd8", "#d9dde3", "#1d2733", "#c8372d"


def check_plot(file: Path) -> None:
    """Raises `UsageFault` or `MissingExtra` when `file` could not be drawn."""
    if file.suffix.lower() not in _FORMS:
        raise UsageFault(
            f"--plot {file}: the file's ending says no form of picture.",
            next=f"Use one of: {', '.join(_FORMS)}",
        )
    if not file.absolute().parent.is_dir():
        raise UsageFault(f"--plot {file}: there is no folder {file.absolute().parent}.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as fault:
        raise MissingExtra("plots", "plot") from fault


def draw(rows: Sequence[RequestRow], file: Path, title: str) -> None:
    """Bars of prompt tokens by request, cached and read, with what was expected; below them the
    time to the first token."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    timed = any(row.ttft_s is not None for row in rows)
    figure = Figure(figsize=(9, 5.4 if timed else 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [3, 1] if timed else [1]
    axes = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    top = axes[0]
    numbers = [row.number for row in rows]
    told = [row for row in rows if row.cached is not None]
    cached = [min(row.cached or 0, row.prompt) for row in told]
    top.bar([row.number for row in told], cached, width=0.8, color=_CACHED)
    read = [row.prompt - found for row, found in zip(told, cached, strict=True)]
    top.bar([row.number for row in told], read, width=0.8, bottom=cached, color=_READ)
    silent = [row for row in rows if row.cached is None]
    unknown: dict[str, Any] = {"facecolor": "none", "edgecolor": _READ, "hatch": "///"}
    top.bar([row.number for row in silent], [row.prompt for row in silent], width=0.8, **unknown)
    legend: list[Patch | Line2D] = [
        Patch(color=_CACHED, label="from the cache"),
        Patch(color=_READ, label="read anew"),
    ]
    if silent:
        legend.append(Patch(label="not told", **unknown))
    due = [(row.number, row.expected) for row in rows if row.expected]
    if due:
        top.hlines(
            [tokens for _, tokens in due], [n - 0.4 for n, _ in due], [n + 0.4 for n, _ in due],
            colors=_EXPECTED, linewidth=1.5,
        )  # fmt: skip
        legend.append(Line2D([], [], color=_EXPECTED, linewidth=1.5, label="expected from it"))
    ceiling = max([1, *(row.prompt for row in rows)])
    broken = [row for row in rows if row.broken]
    for row in broken:
        announced = bool(row.broken and row.broken["announced"])
        top.plot(
            [row.number], [row.prompt + 0.03 * ceiling], marker="v", markersize=6,
            color=_BREAK, fillstyle="none" if announced else "full",
        )  # fmt: skip
    if broken:
        mark: dict[str, Any] = {"color": _BREAK, "marker": "v", "linestyle": ""}
        legend.append(Line2D([], [], label="the prefix broke", **mark))
        if any(row.broken and row.broken["announced"] for row in broken):
            legend.append(Line2D([], [], label="announced", fillstyle="none", **mark))
        _name_breaks(top, broken, ceiling, numbers[-1])
    top.set_ylim(0, ceiling * (1.35 if broken else 1.12))
    top.set_ylabel("prompt tokens")
    top.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    top.set_title(title, loc="left", fontsize=10)
    figure.legend(
        handles=legend, loc="outside upper right", ncols=len(legend), fontsize=8, frameon=False
    )
    if timed:
        points = [(row.number, row.ttft_s) for row in rows if row.ttft_s is not None]
        axes[1].plot(
            [n for n, _ in points], [s for _, s in points], marker="o", markersize=4,
            linewidth=1.2, color=_EXPECTED,
        )  # fmt: skip
        axes[1].set_ylim(bottom=0)
        axes[1].set_ylabel("first token (s)")
    axes[-1].set_xlabel("request")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, nbins=20))
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="#e9ecf0", linewidth=0.8)
        one.set_axisbelow(True)
    figure.savefig(file)


def _name_breaks(axis: Axes, broken: Sequence[RequestRow], ceiling: int, last_number: int) -> None:
    """The cause above the first break of each run of one cause."""
    last = ""
    for row in broken:
        assert row.broken is not None
        cause = str(row.broken["cause"])
        if cause != last:
            axis.annotate(
                cause.replace("_", " "), (row.number, row.prompt + 0.05 * ceiling),
                xytext=(0, 8), textcoords="offset points", fontsize=8, color=_BREAK,
                ha="left" if row.number <= 0.6 * last_number else "right",
            )  # fmt: skip
        last = cause
