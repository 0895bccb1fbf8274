"""What a person should look at before a skill of somebody else is used.

A linter finds what is written openly; it proves nothing. What it says are places to look at, not a
verdict: the person reads the text and the scripts and decides.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from lorimer.context.skills.files import Files, SkillFilesFault, content
from lorimer.context.skills.invisible import is_hidden, revealed
from lorimer.context.skills.lint_rules import RULES

MOST_BYTES = 256 << 10
"""Of one file; more of it is not looked at, which is a finding."""
MOST_FINDINGS = 200
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Finding:
    """One place. `level` is `look` or `danger`; `line` is 0 for the whole file."""

    rule: str
    level: str
    file: str
    line: int
    message: str
    text: str = ""


MOST_OF_A_RULE = 30
LONG_LINE = 2_000
_SHORT_COMMENT = 40
_MOST_HOSTS = 20
_LINK = re.compile(r"https?://([^\s<>()\[\]\"'`/?#]{1,253})", re.IGNORECASE)
_SCRIPTS = {
    ".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1",
    ".bat", ".cmd", ".lua", ".r", ".go", ".rs", ".java", ".c", ".cc", ".cpp", ".swift", ".scpt",
    ".sql",
}  # fmt: skip
_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa", b"\0asm")


def is_script(name: str, executable: bool, head: bytes) -> bool:
    """Whether a file is there to be run."""
    return executable or head.startswith(b"#!") or PurePosixPath(name).suffix.lower() in _SCRIPTS


def lint(found: Files) -> list[Finding]:
    """What is to be looked at in these files, the dangerous first; at most `MOST_FINDINGS`."""
    out: list[Finding] = []
    for name, one in found.files.items():
        if one.link:
            out.append(Finding("link", "look", name, 0, f"it is a link to {one.link}"))
            continue
        try:
            data = content(found, name, MOST_BYTES + 1)
        except SkillFilesFault as fault:
            out.append(Finding("unreadable", "danger", name, 0, fault.message))
            continue
        out += _in_file(name, data, executable=one.executable)
    out.sort(key=lambda f: f.level != "danger")
    if len(out) > MOST_FINDINGS:
        rest = len(out) - MOST_FINDINGS
        out = out[:MOST_FINDINGS]
        out.append(Finding("more", "look", "", 0, f"{rest} more findings are not listed"))
    return out


def _in_file(name: str, data: bytes, *, executable: bool) -> Iterator[Finding]:
    if len(data) > MOST_BYTES:
        data = data[:MOST_BYTES]
        yield Finding("long", "look", name, 0, f"only its first {MOST_BYTES:,} bytes are looked at")
    kind = _binary(data)
    if kind:
        level = "danger" if kind == "a program" or executable else "look"
        yield Finding("binary", level, name, 0, f"it is {kind}: nobody can read it")
        return
    text = data.decode("utf-8", "replace")
    script = is_script(name, executable, data[:64])
    if "\ufffd" in text:
        yield Finding("not-utf8", "look", name, 0, "it holds bytes that are not UTF-8")
    if PurePosixPath(name).name.startswith("."):
        yield Finding("hidden-file", "look", name, 0, "its name begins with a dot")
    lines = _Lines(name, text)
    yield from _by_rules(lines, script)
    yield from hidden(name, text)
    yield from _links(lines)
    if not script:
        yield from _comments(lines)
    number, longest = max(enumerate(text.split("\n"), 1), key=lambda one: len(one[1]))
    if len(longest) > LONG_LINE:
        yield Finding(
            "long-line", "look", name, number, f"it holds a line of {len(longest):,} characters",
            _shown(longest),
        )  # fmt: skip


def _binary(data: bytes) -> str:
    if data.startswith(_PROGRAMS):
        return "a program"
    if data.startswith(_ARCHIVES):
        return "an archive"
    return "binary" if b"\0" in data[:8192] else ""


class _Lines:
    """A text whose lines can be found by their place in it."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def number(self, at: int) -> int:
        return bisect.bisect_right(self._starts, at)

    def finding(self, rule: str, level: str, at: int, message: str) -> Finding:
        number = self.number(at)
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        shown = self.text[max(start, at - 30) : min(end, at + 400)]
        return Finding(rule, level, self.name, number, message, _shown(shown))


def _by_rules(lines: _Lines, script: bool) -> Iterator[Finding]:
    """One finding for each rule and line, at most `MOST_OF_A_RULE` of a rule in one file."""
    seen: dict[str, set[int]] = {}
    for rule in RULES:
        if (rule.where == "script" and not script) or (rule.where == "text" and script):
            continue
        there = seen.setdefault(rule.name, set())
        for match in rule.pattern.finditer(lines.text):
            at = match.start() + len(match[0]) - len(match[0].lstrip())
            number = lines.number(at)
            if number in there:
                continue
            if len(there) >= MOST_OF_A_RULE:
                yield Finding(
                    rule.name, rule.level, lines.name, number, f"{rule.message}, here and later on"
                )
                break
            there.add(number)
            yield lines.finding(rule.name, rule.level, at, rule.message)


def _comments(lines: _Lines) -> Iterator[Finding]:
    at = 0
    while (start := lines.text.find("<!--", at)) >= 0:
        end = lines.text.find("-->", start)
        end = len(lines.text) if end < 0 else end
        if len(lines.text[start + 4 : end].strip()) > _SHORT_COMMENT:
            yield lines.finding(
                "comment", "look", start,
                "it holds a comment that is not shown where it is rendered",
            )  # fmt: skip
        at = end


def hidden(name: str, text: str) -> Iterator[Finding]:
    """Characters that nobody sees, one finding a line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.isascii() and line.isprintable():
            continue
        odd = [
            c
            for n, c in enumerate(line)
            if is_hidden(c, line, n) and (number, n, c) != (1, 0, "\ufeff")
        ]
        if odd:
            codes = ", ".join(dict.fromkeys(f"U+{ord(c):04X}" for c in odd[:20]))
            meant = len(odd) > 3 or any(_turns_or_tags(ord(c)) for c in odd)
            level = "danger" if meant else "look"
            yield Finding(
                "hidden-text", level, name, number,
                f"it holds {len(odd)} character{'s' * (len(odd) > 1)} that nobody sees ({codes})",
                _shown(line),
            )  # fmt: skip


def _turns_or_tags(code: int) -> bool:
    """Characters that turn the direction of a text, or spell words that only a model reads."""
    return code >= 0xE0000 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069


def _links(lines: _Lines) -> Iterator[Finding]:
    hosts: dict[str, int] = {}
    for match in _LINK.finditer(lines.text):
        hosts.setdefault(match[1].lower(), match.start())
    for host, at in list(hosts.items())[:_MOST_HOSTS]:
        yield lines.finding("link-out", "look", at, f"it names the web host {host}")
    if len(hosts) > _MOST_HOSTS:
        rest = len(hosts) - _MOST_HOSTS
        yield Finding("link-out", "look", lines.name, 0, f"it names {rest} more web hosts")


def _shown(line: str) -> str:
    """The beginning of the line, with what nobody sees written out."""
    seen = revealed(line[:400]).strip()
    return seen if len(seen) <= _SHOWN else seen[:_SHOWN] + "…"
