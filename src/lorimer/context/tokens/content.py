"""What stands in an entry or a prefix, as far as it makes tokens: text that was counted, and tokens
that are known otherwise (images, files, hidden reasoning)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lorimer.context.tokens.media import media_count
from lorimer.context.tokens.text_count import TextCount
from lorimer.core.canonical import canonical_json
from lorimer.core.messages import (
    CallPart,
    Entry,
    FilePart,
    ImagePart,
    Part,
    ReasoningPart,
    ResultPart,
    TextPart,
)
from lorimer.core.usage import Usage
from lorimer.models.protocol import Prefix

AROUND_MESSAGE: Final = 4
"""Tokens around a message: role and marks. Chat templates write 3 to 5
(https://developers.openai.com/cookbook/examples/how_to_count_tokens_with_tiktoken)."""
AROUND_CALL: Final = 8
"""Tokens around a call or a result: its marks and its id."""


@dataclass(frozen=True, slots=True)
class Content:
    """What text counts (by a `TextCount`; times the ratio these are tokens), and tokens that are
    none of text. `guesses`: what was guessed, in words."""

    text: int = 0
    other: int = 0
    guesses: tuple[str, ...] = ()

    def __add__(self, more: Content) -> Content:
        guesses = self.guesses + more.guesses if more.guesses else self.guesses
        return Content(self.text + more.text, self.other + more.other, guesses)

    def tokens(self, ratio: float) -> int:
        return round(self.text * ratio) + self.other


def content_of_prefix(prefix: Prefix, count: TextCount) -> Content:
    """System prompt and tools."""
    text = count.count(prefix.system) + AROUND_MESSAGE
    for tool in prefix.tools:
        record: dict[str, Any] = {
            "name": tool.name,
            "description": tool.description,
            "input": tool.input_schema,
        }
        if tool.examples:
            record["examples"] = list(tool.examples)
        text += count.count(canonical_json(record).decode("utf-8", "replace")) + AROUND_CALL
    return Content(text)


def content_of_entry(entry: Entry, model: str, reasoning: str, count: TextCount) -> Content:
    """One entry, as it is sent to the model called `model`, whose profile says `reasoning`."""
    return _parts(entry.parts, entry, model, reasoning, count) + Content(AROUND_MESSAGE)


def _parts(
    parts: Iterable[Part], entry: Entry, model: str, reasoning: str, count: TextCount
) -> Content:
    text, other = 0, 0
    guesses: tuple[str, ...] = ()
    hidden = False
    for part in parts:
        match part:
            case TextPart(words):
                text += count.count(words)
            case CallPart(call):
                text += count.count(call.name) + count.count(call.raw) + AROUND_CALL
            case ResultPart():
                inner = _parts(part.content, entry, model, reasoning, count)
                text += inner.text + AROUND_CALL
                other += inner.other
                guesses += inner.guesses
            case ReasoningPart():
                if goes_back(part, reasoning):
                    text += count.count(part.text)
                    hidden = hidden or not part.text
            case ImagePart() | FilePart():
                media = media_count(part, model)
                text += count.count(media.text) if media.text else 0
                other += media.tokens
                guesses += (media.guess,) if media.guess else ()
    if hidden:
        other += _told_usage(entry).reasoning_tokens
    return Content(text, other, guesses)


def goes_back(part: ReasoningPart, reasoning: str) -> bool:
    """Whether this reasoning is sent with later requests, by the word of the profile."""
    return reasoning != "drop" and part.opaque is not None


def resent_output(entry: Entry, usage: Usage, reasoning: str) -> int:
    """How many tokens of the answer that `entry` records stand in the next request: all, without
    the reasoning where that is not sent back."""
    kept = any(isinstance(p, ReasoningPart) and goes_back(p, reasoning) for p in entry.parts)
    return usage.output_tokens - (0 if kept else min(usage.reasoning_tokens, usage.output_tokens))


def _told_usage(entry: Entry) -> Usage:
    return usage_of(entry) or Usage()


def usage_of(entry: Entry) -> Usage | None:
    """What the provider reported for the request that `entry` came of; `None` when nothing."""
    record = entry.meta.get("usage")
    if not isinstance(record, dict):
        return None
    try:
        return Usage.from_json(record)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None
