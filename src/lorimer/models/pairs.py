"""Surrogate pairs that a provider split: JSON may write one character as two escapes, and a stream
may be cut between them."""

from __future__ import annotations

from lorimer.core.errors import BadAnswer


class PairJoiner:
    """Joins the halves of characters over the pieces of one text."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that `piece` completes; half a pair at its end waits for the next piece.

        Raises:
            BadAnswer: for half a pair that stands alone.
        """
        if piece.isascii() and not self._held:
            return piece
        text = self._held + piece
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise _alone() from None

    def end(self) -> None:
        """The text is complete.

        Raises:
            BadAnswer: when half a pair is left over.
        """
        if self._held:
            raise _alone()


def _alone() -> BadAnswer:
    return BadAnswer(
        "The provider sent half a surrogate pair, which is no character.", next="Ask again."
    )
