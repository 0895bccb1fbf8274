"""What a person may say to a session."""

from __future__ import annotations

from collections.abc import Sequence

from lorimer.core.errors import UsageFault
from lorimer.core.messages import FilePart, ImagePart, Part, TextPart
from lorimer.core.trust import Trust

Message = str | Sequence[TextPart | ImagePart | FilePart]


def message_parts(message: Message) -> tuple[Part, ...]:
    """The parts of a user message.

    Raises:
        UsageFault: when it is empty, or holds something else.
    """
    if isinstance(message, str):
        if not message.strip():
            raise UsageFault("The message is empty.", next="Write a question or a task.")
        message = [TextPart(message, Trust.TRUSTED)]
    if not isinstance(message, list | tuple):
        raise UsageFault(
            f"A message is text or a list of parts, not {type(message).__name__}.",
            next="Use text, TextPart, ImagePart, FilePart.",
        )
    parts = tuple(TextPart(p, Trust.TRUSTED) if isinstance(p, str) else p for p in message)
    for part in parts:
        if not isinstance(part, TextPart | ImagePart | FilePart):
            raise UsageFault(
                f"A message holds {type(part).__name__}.",
                next="Use text, TextPart, ImagePart, FilePart.",
            )
        if isinstance(part, TextPart):
            try:
                part.text.encode("utf-8")
            except UnicodeEncodeError as fault:
                raise UsageFault(
                    f"The message holds half a surrogate pair at character {fault.start}.",
                    next="Take it out: it is no character.",
                ) from fault
    if not parts:
        raise UsageFault("The message is empty.", next="Write a question or a task.")
    return parts
