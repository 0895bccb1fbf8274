"""Summaries of results as they enter (`per_result`, `combined`, `context_aware…`).

The journal keeps the whole result; the entry has the summary for ever. A summary that cannot be
used leaves the result as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lorimer.context.compaction.choose import chosen
from lorimer.context.compaction.digest import Digest, digest_of
from lorimer.context.compaction.instructions import at_entry
from lorimer.context.compaction.options import Compaction
from lorimer.context.compaction.summary import told
from lorimer.context.compaction.telling import digest_text
from lorimer.context.compaction.units import KEPT_TOOLS
from lorimer.core.messages import Kind, ResultPart, TextPart
from lorimer.runtime.compaction_references import references_of
from lorimer.runtime.summaries import Stopped, Summariser
from lorimer.tools.dispatch.recorded import whole_text

if TYPE_CHECKING:
    from lorimer.runtime.compaction import SessionCompaction
    from lorimer.runtime.session import Session
    from lorimer.tools.dispatch.state import CallState

MARK: Final = "In short, as it was when it came in; "
_KNOWN: Final = 4_000
"""Characters of what is known that go into the question for a summary."""


async def summarise(compaction: SessionCompaction, states: Sequence[CallState]) -> None:
    """Put summaries in place of the long results of `states`.

    Cancellation: the results stay as they are.

    Raises:
        StoreError: when the record cannot be written.
    """
    options, session = compaction.options, compaction.session
    assert options is not None
    compaction.history.feed(session.trajectory.entries)
    if compaction.history.open(options.most_failures):
        return
    found = [(state, digest) for state in states if (digest := _digest(session, options, state))]
    groups = [[one] for one in found] if options.strategy == "per_result" else [found]
    for group in groups:
        if group and not await _summarise(compaction, options, group):
            return


def _digest(session: Session, options: Compaction, state: CallState) -> Digest | None:
    """The digest of a result that is to be summarised; `None` for one that enters as it is."""
    result = state.result
    if result is None or result.is_error or result.name in KEPT_TOOLS or result.name == "recall":
        return None
    digest = digest_of(
        state.call, result, whole=lambda text: whole_text(session.store, session.id, text)
    )
    return digest if len(digest.text) > options.entry_characters else None


async def _summarise(
    compaction: SessionCompaction, options: Compaction, group: list[tuple[CallState, Digest]]
) -> bool:
    """Whether to go on with the next group."""
    session = compaction.session
    digests = [digest for _, digest in group]
    aware = options.strategy.startswith("context_aware")
    summariser = Summariser(session, compaction.summary_tokens(options), options.cited)
    asked = at_entry(
        digests,
        summariser.most_characters,
        question=_question(session) if aware else "",
        known=_known(session) if aware else (),
        cited=options.cited,
    )
    try:
        checked = await summariser.ask(asked, digests, f"summary ({options.strategy})")
    except Stopped:
        return False
    if checked.refused is not None:
        compaction.failed_at_entry(checked.refused.words)
        return True
    references = await references_of(session, digests, write=True)
    shown = chosen(digests, fact_share=0.0, term_share=options.term_share)
    for number, ((state, _), digest) in enumerate(zip(group, shown, strict=True)):
        lines = tuple(
            f"{line} [{digest.source or digest.call.id}]" if options.cited else line
            for line in checked.lines.get(digest.call.id, ())
        )
        notes = told(checked.dropped) if number + 1 == len(group) else []
        text = MARK + references.how + "\n" + digest_text(replace(digest, lines=lines), references)
        text = "\n".join([text, *(f"Note: {one}" for one in notes)])
        if len(text) > (1 - options.smaller_by) * len(digest.text):
            compaction.failed_at_entry(f"the summary of {digest.call.id} is not smaller enough")
            continue
        assert state.result is not None
        state.result = _with_text(state.result, text, digest)
    return True


def _with_text(result: ResultPart, text: str, digest: Digest) -> ResultPart:
    """`result` with `text` in place of its texts; the label stays, and so do the images."""
    others = tuple(part for part in result.content if not isinstance(part, TextPart))
    return replace(result, content=(TextPart(text, digest.trust, digest.source), *others))


def _question(session: Session) -> str:
    users = [e.text for e in session.trajectory.entries if e.kind is Kind.USER]
    return "\n\n".join(users)[-_KNOWN:]


def _known(session: Session) -> list[str]:
    """Lines of the summaries that stand in the context."""
    out: list[str] = []
    for entry in session.trajectory.view:
        for result in entry.results:
            text = "".join(p.text for p in result.content if isinstance(p, TextPart))
            if text.startswith(MARK):
                out += [line for line in text.splitlines() if line.startswith("- ")]
    while out and sum(map(len, out)) > _KNOWN:
        out.pop(0)
    return out
