"""The system prompt from parts: whose each is, and how seldom it changes.

Parts are ordered by stability, then as they were given. What is the same everywhere stands first,
so that a provider's prompt cache is shared as far as it can be; a cache boundary stands after the
last `global` part and after the last `deployment` part.

One part alone is sent as its text. Of several, each stands in a tag of its name, with its owner,
and the Markdown of its text inside; no text can close a tag of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lorimer.core.canonical import digest
from lorimer.core.errors import ConfigError

if TYPE_CHECKING:
    from lorimer.core.specs import ToolSpec
    from lorimer.models.protocol import Model

KEY = "prompt"
"""Where the record of the parts stands in the meta of a session, and of a `REBASE` entry."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_OWNER = re.compile(r"[^\s<>\"&](?:[^<>\"&\n]{0,78}[^\s<>\"&])?")


class Stability(StrEnum):
    """How seldom a part changes: the same for everybody (`global`), for everything that runs in
    this place (`deployment`), or for one session (`session`)."""

    GLOBAL = "global"
    DEPLOYMENT = "deployment"
    SESSION = "session"


ORDER: Mapping[Stability, int] = {one: place for place, one in enumerate(Stability)}


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of the system prompt.

    Attributes:
        name: a tag name: a lowercase letter, then up to 39 of lowercase letters, digits, `-`, `_`.
        owner: who may change it, e.g. `lorimer`, `app`, `project`.
        text: Markdown.

    Raises:
        ConfigError: when the name or the owner cannot stand in a tag, or `stability` is none.
    """

    name: str
    owner: str
    stability: Stability
    text: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} cannot name a part of the prompt.",
                next="Use a lowercase letter, then up to 39 of a-z, 0-9, - and _.",
            )
        if not _OWNER.fullmatch(self.owner):
            raise ConfigError(
                f"{self.owner!r} cannot be the owner of the prompt part {self.name}.",
                next='Use 1 to 80 characters without < > " & and line breaks.',
            )
        try:
            object.__setattr__(self, "stability", Stability(self.stability))
        except ValueError:
            raise ConfigError(
                f"{self.stability!r} is no stability (prompt part {self.name}).",
                next=f"Use one of: {', '.join(Stability)}.",
            ) from None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a part stands: `start` and `end` are characters of the system text. `sha256` is that of
    its rendering (UTF-8)."""

    name: str
    owner: str
    stability: Stability
    start: int
    end: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "owner": self.owner, "stability": str(self.stability),
            "start": self.start, "end": self.end, "sha256": self.sha256,
        }  # fmt: skip

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Placed:
        return Placed(
            str(record["name"]), str(record["owner"]), Stability(record["stability"]),
            int(record["start"]), int(record["end"]), str(record["sha256"]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt and the places of its parts.

    Attributes:
        boundaries: where a cache may end, in characters of `text`, rising; the last one is its end
            where the last part is not of one session.
    """

    text: str
    placed: tuple[Placed, ...]
    boundaries: tuple[int, ...]

    def rendered(self, part: Placed) -> str:
        """A part as it stands in the text."""
        return self.text[part.start : part.end]

    def to_json(self) -> dict[str, Any]:
        """What is kept beside the text (`from_json` reads it back)."""
        return {
            "parts": [part.to_json() for part in self.placed],
            "boundaries": list(self.boundaries),
        }

    @staticmethod
    def from_json(text: str, record: Mapping[str, Any] | None) -> Prompt:
        """The prompt `text` with its stored record. Without one (a session that was stored before
        there were parts) it is one part of an unknown owner, with no boundary inside.

        Raises:
            ConfigError: when the record is not one of this text.
        """
        if not record:
            return Prompt(text, (_placed("system", "unknown", Stability.SESSION, 0, text),), ())
        try:
            placed = tuple(Placed.from_json(one) for one in record["parts"])
            boundaries = tuple(int(one) for one in record["boundaries"])
        except (KeyError, TypeError, ValueError) as fault:
            raise ConfigError(f"The record of the prompt's parts is damaged: {fault!r}.") from fault
        prompt = Prompt(text, placed, boundaries)
        for part in placed:
            if _sha256(prompt.rendered(part)) != part.sha256:
                raise ConfigError(
                    f"The prompt part {part.name} is not the text that was recorded.",
                    next="Check the store: lorimer audit verify.",
                )
        return prompt


def build(parts: Iterable[PromptPart]) -> Prompt:
    """The system prompt of `parts`; those without text are left out.

    Raises:
        ConfigError: when two parts have one name.
    """
    given = [part for part in parts if part.text.strip()]
    names = [part.name for part in given]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ConfigError(
            f"Two parts of the prompt are called {double}.", next="Give one of them another name."
        )
    ordered = sorted(given, key=lambda part: ORDER[part.stability])
    alone = len(ordered) == 1
    closing = _closing(names)
    text = ""
    placed: list[Placed] = []
    for part in ordered:
        piece = part.text if alone else _tagged(part, closing)
        if placed:
            text += "\n\n"
        placed.append(_placed(part.name, part.owner, part.stability, len(text), piece))
        text += piece
    return Prompt(text, tuple(placed), _boundaries(placed, len(text)))


def text_prompt(text: str, *, name: str = "system", owner: str = "app") -> PromptPart:
    """A whole system prompt that somebody wrote as one text."""
    return PromptPart(name, owner, Stability.DEPLOYMENT, text)


def stored(system: str, meta: Mapping[str, Any]) -> Prompt:
    """The prompt of a session or of a `REBASE` entry, from its `meta`."""
    return Prompt.from_json(system, meta.get(KEY))


def boundaries_of(meta: Mapping[str, Any]) -> tuple[int, ...]:
    """The cache boundaries that are stored in `meta`; none for what was stored without parts."""
    record = meta.get(KEY)
    return tuple(int(one) for one in record["boundaries"]) if isinstance(record, Mapping) else ()


def render(
    model: Model, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
) -> bytes:
    """The prefix as `model` wants it. A boundary at the very end says nothing new."""
    inner = tuple(at for at in boundaries if 0 < at < len(system))
    if not inner:
        return model.render_prefix(system, tools)
    return model.render_prefix(system, tools, boundaries)


def _tagged(part: PromptPart, closing: re.Pattern[str]) -> str:
    text = closing.sub("&lt;", part.text.strip("\n"))
    return f'<{part.name} owner="{part.owner}">\n{text}\n</{part.name}>'


def _closing(names: Sequence[str]) -> re.Pattern[str]:
    """The `<` of everything that would close one of these tags."""
    either = "|".join(re.escape(name) for name in names)
    return re.compile(rf"<(?=\s*/\s*(?:{either})(?![a-z0-9_-]))", re.IGNORECASE)


def _boundaries(placed: Sequence[Placed], end: int) -> tuple[int, ...]:
    """Behind the last part of each stability but `session`: where the next begins, or the end."""
    found = []
    for stability in (Stability.GLOBAL, Stability.DEPLOYMENT):
        last = max((at for at, p in enumerate(placed) if p.stability is stability), default=None)
        if last is not None:
            found.append(placed[last + 1].start if last + 1 < len(placed) else end)
    return tuple(found)


def _placed(name: str, owner: str, stability: Stability, start: int, piece: str) -> Placed:
    return Placed(name, owner, stability, start, start + len(piece), _sha256(piece))


def _sha256(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))
