"""`recall`: a page of an earlier result that was left out of the context."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lorimer.context.compaction.pages import pages_of
from lorimer.core.calls import Effects
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.trust import Trust
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext, ToolError
from lorimer.tools.tool_context import RecordedCall

_ORDER = (Trust.TRUSTED, Trust.USER_DATA, Trust.EXTERNAL)
_SHORT = 1_000
"""Characters up to which a result stands in a list of calls."""


@tool(
    description=Description(
        "Read a page of an earlier tool result of this conversation that was left out.",
        use_when="a summary names the call and the page that holds what you need.",
        not_when="the result may have changed since: call its tool again.",
        cost="one page, up to 7,000 characters.",
        returns="the page as it was then.",
    ),
    examples=({"call": "call_01k8", "page": 2},),
    category=Category.PERCEPTION,
    effects=Effects.READ,
    timeout_s=60,
    trust=Trust.USER_DATA,
    group="context",
)
def recall(
    call: Annotated[
        str,
        Field(description="Id of the call, e.g. 'call_01k8', or of several: 'FIRST..LAST'"),
    ],
    page: Annotated[int, Field(ge=1, description="Page, e.g. 2")] = 1,
    arguments: Annotated[
        bool, Field(description="Of its arguments instead of its result: true, false")
    ] = False,
    *,
    context: ToolContext,
) -> list[TextPart | ImagePart]:
    first, between, last = call.partition("..")
    if between:
        return _several(first, last, page, context)
    found = None if context.recorded is None else context.recorded(call)
    if found is None:
        raise ToolError(
            f"This conversation has no ended call {call!r}.",
            next="Take the id from a summary, as it stands there in brackets.",
            code="not_found",
        )
    if arguments:
        text, trust, source = found.raw, Trust.USER_DATA, "your own arguments"
    else:
        text, trust, source = _text(found)
    about, chosen = _page(f"{found.tool} ({call})", call, text, page)
    images = [p for p in found.content if isinstance(p, ImagePart)] if page == 1 else []
    return [
        TextPart(about, source=found.tool),
        TextPart(chosen, trust, source or found.tool),
        *([] if arguments else images),
    ]


def _page(what: str, call: str, text: str, page: int) -> tuple[str, str]:
    """What is said of a page, and the page."""
    pages = pages_of(text)
    if page > len(pages):
        raise ToolError(
            f"{call!r} has {len(pages)} page(s); there is no page {page}.",
            next=f"Use a page from 1 to {len(pages)}.",
            code="past_end",
        )
    chosen = pages[page - 1]
    about = (
        f"{what}, page {page} of {len(pages)}: characters {chosen.start + 1:,} to "
        f"{chosen.end:,} of {len(text):,}\n"
    )
    return about, chosen.of(text)


def _several(first: str, last: str, page: int, context: ToolContext) -> list[TextPart | ImagePart]:
    """A page of the list of all calls from `first` to `last`, the short ones with their results."""
    ids = [] if context.past is None else [one.id for one in context.past()]
    if first not in ids or last not in ids[ids.index(first) :]:
        raise ToolError(
            f"This conversation has no ended calls from {first!r} to {last!r}.",
            next="Take both ids from a summary, as they stand there, the earlier one first.",
            code="not_found",
        )
    wanted = ids[ids.index(first) : ids.index(last) + 1]
    found = [one for call in wanted if (one := _recorded(call, context)) is not None]
    listed: list[str] = []
    strictest, source = Trust.TRUSTED, ""
    for one in found:
        text, trust, of = _text(one)
        if _ORDER.index(trust) > _ORDER.index(strictest):
            strictest, source = trust, of
        source = source or of
        listed.append(f"[{one.id}] {one.tool} {one.raw[:_SHORT]} → {one.outcome}")
        is_long = len(text) > _SHORT or one.tool == "recall"
        how = f'({len(text):,} characters: recall(call="{one.id}"))'
        listed.append(how if is_long else text)
    what = f"{len(found)} calls ({first}..{last})"
    about, chosen = _page(what, f"{first}..{last}", "\n".join(listed), page)
    return [
        TextPart(about, source="recall"),
        TextPart(chosen, max(strictest, Trust.USER_DATA, key=_ORDER.index), source or "recall"),
    ]


def _recorded(call: str, context: ToolContext) -> RecordedCall | None:
    return None if context.recorded is None else context.recorded(call)


def _text(found: RecordedCall) -> tuple[str, Trust, str]:
    """The whole text with the strictest label of its parts."""
    trust, source = Trust.TRUSTED, ""
    for part in found.content:
        if _ORDER.index(part.trust) > _ORDER.index(trust):
            trust, source = part.trust, part.source
        source = source or part.source
    texts = [part.text for part in found.content if isinstance(part, TextPart)]
    return "\n\n".join(texts), trust, source
