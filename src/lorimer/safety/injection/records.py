"""Records in trusted data, and which of them the user has named.

A list of everything that exists does not say what the user wants; the record that the user's words
name does. "The participants of 'Introductory meeting'" are those of the one record with that title.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from lorimer.safety.injection.forms import Text, plain

_STATES = frozenset({"status", "state", "type", "kind", "role", "permission", "currency", "unit"})
_ID = re.compile(r"_?(?:.*_)?id_?|uid|uuid|key", re.I)
_ENDING = re.compile(r"\.[a-z0-9]{1,5}$")
_MOST_RECORDS = 20_000
_SHORTEST_NAME = 4


@dataclass(frozen=True, slots=True)
class Record:
    """One thing: `key` tells it from others; `values` are its fields as text, `names` those of them
    that people would call it by."""

    key: str
    values: tuple[str, ...]
    names: tuple[str, ...]


class _Index:
    """The records of one text, by the values they hold and by the names they go by."""

    def __init__(self, text: str) -> None:
        self.holders: dict[str, list[Record]] = {}
        self.strict: dict[str, set[str]] = {}
        self._loose: dict[str, set[str]] | None = None
        self.records = records(text)
        for record in self.records:
            for value in {plain(value) for value in record.values}:
                self.holders.setdefault(value, []).append(record)
        self._enter(self.strict, False)

    def called(self, form: str, loosely: bool) -> set[str]:
        """The keys of the records that go by `form`."""
        if not loosely:
            return self.strict.get(form, set())
        if self._loose is None:
            self._loose = {}
            self._enter(self._loose, True)
        return self._loose.get(form, set())

    def _enter(self, into: dict[str, set[str]], loosely: bool) -> None:
        for record in self.records:
            for name in record.names:
                for form in _forms(name, loosely):
                    into.setdefault(form, set()).add(record.key)


_index = lru_cache(maxsize=512)(_Index)


def named(
    value: str, user: Sequence[Text], trusted: Sequence[str], *, loosely: bool = False
) -> str | None:
    """The name by which the user's words pick the one record that holds `value`; `None` when there
    is no such record, or several go by that name.

    Args:
        loosely: two or more words of a longer name, side by side, are enough.
    """
    every = [_index(text) for text in trusted]
    wanted = plain(value)
    for index in every:
        for record in index.holders.get(wanted, ()):
            for name in record.names:
                if plain(name) != wanted and _picked(name, record, every, user, loosely):
                    return name
    return None


def _picked(
    name: str, record: Record, every: Sequence[_Index], user: Sequence[Text], loosely: bool
) -> bool:
    """Whether the user's words call `record` by `name`, and nothing else goes by that."""
    for form in _forms(name, loosely):
        if any(text.says(form) for text in user):
            called = set().union(*(index.called(form, loosely) for index in every))
            if called == {record.key}:
                return True
    return False


@lru_cache(maxsize=4096)
def _forms(name: str, loosely: bool) -> tuple[str, ...]:
    whole = plain(name)
    forms = [whole]
    stem = _ENDING.sub("", whole)
    if stem != whole:
        forms.append(stem)
    words = re.findall(r"[^\W_]+", stem)
    if len(words) > 1:
        forms.append(" ".join(words))
    if loosely and len(words) > 2:
        least = (len(words) + 1) // 2
        for size in range(len(words) - 1, max(least, 2) - 1, -1):
            forms += [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
    return tuple(f for f in dict.fromkeys(forms) if len(f) >= _SHORTEST_NAME)


def records(text: str) -> tuple[Record, ...]:
    """The records of a text: the objects of JSON; else the items of a list or the paragraphs."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return tuple(_of_block(block) for block in islice(_blocks(text), _MOST_RECORDS))
    try:
        return tuple(islice(_of_json(value), _MOST_RECORDS))
    except RecursionError:
        return ()


def _of_json(value: Any) -> Iterator[Record]:
    if isinstance(value, list):
        for item in value:
            yield from _of_json(item)
    elif isinstance(value, dict):
        yield from _of_object(value)


def _of_object(fields: dict[str, Any]) -> Iterator[Record]:
    values, names, ids = [], [], []
    for key, value in fields.items():
        scalars = [v for v in (value if isinstance(value, list) else [value]) if _scalar(v)]
        texts = [str(v) for v in scalars]
        values += texts
        if _ID.fullmatch(key):
            ids += texts
        elif isinstance(value, str) and key.casefold() not in _STATES and _nameable(value):
            names.append(value)
        if not key.isidentifier() or not key.islower():  # a name used as a key
            yield Record(key, (key, *texts), (key,) if _nameable(key) else ())
        if isinstance(value, dict | list):
            yield from _of_json(value)
    what: Any = [ids, sorted(fields)] if ids else fields
    own = json.dumps(what, sort_keys=True, default=str)
    yield Record(own, tuple(values), tuple(names))


def _blocks(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text):
        items = re.split(r"(?m)^(?=- )", block)
        yield from (item for item in items if item.strip())


def _of_block(block: str) -> Record:
    lines = [line.strip(" -\t") for line in block.splitlines() if line.strip(" -\t")]
    values = [part.strip(" '\"") for line in lines for part in (line, line.partition(":")[2])]
    values = [value for value in values if value]
    return Record(block, tuple(values), tuple(v for v in values if _nameable(v)))


def _scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _nameable(value: str) -> bool:
    return len(value) <= 200 and any(c.isalpha() for c in value) and "\n" not in value
