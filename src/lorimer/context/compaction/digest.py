"""What is known of one call that is to be left out: its arguments, its outcome, and its result in
pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lorimer.context.compaction.pages import Page, pages_of
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import ImagePart, ResultPart, TextPart
from lorimer.core.quoting import unwrapped
from lorimer.core.trust import Trust

Whole = Callable[[str], str | None]
"""From the text of a result, the whole text where that is only a preview of a kept one."""

ORDER = (Trust.TRUSTED, Trust.USER_DATA, Trust.EXTERNAL)


@dataclass(frozen=True, slots=True)
class Digest:
    """One call and its result, ready to be told in short.

    Attributes:
        text: the whole text of the result, without the tags around outside content.
        trust, source: the strictest label of its parts, and where that part came from.
        images: how many images it has.
        low_value: its tool says that it is worth little once it was used.
        lines: pieces of `text` that stay, word for word, or checked lines of a summary.
        terms: what each page holds.
    """

    call: ToolCall
    result: ResultPart
    text: str
    trust: Trust
    source: str
    pages: tuple[Page, ...]
    images: int = 0
    low_value: bool = False
    lines: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return self.result.outcome is not Outcome.DONE


def digest_of(
    call: ToolCall, result: ResultPart, *, whole: Whole | None = None, low_value: bool = False
) -> Digest:
    """The digest of one call, with nothing chosen of it yet."""
    texts: list[str] = []
    trust, source, images = Trust.TRUSTED, "", 0
    for part in result.content:
        if isinstance(part, ImagePart):
            images += 1
        if ORDER.index(part.trust) > ORDER.index(trust):
            trust, source = part.trust, part.source
        source = source or part.source
        if isinstance(part, TextPart):
            plain = unwrapped(part.text)
            kept = None if whole is None else whole(plain)
            texts.append(plain if kept is None else kept)
    text = "\n\n".join(texts)
    return Digest(call, result, text, trust, source, tuple(pages_of(text)), images, low_value)


@dataclass(frozen=True, slots=True)
class References:
    """How what is left out is read again, as it is told to the model.

    Attributes:
        page: from call id and page number (from 1) the call that reads it.
        arguments: from a call id the call that reads its whole arguments.
        how: said once in a summary; empty when each page says it.
        every: each page names its own call, because they have nothing in common.
        group: from the ids of neighbouring calls the call that lists them all.
    """

    page: Callable[[str, int], str]
    arguments: Callable[[str], str]
    group: Callable[[Sequence[str]], str]
    how: str = ""
    every: bool = False


def by_recall() -> References:
    """References to the tool `recall`."""
    return References(
        lambda call, page: f'recall(call="{call}", page={page})',
        lambda call: f'recall(call="{call}", arguments=true)',
        lambda calls: f'recall(call="{calls[0]}..{calls[-1]}")',
        how='Nothing is lost: recall(call="…", page=…) reads a page again.',
    )


def by_files(files: Mapping[tuple[str, int], str], listing: str) -> References:
    """References to files that `read_file` reads; page 0 holds the arguments. `listing` has every
    call that has no file of its own."""
    return References(
        lambda call, page: f'read_file(path="{files.get((call, page), listing)}")',
        lambda call: f'read_file(path="{files.get((call, 0), listing)}")',
        lambda _: f'read_file(path="{listing}")',
        how="Nothing is lost: each page is a file that read_file reads.",
        every=True,
    )


def by_record(session: str) -> References:
    """No tool reads it again; the person can."""
    where = f"lorimer sessions show {session}"
    return References(
        lambda call, page: f"({where}, call {call})",
        lambda call: f"({where}, call {call})",
        lambda _: f"({where})",
        how=f"It is kept whole in the record ({where}); you have no tool that reads it: call the "
        "tool again, or ask the user.",
    )
