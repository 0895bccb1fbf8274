"""The words that stand in the context for calls that were left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lorimer.context.compaction.choose import is_whole
from lorimer.context.compaction.digest import Digest, References
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust

_TAG = re.compile(r"<(?=\s*/?\s*context_summary)", re.IGNORECASE)
_ARGUMENTS = 300
_ERROR = 1_500


def summary_text(
    digests: Sequence[Digest],
    references: References,
    *,
    said: Sequence[str] = (),
    newest: Sequence[Digest] = (),
    notes: Sequence[str] = (),
) -> str:
    """One `<context_summary>`: each call with its outcome, what is kept of its result and how to
    read the rest; failures and the model's own words in full.

    Args:
        said: what the model said beside the calls, word for word.
        newest: results that stand whole.
        notes: what was dropped on the way, in words.
    """
    failed = [d for d in digests if d.failed]
    out = [f"This stands for {len(digests)} earlier calls and their results. {references.how}"]
    out += [digest_text(d, references) for d in digests if not d.failed]
    if failed:
        out.append("What did not work:")
        out += [_failure(d, references) for d in failed]
    if said:
        out.append("What you said beside these calls:")
        out += [f"«{one.strip()}»" for one in said]
    if newest:
        out.append("The newest results, whole:")
        out += [f"{_head(d, references)}\n{_quoted(d, d.text)}" for d in newest]
    out += [f"Note: {one}" for one in notes]
    return f"<context_summary>\n{_TAG.sub('&lt;', chr(10).join(out))}\n</context_summary>"


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
    return f"[{digest.call.id}] {text}"


def _failure(digest: Digest, references: References) -> str:
    text = digest.text
    if len(text) > _ERROR:
        how = references.page(digest.call.id, 1)
        text = f"{text[:_ERROR]}… ({len(text):,} characters; whole: {how})"
    return f"{_head(digest, references)}\n{_quoted(digest, text)}"


def _quoted(digest: Digest, text: str) -> str:
    if digest.trust is not Trust.EXTERNAL or not text:
        return text
    return wrap_external(text, digest.source, digest.call.id)
