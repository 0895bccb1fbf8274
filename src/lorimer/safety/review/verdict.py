"""One strict verdict of a model. Time-out, outage and nonsense are no verdict, never a yes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import anyio

from lorimer.core.decisions import CallFacts, Decision, Opinion, Verdict
from lorimer.core.errors import ModelError
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.models.protocol import (
    CallStarted,
    Model,
    Prefix,
    Request,
    Settings,
    Stop,
    StopReason,
    TextDelta,
)

_MOST_CHARACTERS = 4_000
_MOST_WORDS = 60_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the entry is never stored


class NoVerdict(Exception):
    """The model came to none; the text says why."""


async def ask(
    model: Model,
    system: str,
    body: Mapping[str, Any],
    words: Mapping[str, Verdict],
    *,
    by: str,
    timeout_s: float,
) -> Opinion:
    """Ask `model` about `body`; it must answer `{"verdict": one of words, "reason": text}`.

    Cancellation closes the request.
    """
    try:
        with anyio.fail_after(timeout_s):
            text = await _answer(model, system, body)
        verdict, reason = read_verdict(text, words)
    except TimeoutError:
        return Opinion(None, by, f"it did not answer within {timeout_s:g} s")
    except NoVerdict as fault:
        return Opinion(None, by, str(fault))
    except ModelError as fault:
        return Opinion(None, by, f"it could not be asked: {fault.message}")
    return Opinion(verdict, by, reason)


async def _answer(model: Model, system: str, body: Mapping[str, Any]) -> str:
    prefix = Prefix(system, (), model.render_prefix(system, ()))
    text = json.dumps(body, ensure_ascii=False, default=repr)
    entry = Entry(Kind.USER, (TextPart(text),), _EPOCH, 0)
    settings = Settings(max_output_tokens=2_000)
    request = Request(prefix, [entry], [model.render_entry(entry, [])], settings)
    pieces: list[str] = []
    length = 0
    async with aclosing(model.stream(request)) as events:  # type: ignore[type-var]
        async for event in events:
            match event:
                case TextDelta(piece):
                    pieces.append(piece)
                    length += len(piece)
                    if length > _MOST_CHARACTERS:
                        raise NoVerdict(f"it wrote more than {_MOST_CHARACTERS} characters")
                case CallStarted():
                    raise NoVerdict("it called a tool instead of answering")
                case Stop(reason, raw):
                    if reason is not StopReason.END:
                        raise NoVerdict(f"its answer was cut off ({raw or reason})")
                case _:
                    pass
    return "".join(pieces)


def read_verdict(text: str, words: Mapping[str, Verdict]) -> tuple[Verdict, str]:
    """The verdict in an answer that is exactly the JSON that was asked for.

    Raises:
        NoVerdict: for anything else; nothing is guessed.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        raise NoVerdict(f"it did not answer in JSON: {text.strip()[:80]!r}") from None
    if not isinstance(found, dict) or set(found) != {"verdict", "reason"}:
        raise NoVerdict(f"it did not answer with verdict and reason: {text.strip()[:80]!r}")
    verdict, reason = found["verdict"], found["reason"]
    if not isinstance(verdict, str) or verdict not in words:
        raise NoVerdict(f"its verdict is {verdict!r}, none of {', '.join(words)}")
    if not isinstance(reason, str) or not reason.strip():
        raise NoVerdict("it gave no reason")
    return words[verdict], reason.strip()


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice")
    return out


def call_body(facts: CallFacts, decision: Decision) -> dict[str, Any]:
    """What a judge is told of a call: its facts, and what the policy says. Nothing of it is the
    model's prose or a tool's output."""
    touches = facts.touches
    effects = {"level": str(facts.level)} if touches is None else touches.to_json()
    conversation = facts.conversation
    return {
        "tool": facts.tool,
        "arguments": dict(facts.arguments),
        "effects": effects,
        "cwd": facts.cwd,
        "policy_facts": {
            "verdict": str(decision.verdict),
            "rule": decision.rule,
            "reason": decision.reason,
            "declared_effects": str(facts.effects),
            "outbound": facts.traits.outbound,
            "sinks": {s: facts.arguments[s] for s in facts.traits.sinks if s in facts.arguments},
            "session_has_read_outside_content": bool(conversation.tainted_by),
            "session_has_read_private_data": bool(conversation.private_from),
        },
    }


def user_words(facts: CallFacts) -> list[str]:
    """The user's own messages, oldest first. Of very many only the newest, and that is said."""
    words = list(facts.conversation.user_words)
    kept: list[str] = []
    room = _MOST_WORDS
    for text in reversed(words):
        if kept and len(text) > room:
            kept.append(f"[{len(words) - len(kept)} earlier messages are left out here]")
            break
        room -= len(text)
        kept.append(text)
    return kept[::-1]
