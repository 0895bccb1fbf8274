"""Patterns that can never match, found when a policy is loaded.

A rule that denies and never matches fails open, so such a pattern stops the start like any other
fault. Each function gives `None`, or what is wrong and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lorimer.safety.policy.patterns import MAGIC, glob_regex, ip6

Fault = tuple[str, str]
"""What is wrong, and what is right."""

_CLASS = re.compile(r"\[[!^]?[^\]]+\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_BRACES = re.compile(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_EXPANDED = re.compile(r"\$[A-Za-z_0-9{(@*#?!$]")
_IN_PATH = re.compile(r"(?:^|/)\$[A-Za-z_]|\$[{(]")
_OPERATORS = "|&;<>()\n`"


def glob_fault(pattern: str, *, paths: bool = False) -> Fault | None:
    """Of a glob as such: its sets in brackets must be sets."""
    try:
        re.compile(glob_regex(pattern, paths=paths), re.S)
    except re.error as fault:
        return (
            f"{pattern!r} holds a set in brackets that is none: {fault.msg}.",
            "Write e.g. '[a-z]', or '[[]' for a bracket itself.",
        )
    return None


def tool_fault(pattern: str) -> Fault | None:
    found = _other_than(pattern, r"A-Za-z0-9_")
    if found is None:
        return glob_fault(pattern)
    return (
        f"{pattern!r} holds {found!r}, which no tool's name has: it can never match.",
        "Name the tool alone, e.g. 'shell_exec'; what it is called with goes into command, "
        "arguments or paths.",
    )


def secret_fault(pattern: str) -> Fault | None:
    found = _other_than(pattern, r"a-z0-9_-")
    if found is None:
        return glob_fault(pattern)
    name = re.sub(r"^(\$\{)?secret:|\}$", "", pattern).lower()
    if _other_than(name, "a-z0-9_-") is not None:
        name = "github"
    return (
        f"{pattern!r} holds {found!r}, which no secret's name has: it can never match.",
        f"Write the name alone, e.g. {name!r}.",
    )


def host_fault(pattern: str) -> Fault | None:
    """Hosts are compared as lower case ASCII names or addresses, `name` or `name:port`."""
    from lorimer.safety.network.urls import hosts_of

    if ip6(pattern) is not None:
        return None
    plain = _CLASS.sub("a", pattern)
    bare = _SCHEME.sub("", plain, count=1) if "/" in plain or "@" in plain else plain
    bare = re.split(r"[/#]", bare, maxsplit=1)[0].rpartition("@")[2]
    host = hosts_of(pattern)
    right = host or (bare if bare and bare != plain else "")
    step = (
        f"Write {right!r}." if right else "Write a host such as 'example.org' or '*.example.org'."
    )
    if bare != plain:
        return (f"{pattern!r} is no host but an address with more: it can never match.", step)
    name, colon, port = plain.rpartition(":")
    if colon and not re.fullmatch(r"[0-9*?a]{1,5}", port):
        return (f"{pattern!r} ends in {port!r}, which is no port: it can never match.", step)
    if any(char in plain for char in "*?") or plain != pattern:
        wrong = _other_than(name if colon else plain, r"A-Za-z0-9_.:-")
        if wrong is not None:
            return (f"{pattern!r} holds {wrong!r}, which no host has: it can never match.", step)
        return glob_fault(pattern)
    if host is None:
        return (f"{pattern!r} is no host: it can never match.", step)
    if host != pattern.lower():
        return (f"{pattern!r} is compared as {host!r}: as it stands, it can never match.", step)
    return None


def path_fault(pattern: str) -> Fault | None:
    """Paths are compared after resolving: nothing in a pattern is expanded but a first `~/`."""
    if ".." in pattern.split("/") or "\0" in pattern:
        return (
            f"the path pattern {pattern!r} holds '..': paths are compared after resolving, so it "
            "can never match.",
            "Write the folder itself, e.g. '/srv/data/**' or '~/notes/*'.",
        )
    if _IN_PATH.search(pattern):
        return (
            f"the path pattern {pattern!r} holds a variable: paths are compared after resolving, "
            "so it can never match.",
            "Write '~/…' for the home folder, else the folder itself.",
        )
    if re.match(r"~[^/]", pattern):
        return (
            f"the path pattern {pattern!r} names somebody's home folder: only '~/' is understood.",
            "Write the folder itself, e.g. '/home/ada/**'.",
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", pattern):
        return (
            f"the path pattern {pattern!r} is a URL: it can never match.",
            "Write the path alone; hosts go into hosts.",
        )
    return glob_fault(pattern, paths=True)


def command_fault(pattern: str) -> Fault | None:
    """Patterns meet simple commands word by word, after everything was taken apart and expanded."""
    bare, expanding = _unquoted(pattern)
    operator = next((char for char in bare if char in _OPERATORS), None)
    if operator is not None:
        return (
            f"the command pattern {pattern!r} holds {operator!r}: each simple command is matched "
            "by itself, so it can never match.",
            _without_operators(bare, pattern, operator),
        )
    if _EXPANDED.search(expanding):
        return (
            f"the command pattern {pattern!r} holds a variable: words are matched after expansion, "
            "so it can never match.",
            "Write '*' for a word that varies, or quote what is meant as it stands: '$x'.",
        )
    if _BRACES.search(bare):
        return (
            f"the command pattern {pattern!r} holds braces: words are matched after expansion, so "
            "it can never match.",
            "Write one pattern for each.",
        )
    if _ASSIGNMENT.match(pattern):
        return (
            f"the command pattern {pattern!r} begins with a variable, which is no word of the "
            "command: it can never match.",
            "Leave it out and begin with the program.",
        )
    return next(filter(None, map(glob_fault, _words(pattern))), None)


def _words(pattern: str) -> list[str]:
    import shlex

    return shlex.split(pattern)


def _unquoted(pattern: str) -> tuple[str, str]:
    """What stands outside of all quotes, and what stands outside of single ones; quoted characters
    are `_` there."""
    bare, expanding, quote, at = [], [], "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "\\" and quote != "'":
            at += 1
            bare.append("_")
            expanding.append("_")
        elif quote:
            expanding.append("_" if quote == "'" else char)
            bare.append("_")
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
            bare.append("_")
            expanding.append("_")
        else:
            bare.append(char)
            expanding.append(char)
    return "".join(bare), "".join(expanding)


def _without_operators(bare: str, pattern: str, operator: str) -> str:
    if operator in "<>":
        return "Leave the redirection out; which files are written is said by paths."
    pieces, start = [], 0
    for found in re.finditer(r"[|&;\n]+", bare):
        pieces.append(pattern[start : found.start()].strip())
        start = found.end()
    pieces = [piece for piece in (*pieces, pattern[start:].strip()) if piece]
    if operator in "|&;\n" and pieces:
        return f"Write them one by one: command = {pieces!r}."
    return "Write the command inside by itself, or quote the character where it is only text."


def _other_than(pattern: str, allowed: str) -> str | None:
    """The first character of a glob, outside of its sets, that is neither magic nor `allowed`."""
    found = re.search(rf"[^{re.escape(MAGIC)}{allowed}]", _CLASS.sub("", pattern))
    return None if found is None else found[0]


FAULTS: dict[str, Callable[[str], Fault | None]] = {
    "tool": tool_fault,
    "secrets": secret_fault,
    "hosts": host_fault,
    "paths": path_fault,
    "command": command_fault,
}
"""The check of each condition that has one; what is any other text is a glob."""
