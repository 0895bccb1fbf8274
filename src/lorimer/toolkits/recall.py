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
    call: Annotated[str, Field(description="Id of the call, e.g. 'call_01k8'")],
    page: Annotated[int, Field(ge=1, description="Page, e.g. 2")] = 1,
    arguments: Annotated[
        bool, Field(description="Of its arguments instead of its result: true, false")
    ] = False,
    *,
    context: ToolContext,
) -> list[TextPart | ImagePart]:
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
    pages = pages_of(text)
    if page > len(pages):
        raise ToolError(
            f"{call!r} has {len(pages)} page(s); there is no page {page}.",
            next=f"Use a page from 1 to {len(pages)}.",
            code="past_end",
        )
    chosen = pages[page - 1]
    about = (
        f"{found.tool} ({call}), page {page} of {len(pages)}: characters {chosen.start + 1:,} to "
        f"{chosen.end:,} of {len(text):,}\n"
    )
    images = [p for p in found.content if isinstance(p, ImagePart)] if page == 1 else []
    return [
        TextPart(about, source=found.tool),
        TextPart(chosen.of(text), trust, source or found.tool),
        *([] if arguments else images),
    ]


def _text(found: RecordedCall) -> tuple[str, Trust, str]:
    """The whole text with the strictest label of its parts."""
    trust, source = Trust.TRUSTED, ""
    for part in found.content:
        if _ORDER.index(part.trust) > _ORDER.index(trust):
            trust, source = part.trust, part.source
        source = source or part.source
    texts = [part.text for part in found.content if isinstance(part, TextPart)]
    return "\n\n".join(texts), trust, source
