"""Profiles: what differs between models that speak the same wire, as data.

The data is in `profiles.toml`, one table a family, one sub-table a model with its prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from lorimer.core.canonical import digest


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, with where and when that was read.

    `cached` is the price of reading from the cache, `cache_write` of writing to it; `None` where it
    is the plain input price. Where a provider has tiers (long prompts, peak hours) this is the tier
    that `note` names.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None
    cache_write: Decimal | None
    as_of: str
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """Message rules and field names of one model or model family.

    Attributes:
        wire: `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bridge`, `local`,
            `scripted`.
        alternate: user and assistant messages must alternate.
        id_pattern: regular expression that a call id must match on this wire.
        tool_choice: the forms of `tool_choice` that the server understands.
        parallel_switch: the server knows the switch for parallel calls.
        strict: whether tools are sent with `strict` where their schema allows it.
        reasoning: `drop` (never sent back), `turn` (needed until the next user message), `keep`
            (sent back always). A rendering is frozen, so `turn` is sent like `keep`: it is for
            servers that ignore older reasoning. A server that refuses it needs `drop`.
        status_role: the role that this model takes inside a conversation for words of its operator;
            the status bar is told in it. Empty where there is none: then it is the user's.
        reasoning_stand_in: what stands where the server demands reasoning beside a call and there
            is none, e.g. because another model made the call.
        bound_reasoning: reasoning that is sent back is valid only while every message before it is
            as it was when it was given.
        template: names the chat template that entries are rendered with (local models).
        usage_fields: our field -> expression over the provider's usage object, see
            `usage_fields.read_usage`.
        cache_ratios: `read` and `write`, where no price is known: what a cached token costs, of a
            plain one, with `as_of` and `source`; see `cache_prices`.
        context_window: tokens of a request and its answer together; `None` where it is not known.
        extra: body fields that are always sent.
        max_tokens_field: the name of the bound on what is written.
        keep_alive: a connection may be used for more than one request.
        default_model: what is used when only a key is given.
        sources: where the rules were read.
        context_editing: how the provider drops old tool results itself: `edit`, the kind of edit,
            and `beta`, the header that allows it; empty where it does not.
    """

    name: str
    wire: str
    base_url: str = ""
    key_env: str = ""
    alternate: bool = False
    id_pattern: str = r"^[a-zA-Z0-9_.:|-]{1,512}$"
    tool_choice: frozenset[str] = frozenset({"auto", "required", "none", "tool"})
    parallel_switch: bool = True
    strict: bool = False
    reasoning: str = "keep"
    status_role: str = ""
    reasoning_stand_in: str = ""
    bound_reasoning: bool = False
    template: str = ""
    usage_fields: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None
    cache_ratios: Mapping[str, str] = field(default_factory=dict)
    context_window: int | None = None
    max_output_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_field: str = "max_tokens"
    keep_alive: bool = True
    default_model: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    context_editing: Mapping[str, str] = field(default_factory=dict)

    @property
    def rendering(self) -> str:
        """Names the form in which entries are rendered: two profiles of one wire with other message
        rules may not use each other's frozen renderings."""
        rules: tuple[Any, ...] = (self.alternate, self.id_pattern, self.reasoning)
        if self.status_role:
            rules += (self.status_role,)
        if self.template:
            rules += (self.template,)
        if rules == (_PLAIN.alternate, _PLAIN.id_pattern, _PLAIN.reasoning):
            return self.wire
        return f"{self.wire}:{digest(repr(rules).encode())[:12]}"


_PLAIN = Profile(name="", wire="")


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files("lorimer.models").joinpath("profiles.toml").read_text("utf-8"))


def families() -> tuple[str, ...]:
    """The names of all families, e.g. `openai`, `anthropic`, `ollama`."""
    return tuple(_table())


def known_models(family: str) -> tuple[str, ...]:
    """The models of `family` that the data names; there may be more."""
    return tuple(_table()[family].get("models", {}))


@lru_cache(maxsize=256)
def profile_for(family: str, model: str = "") -> Profile:
    """The profile of `model` in `family`: the family's, with what is known of the model.

    A model is known by its own name or by the longest known name that it continues with a date or
    version suffix (`claude-opus-5-20260724`).

    Raises:
        KeyError: when there is no such family.
    """
    record = dict(_table()[family])
    models: dict[str, dict[str, Any]] = record.pop("models", {})
    matches = [name for name in models if model == name or _is_snapshot(model, name)]
    if matches:
        record |= models[max(matches, key=len)]
    price = record.pop("price", None)
    if "tool_choice" in record:
        record["tool_choice"] = frozenset(record["tool_choice"])
    return Profile(name=family, price=_price(price) if price else None, **record)


def _is_snapshot(model: str, name: str) -> bool:
    tail = model.removeprefix(name)
    return tail != model and tail[:1] in "-@" and tail[1:2].isdigit() and len(tail) > 6


def _price(record: Mapping[str, str]) -> Price:
    def amount(key: str) -> Decimal | None:
        return Decimal(record[key]) if key in record else None

    return Price(
        input=Decimal(record["input"]),
        output=Decimal(record["output"]),
        cached=amount("cached"),
        cache_write=amount("cache_write"),
        as_of=record["as_of"],
        source=record["source"],
        note=record.get("note", ""),
    )
