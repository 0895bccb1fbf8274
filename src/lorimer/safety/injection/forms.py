"""How a value may be written: whether a text holds it, whatever its case, spaces or number format.

Each kind has its own rule, because loose matching is a hole: an address must be a whole address, a
link its own host and path, an account number all of its digits. Texts are prepared once and kept.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

_EMAIL = re.compile(r"[^\s@<>()\[\]\"',;:]+@[^\s@<>()\[\]\"',;:]+\.[^\s@<>()\[\]\"',;:.]+")
_EMAIL_IN_TEXT = re.compile(r"[\w.!#$%&'*+/=?^`{|}~@\u00ad\u200b-\u200f\u2060\ufeff-]+")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+|www\.\S+|[\w-]+(?:\.[\w-]+)+(?::\d+)?/\S*", re.I)
_DOTTED = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_ACCOUNT = re.compile(r"[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){8,32}", re.I)
_DIGITS = re.compile(r"\+?\d(?:[ ()./-]{0,2}\d){6,}")
_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:['\u2019]\d{3})+(?:\.\d+)?"
)
_NUMBER += r"|\d{1,3}(?:[\u00a0\u202f\u2009]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?"
_NUMBER_VALUE = re.compile(rf"[-+]?[$€£¥]? ?(?:{_NUMBER})(?:[eE][+-]?\d{{1,3}})? ?[$€£¥%]?")
_NUMBER_IN_TEXT = re.compile(
    rf"(?<!\w)(?<!\d[.,:/-])([-\u2212]?)[$€£¥]?(?:{_NUMBER})(k?)(?![\w]|[.,:/-]\d)", re.I
)
_QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2032\u2033", "''''\"\"\"'\"")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_EDGES = "<>()[]{}\"'`*_|.,;:!?"
_CODES = {"r": ("read",), "w": ("write", "edit"), "rw": ("write", "edit"), "x": ("execute",)}
_LONGEST_PREPARED = 4_000_000
_MOST_MISSES = 2_000
_SHORT = 20_000


def plain(text: str) -> str:
    """NFKC, one case, one kind of quotes, dashes and spaces. Invisible characters stay, so that a
    value with one in it is another value."""
    return _plain_once(text) if len(text) < _SHORT else _plain(text)


def _plain(text: str) -> str:
    same = unicodedata.normalize("NFKC", text).translate(_QUOTES).translate(_DASHES)
    return " ".join(same.casefold().split())


_plain_once = lru_cache(maxsize=2048)(_plain)


class Text:
    """One text, ready to be asked whether it holds a value."""

    def __init__(self, text: str) -> None:
        self.raw = text[:_LONGEST_PREPARED]
        self.plain = plain(self.raw)
        self._emails: frozenset[str] | None = None
        self._urls: tuple[SplitResult, ...] | None = None
        self._numbers: frozenset[Decimal] | None = None

    def has(self, value: str, *, handle: bool = False) -> bool:
        """Whether `value` stands in the text as a whole, in any usual way of writing it.

        `handle`: it is an id; a short one counts only where the text calls it one (`ID 13`, `#13`,
        `'13'`), because numbers of other things are everywhere.
        """
        value = value.strip()
        if not value or not self.plain:
            return False
        if _EMAIL.fullmatch(value):
            return plain(value) in self.emails
        if _URL.fullmatch(value):
            return self._has_url(value)
        if _ACCOUNT.fullmatch(value) and sum(c.isdigit() for c in value) >= 6:
            return self._has_compact(value)
        if _DIGITS.fullmatch(value) and len(re.sub(r"\D", "", value)) >= 7:
            return self._has_compact(value) or self._has_number(value)
        if handle and len(value) <= 3:
            return self._has_handle(value)
        if _NUMBER_VALUE.fullmatch(value):
            return self._has_number(value)
        if _DOTTED.fullmatch(value):
            return self._has_dotted(value)
        codes = _CODES.get(value.casefold(), ())
        return self.says(value) or any(self.says(word) for word in codes)

    def says(self, words: str) -> bool:
        """Whether these words stand in the text, with no letter or digit directly beside them."""
        wanted = plain(words)
        return bool(wanted) and bounded(wanted, self.plain)

    def holds(self, fragment: str) -> bool:
        """Whether these characters stand in the text at all, inside words too."""
        return plain(fragment) in self.plain

    @property
    def emails(self) -> frozenset[str]:
        if self._emails is None:
            found = (
                m.group().strip("'`\".,;:!?{}|*/=&") for m in _EMAIL_IN_TEXT.finditer(self.plain)
            )
            self._emails = frozenset(one for one in found if one.count("@") == 1)
        return self._emails

    def _has_url(self, value: str) -> bool:
        wanted = _link(value)
        if wanted is None:
            return False
        if self._urls is None:
            tokens = re.split(r"[\s<>\"]+", unicodedata.normalize("NFKC", self.raw))
            links = (_link(token.strip(_EDGES)) for token in tokens if "." in token)
            self._urls = tuple(link for link in links if link is not None)
        return any(_same_link(wanted, link) for link in self._urls)

    def _has_dotted(self, value: str) -> bool:
        """A host or a file name: not as a part of an address, of a path or of a longer one."""
        shape = rf"(?<![\w@.\\/-]){re.escape(plain(value))}(?![\w@\\/-]|[.:]\w)"
        return re.search(shape, self.plain) is not None

    def _has_compact(self, value: str) -> bool:
        characters = [re.escape(c) for c in plain(value) if c.isalnum()]
        shape = r"(?<![^\W_])" + r"[ -]?".join(characters) + r"(?![^\W_]|[ -]?\d)"
        return re.search(shape, self.plain) is not None

    def _has_handle(self, value: str) -> bool:
        wanted = re.escape(plain(value))
        shape = rf"(?:\bid|\bno\.?|\bnumber|\bnr\.?|#)\s*[:=]?\s*['\"]?{wanted}(?![\w.:,/-]?\w)"
        return re.search(rf"{shape}|(?<!\w)['\"]{wanted}['\"](?!\w)", self.plain) is not None

    def _has_number(self, value: str) -> bool:
        wanted = number(value)
        if wanted is None:
            return False
        if self._numbers is None:
            found = set()
            for match in _NUMBER_IN_TEXT.finditer(self.raw):
                one = number(match.group().removesuffix("k").removesuffix("K"))
                if one is not None:
                    found.add(one * 1000 if match.group(2) else one)
            self._numbers = frozenset(found)
        return wanted in self._numbers


@lru_cache(maxsize=512)
def prepared(text: str) -> Text:
    """`Text(text)`, made once."""
    return Text(text)


def bounded(wanted: str, text: str) -> bool:
    """Whether `wanted` stands in `text` with no word character directly before or after it (only
    at ends of `wanted` that are word characters themselves). Gives up after many near misses."""
    at = text.find(wanted)
    for _ in range(_MOST_MISSES):
        if at < 0:
            return False
        end = at + len(wanted)
        before = at == 0 or not (_word(text[at - 1]) and _word(wanted[0]))
        after = end == len(text) or not (_word(text[end]) and _word(wanted[-1]))
        if before and after:
            return True
        step = at + 1
        while _word(wanted[0]) and step < len(text) and _word(text[step]):
            step += 1  # inside a word nothing begins
        at = text.find(wanted, step)
    return False


def number(text: str) -> Decimal | None:
    """The number that `text` writes: `1,200.00`, `1.200,00`, `1'200`, `$5`, `-3`; else `None`. A
    comma before three digits separates thousands, any other comma is a decimal one."""
    sign = -1 if text.lstrip()[:1] in ("-", "\u2212") else 1
    digits = re.sub(r"[^\d.,eE+-]", "", text).lstrip("+-")
    if "," in digits and "." in digits:
        decimal = max(digits.rfind(","), digits.rfind("."))
        head = digits[:decimal].replace(",", "").replace(".", "")
        digits = f"{head}.{digits[decimal + 1 :]}"
    elif re.fullmatch(r"\d{1,3}(,\d{3})+", digits):
        digits = digits.replace(",", "")
    else:
        digits = digits.replace(",", ".")
    try:
        value = sign * Decimal(digits)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _word(character: str) -> bool:
    """Letters, digits, underscore, and invisible characters, which do not end a word."""
    return character.isalnum() or character == "_" or unicodedata.category(character) == "Cf"


def _link(text: str) -> SplitResult | None:
    if not _URL.fullmatch(text) and not _DOTTED.fullmatch(text):
        return None
    if "\\" in text or any(ord(c) < 33 or unicodedata.category(c) == "Cf" for c in text):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        port = parts.port
    except ValueError:
        return None
    host = unicodedata.normalize("NFKC", parts.hostname or "").casefold().rstrip(".")
    scheme = parts.scheme.casefold()
    if port is not None and port != {"https": 443, "http": 80, "": 443}.get(scheme):
        host = f"{host}:{port}"
    if "@" in parts.netloc:
        host = f"{parts.netloc.rpartition('@')[0]}@{host}"
    return SplitResult(scheme, host, parts.path.rstrip("/") if parts.path == "/" else parts.path,
                       parts.query, "")  # fmt: skip


def _same_link(wanted: SplitResult, given: SplitResult) -> bool:
    """The same host, path and query; the scheme may be left out in either, or become https."""
    if (wanted.netloc, wanted.path, wanted.query) != (given.netloc, given.path, given.query):
        return False
    if not wanted.scheme or wanted.scheme == given.scheme:
        return True
    upgraded = wanted.scheme == "https" and given.scheme in ("", "http")
    return upgraded or (wanted.scheme == "http" and not given.scheme)
