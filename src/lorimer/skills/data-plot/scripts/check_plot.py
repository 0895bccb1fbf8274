"""Look for faults in a picture of a chart (PNG).

Finds: a blank picture, a chart cut off at the edge, too few pixels, no alternative text; and, for
pictures saved by plot.py or figure_record.save, labels that overlap, run off or are too small.

Exit code 0: nothing found. 1: faults.

Example: python check_plot.py north.png temps.png
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
from pathlib import Path
from typing import Any

from needs import fail, input_file, need

need("PIL")

from figure_record import KEY, faults_in
from PIL import Image, UnidentifiedImageError

_FEWEST = 500


def look(path: Path) -> dict[str, Any]:
    """The faults of one picture."""
    try:
        with Image.open(path) as opened:
            opened.load()
            info = dict(getattr(opened, "text", {}) or {})
            image = opened.convert("RGBA")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as fault:
        fail(f"{str(path)!r} is no picture that can be read ({fault}).", "give a PNG.")
    white = Image.new("RGBA", image.size, "white")
    grey = Image.alpha_composite(white, image).convert("L")
    wide, tall = grey.size
    faults, notes = [], []
    low, high = grey.getextrema()
    if int(high) - int(low) < 12:
        faults.append("blank: the picture has one colour only")
    else:
        ground = max(grey.getcolors(256) or [(0, 255)])[1]
        ink = grey.point(lambda v: 255 if abs(v - ground) > 24 else 0)
        share = ink.histogram()[255] / (wide * tall)
        if share < 0.002:
            faults.append(f"nearly blank: {share:.2%} of it is drawn on")
        sides = {
            "left": (0, 0, 1, tall), "right": (wide - 1, 0, wide, tall),
            "top": (0, 0, wide, 1), "bottom": (0, tall - 1, wide, tall),
        }  # fmt: skip
        cut = [name for name, box in sides.items() if ink.crop(box).getbbox()]
        if cut and len(cut) < 4:
            faults.append(f"cut off: something is drawn up to the {', '.join(cut)} edge")
    if max(wide, tall) < _FEWEST:
        faults.append(f"small: {wide} × {tall} pixels; {_FEWEST} or more are needed")
    beside = path.with_suffix(".alt.txt")
    alt = info.get("Description", "") or (
        beside.read_text(encoding="utf-8").strip() if beside.is_file() else ""
    )
    if not alt:
        faults.append(f"no alternative text (in the picture, or in {beside.name})")
    if KEY in info:
        faults += faults_in(json.loads(info[KEY]))
    else:
        notes.append("no record of its labels (saved without figure_record): look at it yourself")
    return {
        "file": str(path), "size": [wide, tall], "alt": alt, "faults": faults, "notes": notes
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    reports = [look(input_file(text)) for text in options.pictures]
    if options.json:
        print(json.dumps(reports, ensure_ascii=False, indent=1))
    else:
        for one in reports:
            size = "{} × {} pixels".format(*one["size"])
            print(f"{one['file']}: {size}: {len(one['faults'])} faults")
            for fault in one["faults"][:10]:
                print(f"fault: {fault}")
            if len(one["faults"]) > 10:
                print(f"fault: and {len(one['faults']) - 10} more: --json")
            for note in one["notes"]:
                print(f"note: {note}")
    return 1 if any(one["faults"] for one in reports) else 0


if __name__ == "__main__":
    raise SystemExit(main())
