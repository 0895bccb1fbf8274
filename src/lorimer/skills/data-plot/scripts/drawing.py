"""The charts themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates as dates
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D3B")
"""Okabe and Ito's palette in an order of strong contrast; the last is ours."""
_PERIOD = re.compile(r"\d{4}(-\d{2}|-?Q\d|-W\d{2})?")
"""Names of times keep their order."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, GREY, GRID = "#1F2933", "#5B6770", "#DDE3E9"


@dataclass(frozen=True)
class Size:
    """Inches, dots per inch and the size of text in points, at which the picture is shown."""

    width: float
    height: float
    dpi: int
    font: float


SIZES = {
    "slide": Size(11.0, 5.4, 150, 16),
    "page": Size(6.5, 3.9, 200, 10),
    "column": Size(3.4, 2.7, 300, 8),
    "square": Size(5.0, 5.0, 200, 10),
}


def start(options: Any) -> tuple[Any, Any]:
    """An empty figure with its title, in the house's look."""
    size = SIZES[options.size]
    plt.rcParams.update(
        {
            "font.family": _families(),
            "font.size": size.font, "axes.edgecolor": "#9AA5B1", "axes.labelcolor": GREY,
            "text.color": INK, "xtick.color": GREY, "ytick.color": GREY,
            "xtick.labelcolor": INK, "ytick.labelcolor": INK,
            "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
            "axes.unicode_minus": True, "axes.linewidth": 0.8,
        }
    )  # fmt: skip
    figure, axes = plt.subplots(figsize=(size.width, size.height), layout="constrained")
    title = _wrapped(options.title, size, size.font * 1.2)
    figure.suptitle(title, x=0.015, ha="left", fontsize=size.font * 1.2, fontweight="bold")
    if options.source:
        figure.supxlabel(
            f"Source: {options.source}", x=0.015, ha="left", fontsize=size.font * 0.85, color=GREY
        )
    return figure, axes


def _families() -> list[str]:
    """Fonts that are here; DejaVu Sans comes with matplotlib and knows most scripts."""
    from matplotlib import font_manager

    here = {font.name for font in font_manager.fontManager.ttflist}
    wanted = ("Arial", "Liberation Sans", "Noto Sans CJK SC", "Noto Sans CJK JP")
    return [*[name for name in wanted if name in here], "DejaVu Sans"]


def _wrapped(text: str, size: Size, font: float) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, int(size.width * 72 * 0.94 / (font * 0.56)))) or text


def label(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit and f"({unit})" not in name else name


def draw(chosen: Any, options: Any) -> Any:
    """line, bar, grouped, stacked or heatmap."""
    figure, axes = start(options)
    what = label(options.y_label or ", ".join(options.y), options.unit)
    if options.agg and not options.y_label:
        what = label(f"{options.agg} of {', '.join(options.y)}", options.unit)
    if options.kind == "heatmap":
        _heatmap(figure, axes, chosen, options, what)
    elif options.kind == "line":
        _lines(axes, chosen, options, what)
    else:
        _bars(axes, chosen, options, what)
    return figure


def _lines(axes: Any, chosen: Any, options: Any, what: str) -> None:
    size = SIZES[options.size]
    categories = not (chosen.dates or chosen.numbers)
    xs = list(range(len(chosen.x))) if categories else chosen.x
    few = len(xs) <= 40
    for n, (_, values) in enumerate(chosen.series.items()):
        numbers = [float("nan") if v is None else v for v in values]
        axes.plot(
            xs, numbers, color=COLOURS[n], linewidth=size.font / 5.5,
            marker=MARKERS[n] if few else None, markersize=size.font * 0.45,
        )  # fmt: skip
    if options.log:
        axes.set_yscale("log")
        what += ", logarithmic"
    if categories:
        axes.set_xticks(xs, [str(x) for x in chosen.x])
        _thin(axes, len(xs), size)
    elif chosen.dates:
        locator = dates.AutoDateLocator(minticks=3, maxticks=8 if size.width > 5 else 5)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif all(float(x).is_integer() for x in chosen.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        if all(1900 <= x <= 2100 for x in chosen.x):
            axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
    axes.set_xlabel(options.x_label or ("" if chosen.dates else options.x))
    _values(axes.yaxis, options)
    _name_values(axes, what)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    _name_series(axes, xs, chosen, size)


def _thin(axes: Any, count: int, size: Size) -> None:
    """Show every second, third, … label where not all have room."""
    longest = max((len(t.get_text()) for t in axes.get_xticklabels()), default=1)
    room = int(size.width * 72 * 0.82 / max(longest * size.font * 0.6, 1))
    step = -(-count // max(room, 1))
    for n, text in enumerate(axes.get_xticklabels()):
        text.set_visible(n % step == 0)


def _name_series(axes: Any, xs: list[Any], chosen: Any, size: Size) -> None:
    """Names at the ends of the lines where there is room, else a legend."""
    names = list(chosen.series)
    if len(names) < 2:
        return
    ends: list[list[Any]] = []
    for n, name in enumerate(names):
        values = chosen.series[name]
        last = next((k for k in range(len(xs) - 1, -1, -1) if values[k] is not None), None)
        if last is not None:
            ends.append([values[last], n, name, xs[last]])
    low, high = axes.get_ylim()
    log = axes.get_yscale() == "log"
    step = (high - low) * size.font * 1.35 / (size.height * 72 * 0.62)
    if log or len(names) > 6 or step * len(names) > (high - low):
        legend = [line.set_label(name) for line, name in zip(axes.lines, names, strict=True)]
        del legend
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, borderaxespad=0.2,
            bbox_transform=axes.transAxes,
        )  # fmt: skip
        _move_name(axes)
        return
    ends.sort(key=lambda e: e[0])
    places = [end[0] for end in ends]
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + step)
    over = places[-1] - high
    if over > 0:
        places[-1] -= over
        for n in range(len(places) - 2, -1, -1):
            places[n] = min(places[n], places[n + 1] - step)
    for place, (_, n, name, _) in zip(places, ends, strict=True):
        axes.annotate(
            name, xy=(1.0, place), xycoords=axes.get_yaxis_transform(), xytext=(size.font * 0.5, 0),
            textcoords="offset points", va="center", color=COLOURS[n], fontweight="bold",
            annotation_clip=False,
        )  # fmt: skip
    axes.margins(x=0.02)


def _name_values(axes: Any, what: str) -> None:
    """The name of the numbers, written across above the axis, where it is easily read."""
    axes.set_title(what, loc="left", fontsize=plt.rcParams["font.size"], color=GREY)


def _move_name(axes: Any) -> None:
    """With a legend above the axis, the name of the numbers goes beside the axis."""
    axes.set_ylabel(axes.get_title(loc="left"))
    axes.set_title("", loc="left")


def _values(axis: Any, options: Any) -> None:
    axis.set_major_formatter(FuncFormatter(_tick)) if not options.log else None


def _tick(value: float, _: Any) -> str:
    if abs(value) >= 1e9:
        return f"{value / 1e9:,.4g} bn"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g} M"
    text = f"{value:,.6g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return text.replace("-", "−")


