"""Take secrets out of text: known values in every usual encoding, and keys of well-known shapes.

Time is linear in the text: each known form and each literal beginning of a shape is searched once
(the interpreter's own substring search is linear), shapes are matched only where one begins.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from lorimer.safety.secrets.encodings import forms_of
from lorimer.safety.secrets.patterns import PATTERNS, Pattern


@dataclass(frozen=True, slots=True)
class Found:
    """`text[start:end]` is a secret. `label` stands in its place; `known`: by its exact value."""

    start: int
    end: int
    label: str
    known: bool = False


class Redactor:
    """Knows some values and some shapes.

    Args:
        values: by each value, what stands in its place, e.g. `{"…": "[secret:github]"}`. Values
            shorter than 8 characters are not looked for.
        patterns: shapes to look for.
        issued: what has stood in the place of something by now is added to it.
    """

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        patterns: Sequence[Pattern] = PATTERNS,
        *,
        issued: set[str] | None = None,
    ) -> None:
        self.issued = set() if issued is None else issued
        forms: dict[str, str] = {}
        for value, label in (values or {}).items():
            for form in forms_of(value):
                forms.setdefault(form, label)
        self._forms = tuple(sorted(forms.items(), key=lambda f: (-len(f[0]), f[0])))
        begins: dict[str, list[Pattern]] = {}
        for pattern in patterns:
            for literal in pattern.begins:
                begins.setdefault(literal, []).append(pattern)
        self.begins = tuple((literal, tuple(found)) for literal, found in begins.items())

    @property
    def forms(self) -> tuple[str, ...]:
        """The texts looked for, longest first."""
        return tuple(form for form, _ in self._forms)

    @overload
    def redact(self, text: str) -> str: ...
    @overload
    def redact(self, text: bytes) -> bytes: ...
    def redact(self, text: str | bytes) -> str | bytes:
        """`text` without its secrets; the same object when there are none. Bytes are looked at as
        UTF-8, and bytes that are not are kept."""
        if isinstance(text, bytes):
            inside = text.decode("utf-8", "surrogateescape")
            clean = self.redact(inside)
            return text if clean is inside else clean.encode("utf-8", "surrogateescape")
        found = self.find(text)
        if not found:
            return text
        out: list[str] = []
        at = 0
        for one in found:
            out += (text[at : one.start], one.label)
            at = one.end
        out.append(text[at:])
        return "".join(out)

    def redact_json(self, value: Any) -> Any:
        """`value` (JSON) with every text and key in it redacted; what has none is kept as it is."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact_json(k): self.redact_json(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_json(one) for one in value]
        return value

    def known_in(self, text: str) -> tuple[str, ...]:
        """Labels of the known values that stand in `text`, sorted."""
        return tuple(sorted({label for form, label in self._forms if form in text}))

    def find(self, text: str) -> list[Found]:
        """The secrets in `text`, in order, not overlapping."""
        found: list[Found] = []
        for form, label in self._forms:
            if form in text:
                found += _every(text, form, label)
        for literal, patterns in self.begins:
            if literal in text:
                for pattern in patterns:
                    found += _matches(text, literal, pattern)
        if not found:
            return found
        merged = _merged(found)
        self.issued.update(one.label for one in merged)
        return merged

    def stream(self) -> RedactedStream:
        """For output that comes in pieces."""
        return RedactedStream(self)


def _every(text: str, form: str, label: str) -> Iterable[Found]:
    at = text.find(form)
    while at >= 0:
        yield Found(at, at + len(form), label, known=True)
        at = text.find(form, at + len(form))


def _matches(text: str, literal: str, pattern: Pattern) -> Iterable[Found]:
    match_at, counts = pattern.compiled.match, pattern.counts
    group = "s" if "s" in pattern.compiled.groupindex else 0
    label = f"[redacted: {pattern.what}]"
    at = text.find(literal)
    while at >= 0:
        match = match_at(text, at)
        if match is None or (counts is not None and not counts(match)):
            at = text.find(literal, at + len(literal))
            continue
        yield Found(*match.span(group), label)
        at = text.find(literal, match.end())


def _merged(found: list[Found]) -> list[Found]:
    """Overlapping ones as one; a known value gives the name, else the one that began first."""
    found.sort(key=lambda f: (f.start, -f.end, not f.known))
    out = [found[0]]
    for one in found[1:]:
        last = out[-1]
        if one.start >= last.end:
            out.append(one)
            continue
        first = one if one.known and not last.known else last
        out[-1] = Found(last.start, max(last.end, one.end), first.label, first.known)
    return out


