"""A cache breakpoint before what stands in one request only, on the Messages wire of Anthropic.

The automatic breakpoint marks the last block of a request. Where the last messages are not sent
again, it would write them to the cache for nothing, and no later request would begin like that; so
the last block before them is marked instead
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching#explicit-cache-breakpoints).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lorimer.core.canonical import canonical_json
from lorimer.models.protocol import Request

MARK: Final = "cache_control"
_END: Final = b"}]}"
"""How every rendered message ends: block, list of blocks, message."""


def before_transient(request: Request, mark: Mapping[str, Any] | None) -> Sequence[bytes]:
    """The renderings of `request`, with `mark` on the last block that stands in later requests as
    well. As they are, where all are sent again, or none is."""
    last = len(request.fragments) - request.transient - 1
    if not request.transient or mark is None or last < 0:
        return request.fragments
    fragments = list(request.fragments)
    kept = fragments[last]
    assert kept.endswith(_END), "a message of another form"
    own = b',"' + MARK.encode() + b'":' + canonical_json(mark)
    fragments[last] = kept[: -len(_END)] + own + _END
    return fragments
