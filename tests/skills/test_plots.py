"""data-plot: what is drawn is read from the pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
from PIL import Image

SKILL = "data-plot"
BLUE = (0, 114, 178)
ROWS = [("2025-01", "Nord", 10), ("2025-01", "Süd", 20), ("2025-02", "Nord", 30),
        ("2025-02", "Süd", 5), ("2025-03", "Nord", 15), ("2025-03", "Süd", 25)]  # fmt: skip


@pytest.fixture
def data(folder: Path) -> Path:
    path = folder / "zahlen ü.csv"
    lines = ["Monat,Ort,Wert,Grad", *[f"{a},{b},{c},{c * 2 + 1}" for a, b, c in ROWS]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def columns(path: Path, colour: tuple[int, int, int]) -> list[tuple[int, int]]:
    """(first row, last row) of each run of columns in which the colour is drawn."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    runs: list[tuple[int, int]] = []
    before = False
    for x in range(image.width):
        hits = [y for y in range(image.height) if image.getpixel((x, y)) == colour]
        if hits and not before:
            runs.append((min(hits), max(hits)))
        before = bool(hits)
    return runs


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kind", "line", "--x", "Monat", "--y", "Wert", "--group", "Ort"],
        ["--kind", "bar", "--x", "Ort", "--y", "Wert", "--agg", "sum"],
        ["--kind", "grouped", "--x", "Monat", "--y", "Wert", "--group", "Ort"],
        ["--kind", "stacked", "--x", "Monat", "--y", "Wert", "--group", "Ort"],
        ["--kind", "histogram", "--y", "Wert"],
        ["--kind", "scatter", "--x", "Grad", "--y", "Wert", "--group", "Ort"],
        ["--kind", "box", "--y", "Wert", "--group", "Ort"],
        ["--kind", "heatmap", "--x", "Monat", "--y", "Wert", "--group", "Ort"],
        ["--kind", "bar", "--x", "Ort", "--agg", "count"],
    ],
    ids=lambda a: a[1] if a[1] != "bar" else "-".join(a[1:2] + a[-1:]),
)
@pytest.mark.parametrize("size", ["slide", "page", "column"])
def test_every_kind_is_drawn_and_clean(
    run: Any, data: Path, folder: Path, arguments: list[str], size: str
) -> None:
    out = folder / "bild ü.png"
    common = ["--title", "What it says", "--unit", "EUR", "--size", size, "--out", out]
    ran = run(f"{SKILL}/plot", data, *arguments, *common, "--json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.json["alt"].endswith(".") and "What it says" in ran.json["alt"]
    checked = run(f"{SKILL}/check_plot", out, "--json")
    assert checked.code == 0 and checked.json[0]["faults"] == [] and not checked.json[0]["notes"]
    assert out.with_suffix(".alt.txt").read_text("utf-8").strip() == ran.json["alt"]


def test_bars_have_heights_in_proportion_from_zero(run: Any, data: Path, folder: Path) -> None:
    out = folder / "a.png"
    ran = run(f"{SKILL}/plot", data, "--kind", "bar", "--x", "Ort", "--y", "Wert", "--agg", "sum",
              "--title", "T", "--unit", "EUR", "--out", out)  # fmt: skip
    assert ran.code == 0 and "Nord 55, Süd 50" in ran.out
    nord, sued = columns(out, BLUE)[:2]
    heights = [last - first + 1 for first, last in (nord, sued)]
    assert nord[1] == sued[1]
    assert abs(heights[1] / heights[0] - 50 / 55) < 0.02


def test_months_keep_their_order(run: Any, data: Path, folder: Path) -> None:
    out = folder / "a.png"
    run(f"{SKILL}/plot", data, "--kind", "bar", "--x", "Monat", "--y", "Wert", "--agg", "sum",
        "--title", "T", "--unit", "EUR", "--out", out)  # fmt: skip
    heights = [last - first for first, last in columns(out, BLUE)[:3]]  # 30, 35, 40
    assert heights == sorted(heights) and heights[0] < heights[2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--kind", "bar", "--x", "Ort", "--y", "Wert"], "stands 3 times"),
        (["--kind", "bar", "--x", "Ort", "--y", "Wert", "--agg", "sum", "--log"], "no honest"),
        (["--kind", "line", "--y", "Wert"], "needs --x"),
        (["--kind", "line", "--x", "Monat", "--y", "Ort"], "no numbers"),
        (["--kind", "line", "--x", "Monat", "--y", "Werd"], "there is no column 'Werd'"),
        (["--kind", "scatter", "--x", "Ort", "--y", "Wert"], "holds no numbers"),
    ],
)
def test_what_cannot_be_drawn_honestly_is_an_error(
    run: Any, data: Path, folder: Path, arguments: list[str], told: str
) -> None:
    ran = run(
        f"{SKILL}/plot", data, *arguments, "--title", "T", "--out", folder / "a.png", "--json"
    )
    assert ran.code == 2 and told in ran.json["error"] and not (folder / "a.png").exists()


def test_too_many_categories_are_refused_and_top_tells_the_rest(run: Any, folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text("n,v\n" + "".join(f"name {n},{n}\n" for n in range(1, 41)), encoding="utf-8")
    common = [path, "--kind", "bar", "--x", "n", "--y", "v", "--title", "T", "--unit", "EUR",
              "--out", folder / "a.png", "--json"]  # fmt: skip
    assert run(f"{SKILL}/plot", *common).code == 2
    ran = run(f"{SKILL}/plot", *common, "--top", "8")
    assert ran.code == 0, ran.out
    assert any("8 largest of 40" in note for note in ran.json["notes"])
    assert "32 others" in ran.json["alt"] or "highest" in ran.json["alt"]


def test_overlapping_labels_of_other_code_are_found(run: Any, folder: Path) -> None:
    code = (
        "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1])\n"
        "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt\n"
        "from figure_record import save\n"
        "f, a = plt.subplots(); a.text(.5, .5, 'one label'); a.text(.52, .5, 'another')\n"
        "a.text(.2, .2, 'tiny', fontsize=3); print(save(f, sys.argv[2], 'two labels'))\n"
    )
    import subprocess
    import sys

    import lorimer

    scripts = Path(lorimer.__file__).parent / "skills" / SKILL / "scripts"
    out = folder / "a.png"
    command = [sys.executable, "-c", code, str(scripts), str(out)]
    assert subprocess.run(command, capture_output=True, check=True).stdout
    faults = run(f"{SKILL}/check_plot", out, "--json").json[0]["faults"]
    assert any("overlap: 'one label' and 'another'" in f for f in faults)
    assert any("too small (3.0 pt): 'tiny'" in f for f in faults) and len(faults) == 2


def test_blank_small_and_undescribed_pictures_are_found(run: Any, folder: Path) -> None:
    Image.new("RGB", (300, 200), "white").save(folder / "a.png")
    ran = run(f"{SKILL}/check_plot", folder / "a.png", "--json")
    text = " ".join(ran.json[0]["faults"])
    assert ran.code == 1 and all(w in text for w in ("blank", "small", "no alternative text"))
    (folder / "b.png").write_bytes(b"no picture")
    assert run(f"{SKILL}/check_plot", folder / "b.png").code == 2
