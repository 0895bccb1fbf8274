"""How the model reads again what a compaction left out: with `recall`, or as files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lorimer.context.compaction.depth import WHOLE
from lorimer.context.compaction.digest import Digest, References, by_files, by_recall, by_record
from lorimer.context.compaction.pages import in_short_lines
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust

if TYPE_CHECKING:
    from lorimer.runtime.session import Session
    from lorimer.store.protocol import Store

RECALL = "recall"
READ = "read_file"


async def references_of(session: Session, digests: Sequence[Digest], *, write: bool) -> References:
    """References for `digests` that the model of this session can follow.

    Args:
        write: keep the pages as files where they are read as such; they are on disk on return.
    """
    agent = session.agent
    names = {spec.name for spec in session.trajectory.prefix.tools}
    if RECALL in names and RECALL in agent.registry:
        return by_recall()
    if READ not in names or READ not in agent.registry or agent.store.folder is None:
        return by_record(session.id)
    if not write:
        return References(
            lambda call, page: f'{READ}(path="…")', lambda call: f'{READ}(path="…")',
            lambda _: f'{READ}(path="…")', every=True,
            how="Nothing is lost: each page is a file that read_file reads.",
        )  # fmt: skip
    files, listing = await asyncio.to_thread(_files, agent.store, session.id, digests)
    return by_files(files, listing)


def _files(
    store: Store, session: str, digests: Sequence[Digest]
) -> tuple[dict[tuple[str, int], str], str]:
    """Every page of a long result, and every long argument (page 0), as a file; and one file that
    lists all calls, with the short ones whole. Outside content keeps its tags."""
    out: dict[tuple[str, int], str] = {}
    listed: list[str] = []
    for digest in digests:
        call = digest.call.id
        listed.append(f"=== {call}: {digest.result.name} → {digest.result.outcome}")
        if len(digest.call.raw) > WHOLE.small:
            out[call, 0] = _file(store, session, digest.call.raw)
            listed.append(f"arguments: {out[call, 0]}")
        else:
            listed.append(f"arguments: {digest.call.raw}")
        if len(digest.text) <= WHOLE.small:
            listed.append(_outside(digest, digest.text))
            continue
        for page in digest.pages:
            out[call, page.number] = _file(store, session, _outside(digest, page.of(digest.text)))
            listed.append(f"page {page.number}: {out[call, page.number]}")
    return out, _file(store, session, in_short_lines("\n".join(listed)))


def _outside(digest: Digest, text: str) -> str:
    text = in_short_lines(text)
    if digest.trust is Trust.EXTERNAL:
        return wrap_external(text, digest.source, digest.call.id)
    return text


def _file(store: Store, session: str, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    reference = store.put_blob(data, "text/plain; charset=utf-8", as_file=True)
    return store.kept_path(session, reference) or reference