def _bars(axes: Any, chosen: Any, options: Any, what: str) -> None:
    size = SIZES[options.size]
    periods = all(_PERIOD.fullmatch(str(x)) for x in chosen.x)
    ordered = chosen.dates or chosen.numbers or periods
    names = [_short(x) for x in chosen.x]
    order = list(range(len(names)))
    if (options.sort or "value") == "value" and not ordered:
        totals = [sum(v[n] or 0 for v in chosen.series.values()) for n in order]
        last = [n for n in order if str(chosen.x[n]).endswith(" others")]
        order.sort(key=lambda n: (n in last, -totals[n]))
    names = [names[n] for n in order]
    rows = {k: [v[n] for n in order] for k, v in chosen.series.items()}
    longest = max(map(len, names), default=0)
    lying = not ordered and longest * len(names) * size.font * 0.6 > size.width * 72 * 0.8
    many = len(rows)
    width = 0.8 / many if options.kind == "grouped" else 0.72
    base = [0.0] * len(names)
    for n, (name, values) in enumerate(rows.items()):
        numbers = [v or 0.0 for v in values]
        shift = (n - (many - 1) / 2) * width if options.kind == "grouped" else 0.0
        places = [k + shift for k in range(len(names))]
        put = axes.barh if lying else axes.bar
        stack = {"left" if lying else "bottom": base} if options.kind == "stacked" else {}
        bars = put(
            places, numbers, width, color=COLOURS[n], label=name or what, edgecolor="white",
            linewidth=0.6, **stack,
        )  # fmt: skip
        if options.kind == "stacked":
            base = [a + b for a, b in zip(base, numbers, strict=True)]
        elif len(names) * many <= 12:
            texts = ["" if v is None else _tick(v, None) for v in values]
            for text in axes.bar_label(bars, texts, padding=2, fontsize=max(size.font * 0.9, 7)):
                text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        if many == 1:
            for bar, x in zip(bars, names, strict=True):
                if re.fullmatch(r"\d+ others", x):
                    bar.set_facecolor("#AEB7C0")
    axis = axes.xaxis if lying else axes.yaxis
    _values(axis, options)
    if lying:
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel(what)
        axes.margins(x=0.1)
        axes.tick_params(axis="y", length=0)
    else:
        axes.set_xticks(range(len(names)), names)
        _thin(axes, len(names), size)
        axes.set_xlabel(options.x_label or ("" if chosen.dates else options.x))
        axes.margins(y=0.1)
        axes.tick_params(axis="x", length=0)
        _name_values(axes, what)
    axes.grid(axis="x" if lying else "y", color=GRID, linewidth=0.8)
    every = [v or 0 for values in rows.values() for v in values]
    if min(every) >= 0:
        (axes.set_xlim if lying else axes.set_ylim)(0)
    else:
        (axes.axvline if lying else axes.axhline)(0, color=INK, linewidth=0.8)
    if many > 1:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(many, 4), frameon=False,
            borderaxespad=0.2,
        )  # fmt: skip
        if not lying:
            _move_name(axes)


