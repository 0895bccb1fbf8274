"""The patterns of rules: texts, paths and commands. Each knows how it was written."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from lorimer.core.effects import SimpleCommand

MAGIC = "*?["
ESCAPED = re.compile(r"\[([*?\[])\]")
HARMLESS_WRAPPERS = frozenset(
    {"env", "timeout", "nice", "ionice", "nohup", "time", "stdbuf", "command", "builtin", "xargs",
     "find", "find -exec", "find -execdir", "sh -c", "bash -c", "dash -c", "zsh -c", "python -m"}
)  # fmt: skip
"""Wrappers inside which a command may be allowed by its own words; what else is of concern about
them has a reason of its own. Inside others (`sudo`, `ssh`, `eval`) it must be said in full."""


def glob_regex(pattern: str, *, paths: bool = False) -> str:
    """A glob as a regular expression. `*`: any characters, `?`: one, `[abc]`, `[!abc]`: one of
    these or none of them. With `paths`, `*` and `?` do not cross `/`, and `**` does."""
    out, at = [], 0
    one = "[^/]" if paths else "."
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            if paths and pattern[at : at + 1] == "*":
                at += 1
                if pattern[at : at + 1] == "/" and pattern[at - 3 : at - 2] in ("", "/"):
                    at += 1
                    out.append("(?:.*/)?")
                else:
                    out.append(".*")
            else:
                out.append(f"{one}*")
        elif char == "?":
            out.append(one)
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            inner = pattern[at:end]
            at = end + 1
            negated = "^" if inner.startswith(("!", "^")) else ""
            inner = inner[1:] if negated else inner
            body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner)
            out.append(f"[{negated}{body}]")
        else:
            out.append(re.escape(char))
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Texts:
    """Globs of which one must match a whole text."""

    source: tuple[str, ...]
    regex: re.Pattern[str]
    plain: frozenset[str]

    @classmethod
    def of(cls, patterns: Sequence[str], *, lower: bool = False) -> Texts:
        if lower:
            patterns = [p.lower() for p in patterns]
        plain = frozenset(p for p in patterns if not any(c in p for c in MAGIC))
        magic = [p for p in patterns if p not in plain]
        regex = "|".join(f"(?:{glob_regex(p)})" for p in magic) or r"(?!)"
        return cls(tuple(patterns), re.compile(regex, re.S), plain)

    def match(self, text: str) -> bool:
        return text in self.plain or self.regex.fullmatch(text) is not None


def ip6(pattern: str) -> tuple[str, str] | None:
    """Address and `:port` (or nothing) of an IPv6 address, with or without brackets."""
    import ipaddress

    found = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](:[0-9]{1,5})?|([0-9A-Fa-f:.]+)", pattern)
    if found is None or pattern.count(":") < 2:
        return None
    try:
        return str(ipaddress.IPv6Address(found[1] or found[3])), found[2] or ""
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class HostTexts:
    """Globs of hosts: `example.org` also means every port of it, `example.org:8443` that one."""

    texts: Texts
    source: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Sequence[str]) -> HostTexts:
        plain: list[str] = []
        for one in patterns:
            found = ip6(one)
            address, port = found or ("", "")
            plain += [one] if found is None else [escape(f"[{address}]{port}"), address + port]
        return cls(Texts.of(plain, lower=True), tuple(patterns))

    def match(self, host: str) -> bool:
        host = host.lower()
        if self.texts.match(host):
            return True
        name, colon, port = host.rpartition(":")
        return bool(colon) and port.isdigit() and self.texts.match(name)

    def may_match(self, host: str) -> bool:
        """`match`, for rules that ask or deny: a host whose port is not said is also at the ports
        of http and https."""
        return self.match(host) or any(self.texts.match(f"{host.lower()}:{p}") for p in (80, 443))


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A glob of resolved paths. Relative ones start at the workspace, `~/` at the home folder."""

    source: str

    def regex(self, workspace: str, home: str) -> re.Pattern[str]:
        return _path_regex(self.absolute(workspace, home))

    def absolute(self, workspace: str, home: str) -> str:
        """The pattern as an absolute one; the fixed part is resolved, as paths are."""
        if self.source == "~" or self.source.startswith("~/"):
            start, rest = home, self.source[2:]
        elif self.source.startswith("/"):
            start, rest = "/", self.source[1:]
        else:
            start, rest = workspace, self.source
        parts = [p for p in rest.split("/") if p not in ("", ".")]
        fixed = []
        while parts and not any(c in parts[0] for c in MAGIC):
            fixed.append(parts.pop(0))
        literal = escape(os.path.realpath(os.path.join(start, *fixed)))
        return "/".join([literal.rstrip("/"), *parts]) or "/"

    def match(self, path: str, workspace: str, home: str) -> bool:
        return self.regex(workspace, home).fullmatch(path) is not None

    def lies_below(self, path: str, workspace: str, home: str) -> bool:
        """Whether all that the pattern can match lies below `path`."""
        fixed = []
        for part in self.absolute(workspace, home).split("/"):
            if any(c in part for c in MAGIC) and unescape(part) == part:
                break
            fixed.append(unescape(part))
        top = "/".join(fixed) or "/"
        return top == path or top.startswith(path.rstrip("/") + "/")


