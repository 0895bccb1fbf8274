"""From the recorded result of a call to the data in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lorimer.context.answers.records import NOTHING, Numeral, Source
from lorimer.core.calls import Outcome
from lorimer.core.messages import ResultPart, TextPart

_WRAPPED = re.compile(
    r"\A<external_content source=\"[^\"\n]*\" id=\"[^\"\n]*\">\n(.*)\n</external_content>\Z", re.S
)
_LEFT_OUT = re.compile(r"\[… \d+ of \d+ lines left out here")
_NOTES = "\n\nnotes:\n- "


class _Twice(ValueError):
    """A key stands twice in an object: which value is meant cannot be known."""


def source_of(result: ResultPart, acted: Mapping[str, Any] | None = None) -> Source:
    """The data in `result`; see `Source`. `acted`: the arguments, if the call changed something."""
    texts = []
    for part in result.content:
        if not isinstance(part, TextPart):
            continue
        if not part.source and part.text.startswith(_NOTES):
            continue
        found = _WRAPPED.match(part.text)
        texts.append(part.text if found is None else found[1])
    done = result.outcome is Outcome.DONE and not result.is_error
    text = "\n\n".join(texts)
    values = [value for one in texts if (value := read_json(one)) is not NOTHING]
    return Source(
        result.call_id,
        result.name,
        text,
        values[0] if len(values) == 1 else NOTHING,
        whole=_LEFT_OUT.search(text) is None,
        done=done,
        acted=acted if done else None,
    )


def read_json(text: str) -> Any:
    """The JSON object or list that `text` is, numbers as `Numeral`; else `NOTHING`."""
    if not text.lstrip().startswith(("{", "[")):
        return NOTHING
    try:
        return json.loads(
            text, parse_int=Numeral, parse_float=Numeral, parse_constant=Numeral,
            object_pairs_hook=_object,
        )  # fmt: skip
    except (ValueError, RecursionError):
        return NOTHING


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Twice
    return made


def leaves(value: Any, pointer: str = "") -> Iterable[tuple[str, str, Any, Mapping[str, Any]]]:
    """Each scalar in `value`: its JSON pointer, its key, itself, and the object it stands in."""
    stack: list[tuple[str, str, Any, Mapping[str, Any]]] = [(pointer, "", value, {})]
    while stack:
        where, key, one, around = stack.pop()
        if isinstance(one, Mapping):
            stack += [
                (f"{where}/{escaped(str(k))}", str(k), v, one)
                for k, v in reversed(list(one.items()))
            ]
        elif isinstance(one, list | tuple):
            stack += [(f"{where}/{n}", key, v, around) for n, v in reversed(list(enumerate(one)))]
        else:
            yield where, key, one, around


def lists(value: Any) -> Iterable[tuple[str, str, list[Any]]]:
    """Each list in `value`: its JSON pointer, its key, itself."""
    stack: list[tuple[str, str, Any]] = [("", "", value)]
    while stack:
        where, key, one = stack.pop()
        if isinstance(one, Mapping):
            stack += [(f"{where}/{escaped(str(k))}", str(k), v) for k, v in one.items()]
        elif isinstance(one, list):
            yield where, key, one
            stack += [(f"{where}/{n}", key, v) for n, v in enumerate(one)]


def escaped(key: str) -> str:
    """A key in a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
