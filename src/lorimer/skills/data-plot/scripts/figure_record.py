"""Saving a matplotlib figure with its alternative text and a record of where its texts stand.

The record (a PNG text chunk) lets check_plot.py find labels on top of each other in a picture. Also
for your own matplotlib code:

    import sys; sys.path.insert(0, "<skill folder>/scripts")
    from figure_record import save
    print(save(figure, "chart.png", alt="Line chart: …"))
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

KEY = "lorimer-figure"
SMALLEST_PT = 7.0


def drawn_texts(figure: Any) -> list[dict[str, Any]]:
    """Every text that is drawn: its words, size in points and box in pixels from the upper left."""
    from matplotlib.text import Text

    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    hidden = _ticks_out_of_view(figure)
    tall = figure.bbox.height
    out = []
    for text in figure.findobj(Text):
        words = " ".join(text.get_text().split())
        if not words or not text.get_visible() or text in hidden or not _shown(text, figure):
            continue
        box = text.get_window_extent(renderer)
        if box.width <= 0 or box.height <= 0:
            continue
        corners = [box.x0, tall - box.y1, box.x1, tall - box.y0]
        out.append(
            {
                "text": words[:60],
                "pt": round(float(text.get_fontsize()), 1),
                "box": [round(float(v), 1) for v in corners],
            }
        )
    return out


def _shown(text: Any, figure: Any) -> bool:
    axes = text.axes
    return axes is None or (axes.get_visible() and (axes.axison or text in axes.texts))


def _ticks_out_of_view(figure: Any) -> set[Any]:
    out: set[Any] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = (high - low) * 1e-9
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                inside = low - slack <= tick.get_loc() <= high + slack
                for label in (tick.label1, tick.label2):
                    if not inside or not label.get_visible() or not axis.get_visible():
                        out.add(label)
    return out


def faults_in(record: dict[str, Any]) -> list[str]:
    """Labels on top of each other, off the picture, or too small."""
    texts, (wide, tall) = record["texts"], record["size"]
    out = []
    for a, b in combinations(texts, 2):
        across = min(a["box"][2], b["box"][2]) - max(a["box"][0], b["box"][0])
        down = min(a["box"][3], b["box"][3]) - max(a["box"][1], b["box"][1])
        if across > 1 and down > 2:
            out.append(f"labels overlap: {a['text']!r} and {b['text']!r}")
    for text in texts:
        left, top, right, bottom = text["box"]
        if left < -1 or top < -1 or right > wide + 1 or bottom > tall + 1:
            out.append(f"label runs off the picture: {text['text']!r}")
        if text["pt"] < SMALLEST_PT:
            out.append(f"label is too small ({text['pt']} pt): {text['text']!r}")
    return out


def save(figure: Any, path: str | Path, alt: str, *, dpi: float = 150) -> list[str]:
    """Write the PNG, with the record and the alternative text inside and in `<name>.alt.txt`.

    Returns:
        the faults that were found; an empty list where there are none.
    """
    path = Path(path)
    figure.set_dpi(dpi)
    record = {"texts": drawn_texts(figure), "size": [figure.bbox.width, figure.bbox.height]}
    faults = faults_in(record)
    metadata = {"Description": alt, KEY: json.dumps(record)}
    figure.savefig(path, dpi=dpi, metadata=metadata)
    path.with_suffix(".alt.txt").write_text(alt + "\n", encoding="utf-8")
    return faults
