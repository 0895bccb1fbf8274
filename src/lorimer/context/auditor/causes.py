"""From the first segment that differs to the reason why.

Only read when there is a difference, so it may take its time. What is known of an old segment may
be its hash alone (a chain that was loaded from the store): then what needs its text is not guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.context.auditor.finding import Cause
from lorimer.context.auditor.parts import MESSAGE, SYSTEM, TOOL, Segment, Split
from lorimer.context.auditor.texts import (
    Words,
    bare,
    changed_words,
    common_start,
    excerpts,
    is_flattened,
)

_SPOKEN = ("system", "developer", "user")
"""Roles of messages that a harness writes: a clock or a counter may stand in them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """See `Finding`, whose fields these become."""

    cause: Cause
    segment: str
    place: int
    shared_bytes: int
    was: str = ""
    now: str = ""
    detail: str = ""


def first_difference(
    old: Split, new: Split, redact: Callable[[str], str] | None = None
) -> Difference | None:
    """The first segment of `old` that `new` does not repeat, in the order in which the provider
    reads them; `None` when `new` begins with all of `old`, or `old` with all of `new`. `redact`
    takes secrets out of what is shown."""
    place = shared = 0
    for (kind, before), (_, after) in zip(old.groups(), new.groups(), strict=True):
        same = 0
        for one, other in zip(before, after, strict=False):
            if not _same(old, one, new, other):
                break
            same += 1
        shared += sum(segment.size for segment in after[:same])
        if kind == MESSAGE:
            if same == min(len(before), len(after)):
                return None
        elif same == len(before) == len(after):
            place += same
            continue
        find = {SYSTEM: _system, TOOL: _tools, MESSAGE: _messages}[kind]
        found = find(_Groups(old, before, new, after, same, redact))
        inside = _shared_inside(old, before, new, after, same)
        return Difference(
            found.cause, found.segment, place + same, shared + inside,
            found.was, found.now, found.detail,
        )  # fmt: skip
    return None


@dataclass(frozen=True, slots=True)
class _Groups:
    """The segments of one kind, before and after; the first `same` of them agree."""

    old: Split
    before: Sequence[Segment]
    new: Split
    after: Sequence[Segment]
    same: int
    redact: Callable[[str], str] | None

    def shown(self, was: bytes, now: bytes) -> tuple[str, str]:
        """Excerpts of two segments. Secrets are taken out first: of a part of one nobody could
        tell any more what it is."""
        return excerpts(self._clean(was), self._clean(now))

    def words(self, was: str, now: str, said: Words | None) -> tuple[Cause | None, str]:
        """See `changed_words`."""
        cause, detail = changed_words(was, now, said)
        if self.redact is not None:
            detail = changed_words(self.redact(was), self.redact(now), said)[1]
        return cause, detail

    def _clean(self, data: bytes) -> bytes:
        if self.redact is None or not data:
            return data
        return self.redact(data.decode("utf-8", "replace")).encode("utf-8", "replace")

    def pair(self) -> tuple[bytes, bytes]:
        """The bytes of the first segments that differ."""
        was = self.old.raw(self.before[self.same]) if self.same < len(self.before) else b""
        now = self.new.raw(self.after[self.same]) if self.same < len(self.after) else b""
        return was, now


@dataclass(frozen=True, slots=True)
class _Found:
    cause: Cause
    segment: str
    was: str = ""
    now: str = ""
    detail: str = ""


def _shared_inside(
    old: Split, before: Sequence[Segment], new: Split, after: Sequence[Segment], at: int
) -> int:
    """Bytes that the first segments that differ have in common at their start."""
    if at >= len(before) or at >= len(after):
        return 0
    return common_start(old.raw(before[at]), new.raw(after[at]))


# --- when two segments are one -----------------------------------------------------------------


