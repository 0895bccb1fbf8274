"""The outline of a deck: JSON, or Markdown, into one plain form.

    {"title": …, "subtitle": …, "author": …, "date": …, "accent": "1F5FA8", "font": "Arial",
     "slides": [{"kind": …, "title": …, "notes": …, …}]}

Kinds: section (text), bullets (bullets), two_columns (left, right: {heading, bullets}),
table (rows, caption), picture (picture, alt, caption, bullets), chart (chart, categories, series,
unit, alt, source), quote (text, source). A bullet is a text, or {"text": …, "level": 0–2}.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from needs import fail, input_file

KINDS: dict[str, tuple[str, ...]] = {
    "section": (),
    "bullets": ("bullets",),
    "two_columns": ("left", "right"),
    "table": ("rows",),
    "picture": ("picture", "alt"),
    "chart": ("chart", "categories", "series", "alt"),
    "quote": ("text",),
}
CHARTS = ("bar", "column", "stacked", "line", "pie")
_MAY = {
    "section": ("text",), "bullets": (), "two_columns": (), "table": ("caption",),
    "picture": ("caption", "bullets"), "chart": ("unit", "source", "caption"),
    "quote": ("source",),
}  # fmt: skip
_FRONT = ("title", "subtitle", "author", "date", "accent", "font", "language")


def load(path_text: str) -> dict[str, Any]:
    """The outline in a file, checked; all its faults at once."""
    path = input_file(path_text)
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        fail(f"{path_text!r} is not UTF-8 (byte {fault.start}).", "write it again as UTF-8.")
    if path.suffix.lower() == ".json":
        try:
            deck = json.loads(text)
        except json.JSONDecodeError as fault:
            fail(f"{path_text!r} line {fault.lineno}: {fault.msg}.", "put the JSON right.")
    elif path.suffix.lower() in (".md", ".markdown", ".txt"):
        deck = from_markdown(text)
    else:
        fail(f"{path_text!r} is no outline.", "an outline is a .json or .md file.")
    faults = check(deck, path.parent)
    if faults:
        fail(f"the outline has {len(faults)} fault(s): " + "; ".join(faults), "put them right.")
    return dict(deck)


def check(deck: Any, folder: Path) -> list[str]:
    """What is wrong with an outline; pictures lie relative to `folder`."""
    if not isinstance(deck, dict) or not isinstance(deck.get("slides"), list):
        return ['it must be an object with "title" and a list "slides"']
    faults = [] if str(deck.get("title") or "").strip() else ["title is missing"]
    unknown = sorted(set(deck) - {*_FRONT, "slides"})
    if unknown:
        faults.append(f"unknown: {', '.join(unknown)}")
    if not re.fullmatch(r"#?[0-9A-Fa-f]{6}", str(deck.get("accent", "1F5FA8"))):
        faults.append(f"accent {deck['accent']!r} is no colour like 1F5FA8")
    for number, slide in enumerate(deck["slides"], 2):
        faults += [f"slide {number}: {text}" for text in _slide_faults(slide, folder)]
    return faults


def _slide_faults(slide: Any, folder: Path) -> list[str]:
    if not isinstance(slide, dict):
        return ["not an object"]
    if slide.get("fault"):
        return [str(slide["fault"])]
    kind = slide.get("kind")
    if kind not in KINDS:
        return [f"kind {kind!r} is none of {', '.join(KINDS)}"]
    faults = [f"{key} is missing" for key in KINDS[kind] if not slide.get(key)]
    if not str(slide.get("title") or "").strip():
        faults.append("title is missing")
    unknown = sorted(set(slide) - {"kind", "title", "notes", *KINDS[kind], *_MAY[kind]})
    if unknown:
        faults.append(f"a {kind} slide has no {', '.join(unknown)}")
    for key in ("bullets", "rows", "categories", "series"):
        if key in slide and not isinstance(slide[key], list):
            faults.append(f"{key} is no list")
            return faults
    if kind == "two_columns":
        for side in ("left", "right"):
            if slide.get(side) and not isinstance(slide[side], dict):
                faults.append(f'{side} is no {{"heading": …, "bullets": […]}}')
    if kind == "picture" and slide.get("picture") and not (folder / slide["picture"]).is_file():
        faults.append(f"there is no picture {slide['picture']!r} (from {folder})")
    if kind == "table" and slide.get("rows") and len({len(row) for row in slide["rows"]}) > 1:
        faults.append("the rows of the table have different lengths")
    if kind == "chart":
        faults += _chart_faults(slide)
    return faults


def _chart_faults(slide: dict[str, Any]) -> list[str]:
    faults = []
    if slide.get("chart") not in CHARTS:
        faults.append(f"chart {slide.get('chart')!r} is none of {', '.join(CHARTS)}")
    count = len(slide.get("categories") or ())
    for one in slide.get("series") or ():
        values = one.get("values") if isinstance(one, dict) else None
        if not isinstance(values, list) or len(values) != count:
            faults.append(f"a series needs name and {count} values")
        elif not all(v is None or (type(v) in (int, float)) for v in values):
            faults.append(f"series {one.get('name')!r} has values that are no numbers")
    if slide.get("chart") == "pie" and (len(slide.get("series") or ()) != 1 or count > 6):
        faults.append("a pie takes one series and at most 6 parts: use bar")
    return faults


# ---- Markdown


def from_markdown(text: str) -> dict[str, Any]:
    """`# ` begins a section, `## ` a slide; what stands below says which kind it is.

    Lists are bullets, `|` tables, `![alt](file)` a picture, `:::` between two columns, a fenced
    block `chart` holds JSON, `> ` a quote, lines from `Notes:` on are the speaker's notes.
    """
    deck: dict[str, Any] = {"slides": []}
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[0].strip() == "---":
        end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
        for line in lines[1:end]:
            key, sign, value = line.partition(":")
            if sign and value.strip():
                deck[key.strip()] = value.strip().strip("\"'")
        lines = lines[end + 1 :]
    title, level, body = "", 0, []
    fenced = False
    for place, line in enumerate([*lines, "# "]):
        fenced ^= line.lstrip().startswith("```")
        found = re.match(r"(#{1,2})(?!#)(?:\s+(.*)|$)", line)
        if not found or (fenced and place < len(lines)):  # an open block ends with the text
            body.append(line)
            continue
        if level:
            deck["slides"].append(_slide(title, level, body))
        elif any(part.strip() for part in body):
            deck["slides"].append({"kind": f"text before the first heading: {body[0][:40]!r}"})
        title, level, body = (found[2] or "").strip(), len(found[1]), []
    return deck


def _slide(title: str, level: int, body: list[str]) -> dict[str, Any]:
    place = next((n for n, line in enumerate(body) if re.match(r"notes:", line, re.I)), len(body))
    notes = "\n".join(body[place:])[6:].strip()
    lines = [line for line in body[:place] if line.strip()]
    slide: dict[str, Any] = {"title": title}
    if notes:
        slide["notes"] = notes
    text = "\n".join(lines)
    if level == 1:
        return slide | {"kind": "section", **({"text": text} if text else {})}
    if found := re.search(r"```chart[ \t]*\n(.*?)\n\s*```", text, re.DOTALL):
        try:
            return slide | {"kind": "chart", **json.loads(found[1])}
        except (json.JSONDecodeError, TypeError) as fault:
            return {"fault": f"it is a chart, but its JSON is wrong: {fault}"}
    fence = next((line.strip() for line in lines if line.lstrip().startswith(("```", "~~~"))), "")
    if fence:
        return {
            "fault": f"the block {fence!r} is not known; only ```chart with JSON, closed by ```, is"
        }
    if any(line.strip() == ":::" for line in lines):
        cut = next(n for n, line in enumerate(lines) if line.strip() == ":::")
        sides = {"left": _column(lines[:cut]), "right": _column(lines[cut + 1 :])}
        return slide | {"kind": "two_columns", **sides}
    if found := re.search(r"!\[([^\]]*)\]\(<?([^)>]+)>?\)", text):
        rest = [line for line in lines if found[0] not in line]
        bullets = _bullets([line for line in rest if _is_bullet(line)])
        caption = " ".join(line.strip() for line in rest if not _is_bullet(line))
        slide |= {"kind": "picture", "alt": found[1], "picture": found[2]}
        return slide | {k: v for k, v in (("bullets", bullets), ("caption", caption)) if v}
    if any(line.lstrip().startswith("|") for line in lines):
        rows = [_cells(line) for line in lines if line.lstrip().startswith("|")]
        rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
        caption = " ".join(line.strip() for line in lines if not line.lstrip().startswith("|"))
        return slide | {"kind": "table", "rows": rows, **({"caption": caption} if caption else {})}
    quoted = [line.lstrip().removeprefix(">").strip() for line in lines]
    if lines and all(
        line.lstrip().startswith(">") or text.startswith(("—", "–", "--"))
        for line, text in zip(lines, quoted, strict=True)
    ):
        source = quoted.pop().lstrip("—– -") if quoted[-1].startswith(("—", "–", "--")) else ""
        slide |= {"kind": "quote", "text": " ".join(quoted)}
        return slide | ({"source": source} if source else {})
    return slide | {"kind": "bullets", "bullets": _bullets(lines)}


def _is_bullet(line: str) -> bool:
    return re.match(r"\s*(?:[-*+•]|\d+[.)])\s", line) is not None


def _bullets(lines: list[str]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for line in lines:
        found = re.match(r"(\s*)(?:[-*+•]|\d+[.)])\s+(.*)", line)
        if found:
            depth = len(found[1].expandtabs(4))
            out.append(
                {"text": found[2].strip(), "level": min(2, (depth + 1) // 2 if depth else 0)}
            )
        elif out and line.startswith(" "):
            out[-1]["text"] += " " + line.strip()
        else:
            out.append({"text": line.strip(), "level": 0})
    return out


def _column(lines: list[str]) -> dict[str, Any]:
    heading = ""
    if lines and (lines[0].startswith("###") or not _is_bullet(lines[0])):
        heading, lines = lines[0].lstrip("# ").strip().strip("*"), lines[1:]
    return {"heading": heading, "bullets": _bullets(lines)}


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare)]
