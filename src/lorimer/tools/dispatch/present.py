"""Station 10, present: what the model reads. Budget, preview, source tags, and every note.

A result over the tool's budget is stored whole as a blob; its first and last lines enter the
context with how to read the rest. That preview is the result for ever.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
from typing import Any

from lorimer.core.calls import Effects, Outcome, Refusal
from lorimer.core.messages import ImagePart, ResultPart, TextPart
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust
from lorimer.tools.dispatch.once import recorded_result
from lorimer.tools.dispatch.record import NOT_ITS_FAILURE
from lorimer.tools.dispatch.state import CallState, Content, Surroundings
from lorimer.tools.tool import Budget
from lorimer.tools.units.content import whole_characters

_LINE_CHARACTERS = 400
_MOST_NOTES = 20
_NOTE_CHARACTERS = 600


async def present(state: CallState, around: Surroundings) -> Refusal | None:
    if state.replayed and state.journal is not None and state.journal.result is not None:
        state.result = recorded_result(state)
        state.outcome = state.result.outcome
        return None
    refusal = state.refusal
    if refusal is not None:
        state.outcome = refusal.outcome
        text = around.clean(error_text(state, around, refusal))
        text = await _within(text, state, around)
        content: tuple[TextPart | ImagePart, ...] = (TextPart(text),)
        content += await _labelled(state.said, state, around)
    else:
        content = await _content(state, around)
    content = tuple(
        TextPart(whole_characters(p.text), p.trust, p.source) if isinstance(p, TextPart) else p
        for p in content
    )
    state.result = ResultPart(
        state.call.id, state.name, content, refusal is not None, state.outcome
    )
    return None


def error_text(state: CallState, around: Surroundings, refusal: Refusal) -> str:
    """The error object; the notes of what was changed in the arguments stand in it."""
    body = refusal.to_json()
    tool = state.tool
    if tool is not None and refusal.retryable and refusal.code not in NOT_ITS_FAILURE:
        used = around.failures[tool.name] + 1
        body["attempt"] = f"{used}/{tool.max_attempts}"
        if used >= tool.max_attempts:
            body["retryable"] = False
            body["next"] = (
                "That was the last attempt. Say what was tried, what failed, and what is needed."
            )
    notes = _notes(state)
    if notes:
        body["notes"] = notes
    return json.dumps(body, ensure_ascii=False, default=repr)


async def _within(text: str, state: CallState, around: Surroundings) -> str:
    """An error whose words are longer than the budget of a result: its longest texts are shortened,
    and the whole of it is kept as a blob."""
    budget = Budget() if state.tool is None else state.tool.budget
    if len(text) <= budget.characters:
        return text
    reference = await _keep(text, around)
    room = max(200, budget.characters // 8)
    body = {key: _shorter(value, room) for key, value in json.loads(text).items()}
    return json.dumps(body | {"whole_error": f"stored as {reference}"}, ensure_ascii=False)


def _shorter(value: Any, room: int) -> Any:
    if not isinstance(value, str):
        written = json.dumps(value, ensure_ascii=False)
        return value if len(written) <= room else _shorter(written, room)
    if len(value) <= room:
        return value
    half = room // 2
    left_out = len(value) - 2 * half
    return f"{value[:half]}[… {left_out} characters left out …]{value[-half:]}"


async def _keep(text: str, around: Surroundings) -> str:
    data = text.encode("utf-8", "surrogatepass")
    keep = functools.partial(around.store.put_blob, as_file=True)
    return await asyncio.to_thread(keep, data, "text/plain; charset=utf-8")


def _notes(state: CallState) -> list[str]:
    notes = [*(str(diff) for diff in state.diffs if not _plain(diff)), *state.notes]
    told = [str(_shorter(note, _NOTE_CHARACTERS)) for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        told.append(f"and {len(notes) - _MOST_NOTES} more, which are in the record")
    return told


def _plain(diff: Any) -> bool:
    """Readings that every JSON reader makes and that change nothing a tool can see."""
    return bool(diff.rule == "no arguments were written")


async def _content(state: CallState, around: Surroundings) -> tuple[TextPart | ImagePart, ...]:
    out = list(await _labelled(state.content, state, around))
    notes = _notes(state)
    if notes:
        told = around.clean("\n".join(f"- {note}" for note in notes))
        out.append(TextPart(f"\n\nnotes:\n{told}"))
    return tuple(out) or (TextPart("(the tool returned nothing)"),)


async def _labelled(parts: Content, state: CallState, around: Surroundings) -> Content:
    """Content under its labels, each part within the budget."""
    if not parts:
        return ()
    tool = state.tool
    assert tool is not None
    out: list[TextPart | ImagePart] = []
    for part in _joined(parts, tool.budget):
        if isinstance(part, TextPart):
            text = part.text
            if part.trust is Trust.EXTERNAL and around.reveal is not None:
                text, found = around.reveal(text)
                if found:  # said without its words: those are a stranger's
                    state.notes.append(f"{len(found)} kinds of hidden content stand as ⟦…⟧.")
            if not _fits(text, tool.budget):
                text = await _preview(text, tool.budget, around)
            if part.trust is Trust.EXTERNAL:
                text = wrap_external(text, part.source, state.call.id)
            part = TextPart(text, part.trust, part.source)
        out.append(part)
    return tuple(out)


def _joined(parts: Content, budget: Budget) -> Content:
    """Neighbouring texts of one source as one, where together they are over the budget."""
    if sum(len(p.text) for p in parts if isinstance(p, TextPart)) <= budget.characters:
        return parts
    out: list[TextPart | ImagePart] = []
    for label, run in itertools.groupby(parts, key=lambda p: (type(p), p.trust, p.source)):
        if label[0] is TextPart:
            text = "\n\n".join(p.text for p in run if isinstance(p, TextPart))
            out.append(TextPart(text, label[1], label[2]))
        else:
            out += run
    return tuple(out)


def _fits(text: str, budget: Budget) -> bool:
    return len(text) <= budget.characters and text.count("\n") < budget.lines


async def _preview(text: str, budget: Budget, around: Surroundings) -> str:
    reference = await _keep(text, around)
    lines = text.splitlines(keepends=True)
    head, tail = (
        lines[: budget.head_lines],
        lines[max(budget.head_lines, len(lines) - budget.tail_lines) :],
    )
    room = budget.characters // 2
    first, first_cut = _clip(head, room, from_end=False)
    last, last_cut = _clip(tail, room, from_end=True)
    left_out = len(lines) - first_cut - last_cut
    where = around.store.kept_path(around.session, reference)
    if where is not None and "read_file" in around.registry:
        path = json.dumps(where, ensure_ascii=False)
        how = f"The whole text is in {where}; read it with read_file(path={path}, offset=…)."
    else:
        kept = reference if where is None else where
        how = f"The whole text is kept in {kept}; to see more here, ask for a smaller part."
    middle = (
        f"\n[… {left_out} of {len(lines)} lines left out here ({len(text)} characters in "
        f"all). {how} …]\n"
    )
    return "".join(first) + middle + "".join(last)


def _clip(lines: list[str], room: int, *, from_end: bool) -> tuple[list[str], int]:
    """As many whole lines as fit `room` characters; a long line is cut, and that is said."""
    out: list[str] = []
    used = 0
    for line in reversed(lines) if from_end else lines:
        if len(line) > _LINE_CHARACTERS:
            line = (
                f"{line[:_LINE_CHARACTERS]}[… {len(line) - _LINE_CHARACTERS} characters of this "
                "line left out]\n"
            )
        if used + len(line) > room:
            break
        out.append(line)
        used += len(line)
    return (out[::-1] if from_end else out), len(out)


def effectful_failure(state: CallState) -> bool:
    """Whether later writes of the turn must be skipped because of this call."""
    tool = state.tool
    return (
        tool is not None and tool.effects is not Effects.READ and state.outcome is not Outcome.DONE
    )