def _same(old: Split, one: Segment, new: Split, other: Segment) -> bool:
    if one.digest == other.digest:
        return True
    was, now = old.raw(one), new.raw(other)
    if new.wire == "local":
        # An open-ended prompt without marks of its own is one growing segment.
        return one.label == other.label == "prompt" and bool(was) and now.startswith(was)
    if b"cache_control" not in was and b"cache_control" not in now:
        return False
    a, b = _parsed(was), _parsed(now)
    return a is not None and _unmarked(a) == _unmarked(b)


def _key(split: Split, segment: Segment) -> bytes:
    """What is equal for messages that are one and the same, wherever the cache marks stand."""
    if split.wire == "anthropic" and (data := split.raw(segment)):
        return repr(_unmarked(_parsed(data))).encode("utf-8", "surrogatepass")
    return segment.digest


def _unmarked(value: Any) -> Any:
    """Without cache marks: where they stand is no part of the prompt. One text and a list of one
    text block are the same message."""
    if isinstance(value, dict):
        return [
            (key, _blocks(inner) if key == "content" else _unmarked(inner))
            for key, inner in value.items()
            if key != "cache_control"
        ]
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value


def _blocks(content: Any) -> Any:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    marked = _unmarked(content)
    if isinstance(marked, list):  # the order of the keys of a block varies with the mark
        return [sorted(b, key=repr) if isinstance(b, list) else b for b in marked]
    return marked


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None


def _form_only(was: bytes, now: bytes) -> Cause:
    """Whether the two say the same in another form: `KEY_ORDER`, `WHITESPACE` or `NONE`."""
    a, b = _parsed(was), _parsed(now)
    if a is None or b is None:
        plain = was.split() == now.split() and bool(was.split())
        return Cause.WHITESPACE if plain else Cause.NONE
    if repr(_opened(a)) == repr(_opened(b)):
        return Cause.WHITESPACE
    if _opened(a) == _opened(b):
        return Cause.KEY_ORDER
    return Cause.NONE


