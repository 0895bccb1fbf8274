"""Keeping one session's context small: looked at before every request.

What is planned and checked is in `lorimer.context.compaction`; here it meets the session: its
tokens, its model, its record. Every step is one commit, or leaves nothing behind but blobs.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lorimer.context.auditor.expected import rule_of
from lorimer.context.compaction.choose import chosen
from lorimer.context.compaction.digest import Digest, References
from lorimer.context.compaction.history import CLOSED, FAILED, TOKENS, History
from lorimer.context.compaction.instructions import in_view
from lorimer.context.compaction.notes import NOTE
from lorimer.context.compaction.options import Compaction
from lorimer.context.compaction.plan import Made, Plan, characters_of, make, plan_of
from lorimer.context.compaction.summary import Checked, Dropped, Refused, told
from lorimer.context.compaction.units import Unit, units_of, whole_loop
from lorimer.core.messages import Entry, Kind
from lorimer.core.watch import Warned
from lorimer.runtime.compaction_references import references_of
from lorimer.runtime.compaction_report import Report, Trial, cannot_help
from lorimer.runtime.compaction_sources import Sources
from lorimer.runtime.summaries import Stopped, Summariser

if TYPE_CHECKING:
    from lorimer.runtime.session import Session
    from lorimer.tools.dispatch.state import CallState

_ROOM: Final = 0.75
"""Of the threshold, what a compaction tries to come down to: below it there is room for some turns
before the next one."""
_GOOD_PART: Final = 0.1
_NEARLY_FULL: Final = 0.95
"""Share of the budget above which an open thinking loop is compacted whole."""
_DEPTHS: Final = ((1.0, 1.0, False), (0.3, 0.5, True), (0.0, 0.25, True), (0.0, 0.1, True))
"""How much of lines and terms stays, and whether earlier summaries are made shorter too: each is
tried when the one before it was not small enough."""


class SessionCompaction:
    """Compacts one session. `options` is `None` where nothing is to be done."""

    def __init__(self, session: Session, options: Compaction | None) -> None:
        self.session = session
        self.options = options
        self.history = History()
        self.sources = Sources(session)
        self._said: set[str] = set()
        self._tried_at = -1
        self._entry_failures: list[str] = []

    # --- before each request ---

    async def before_request(self) -> None:
        """Compact when the context is over its threshold.

        Cancellation: nothing is recorded, or all of it.
        """
        options = self.options
        if options is None or options.strategy == "none":
            return
        entries = self.session.trajectory.entries
        self.history.feed(entries)
        for why in self._entry_failures:  # calls were open when it happened
            await self.record_failure(why)
        self._entry_failures.clear()
        if options.strategy == "layered":
            await self._note(ended=False)
        if self.history.open(options.most_failures):
            self._once(
                f"The context is not compacted any more: {self.history.failures} tries in a row "
                f"failed (the last: {self.history.why}). Begin a new session, or try by hand: "
                f"lorimer compact {self.session.id}"
            )
            return
        if options.at_entry:
            return
        tokens = self.session.tokens.before_request().tokens
        budget = self.budget
        if budget is None or self._tried_at == len(entries):
            return
        try:
            if tokens > options.threshold * budget:
                self._tried_at = len(entries)
                await self.compact(tokens=tokens)
            elif options.strategy == "layered" and not self._provider_edits and self._is_cold():
                await self._drop_noise(tokens)
        except Stopped:
            return

    @property
    def budget(self) -> int | None:
        """Tokens that a request may have."""
        tokens = self.session.tokens
        if self.options is None or self.options.window is None:
            return tokens.budget
        return self.options.window - min(tokens.reserved, self.options.window // 4)

    async def entering(self, states: Sequence[CallState]) -> None:
        """Summarise the results of `states` where the strategy does that, before they are
        recorded."""
        cancelled = self.session.dispatcher.cancelled or self.session.cancel_requested
        if self.options is not None and self.options.at_entry and not cancelled:
            from lorimer.runtime.compaction_entry import summarise

            await summarise(self, states)

    def failed_at_entry(self, why: str) -> None:
        """A summary of a result could not be used: it enters whole. Counted once nothing is
        open."""
        self._entry_failures.append(why)
        self._tell(f"A result enters as it is: {why}.", "compaction.summary")

    async def after_turn(self) -> None:
        """Write the note of the turn that has just ended (layered)."""
        if self.options is not None and self.options.strategy == "layered":
            self.history.feed(self.session.trajectory.entries)
            await self._note(ended=True)

    # --- one compaction ---

    async def compact(
        self, *, tokens: int | None = None, strategy: str = "", dry_run: bool = False
    ) -> Report:
        """Compact everything old, now.

        Args:
            tokens: of the next request, where that is known.
            strategy: another one than the session's own.
            dry_run: only say what would be done; no model is asked and nothing is recorded.

        Cancellation: nothing is recorded, or all of it.

        Raises:
            Stopped: when the run was cancelled while the model wrote.
        """
        options = self.options or Compaction()
        options = replace(options, strategy=strategy or options.strategy)
        if tokens is None:
            tokens = self.session.tokens.before_request().tokens
        if options.strategy == "none":
            return Report("none", why="the strategy none leaves everything as it is")
        self.history.feed(self.session.trajectory.entries)
        full = options.threshold * self.budget if self.budget else float("inf")
        goal = _ROOM * full
        best: Trial | None = None
        model: Checked | None = None
        fresh = False
        for facts, terms, fold in _DEPTHS if options.strategy == "layered" else _DEPTHS[:1]:
            if fold and best is None and tokens <= goal:
                break  # nothing is new, and nothing is too large
            plan = self._plan(options, tokens, fold=fold)
            if not plan.blocks:
                continue
            fresh = fresh or not fold
            trial = await self._attempt(plan, options, tokens, goal, facts, terms, model, dry_run)
            model = trial.model
            if best is None or _is_worth(trial.report, best.report, full):
                best = trial
            if not best.report.why and best.report.tokens_after <= goal:
                break
        if best is None or (best.report.why and not fresh):
            return self._nothing(options, tokens)
        if dry_run:
            return best.report
        if best.report.why:
            await self._failed(best.report.why)
            return best.report
        return await self._record(best, options)

    def _plan(self, options: Compaction, tokens: int, *, fold: bool, noise: bool = False) -> Plan:
        session = self.session
        view, covers = session.trajectory.view, session.trajectory.covers()
        goes_back = session.model.profile.reasoning != "drop"
        units = units_of(view, reasoning_goes_back=goes_back)
        budget = self.budget
        loop: Unit | None = None
        if units and budget is not None and tokens > _NEARLY_FULL * budget:
            loop = whole_loop(units[-1], view)
            if loop is not None:
                units[-1] = loop
        if noise:
            units = [
                u if u.turns and all(self.sources.is_noise(view[t.results]) for t in u.turns)
                else replace(u, why_kept=u.why_kept or "it is no noise")
                for u in units
            ]  # fmt: skip
        again = self.sources.again(view) if fold else None
        return plan_of(
            view, covers, units, self.sources.digests, again=again, whole_loop=loop is not None
        )

    async def _attempt(
        self, plan: Plan, options: Compaction, tokens: int, goal: float, facts: float, terms: float,
        model: Checked | None, dry_run: bool,
    ) -> Trial:  # fmt: skip
        """One way to carry out `plan`."""
        references = await references_of(self.session, plan.digests, write=not dry_run)
        asks = options.strategy != "layered"
        notes: Sequence[str] = ()
        users = [e.text for e in self.session.trajectory.entries if e.kind is Kind.USER]
        choose = functools.partial(
            chosen, plan.digests, term_share=terms * options.term_share, asked=users,
            noted=self.sources.noted(),
        )  # fmt: skip
        share = 0.0 if asks else facts * options.fact_share
        digests = await asyncio.to_thread(choose, fact_share=share)
        made, report = self._made(plan.with_digests(digests), options, tokens, references, "notes")
        enough = not report.why and (report.tokens_after <= goal or cannot_help(report, goal))
        wants = asks or options.summary == "always" or not (enough or options.summary == "never")
        if not wants or dry_run:
            if asks and dry_run:
                report = replace(report, level="model", why="")
            return Trial(report, made, model)
        if model is None:
            model = await self._summary(plan.digests, options, tokens)
            if model.refused is not None:
                words = f"The summary could not be used: {model.refused.words}."
                words += "" if asks else " The notes alone are used."
                self._tell(words, "compaction.summary")
        if model.refused is not None:
            if asks:
                report = replace(report, why=model.refused.words)
            return Trial(report, made, model)
        notes = told(model.dropped)
        if not asks:  # what the model left out of a result stays as code chose it
            share = 0.4 * facts * options.fact_share
            digests = await asyncio.to_thread(choose, fact_share=share)
        lines = model.lines
        digests = [
            replace(d, lines=tuple(lines[d.call.id])) if lines.get(d.call.id) else d
            for d in digests
        ]
        summed, with_model = self._made(
            plan.with_digests(digests), options, tokens, references, "model", notes
        )
        with_model = replace(with_model, dropped=len(model.dropped))
        notes_are_smaller = report.tokens_after < with_model.tokens_after
        if not asks and options.summary != "always" and notes_are_smaller:
            return Trial(report, made, model)
        return Trial(with_model, summed, model)

    def _made(
        self, plan: Plan, options: Compaction, tokens: int, references: References, level: str,
        notes: Sequence[str] = (),
    ) -> tuple[Made, Report]:  # fmt: skip
        made = make(plan, references, self.session.agent.clock.now(), notes)
        before = plan.characters
        why = ""
        if made.characters > (1 - options.smaller_by) * before:
            shrunk = 1 - made.characters / before if before else 0.0
            why = f"it would be {shrunk:.0%} smaller; {options.smaller_by:.0%} is the least"
        view = self.session.trajectory.view
        prefix = self.session.trajectory.prefix.rendered
        everything = max(1, sum(map(characters_of, view)) + len(prefix))
        after = round(tokens * (1 - (before - made.characters) / everything))
        report = Report(
            options.strategy, False, level, why, tuple(d.call.id for d in plan.digests), plan.kept,
            tokens, after, before, made.characters, 0, made.texts,
        )  # fmt: skip
        return made, report

    async def _summary(
        self, digests: Sequence[Digest], options: Compaction, tokens: int
    ) -> Checked:
        window = options.window or self.session.tokens.window
        most = self.summary_tokens(options)
        unsent = self.session.trajectory.view[self._sent() :]
        tokens -= sum(map(self.session.tokens.tokens_of, unsent))
        if window is not None and tokens + most > window:
            return Checked(refused=Refused("failed", "the window has no room for one"))
        summariser = Summariser(self.session, most, options.cited)
        groups = [[one] for one in digests] if options.strategy == "per_result" else [digests]
        lines: dict[str, list[str]] = {}
        dropped: list[Dropped] = []
        for group in groups:
            checked = await summariser.ask(
                in_view(group, summariser.most_characters, cited=options.cited),
                group, f"summary ({options.strategy})", count=self._sent(),
            )  # fmt: skip
            if checked.refused is not None:
                return checked
            lines |= checked.lines
            dropped += checked.dropped
        return Checked(lines, tuple(dropped))

    def summary_tokens(self, options: Compaction) -> int:
        """What a summary may have: in a small window less."""
        window = options.window or self.session.tokens.window
        most = options.summary_tokens
        return most if window is None else max(64, min(most, window // 8))

    def _sent(self) -> int:
        """How many entries of the view the last request had: what came since is not compacted, and
        would only have to be read anew."""
        view = self.session.trajectory.view
        answers = (at for at in range(len(view) - 1, -1, -1) if view[at].kind is Kind.ASSISTANT)
        newest = next(answers, len(view))
        turn = view[newest] if newest < len(view) else None
        return newest if turn is not None and turn.calls else len(view)

    async def _record(self, trial: Trial, options: Compaction) -> Report:
        report = trial.report
        meta: dict[str, Any] = {
            "spans": [span.to_json() for span in trial.made.spans],
            "strategy": options.strategy,
            "level": report.level,
            TOKENS: report.tokens_before,
            "characters": [report.characters_before, report.characters_after],
        }
        if trial.model is not None and trial.model.dropped:
            meta["dropped"] = [[one.why, one.text[:300]] for one in trial.model.dropped[:50]]
        session = self.session
        count = len(report.calls)
        session.remark("compaction", f"{report.strategy}, {report.level}: {count} calls")
        await session.record(Entry(Kind.COMPACTION, (), session.agent.clock.now(), meta=meta))
        self.history.feed(session.trajectory.entries)
        words = (
            f"The context was compacted: {len(report.calls)} calls, about "
            f"{report.tokens_before:,} tokens to {report.tokens_after:,} ({report.level})."
        )
        if report.dropped:
            words += f" {report.dropped} line(s) of the summary were dropped: no source holds them."
        self._tell(words)
        return replace(report, done=True)

    # --- failures ---

    def _nothing(self, options: Compaction, tokens: int) -> Report:
        why = "there is nothing that may be left out: only what is newest, loaded or not finished"
        self._once(f"The context has about {tokens:,} tokens, and {why}.")
        return Report(options.strategy, why=why, tokens_before=tokens, tokens_after=tokens)

    async def _failed(self, why: str) -> None:
        await self.record_failure(why)
        most = (self.options or Compaction()).most_failures
        words = f"The context could not be compacted: {why}."
        if self.history.open(most):
            words += f" That was the {self.history.failures}th failure in a row: no more tries."
        self._tell(words)

    async def record_failure(self, why: str) -> None:
        """Count a failure, for good."""
        await self._archive({FAILED: why})

    async def close_breaker(self) -> None:
        """Let compaction be tried again after failures (a person asks for it)."""
        self.history.feed(self.session.trajectory.entries)
        if self.history.failures:
            await self._archive({CLOSED: True})

    async def _archive(self, meta: dict[str, Any]) -> None:
        session = self.session
        await session.record(Entry(Kind.ARCHIVE, (), session.agent.clock.now(), meta=meta))
        self.history.feed(session.trajectory.entries)

    async def _note(self, *, ended: bool) -> None:
        for note in await self.sources.new_notes(self.history, ended=ended):
            await self._archive({NOTE: note})

    # --- noise ---

    def _is_cold(self) -> bool:
        """Whether the provider's cache has surely forgotten this session."""
        entries = self.session.trajectory.entries
        asked = next((e for e in reversed(entries) if "usage" in e.meta), None)
        if asked is None:
            return False
        idle = (self.session.agent.clock.now() - asked.at).total_seconds()
        return idle > rule_of(self.session.model.profile).kept_s

    async def _drop_noise(self, tokens: int) -> None:
        options = self.options
        assert options is not None
        plan = self._plan(options, tokens, fold=False, noise=True)
        if not plan.blocks:
            return
        references = await references_of(self.session, plan.digests, write=True)
        made, report = self._made(plan, options, tokens, references, "noise")
        if not report.why:
            await self._record(Trial(report, made, None), options)

    @property
    def _provider_edits(self) -> bool:
        return "context_management" in (self.session.settings.extra or {})

    # --- telling ---

    def _tell(self, words: str, action: str = "") -> None:
        if action:
            self.session.remark(action, words)
        self.session.tell(Warned(self.session.agent.secrets.redact(words)))

    def _once(self, words: str) -> None:
        key = words.split(":")[0][:40]
        if key not in self._said:
            self._said.add(key)
            self._tell(words)


def _is_worth(deeper: Report, best: Report, full: float) -> bool:
    """Whether to say less of old results than `best` does: to get below the threshold, or for a
    good part of it. What is large besides is no reason."""
    if bool(deeper.why) != bool(best.why):
        return not deeper.why
    if best.tokens_after <= full:
        return False
    saved = best.tokens_after - deeper.tokens_after
    return saved > 0 and (deeper.tokens_after <= full or saved > _GOOD_PART * full)
