"""The words that stand in the context for calls that were left out."""

from __future__ import annotations

from collections.abc import Sequence

from lorimer.context.compaction.choose import is_whole
from lorimer.context.compaction.depth import WHOLE, Depth
from lorimer.context.compaction.digest import ORDER, Digest, References
from lorimer.context.compaction.groups import group_text, runs_of
from lorimer.context.events import escaped
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust

_ARGUMENTS = 300


def summary_text(
    digests: Sequence[Digest],
    references: References,
    *,
    said: Sequence[str] = (),
    newest: Sequence[Digest] = (),
    notes: Sequence[str] = (),
    depth: Depth = WHOLE,
) -> str:
    """One `<context_summary>`: each call, or each run of small ones, with its outcome, what is kept
    of its result and how to read the rest; failures and the model's own words.

    Nothing in it can open or close a tag of lorimer, or look like the marker of an event.

    Args:
        said: what the model said beside the calls, word for word.
        newest: results that stand whole.
        notes: what was dropped on the way, in words.
        depth: how much is told.
    """
    failed = [d for d in digests if d.failed]
    out = [f"This stands for {len(digests)} earlier calls and their results. {references.how}"]
    for run in runs_of([d for d in digests if not d.failed], depth):
        if len(run) > 1:
            out.append(group_text(run, references, depth))
        else:
            out.append(digest_text(run[0], references))
    if failed:
        out.append("What did not work:")
        out += _failures(failed, references, depth)
    out += _words(said, depth.said)
    if newest:
        out.append("The newest results, whole:")
        out += [f"{_head(d, references)}\n{_quoted(d, d.text)}" for d in newest]
    out += [f"Note: {escaped(one)}" for one in notes]
    body = "\n".join(out)
    return f"<context_summary>\n{body}\n</context_summary>"


def label_of(digests: Sequence[Digest]) -> tuple[Trust, str]:
    """The strictest label of `digests`, and the source of the first that has it."""
    strictest = max(digests, key=lambda d: ORDER.index(d.trust), default=None)
    return (Trust.TRUSTED, "") if strictest is None else (strictest.trust, strictest.source)


def _words(said: Sequence[str], most: float) -> list[str]:
    """What the model said, the newest up to `most` characters."""
    kept: list[str] = []
    for one in reversed(said):
        if len(one) > most:
            break
        most -= len(one)
        kept.append(f"«{escaped(one.strip())}»")
    if not said:
        return []
    left = len(said) - len(kept)
    out = ["What you said beside these calls:"]
    out += [f"({left} earlier remarks are left out; the record has them.)"] if left else []
    return out + kept[::-1]


def _failures(failed: Sequence[Digest], references: References, depth: Depth) -> list[str]:
    """The newest failures, equal ones as one; older ones by number."""
    same: dict[tuple[str, str], list[Digest]] = {}
    for digest in failed:
        same.setdefault((digest.result.name, digest.text), []).append(digest)
    groups = list(same.values())
    old, told = groups[: -depth.failures], groups[-depth.failures :]
    out = []
    if old:
        ids = [d.call.id for some in old for d in some]
        out.append(f"({len(ids)} older failures; read again: {references.group(ids)})")
    for some in told:
        text = _failure(some[-1], references, depth.error)
        if len(some) > 1:
            text += f"\n({len(some)} times the same, with other arguments before.)"
        out.append(text)
    return out


def digest_text(digest: Digest, references: References) -> str:
    """One call: what it was, what is kept, and what each page of it holds."""
    head = _head(digest, references)
    if digest.low_value:
        lines = digest.text.count("\n") + 1
        return f"{head}: {lines} lines, used and left out; call it again to see them now."
    body: list[str] = []
    if is_whole(digest):
        body.append(digest.text)
    else:
        body += [f"- {line}" for line in digest.lines]
        body += _pages(digest, references)
    if digest.images:
        body.append(f"({digest.images} image(s), left out)")
    return f"{head}\n{_quoted(digest, chr(10).join(body))}"


def _pages(digest: Digest, references: References) -> list[str]:
    count = len(digest.pages)
    call = digest.call.id
    out = []
    if not references.every:
        last = f"1 to {count}" if count > 1 else "1"
        out.append(f"pages {last}, e.g. {references.page(call, 1)}:")
    for page in digest.pages:
        how = f" {references.page(call, page.number)}" if references.every else ""
        terms = digest.terms[page.number - 1] if digest.terms else ""
        out.append(f"  page {page.number}{how}: {terms}" if terms else f"  page {page.number}{how}")
    return out


def _head(digest: Digest, references: References) -> str:
    raw = digest.call.raw
    if len(raw) > _ARGUMENTS:
        how = references.arguments(digest.call.id)
        raw = f"{raw[:_ARGUMENTS]}… ({len(raw):,} characters; whole: {how})"
    text = f"{digest.result.name} {raw} → {digest.result.outcome}"
    if not digest.failed:
        text += f", {len(digest.text):,} characters"
    if digest.source and digest.trust is not Trust.EXTERNAL:
        text += f", from {digest.source}"
    return escaped(f"[{digest.call.id}] {text}")


def _failure(digest: Digest, references: References, most: int) -> str:
    text = digest.text
    if len(text) > most:
        how = references.page(digest.call.id, 1)
        text = f"{text[:most]}… ({len(text):,} characters; whole: {how})"
    return f"{_head(digest, references)}\n{_quoted(digest, text)}"


def _quoted(digest: Digest, text: str) -> str:
    text = escaped(text)
    if digest.trust is not Trust.EXTERNAL or not text:
        return text
    return wrap_external(text, escaped(digest.source), digest.call.id)
