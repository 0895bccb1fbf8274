"""How much room a text needs: real font metrics, word wrap, lines.

Lengths are points (1/72 inch). A font that is not installed is measured with one of the same
widths (Liberation Sans for Arial, Carlito for Calibri, …), or else with the nearest one; then
`Font.exact` is false and results are estimates.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINE = 1.2
"""Height of a line in font sizes, as office programs set most fonts."""
_TWINS = {
    "arial": ("Liberation Sans", "Arimo", "Nimbus Sans"),
    "helvetica": ("Liberation Sans", "Arimo", "Nimbus Sans"),
    "calibri": ("Carlito",),
    "cambria": ("Caladea",),
    "times new roman": ("Liberation Serif", "Tinos"),
    "courier new": ("Liberation Mono", "Cousine"),
    "georgia": ("Gelasio",),
}
_NARROWER = {"calibri": 0.91, "aptos": 0.97, "cambria": 0.97, "segoe ui": 0.98, "georgia": 1.0}
"""Width against Arial, for fonts of which nothing of the same width is installed."""
_FOLDERS = (
    "/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts",
    "~/Library/Fonts", "~/.fonts", "~/.local/share/fonts",
)  # fmt: skip
_MEASURED_AT = 100


@dataclass(frozen=True)
class Font:
    """A font file to measure with.

    Attributes:
        exact: whether its widths are those of the font that was asked for.
        scale: what its widths are multiplied with.
    """

    family: str
    path: str
    exact: bool
    scale: float
    face: Any

    def width(self, text: str, size: float) -> float:
        return float(self.face.getlength(text)) * size / _MEASURED_AT * self.scale


@dataclass(frozen=True)
class Piece:
    """A stretch of text in one font; a paragraph is a list of these."""

    text: str
    size: float
    font: Font


@functools.lru_cache(maxsize=128)
def find_font(family: str, *, bold: bool = False) -> Font:
    """The font of that name, one of the same widths, or the nearest there is."""
    from PIL import ImageFont

    wanted = family.strip().casefold()
    for name in (family, *_TWINS.get(wanted, ())):
        path = _file_of(name, bold=bold)
        if path is not None:
            return Font(name, path, True, 1.0, ImageFont.truetype(path, _MEASURED_AT))
    scale = _NARROWER.get(wanted, 1.0)
    for name in ("Liberation Sans", "Arimo", "Arial", "Helvetica", "DejaVu Sans"):
        path = _file_of(name, bold=bold)
        if path is not None:
            scale *= 0.9 if name == "DejaVu Sans" else 1.0
            return Font(name, path, False, scale, ImageFont.truetype(path, _MEASURED_AT))
    face = ImageFont.load_default(_MEASURED_AT)
    return Font("Pillow's own", "", False, 1.08 if bold else 1.02, face)


@functools.lru_cache(maxsize=256)
def _file_of(family: str, *, bold: bool) -> str | None:
    program = shutil.which("fc-match")
    if program is not None:
        query = f"{family}:weight={'bold' if bold else 'regular'}:slant=roman"
        command = [program, "-f", "%{family}\n%{file}", query]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            told = None
        if told is not None:
            families, _, path = told.stdout.partition("\n")
            names = [name.strip().casefold() for name in families.split(",")]
            return path if family.casefold() in names and os.path.exists(path) else None
    stem = family.replace(" ", "").casefold()
    endings = ("bold", "-bold", "bd") if bold else ("", "-regular")
    return _files().get(next((stem + e for e in endings if stem + e in _files()), ""), None)


@functools.lru_cache(maxsize=1)
def _files() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in _FOLDERS:
        for path in Path(folder).expanduser().rglob("*.[to]t[fc]"):
            found.setdefault(path.stem.replace(" ", "").casefold(), str(path))
    return found


@functools.lru_cache(maxsize=1)
def _known_signs() -> tuple[tuple[int, int], ...] | None:
    """The ranges of signs that any font here can draw; `None` where that cannot be found out."""
    program = shutil.which("fc-list")
    if program is None:
        return None
    command = [program, ":", "-f", "%{charset}\n"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    ranges = set()
    for part in told.stdout.split():
        first, _, last = part.partition("-")
        try:
            ranges.add((int(first, 16), int(last or first, 16)))
        except ValueError:
            continue
    return tuple(sorted(ranges)) or None


def unknown_note(text: str) -> list[str]:
    """A note where `text` holds signs that no font on this machine can draw."""
    known = _known_signs()
    signs = sorted({c for c in text if ord(c) > 127 and unicodedata.category(c)[0] in "LNS"})
    if known is None:
        if signs and any(unicodedata.east_asian_width(c) in "WF" for c in signs):
            return ["whether the fonts here have these signs could not be found out: look at them"]
        return []
    lost = [c for c in signs if not any(a <= ord(c) <= b for a, b in known)]
    if not lost:
        return []
    return [
        f"no font here has {len(lost)} of the signs ({''.join(lost[:12])}): pictures of the slides "
        "show empty boxes for them; install a font (Debian: fonts-noto-cjk for Chinese, Japanese, "
        "Korean), or tell the user that these slides were not seen"
    ]


def words(text: str) -> list[str]:
    """Where a line may break: after spaces and hyphens, and between Chinese or Japanese signs."""
    out: list[str] = []
    for part in re.findall(r"\s+|[^\s-]+-?|-", text):
        if any(unicodedata.east_asian_width(c) in "WF" for c in part):
            out += list(part)
        else:
            out.append(part)
    return out


@dataclass(frozen=True)
class Laid:
    """A paragraph in its box.

    Attributes:
        lines: how many lines it takes.
        height: of these lines.
        widest: the width of the longest line; more than the box where a word is too long.
    """

    lines: int
    height: float
    widest: float


def lay(pieces: Sequence[Piece], width: float, *, spacing: float = 1.0, wrap: bool = True) -> Laid:
    """Break a paragraph into lines.

    Args:
        width: of the box.
        spacing: the line spacing, 1.0 for single.
        wrap: whether lines are broken at all.
    """
    size = max((piece.size for piece in pieces), default=18.0)
    lines, line, widest = 1, 0.0, 0.0
    for piece in pieces:
        for word in words(piece.text):
            if word == "\v" or "\n" in word:
                widest, line, lines = max(widest, line), 0.0, lines + max(1, word.count("\n"))
                continue
            long = piece.font.width(word, piece.size)
            if wrap and line > 0 and line + long > width and not word.isspace():
                widest, line, lines = max(widest, line), 0.0, lines + 1
            if not (word.isspace() and line == 0.0):
                line += long if not word.isspace() or line + long <= width else 0.0
    return Laid(lines, lines * size * LINE * spacing, max(widest, line))