def _short(x: Any) -> str:
    if hasattr(x, "strftime"):
        return str(x.strftime("%Y-%m-%d"))
    if isinstance(x, float):
        return f"{x:.0f}" if x.is_integer() else f"{x:g}"
    text = str(x)
    return text if len(text) <= 28 else text[:27] + "…"


def _heatmap(figure: Any, axes: Any, chosen: Any, options: Any, what: str) -> None:
    size = SIZES[options.size]
    names = list(chosen.series)
    grid = [[float("nan") if v is None else v for v in chosen.series[name]] for name in names]
    signed = min(v for row in grid for v in row if v == v) < 0
    most = max(abs(v) for row in grid for v in row if v == v) or 1.0
    scale = {"vmin": -most, "vmax": most} if signed else {}
    colours = plt.get_cmap("PuOr" if signed else "cividis").copy()
    colours.set_bad("#EEEEEE")
    image = axes.imshow(grid, aspect="auto", cmap=colours, **scale)
    axes.set_xticks(range(len(chosen.x)), [_short(x) for x in chosen.x])
    axes.set_yticks(range(len(names)), [n or "–" for n in names])
    _thin(axes, len(chosen.x), size)
    axes.set_xlabel(options.x_label or options.x)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    longest = max(len(_brief(v)) for row in grid for v in row if v == v)
    if longest * size.font * 0.6 * len(chosen.x) < size.width * 72 * 0.62:
        for r, row in enumerate(grid):
            for c, value in enumerate(row):
                if value == value:
                    red, green, blue, _ = image.cmap(image.norm(value))
                    dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
                    axes.text(
                        c, r, _brief(value), ha="center", va="center",
                        color="white" if dark else INK, fontsize=max(size.font * 0.9, 7),
                    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, format=FuncFormatter(_tick))
    bar.set_label(what)
    bar.outline.set_visible(False)


def _brief(value: float) -> str:
    """A number for a cell: three figures."""
    for limit, sign in ((1e9, "bn"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            unit = {"bn": 1e9, "M": 1e6, "k": 1e3}[sign]
            return f"{value / unit:.3g}{sign}".replace("-", "−")
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def scatter(points: dict[str, list[tuple[float, float]]], options: Any) -> Any:
    figure, axes = start(options)
    size = SIZES[options.size]
    many = max(len(p) for p in points.values())
    faint = 0.85 if many < 300 else 0.35
    for n, (name, pairs) in enumerate(points.items()):
        axes.scatter(
            [p[0] for p in pairs], [p[1] for p in pairs],
            s=size.font * (3.2 if many < 300 else 1.2),
            color=COLOURS[n], marker=MARKERS[n], alpha=faint, label=name, linewidths=0,
        )  # fmt: skip
    if options.log:
        axes.set_yscale("log")
    _values(axes.yaxis, options)
    axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7))
    axes.set_xlabel(label(options.x_label or options.x, options.x_unit))
    what = label(options.y_label or ", ".join(options.y), options.unit)
    _name_values(axes, what + (", logarithmic" if options.log else ""))
    axes.grid(color=GRID, linewidth=0.8)
    if len(points) > 1:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False, borderaxespad=0.2
        )
        _move_name(axes)
    return figure


def spread(groups: dict[str, list[float]], options: Any) -> Any:
    """A histogram or a box plot."""
    figure, axes = start(options)
    size = SIZES[options.size]
    what = label(options.y_label or ", ".join(options.y), options.unit)
    if options.kind == "histogram":
        import numpy as np

        every = np.concatenate([np.asarray(v) for v in groups.values()])
        edges = np.histogram_bin_edges(every, bins=options.bins or "auto")
        if not options.bins and len(edges) > 61:
            edges = np.histogram_bin_edges(every, bins=60)
        for n, (name, values) in enumerate(groups.items()):
            style = {"alpha": 0.55} if len(groups) > 1 else {"edgecolor": "white"}
            axes.hist(values, bins=edges, color=COLOURS[n], label=name, linewidth=0.6, **style)
        axes.set_xlabel(what)
        axes.xaxis.set_major_formatter(FuncFormatter(_tick))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylim(0)
        _name_values(axes, f"number of rows, bins of {edges[1] - edges[0]:.3g}")
        if len(groups) > 1:
            axes.legend(frameon=False)
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        return figure
    names = list(groups)
    axes.boxplot(
        [groups[n] for n in names], orientation="horizontal", widths=0.55, patch_artist=True,
        boxprops={"facecolor": "#BFD9EA", "edgecolor": COLOURS[0]},
        medianprops={"color": INK, "linewidth": size.font / 5},
        whiskerprops={"color": COLOURS[0]}, capprops={"color": COLOURS[0]},
        flierprops={"marker": "o", "markersize": size.font * 0.3, "alpha": 0.6},
    )  # fmt: skip
    axes.set_yticks(range(1, len(names) + 1), [f"{n} (n={len(groups[n]):,})" for n in names])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    if options.log:
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    meaning = ("box: middle half, line: median,", "whiskers: 1.5 × box")
    narrow = size.width < 5
    axes.set_xlabel("\n".join([what, *meaning]) if narrow else f"{what}; {' '.join(meaning)}")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    return figure
