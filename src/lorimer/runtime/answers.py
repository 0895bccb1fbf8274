"""Answers from results, in a session: what was recorded is gathered, templates are filled for
whoever reads, and the answer is checked at the end of a run.

The recorded answer stays what the model wrote, byte for byte: filling is for people, and the prompt
never moves. A check never stops or changes a run.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lorimer.context.answers import (
    ANSWER_GUIDE,
    AnswerSettings,
    Checked,
    Evidence,
    Filled,
    Filler,
    Flag,
    Recorded,
    check,
    fill,
    source_of,
)
from lorimer.context.answers.results import read_json
from lorimer.context.events import USER
from lorimer.core.calls import Effects
from lorimer.core.messages import CallPart, Entry, FilePart, Kind, ResultPart, TextPart
from lorimer.core.watch import Warned
from lorimer.models.protocol import (
    CallStarted,
    Discarded,
    ReasoningDone,
    Stop,
    TextDelta,
)
from lorimer.store.protocol import Remark

if TYPE_CHECKING:
    from lorimer.runtime.results import RunResult
    from lorimer.runtime.session import Session

_ENDED = ("answered", "length", "refusal")
_MOST_TOLD = 5


class SessionAnswers:
    """The answers of one session; follows its entries as they are recorded."""

    def __init__(self, session: Session, settings: AnswerSettings) -> None:
        self.settings = settings
        self._session = session
        self._recorded = Recorded()
        self._evidence = Evidence()
        self._arguments: dict[str, str] = {}
        self._taken = 0
        self._tails: set[str] = set()
        self._prompt = ""

    # --- what was recorded ---

    def _catch_up(self) -> None:
        system = self._session.trajectory.prefix.system
        if system != self._prompt:  # the first time, and after a rebase
            self._prompt = system
            for text in (system, *self.settings.allowed):
                self._evidence.add_text(text, "the operator")
        entries = self._session.trajectory.entries
        for entry in entries[self._taken :]:
            self._take(entry)
        self._taken = len(entries)
        tail = self._session.tail
        if tail is not None and tail.text not in self._tails:
            self._tails.add(tail.text)
            self._evidence.add_text(tail.text, "the status bar")

    def _take(self, entry: Entry) -> None:
        if entry.kind in (Kind.COMPACTION, Kind.REBASE, Kind.ARCHIVE):
            return  # what these stand for was taken from the entries themselves
        where = "the user" if entry.kind is Kind.USER else f"an entry of kind {entry.kind}"
        for part in entry.parts:
            match part:
                case CallPart(call):
                    self._arguments[call.id] = call.raw
                case ResultPart():
                    self._result(part)
                case TextPart(text=text, source=source) if entry.kind is not Kind.ASSISTANT:
                    own = entry.kind is Kind.EVENT and source == USER
                    self._evidence.add_text(text, "the user" if own else source or where)
                case FilePart(media_type=media_type, name=name, data=data):
                    self._evidence.add_text(name, where)
                    if media_type.startswith("text/"):
                        self._evidence.add_text(_text_of(data), name)

    def _result(self, part: ResultPart) -> None:
        source = source_of(part, self._acted(part))
        self._arguments.pop(part.call_id, None)
        self._recorded.add(source)
        self._evidence.add(source)

    def _acted(self, part: ResultPart) -> Mapping[str, Any] | None:
        """The arguments of a call that changed something, as they were used: after an approval
        those that the person gave."""
        tool = self._session.agent.registry.get(part.name)
        if tool is None or tool.effects is Effects.READ:
            return None
        record = self._session.store.call(self._session.id, part.call_id)
        if record is not None and isinstance(record.value, Mapping):
            return record.value
        written = read_json(self._arguments.get(part.call_id, ""))
        return written if isinstance(written, Mapping) else None

    # --- while the model writes ---

    def streamed(self, watch: Callable[[Any], None]) -> Callable[[Any], None]:
        """`watch`, told of text as people are to read it: templates are held back until they are
        closed, and then filled."""
        if not self.settings.fill:
            return watch
        self._catch_up()
        filler = Filler(self._recorded)

        def told(event: Any) -> None:
            nonlocal filler
            match event:
                case TextDelta(text):
                    shown = filler.feed(text)
                    if shown:
                        watch(TextDelta(shown))
                    return
                case Discarded():
                    filler = Filler(self._recorded)
                case CallStarted() | ReasoningDone() | Stop():
                    rest = filler.end()
                    if rest:
                        watch(TextDelta(rest))
            watch(event)

        return told

    # --- at the end of a run ---

    async def finished(self, result: RunResult) -> RunResult:
        """`result` with its answer filled, and what was found in it."""
        if not result.answer or result.stop not in _ENDED:
            return result
        try:
            checked = self._checked(result.answer)
        except Exception as fault:  # a check may not cost the answer
            logging.getLogger("lorimer").exception("An answer could not be checked.")
            words = f"The answer was not checked: {type(fault).__name__}: {fault}"
            self._session.tell(Warned(words))
            return replace(result, notes=(*result.notes, words))
        if checked.flags:
            kinds = ", ".join(f"{f.kind} {f.text!r}" for f in checked.flags[:_MOST_TOLD])
            more = len(checked.flags) - _MOST_TOLD
            why = kinds + (f" and {more} more" if more > 0 else "")
            remark = Remark(self._session.id, "lorimer", "answer.flagged", self._clean(why))
            await self._session.store.commit(remark)
        return replace(
            result,
            answer=checked.answer,
            answer_raw=None if checked.answer == result.answer else result.answer,
            flags=checked.flags,
            derived=checked.derived,
        )

    def _clean(self, text: str) -> str:
        return self._session.agent.secrets.redact(text)

    def _checked(self, answer: str) -> Checked:
        settings = self.settings
        entries = self._session.trajectory.entries
        nothing = all(entry.kind is not Kind.TOOL_RESULT for entry in entries)
        fills = settings.fill and "{{" in answer
        if nothing and not settings.without_results and not fills:
            return Checked(answer)
        self._catch_up()
        self._evidence.today = self._session.agent.clock.now().date()
        shown = answer
        filled: list[Filled] = []
        flags: list[Flag] = []
        if settings.fill:
            shown, filled, flags = fill(answer, self._recorded)
            flags = [f for f in flags if "template" in settings.kinds]
        if not settings.check or not (self._evidence.results or settings.without_results):
            return Checked(shown, tuple(flags), (), tuple(filled))
        skip = [one.span for one in filled] + [flag.span for flag in flags]
        found, derived = check(shown, self._evidence, settings, skip=skip)
        every = sorted((*flags, *found), key=lambda flag: flag.span)
        return Checked(shown, tuple(every), derived, tuple(filled))


def answers_of(session: Session, given: AnswerSettings | None) -> SessionAnswers | None:
    """What is done with the answers of `session`: what its agent wants; and a session whose model
    was taught templates has them filled, whoever goes on with it."""
    if ANSWER_GUIDE in session.trajectory.prefix.system:
        given = replace(given or AnswerSettings(check=False), fill=True)
    return None if given is None else SessionAnswers(session, given)


def _text_of(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
