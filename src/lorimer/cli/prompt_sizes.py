"""The sizes of a prefix: bytes and tokens of each part and tool."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lorimer.cli.prompt_sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PartRow:
    name: str
    owner: str
    stability: str
    bytes: int
    tokens: int
    sha256: str
    boundary_after: bool


@dataclass(frozen=True, slots=True)
class ToolRow:
    name: str
    bytes: int
    tokens: int


def counter(model: str) -> tuple[Callable[[str], int], str]:
    """Counts the tokens of a text for `model`; and by what."""
    from lorimer.context.tokens import Ratios, vocabulary

    count = vocabulary()
    ratio = Ratios().of(model, count.basis).value
    how = "o200k" if count.basis == "o200k" else "characters"
    words = how if ratio == 1 else f"{how} × {ratio:.2f} for this model family"
    return (lambda text: round(count.count(text) * ratio)), words


def rows_of(source: Source) -> tuple[list[PartRow], list[ToolRow], str]:
    """The rows of a prefix, and by what its tokens were counted."""
    from lorimer.core.canonical import canonical_json

    count, how = counter(source.model)
    prompt = source.prompt
    parts = []
    for place, part in enumerate(prompt.placed):
        text = prompt.rendered(part)
        last = place + 1 == len(prompt.placed)
        end = len(prompt.text) if last else prompt.placed[place + 1].start
        parts.append(
            PartRow(
                part.name, part.owner, str(part.stability), _bytes(text), count(text), part.sha256,
                end in prompt.boundaries,
            )
        )  # fmt: skip
    tools = []
    for tool in source.tools:
        data = canonical_json(tool)
        tools.append(ToolRow(str(tool["name"]), len(data), count(data.decode())))
    return parts, tools, how


def report_of(source: Source) -> dict[str, Any]:
    """All of it for programs."""
    from lorimer.core.canonical import digest

    parts, tools, how = rows_of(source)
    return {
        "what": source.what,
        "model": source.model,
        "wire": source.wire,
        "parts": [asdict(row) for row in parts],
        "boundaries": list(source.prompt.boundaries),
        "breakpoints": source.rendered.count(b'"cache_control":{"type":"ephemeral"}'),
        "tools": [asdict(row) for row in tools],
        "tokens": sum(r.tokens for r in parts) + sum(r.tokens for r in tools),
        "bytes": len(source.rendered) or None,
        "sha256": digest(source.rendered) if source.rendered else None,
        "counted_by": how,
        "stored": source.stored,
        "notices": list(source.notices),
    }


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
