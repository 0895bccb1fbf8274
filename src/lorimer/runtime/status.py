"""The status bar of a session, before each request: looked up, and appended or put last.

`append`: an entry with what changed, for good; the whole bar first, and again after a compaction.
`replace`: the whole bar as the last message of this request only; the answer's entry keeps what it
said. Which of both is settled once in a session, and kept with it.

The clock is no reason for a new bar: it is told with whatever else changed, and when a message has
come and the minute is another one. The same holds for figures that change all the time (how long a
task runs, how many tokens there are).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lorimer.context.status.bar import (
    Bar,
    Shown,
    delta_bar,
    full_bar,
    is_news,
    render_status,
)
from lorimer.context.status.mode import Choice, choose
from lorimer.context.status.parts import Part, parts_of
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.watch import Warned
from lorimer.runtime.status_facts import EntryFacts, gather
from lorimer.runtime.status_past import PastBars, Tally

if TYPE_CHECKING:
    from lorimer.context.status.settings import StatusBar
    from lorimer.runtime.session import Session

META = "status"
"""In the meta of a bar's entry, and of the answer to a request that had a replaced bar."""


class StatusUpkeep:
    """Keeps the bar of one session up to date."""

    def __init__(self, session: Session, settings: StatusBar) -> None:
        self._session = session
        self._settings = settings
        self._known = EntryFacts()
        self._past = PastBars(session.store.folder, lambda words: session.tell(Warned(words)))
        self._tally = Tally()
        self._choice: Choice | None = None
        self._told = False  # whether the choice is in the record
        self._appended: Shown | None = None  # what the bars in the trajectory say, all together
        self._replaced: Shown | None = None  # what the last replaced bar said
        self._arrivals = 0
        self._looked = 0
        self._counted_to = 0

    @property
    def choice(self) -> Choice | None:
        """The mode, and what it was chosen by; `None` before the first request."""
        return self._choice

    @property
    def tally(self) -> Tally:
        """How often the bar was updated, and how much was added between."""
        return self._tally

    def now(self) -> str:
        """The whole bar as it would be this moment, for people."""
        self._known.read(self._session.trajectory.entries)
        return render_status(gather(self._session, self._settings, self._known), self._settings)

    async def before_request(self) -> None:
        """Append the bar, or put it last.

        Cancellation: the entry is written whole or not at all.

        Raises:
            StoreError: when it cannot be written.
        """
        session, known = self._session, self._known
        session.tail = None
        self._look_back()
        known.read(session.trajectory.entries)
        parts = parts_of(gather(session, self._settings, known), self._settings)
        choice = self._choice or self._choose(parts)
        before = self._appended if choice.mode == "append" else self._replaced
        arrived = known.arrivals != self._arrivals
        news = before is None or is_news(parts, before, arrived=arrived)
        self._arrivals = known.arrivals
        if choice.mode == "replace":
            self._replace(parts, news)
        elif news:
            await self._append(parts)

    def kept(self) -> dict[str, Any]:
        """What the answer's entry keeps of a bar that was in its request only."""
        tail = self._session.tail
        if tail is None:
            return {}
        text = [part.text for part in tail.parts if isinstance(part, TextPart)]
        return {META: {**tail.meta[META], "text": text}}

    # --- looking ---

    def _look_back(self) -> None:
        """Take up what the entries say that are new here: the first time, all of them."""
        entries = self._session.trajectory.entries
        for entry in entries[self._looked :]:
            if entry.kind in (Kind.COMPACTION, Kind.REBASE):
                self._appended = None
            found = entry.meta.get(META)
            if isinstance(found, Mapping) and "shown" in found:
                self._take_up(entry, found)
        self._looked = len(entries)

    def _take_up(self, entry: Entry, found: Mapping[str, Any]) -> None:
        """Go on from what an earlier bar left. What another version wrote in another form is as if
        it were not there: the next bar is whole."""
        try:
            if "choice" in found and found["model"] == self._session.model.name:
                self._choice, self._told = Choice.from_json(found["choice"]), True
            self._tally = Tally(*found["tally"])
            self._counted_to, self._arrivals = int(found["counted_to"]), int(found["arrivals"])
            shown = {str(heading): dict(marks) for heading, marks in found["shown"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            shown = None
        if entry.kind is Kind.STATUS:
            self._appended = shown
        else:
            self._replaced = shown

    def _choose(self, parts: Sequence[Part]) -> Choice:
        session = self._session
        bar = self._entry(full_bar(parts, apart=self._apart))
        past = self._past.measures(session.id, session.model.name, session.tokens.tokens_of(bar))
        made = choose(self._settings.mode, session.model.profile, past)
        session.remark("status.mode", made.words())
        if made.asked not in ("auto", made.mode):
            session.tell(Warned(f"The status bar is not {made.asked}d: {made.why}; {made.mode}."))
        self._choice = made
        return made

    @property
    def _apart(self) -> bool:
        return bool(self._session.model.profile.status_role)

    # --- telling ---

    async def _append(self, parts: Sequence[Part]) -> None:
        session = self._session
        if self._appended is None:
            bar = full_bar(parts, apart=self._apart)
        else:
            bar = delta_bar(parts, self._appended, apart=self._apart)
        self._count(session.trajectory.next_seq + 1)
        await session.record(self._entry(bar))
        self._told, self._appended = True, bar.shown
        self._looked = session.trajectory.next_seq

    def _replace(self, parts: Sequence[Part], news: bool) -> None:
        bar = full_bar(parts, apart=self._apart)
        if news:
            self._count(self._session.trajectory.next_seq)
        self._replaced = bar.shown
        self._session.tail = self._entry(bar)

    def _entry(self, bar: Bar) -> Entry:
        session = self._session
        state: dict[str, Any] = {
            "mode": "" if self._choice is None else self._choice.mode,
            "full": bar.full,
            "shown": bar.shown,
            "tally": [self._tally.updates, self._tally.added],
            "counted_to": self._counted_to,
            "arrivals": self._arrivals,
        }
        if self._choice is not None and not self._told:
            state |= {"model": session.model.name, "choice": self._choice.to_json()}
        meta: dict[str, Any] = {META: state}
        if self._apart:
            meta["apart"] = True
        at = session.dispatcher.around.clock.now()
        return Entry(Kind.STATUS, bar.parts(), at, session.trajectory.next_seq, meta)

    def _count(self, counted_to: int) -> None:
        """One update more, and what was added since the one before; from now on what comes after
        `counted_to` is counted."""
        session = self._session
        if self._tally.updates:
            added = session.trajectory.entries[self._counted_to :]
            self._tally.added += sum(session.tokens.tokens_of(entry) for entry in added)
        self._tally.updates += 1
        self._counted_to = counted_to
        self._past.keep(session.id, session.model.name, self._tally)
