"""A text in whole statements: sentences over the ends of wrapped lines, quotations with the words
around them, rows, records, and each value of JSON with its path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from lorimer.context.compaction.sentences import sentences_of
from lorimer.context.compaction.small_words import EVERY_TURNING, USUAL, language_of

_WHOLE: Final = 1 << 30
_BULLET = re.compile(r"^\s*[-*•‣]\s+")
_RECORD = re.compile(r"(?<=[}\]]),\s*(?=[{\[])")
_NO_GOING_ON = re.compile(r"[-*•‣#|{}\[\]<>\"=]|\d{1,3}[.)]\s")
_ENDED: Final = '.!?:;|}])>"”“。！？'
_ROW = re.compile(r"[|\t={}]|\":")
_PROSE_LINE: Final = 50
_SHORT_PROSE_LINE: Final = 25
"""Characters of a line that may have been wrapped before a capital letter; in German every noun has
one."""
_LONGEST: Final = 4_000
"""Characters of a line made of wrapped ones: what has no end by then is no sentence."""
_MOST_QUOTED: Final = 12
"""Sentences that a quotation may have."""
_SMALL: Final = EVERY_TURNING | USUAL["en"] | USUAL["de"] | {"which", "who", "sich", "als"}


def statements_of(text: str) -> list[str]:
    """The statements of `text` in order; runs of spaces and line ends in them are one space."""
    out: list[str] = []
    for line in _unwrapped(text):
        bare = _BULLET.sub("", line).strip()
        if bare[:1] in "{[":
            out += [part.strip() for part in _RECORD.split(bare) if part.strip()]
        else:
            out += _balanced(sentences_of(bare, _WHOLE))
    return out


def _unwrapped(text: str) -> list[str]:
    out: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", "\n".join(text.splitlines())):
        lines = [line.strip() for line in paragraph.split("\n") if line.strip()]
        is_prose = bool(lines) and lines[-1].rstrip("”\"')")[-1:] in tuple(".!?")
        joined: list[str] = []
        for line in lines:
            least = _PROSE_LINE
            if is_prose and line[0].islower():
                least = 1
            elif is_prose and joined and _is_german(f"{joined[-1]} {line}"):
                least = _SHORT_PROSE_LINE
            if joined and _goes_on(joined[-1], line, least):
                joined[-1] += " " + line
            else:
                joined.append(line)
        out += joined
    return out


def _is_german(text: str) -> bool:
    return language_of(tuple(re.findall(r"[^\W\d_]+", text.casefold()))) == "de"


def _goes_on(before: str, line: str, least: int) -> bool:
    """Whether `line` is in the middle of a sentence that began in `before`; a line shorter than
    `least` is not taken to have been wrapped, unless its last word needs another."""
    if not before or len(before) > _LONGEST or before[-1] in _ENDED or _ROW.search(before):
        return False
    if _NO_GOING_ON.match(line):
        return False
    last = before.rsplit(None, 1)[-1].casefold()
    if last.strip(",’'") in _SMALL and " " in before:
        return True
    if len(before) < least or before.count(" ") < (2 if least == 1 else 3):
        return False
    return line[0].islower() or before[-1] == "," or re.search(r"[.!?](\s|$)", line) is not None


def _balanced(pieces: list[str]) -> list[str]:
    """Sentences within quotation marks or brackets stay with the words around them."""
    out: list[str] = []
    at = 0
    while at < len(pieces):
        joined, end = pieces[at], at + 1
        while _is_open(joined) and end < min(len(pieces), at + _MOST_QUOTED):
            joined, end = f"{joined} {pieces[end]}", end + 1
        if _is_open(joined):
            joined, end = pieces[at], at + 1
        out.append(joined)
        at = end
    return out


def _is_open(text: str) -> bool:
    if text.count('"') % 2 or text.count("(") > text.count(")"):
        return True
    if "„" in text:
        return text.count("„") > text.count("“") + text.count("”")
    return text.count("“") > text.count("”")


def values_of(text: str) -> list[str]:
    """Of a text that is JSON, each value with its path and each flat record with and without; else
    nothing. Figures stay as they are written."""
    if text.lstrip()[:1] not in ("{", "["):
        return []
    try:
        value = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
        return list(_values(value, ""))
    except (ValueError, RecursionError):
        return []


def _values(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        flat = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
        if len(flat) > 1 and len(flat) == len(value):
            record = ", ".join(f"{key}: {_scalar(v)}" for key, v in flat.items())
            yield record
            if path:
                yield f"{path}: {record}"
        for key, v in value.items():
            yield from _values(v, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, v in enumerate(value):
            yield from _values(v, f"{path}[{at}]")
    elif path:
        yield f"{path}: {_scalar(value)}"
        yield f"{path.replace('.', ' ')}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
