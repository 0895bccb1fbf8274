"""Chat loops as people write them, each with one habit that costs the prompt cache."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

SYSTEM = (
    "You are the assistant of a small shop. Answer in one sentence, in the language of the "
    "question."
)
TOOLS = ("find_order", "get_price", "list_stock", "send_note", "track_parcel")
TOPICS = (
    "teapots", "blue lamps", "opening hours", "the parcel to Oslo", "wool socks", "gift cards",
    "the broken kettle", "invoices", "winter boots", "returns", "paint", "birthday candles",
)  # fmt: skip
Message = tuple[str, str]
Sdk = Callable[[str, Sequence[dict[str, Any]], Sequence[Message]], str]


def question(turn: int) -> str:
    """What the user asks in turn `turn`, from 0."""
    return f"What about {TOPICS[turn % len(TOPICS)]}?"


def schema(name: str, *, flipped: bool = False, more: str = "") -> dict[str, Any]:
    """A tool as name, description and parameters; `flipped` writes its keys the other way round."""
    properties = {
        "what": {"type": "string", "description": f"What to {name.replace('_', ' ')}."},
        "how_many": {"type": "integer"},
    }
    if flipped:
        properties = dict(reversed(properties.items()))
    return {
        "name": name,
        "description": f"Use it to {name.replace('_', ' ')}.{more}",
        "parameters": {"type": "object", "properties": properties, "required": ["what"]},
    }


@dataclass
class Sent:
    """What a loop hands to its SDK in one turn."""

    turn: int
    system: str
    tools: list[dict[str, Any]]
    messages: list[Message]


@dataclass
class Loop:
    """A conversation of `turns` questions with one habit."""

    habit: str
    seed: int = 7
    history: list[Message] = field(default_factory=list)
    now: datetime = datetime(2026, 3, 2, 9, 58, 41)
    last: Sent = field(init=False)

    def run(self, ask: Sdk, turns: int) -> None:
        """Ask through an SDK, turn by turn."""
        for turn in range(turns):
            sent = self.next(turn)
            self.answered(ask(sent.system, sent.tools, sent.messages))

    def next(self, turn: int) -> Sent:
        """The user asks; what goes out."""
        self.history.append(("user", question(turn)))
        self.last = self.sent(turn)
        return self.last

    def answered(self, text: str) -> None:
        """The model has answered."""
        self.history.append(("assistant", text))

    def sent(self, turn: int) -> Sent:
        """What goes out in turn `turn`, after the habit has had its way."""
        self.now += timedelta(seconds=37)
        sent = Sent(turn, SYSTEM, [schema(name) for name in TOOLS], list(self.history))
        getattr(self, f"_{self.habit}")(sent)
        return sent

    def _correct(self, sent: Sent) -> None:
        pass

    def _dynamic_system(self, sent: Sent) -> None:
        sent.system += f"\nThe current time is {self.now:%Y-%m-%d %H:%M:%S}."

    def _spoken_date(self, sent: Sent) -> None:
        day = self.now + timedelta(days=sent.turn)
        sent.system = f"Today is {day:%A, %d %B %Y}. {sent.system}"

    def _counter(self, sent: Sent) -> None:
        sent.system += f"\nThis is request {sent.turn + 1} of this conversation."

    def _random_id(self, sent: Sent) -> None:
        made = UUID(int=random.Random(self.seed * 1000 + sent.turn).getrandbits(128), version=4)
        sent.system += f"\nTrace: {made}"

    def _dynamic_profile(self, sent: Sent) -> None:
        mood = ("calm", "curious", "in a hurry", "annoyed")[sent.turn % 4]
        sent.system += (
            f"\n\n# User profile\n- name: Ada Lindqvist\n- mood: {mood}\n- last topic: "
            f"{TOPICS[sent.turn % len(TOPICS)]}\n- points: {120 + 5 * sent.turn}"
        )

    def _profile_message(self, sent: Sent) -> None:
        seen = ", ".join(TOPICS[: sent.turn + 1][-3:])
        text = f"(About the customer: name Ada, interests {seen}, loyalty level {sent.turn + 1})"
        role, first = sent.messages[0]
        sent.messages[0] = (role, f"{text}\n{first}")

    def _shuffled_tools(self, sent: Sent) -> None:
        random.Random(self.seed + sent.turn).shuffle(sent.tools)

    def _tool_added(self, sent: Sent) -> None:
        if sent.turn >= 2:
            sent.tools.append(schema("close_shop"))

    def _tool_removed(self, sent: Sent) -> None:
        if sent.turn >= 2:
            del sent.tools[1]

    def _tool_changed(self, sent: Sent) -> None:
        if sent.turn >= 2:
            sent.tools[2] = schema(TOOLS[2], more=" Only for goods in the front room.")

    def _sliding_window(self, sent: Sent) -> None:
        sent.messages = sent.messages[-5:]

    def _last_message_only(self, sent: Sent) -> None:
        sent.messages = sent.messages[-1:]

    def _summarised(self, sent: Sent) -> None:
        if sent.turn >= 3:
            told = f"Earlier the customer asked about {TOPICS[0]} and more."
            sent.messages = [("user", told), *sent.messages[4:]]
            if sent.messages[1][0] == "user":
                sent.messages.insert(1, ("assistant", "I see."))

    def _flattened_text(self, sent: Sent) -> None:
        lines = [f"{role.capitalize()}: {text}" for role, text in sent.messages]
        sent.messages = [("user", "\n".join(lines))]

    def _rewritten(self, sent: Sent) -> None:
        if sent.turn >= 2:
            sent.messages[1] = ("assistant", "[the answer was shortened]")

    def _key_order(self, sent: Sent) -> None:
        sent.tools = [schema(name, flipped=sent.turn % 2 == 1) for name in TOOLS]


def chatml(sent: Sent) -> bytes:
    """The prompt that a local server would render, in the commonest template."""
    tools = "\n".join(json.dumps({"type": "function", "function": tool}) for tool in sent.tools)
    system = f"{sent.system}\n\n# Tools\n<tools>\n{tools}\n</tools>"
    out = f"<|im_start|>system\n{system}<|im_end|>\n"
    for role, text in sent.messages:
        out += f"<|im_start|>{role}\n{text}<|im_end|>\n"
    return (out + "<|im_start|>assistant\n").encode()
