"""What a sub-agent is told at its beginning, in parts that say whose words they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from lorimer.context.events import Context, Event
from lorimer.core.messages import ImagePart, ResultPart, TextPart
from lorimer.core.trust import Trust
from lorimer.runtime.subagents.distil import Distilled
from lorimer.runtime.subagents.tags import Speaker, tagged, untagged
from lorimer.toolkits.collaboration.report import (
    answer_parts,
    said_parts,
    source_of,
    status_line,
    trust_of,
)
from lorimer.tools.subagents import Assignment, SubagentReport, SubagentStatus

MAIN_AGENT = "main agent"
CHANNEL = "subagent"
"""The channel of events that tell of the end of a sub-agent; `reply_to` is its id."""


def _source(tainted_by: Sequence[str]) -> str:
    """The source that the main agent's words have once it has read outside content."""
    return f"{MAIN_AGENT}, which had read {', '.join(tainted_by)}"[:400]


def said(text: str, tainted_by: Sequence[str], speaker: Speaker = Speaker.MAIN_AGENT) -> TextPart:
    """Words to a sub-agent. Those of a main agent that has read outside content may be a
    stranger's: they carry that label."""
    words = tagged(speaker, text)
    if speaker is not Speaker.MAIN_AGENT:
        return TextPart(words)
    if tainted_by:
        return TextPart(words, Trust.EXTERNAL, _source(tainted_by))
    return TextPart(words, Trust.USER_DATA, MAIN_AGENT)


def parts_of(
    assignment: Assignment,
    results: Sequence[ResultPart],
    distilled: Distilled | None,
    tainted_by: Sequence[str],
) -> tuple[tuple[TextPart | ImagePart, ...], list[str]]:
    """The first message, and what was changed in it (`tags` in what is handed on)."""
    parts: list[TextPart | ImagePart] = []
    forged = untagged(assignment.task)[1]
    if distilled is not None:
        if distilled.facts:
            words = "What is known so far:\n" + "\n".join(f"- {one}" for one in distilled.facts)
            parts.append(said(words, tainted_by))
        for quote in distilled.quotes:
            words = tagged(quote.speaker, quote.text, quote.about)
            if quote.speaker is Speaker.USER:
                parts.append(TextPart(words))
            else:
                parts.append(TextPart(words, quote.trust, quote.source or MAIN_AGENT))
    for result in results:
        found, count = _result(result)
        parts += found
        forged += count
    parts.append(said(_task(assignment), tainted_by))
    notes = [] if not forged else [
        f"{forged} tags like [FROM_USER] in what is handed on were written with round brackets"
    ]  # fmt: skip
    spaced = [
        TextPart(p.text + "\n\n", p.trust, p.source) if isinstance(p, TextPart) else p
        for p in parts[:-1]
    ]
    return (*spaced, parts[-1]), notes


def _task(assignment: Assignment) -> str:
    words = assignment.task.strip()
    paths = [one for one in assignment.inputs if one]
    if paths:
        words += "\n\nInputs:\n" + "\n".join(f"- {one}" for one in paths)
    schema = json.dumps(assignment.output_schema, ensure_ascii=False, sort_keys=True)
    return f"{words}\n\nAnswer with one JSON value that fits this JSON Schema, alone:\n{schema}"


def _result(result: ResultPart) -> tuple[list[TextPart | ImagePart], int]:
    """A result under its tag; an image of it goes along behind a tag of its own."""
    out: list[TextPart | ImagePart] = []
    forged = 0
    for part in result.content:
        image = isinstance(part, ImagePart)
        text = f"(an image, {part.media_type})" if isinstance(part, ImagePart) else part.text
        forged += untagged(text)[1]
        words = tagged(Speaker.TOOL_RESULT, text, f"{result.call_id} {result.name}")
        source = part.source or result.name
        out.append(TextPart(words, part.trust, source))
        if image:
            out.append(replace(part, source=source))
    return out, forged


def ended_event(
    report: SubagentReport,
    clean: Callable[[str], str],
    reveal: Callable[[str], tuple[str, list[str]]] | None,
) -> Event:
    """The end of a sub-agent that nobody waited for, whatever it is, under its own label.

    Args:
        clean: takes secrets out; `reveal` makes visible what is hidden in outside text.
    """
    trust, source = trust_of(report), source_of(report)
    if report.status is SubagentStatus.DONE:
        content = "".join(part.text for part in answer_parts(report))
    else:
        said = [part.text for part in said_parts(report)]
        content = "\n".join([json.dumps(status_line(report), ensure_ascii=False), *said])
    content = clean(content)
    if trust is Trust.EXTERNAL and reveal is not None:
        content, _ = reveal(content)
    context = Context("agent.input", reply_to=report.id, relation=f"{report.agent} has ended")
    return Event(source, CHANNEL, content, context, trust)