_LONGEST_TOKEN = 8 * 1024
_LONGEST_BLOCK = 32 * 1024
_CONTEXT = 256
_LET_THROUGH = 2
_BLOCKS = (("-----BEGIN ", "-----END ", "-----"), ("Private-Lines: ", "Private-", "MAC"))


class RedactedStream:
    """Redacts pieces as they come. What may be the beginning of a secret is held back until it is
    known; other pieces are let through as they are. Of a secret that is cut into pieces at most its
    first two characters, or the known beginning of its kind (`ghp_`), are let through.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._before = ""  # the end of what was let through, as it was: keys are known by it, too
        self._held = ""
        self._longest = max(map(len, redactor.forms), default=0)

    def feed(self, piece: str) -> str:
        """What can be shown by now."""
        text = self._before + self._held + piece
        done = len(self._before)
        return self._let(text, done, max(done, self._safe(text)))

    def end(self) -> str:
        """The rest; nothing comes after it."""
        text = self._before + self._held
        return self._let(text, len(self._before), len(text))

    def _let(self, text: str, done: int, cut: int) -> str:
        found = [one for one in self._redactor.find(text) if one.end > done]
        for one in found:
            if one.start < cut < one.end:
                cut = one.end if len(text) - one.start > _LONGEST_BLOCK else max(done, one.start)
        out: list[str] = []
        at = done
        for one in found:
            if one.end > cut:
                break
            out += (text[at : max(at, one.start)], one.label)
            at = one.end
        out.append(text[at:cut])
        self._before, self._held = text[max(0, cut - _CONTEXT) : cut], text[cut:]
        return "".join(out)

    def _safe(self, text: str) -> int:
        """Where `text` can be cut so that no secret which is not whole yet begins before it."""
        size = len(text)
        return min(self._key(text), self._block(text), self._form(text), size)

    def _key(self, text: str) -> int:
        """Where a key begins whose end may still come: in the last word, or, for the shapes with
        spaces in them, in the last line."""
        size = len(text)
        cut = size
        tail = text[-_LONGEST_TOKEN:]
        word = "" if tail[-1:].isspace() else tail.split()[-1] if tail else ""
        line = max(tail.rfind("\n"), tail.rfind("\r")) + 1
        for literal, patterns in self._redactor.begins:
            if literal in word and len(word) < _LONGEST_TOKEN:
                at = word.find(literal)
                if not patterns[0].ends or not set(patterns[0].ends) & set(word[at + 3 :]):
                    cut = min(cut, size - len(word) + at)
            if patterns[0].spaced and (at := tail.find(literal, line)) >= 0:
                cut = min(cut, size - len(tail) + at)
        return cut

    def _block(self, text: str) -> int:
        """Where a block (of a private key) begins that has no end yet."""
        cut = size = len(text)
        for begin, end, last in _BLOCKS:
            block = text.rfind(begin, max(0, size - _LONGEST_BLOCK))
            if block < 0:
                continue
            kind, closed, _ = text[block + len(begin) : block + 64].partition("-----")
            if closed and last == "-----" and "PRIVATE KEY" not in kind:
                continue
            at = text.find(end, block + len(begin))
            if at < 0 or text.find(last, at + len(end)) < 0:
                cut = min(cut, block)
        return cut

    def _form(self, text: str) -> int:
        """Where a known value may begin, of which the end of `text` has the first characters."""
        cut = size = len(text)
        start = max(0, size - self._longest + 1)
        ending = text[start:]
        for form in self._redactor.forms:
            first = form[: _LET_THROUGH + 1]
            at = ending.find(first)
            while at >= 0 and start + at < cut:
                if form.startswith(ending[at:]):
                    cut = start + at
                    break
                at = ending.find(first, at + 1)
        return cut


class RedactedBytes:
    """`RedactedStream` for raw output: looked at as UTF-8, bytes that are not are kept."""

    def __init__(self, stream: RedactedStream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def feed(self, piece: bytes) -> bytes:
        """What can be written down by now."""
        return _bytes(self._stream.feed(self._decoder.decode(piece)))

    def end(self) -> bytes:
        """The rest; nothing comes after it."""
        last = self._stream.feed(self._decoder.decode(b"", final=True))
        return _bytes(last + self._stream.end())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
