"""Backslash escapes as bash, `echo -e` and `printf` read them."""

from __future__ import annotations

import re

_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})"
    r"|(?P<oct>[0-7]{1,4})|c(?P<ctl>.)|(?P<one>.))",
    re.DOTALL,
)
_FORMAT = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[sbdiq])")


def decode(text: str) -> str:
    """`text` with its backslash escapes replaced; an escape we do not know stays as written."""

    def one(match: re.Match[str]) -> str:
        for group in ("hex", "u", "U"):
            if match[group]:
                code = int(match[group], 16)
                return chr(code) if code < 0x110000 else match[0]
        if match["oct"]:
            return chr(int(match["oct"], 8) & 0xFF)
        if match["ctl"]:
            return chr(ord(match["ctl"]) & 0x1F)
        return _SIMPLE.get(match["one"], match[0])

    return _ESCAPE.sub(one, text)


def printf(words: list[str]) -> str | None:
    """What `printf` prints for these arguments; `None` where we cannot tell."""
    if not words:
        return ""
    template, arguments = words[0], list(words[1:])
    if len(template) > 4096 or len(arguments) > 200:
        return None
    out = []
    for _ in range(len(arguments) + 1):
        before = len(arguments)
        place = 0
        for match in _FORMAT.finditer(template):
            out.append(decode(template[place : match.start()]))
            place = match.end()
            if match[0] == "%%":
                out.append("%")
                continue
            value = arguments.pop(0) if arguments else ""
            out.append(decode(value) if match[0].endswith("b") else value)
        rest = template[place:]
        if "%" in rest:
            return None
        out.append(decode(rest))
        if not arguments or len(arguments) == before:
            break
    return "".join(out)


def echo(words: list[str]) -> str:
    """What `echo` prints; escapes are read as with `-e` where `-e` is given."""
    words = list(words)
    escapes = False
    end = "\n"
    while words and re.fullmatch(r"-[neE]+", words[0]):
        options = words.pop(0)
        escapes = escapes or "e" in options
        end = "" if "n" in options else end
    text = " ".join(words)
    return (decode(text) if escapes else text) + end
