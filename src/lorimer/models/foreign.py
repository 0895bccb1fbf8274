"""Reasoning of another model: signed, encrypted or numbered for the model that wrote it. Servers
refuse it or leave it out (`docs/reasoning.md` has the rule and the source for each), so it is never
sent. The record keeps it."""

from __future__ import annotations

from dataclasses import replace

from lorimer.core.messages import CallPart, Entry, Kind, ReasoningPart


def is_foreign(entry: Entry, model: str) -> bool:
    """Whether `entry` holds what `model` cannot read: an answer of another model with reasoning,
    signatures of calls or ids of items, or a compaction that keeps such answers. Where nobody said
    whose answer it is, the wire that is written in each part decides alone."""
    if entry.kind is Kind.COMPACTION:
        return any(
            is_foreign(Entry.from_json(record, -1), model)
            for span in entry.meta.get("spans", ())
            for record in span.get("entries", ())
        )
    return (
        entry.kind is Kind.ASSISTANT
        and entry.meta.get("model", model) != model
        and any(
            isinstance(p, ReasoningPart) or (isinstance(p, CallPart) and p.call.opaque is not None)
            for p in entry.parts
        )
    )


def without_foreign(entry: Entry, model: str) -> Entry:
    """`entry` as `model` may see it."""
    if entry.kind is not Kind.ASSISTANT or not is_foreign(entry, model):
        return entry
    parts = tuple(
        CallPart(replace(p.call, opaque=None)) if isinstance(p, CallPart) else p
        for p in entry.parts
        if not isinstance(p, ReasoningPart)
    )
    return replace(entry, parts=parts)
