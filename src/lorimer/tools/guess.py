"""What the arguments of a tool probably are, by their names, where its author did not say.

A tool that sends to `recipient` and declares no `sinks` would otherwise count as one that changes
only the user's own things. A guess can only make a call be asked about, never spare a question; an
author who declares `()` switches it off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SINKS = _set(
    "to cc bcc recipient receiver addressee payee beneficiary destination address email mailbox url"
    " uri link webhook endpoint host hostname domain server account iban bic swift wallet amount"
    " channel room chat phone mobile user username handle member participant attendee invitee guest"
    " repo repository remote"
)
"""Last words of arguments that decide where something goes, or to whom, or how much."""
_QUALIFIERS = _set("id name address number no handle list cents eur usd")
"""Words that may follow one of those: `account_id`, `phone_number`."""
_PATHS = _set("path file filename filepath folder foldername dir dirname directory pathname")
_PATH_QUALIFIERS = frozenset(("name", "path"))
_OUTSIDE = _set(
    "web http url internet browse browser crawl scrape mail email inbox imap message sms chat slack"
    " issue ticket comment review feed rss tweet post forum wiki news page site website"
)
_BRINGS = _set("fetch search browse crawl scrape download")
_HERE = _set("file code folder directory path symbol memory note config setting log")
"""Words that say that what is read or searched lies here."""
_PATH_FORMATS = frozenset(("path", "file-path", "directory-path"))


def guess_sinks(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of `schema` (of an object) that decide where something goes."""
    return tuple(
        name
        for name, one in _properties(schema)
        if _names(name, _SINKS, _QUALIFIERS) and _types(one) != {"boolean"}
    )


def guess_paths(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of `schema` (of an object) that are paths: texts, or lists of texts, of such a
    name, and whatever has the format of a path."""
    return tuple(
        name
        for name, one in _properties(schema)
        if _is_path(one) or (_names(name, _PATHS, _PATH_QUALIFIERS) and _is_text(one))
    )


def brings_outside_content(tool: str, reads: bool) -> bool:
    """Whether a tool of this name probably returns what strangers wrote: `read_mail`, `fetch`."""
    known = _OUTSIDE | _BRINGS | _HERE
    words = [_singular(word.lower(), known) for word in _WORDS.findall(tool)]
    if set(words) & _HERE:
        return False
    return bool(set(words) & _BRINGS) or (reads and bool(set(words) & _OUTSIDE))


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = schema.get("properties", {})
    for name, one in found.items() if isinstance(found, Mapping) else ():
        yield name, one if isinstance(one, Mapping) else {}


def _names(argument: str, wanted: frozenset[str], qualifiers: frozenset[str]) -> bool:
    words = [_singular(word.lower(), wanted | qualifiers) for word in _WORDS.findall(argument)]
    while len(words) > 1 and words[-1] in qualifiers and words[-1] not in wanted:
        words.pop()
    if len(words) > 1 and words[-1] in qualifiers and words[-2] in wanted:
        return True
    return bool(words) and words[-1] in wanted


def _singular(word: str, known: frozenset[str]) -> str:
    for end, other in (("", ""), ("s", ""), ("es", ""), ("ies", "y")):
        if word.endswith(end) and (one := word[: len(word) - len(end)] + other) in known:
            return one
    return word


def _forms(one: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`one` and its alternatives (`str | None` is `anyOf`)."""
    yield one
    for key in ("anyOf", "oneOf"):
        for form in one.get(key, ()):
            if isinstance(form, Mapping):
                yield form


def _types(one: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for form in _forms(one):
        kind = form.get("type")
        found.update((kind,) if isinstance(kind, str) else kind or ())
    return found - {"null"}


def _is_text(one: Mapping[str, Any]) -> bool:
    types = _types(one)
    if "string" in types:
        return True
    return "array" in types and any(
        "string" in _types(form["items"])
        for form in _forms(one)
        if isinstance(form.get("items"), Mapping)
    )


def _is_path(one: Mapping[str, Any]) -> bool:
    return any(
        form.get("format") in _PATH_FORMATS
        or (isinstance(form.get("items"), Mapping) and form["items"].get("format") in _PATH_FORMATS)
        for form in _forms(one)
    )