_cache: dict[str, re.Pattern[str]] = {}


def _path_regex(pattern: str) -> re.Pattern[str]:
    found = _cache.get(pattern)
    if found is None:
        text = glob_regex(pattern, paths=True)
        if pattern.endswith("/**"):  # the folder itself as well
            text = f"{glob_regex(pattern[:-3], paths=True)}(?:/.*)?"
        if len(_cache) > 2_000:
            _cache.clear()
        found = _cache[pattern] = re.compile(text, re.S)
    return found


def escape(text: str) -> str:
    """`text` as a glob that matches only it."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def unescape(pattern: str) -> str:
    """The text of a glob that `escape` made."""
    return ESCAPED.sub(r"\1", pattern)


@dataclass(frozen=True, slots=True)
class CommandGlob:
    """A pattern of one simple command, word by word.

    A last word `*` stands for any further words, also none; elsewhere `*` is one word. It is
    `literal` when it can only mean one command.
    """

    source: str
    words: tuple[re.Pattern[str], ...]
    open_end: bool
    literal: bool = False

    @classmethod
    def of(cls, pattern: str) -> CommandGlob:
        """Raises `ValueError` when the pattern has no words, or its quotes do not close."""
        words = shlex.split(pattern)
        if not words:
            raise ValueError("it has no words")
        open_end = len(words) > 1 and words[-1] == "*"
        fixed = words[:-1] if open_end else words
        compiled = tuple(re.compile(glob_regex(word), re.S) for word in fixed)
        literal = not open_end and not any(
            set(ESCAPED.sub("", word)) & set(MAGIC) for word in words
        )
        return cls(pattern, compiled, open_end, literal)

    def covers(self, command: SimpleCommand) -> bool:
        """Whether these words are surely those of one of the commands meant, whatever is around
        them: for rules that allow."""
        return None not in command.words and self._fits(command.words) is True

    def meets(self, command: SimpleCommand) -> bool | None:
        """Whether the command may be one of those meant: for rules that ask or deny. `None`: it
        depends on a word that is not known."""
        forms = [command.words]
        if command.program is not None and "/" in command.program:
            forms.append((command.program.rsplit("/", 1)[-1], *command.words[1:]))
        for at in range(len(command.via)):
            wrapped = [w for via in command.via[at:] for w in _words(via)]
            forms.append((*wrapped, *command.words))
            if wrapped and "/" in wrapped[0]:
                forms.append((wrapped[0].rsplit("/", 1)[-1], *wrapped[1:], *command.words))
        found = [self._fits(words) for words in forms]
        if True in found:
            return True
        return None if None in found else False

    def _fits(self, words: Sequence[str | None]) -> bool | None:
        """`None`: it depends on a word that is not known, which may also be none or many."""
        for at, pattern in enumerate(self.words):
            if at == len(words):
                return False
            word = words[at]
            if word is None:
                return None
            if pattern.fullmatch(word) is None:
                return False
        rest = words[len(self.words) :]
        if self.open_end or not rest:
            return True
        return None if all(word is None for word in rest) else False


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