def _opened(value: Any) -> Any:
    """`value` with texts that are JSON themselves (arguments of a call) read as well."""
    if isinstance(value, dict):
        return {key: _opened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if isinstance(value, str) and value[:1] in "{[" and value[-1:] in "}]":
        inner = _parsed(value.encode("utf-8", "surrogatepass"))
        return value if inner is None else _opened(inner)
    return value


# --- tools ---------------------------------------------------------------------------------------


def _tools(groups: _Groups) -> _Found:
    before, after = groups.before, groups.after
    was, now = groups.pair()
    old_names, new_names = [s.label for s in before], [s.label for s in after]
    shown = groups.shown(was, now)
    gone = [name for name in old_names if name not in new_names]
    come = [name for name in new_names if name not in old_names]
    first = (after if groups.same < len(after) else before)[groups.same].label
    if gone or come:
        cause = Cause.TOOL_REMOVED if gone else Cause.TOOL_ADDED
        said = [*(f"-{name}" for name in gone), *(f"+{name}" for name in come)]
        return _Found(cause, f"tool {(gone or come)[0]}", *shown, ", ".join(said[:8]))
    if sorted(s.digest for s in before) == sorted(s.digest for s in after):
        detail = f"{', '.join(old_names[:6])} became {', '.join(new_names[:6])}"
        return _Found(Cause.TOOLS_REORDERED, f"tool {first}", *shown, detail)
    kept = {s.label: s for s in before}
    for segment in after:
        other = kept.get(segment.label)
        if other is not None and other.digest != segment.digest:
            one, two = groups.old.raw(other), groups.new.raw(segment)
            form = _form_only(one, two) if one else Cause.NONE
            cause = Cause.TOOL_CHANGED if form is Cause.NONE else form
            return _Found(cause, f"tool {segment.label}", *groups.shown(one, two))
    return _Found(Cause.TOOL_CHANGED, f"tool {first}", *shown, "the same name stands twice")


# --- system --------------------------------------------------------------------------------------


def _system(groups: _Groups) -> _Found:
    was, now = groups.pair()
    count = max(len(groups.before), len(groups.after))
    name = "system" if count == 1 else f"system part {groups.same}"
    shown = groups.shown(was, now)
    if not was or not now:
        if groups.same < len(groups.before) and groups.same < len(groups.after):
            return _Found(Cause.SYSTEM_CHANGED, name, *shown, "seen by its hash")
        return _Found(Cause.SYSTEM_CHANGED, name, *shown, "a part came or went")
    form = _form_only(was, now)
    if form is not Cause.NONE:
        return _Found(form, name, *shown)
    said = Words(_said_by_user(groups.new))
    cause, detail = groups.words(_text(groups.old, was), _text(groups.new, now), said)
    return _Found(cause or Cause.SYSTEM_CHANGED, name, *shown, detail)


def _said_by_user(split: Split) -> Iterator[str]:
    for segment in split.messages:
        if segment.label not in ("assistant", "model"):
            yield _text(split, split.raw(segment))


# --- messages ------------------------------------------------------------------------------------


def _messages(groups: _Groups) -> _Found:
    before, after, at = groups.before, groups.after, groups.same
    was, now = groups.pair()
    name = f"message {at} ({after[at].label})"
    shown = groups.shown(was, now)
    form = _form_only(was, now) if was else Cause.NONE
    if form is not Cause.NONE:
        return _Found(form, name, *shown)
    old_keys = [_key(groups.old, s) for s in before]
    new_keys = [_key(groups.new, s) for s in after]
    moved = _moved(old_keys, new_keys, at)
    if moved is not None:
        return _Found(moved[0], name, *shown, moved[1])
    if not was:
        return _Found(Cause.MESSAGE_REWRITTEN, name, *shown, "seen by its hash")
    old_text, new_text = _text(groups.old, was), _text(groups.new, now)
    texts = [_text(groups.old, groups.old.raw(s)) for s in before[at:]]
    if is_flattened(texts, new_text):
        return _Found(Cause.FLATTENED, name, *shown, "several turns stand in one message")
    cause, detail = groups.words(old_text, new_text, None)
    if cause is not None and after[at].label in _SPOKEN and new_text.strip(" .,0123456789"):
        return _Found(cause, name, *shown, detail)
    grown = old_text.strip() in new_text or new_text.strip() in old_text
    kept = set(old_keys).intersection(new_keys[at:])
    if len(after) <= len(before) and not kept and not grown:
        gone = len(before) - at
        return _Found(
            Cause.HISTORY_TRIMMED if at == 0 else Cause.MESSAGE_REWRITTEN, name, *shown,
            f"none of the {gone} messages from here on is in the request",
        )  # fmt: skip
    return _Found(Cause.MESSAGE_REWRITTEN, name, *shown)


def _moved(before: Sequence[bytes], after: Sequence[bytes], at: int) -> tuple[Cause, str] | None:
    """What happened when the end of the old history stands in the new one, further to the front or
    to the back."""
    last = before[-1]
    for found in range(len(after) - 1, at - 1, -1):
        if after[found] != last:
            continue
        length = 0
        while (
            length < len(before) - at
            and found - length >= at
            and before[-1 - length] == after[found - length]
        ):
            length += 1
        gone, come = len(before) - length - at, found - length + 1 - at
        where = "from the front" if at == 0 else f"from message {at} on"
        if gone > come:
            what = f"{gone} messages {where} are gone"
            return Cause.HISTORY_TRIMMED, what + (f", {come} stand for them" if come else "")
        if gone == 0 and come:
            return Cause.MESSAGE_INSERTED, f"{come} messages stand before what was there"
        return None
    return None


def _text(split: Split, data: bytes) -> str:
    """What a segment says, without its form."""
    if split.wire == "local":
        return bare(data.decode("utf-8", "replace"))
    value = _parsed(data)
    if value is None:
        return data.decode("utf-8", "replace")
    return "\n".join(_leaves(value))


def _leaves(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    elif isinstance(value, str) and key not in ("role", "type", "kind", "cache_control"):
        yield value
