"""Keeping one session's context small: looked at before every request.

What is planned and checked is in `lorimer.context.compaction`; here it meets the session: its
tokens, its model, its record. Every step is one commit, or leaves nothing behind but blobs.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lorimer.context.auditor.expected import rule_of
from lorimer.context.compaction.choose import chosen
from lorimer.context.compaction.depth import DEPTHS, WHOLE, Depth
from lorimer.context.compaction.digest import Digest, References
from lorimer.context.compaction.history import CLOSED, FAILED, TOKENS, History
from lorimer.context.compaction.instructions import in_view
from lorimer.context.compaction.notes import NOTE
from lorimer.context.compaction.options import Compaction
from lorimer.context.compaction.plan import Made, Plan, characters_of, make
from lorimer.context.compaction.summary import Checked, Dropped, Refused, told
from lorimer.core.errors import LorimerError
from lorimer.core.messages import Entry, Kind
from lorimer.core.watch import Warned
from lorimer.runtime.compaction_planning import plan_for, units_for
from lorimer.runtime.compaction_references import references_of
from lorimer.runtime.compaction_report import Report, Trial, cannot_help, is_small
from lorimer.runtime.compaction_sources import Sources
from lorimer.runtime.compaction_worth import LEAST, NEARLY_FULL, STEP, Worth
from lorimer.runtime.summaries import Stopped, Summariser

if TYPE_CHECKING:
    from lorimer.runtime.session import Session
    from lorimer.tools.dispatch.state import CallState


class SessionCompaction:
    """Compacts one session. `options` is `None` where nothing is to be done."""

    def __init__(self, session: Session, options: Compaction | None) -> None:
        self.session = session
        self.options = options
        self.history = History()
        self.sources = Sources(session)
        self._said: set[str] = set()
        self._tried_at = -1
        self._wait_until = 0.0
        self._entry_failures: list[str] = []
        self.fault: LorimerError | None = None
        """Why the model gave no summary when it was asked last."""

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
                "breaker",
                f"The context is not compacted any more: {self.history.failures} tries in a row "
                f"failed (the last: {self.history.why}). Begin a new session, or try by hand: "
                f"lorimer compact {self.session.id}",
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
                await self._when_full(options, tokens, budget)
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
        return await self._compact(options, tokens, dry_run=dry_run)

    async def _when_full(self, options: Compaction, tokens: int, budget: int) -> None:
        """Compact where that is worth a break of the cache, or where it cannot wait."""
        forced = tokens > NEARLY_FULL * budget
        if tokens < self._wait_until and not forced:
            return
        if self._wait_until and tokens < self._wait_until - 2 * STEP * budget:
            self._wait_until = 0.0
        prefix = tokens * len(self.session.trajectory.prefix.rendered) / self._everything()
        if prefix > options.threshold * budget - LEAST * budget:
            self._once(
                "prefix",
                f"The instructions and tools alone have about {round(prefix):,} tokens of the "
                f"{budget:,} that a request may have; there is little room for anything else. Give "
                "the session fewer tools or shorter instructions, or a model with a larger window.",
            )
        await self._compact(options, tokens, must=forced)

    async def _compact(
        self, options: Compaction, tokens: int, *, must: bool = True, dry_run: bool = False
    ) -> Report:
        """Args:
        must: also when it wins little.
        """
        layered = options.strategy == "layered"
        units = units_for(self.session, tokens, self.budget)
        view = self.session.trajectory.view
        free = sum(
            characters_of(view[at])
            for unit in units
            if not unit.why_kept and (unit.turns or layered)
            for at in range(unit.first, unit.last + 1)
        )
        worth = Worth.of(tokens, free / self._everything(), options.threshold, self.budget)
        if not must and not worth.possible:
            return self._wait(options, tokens)
        best: Trial | None = None
        model: Checked | None = None
        fresh = 0
        plans: dict[bool, tuple[Plan, References]] = {}
        for depth in DEPTHS if layered else DEPTHS[:1]:
            if depth.fold and best is None and tokens <= worth.goal:
                break  # nothing is new, and nothing is too large
            if depth.fold not in plans:
                plan = plan_for(self.sources, units, fold=depth.fold)
                references = await references_of(self.session, plan.digests, write=not dry_run)
                plans[depth.fold] = plan, references
            plan, references = plans[depth.fold]
            if not plan.blocks:
                continue
            fresh = fresh or (0 if depth.fold else plan.characters)
            trial = await self._attempt(
                plan, options, tokens, worth.goal, depth, references, model, dry_run
            )
            model = trial.model
            if best is None or worth.is_better(trial.report, best.report):
                best = trial
            if not best.report.why and best.report.tokens_after <= worth.goal:
                break
        if best is None or (best.report.why and not fresh):
            return self._nothing(options, tokens)
        if dry_run:
            return best.report
        if best.report.why:
            if layered and not must and tokens * fresh / self._everything() < worth.least:
                return self._wait(options, tokens)  # there will be more to replace
            await self._failed(best.report.why)
            return best.report
        if not must and layered and not worth.enough(best.report):
            return self._wait(options, tokens)
        self._wait_until = 0.0
        return await self._record(best, options)

    def _wait(self, options: Compaction, tokens: int) -> Report:
        """Nothing now: it would break the cache for little. Later there is more to replace."""
        self._wait_until = tokens + STEP * (self.budget or 0)
        why = "it would save too little to be worth sending the context anew"
        return Report(options.strategy, why=why, tokens_before=tokens, tokens_after=tokens)

    def _everything(self) -> int:
        """The characters of the next request."""
        trajectory = self.session.trajectory
        return max(1, sum(map(characters_of, trajectory.view)) + len(trajectory.prefix.rendered))

    async def _attempt(
        self, plan: Plan, options: Compaction, tokens: int, goal: float, depth: Depth,
        references: References, model: Checked | None, dry_run: bool,
    ) -> Trial:  # fmt: skip
        """One way to carry out `plan`."""
        asks = options.strategy != "layered"
        notes: Sequence[str] = ()
        users = [e.text for e in self.session.trajectory.entries if e.kind is Kind.USER]
        choose = functools.partial(
            chosen, plan.digests, term_share=depth.terms * options.term_share, asked=users,
            noted=self.sources.noted(),
        )  # fmt: skip
        share = 0.0 if asks else depth.facts * options.fact_share
        digests = await asyncio.to_thread(choose, fact_share=share)
        made, report = self._made(
            plan.with_digests(digests), options, tokens, references, "notes", depth=depth
        )
        enough = not report.why and (report.tokens_after <= goal or cannot_help(report, goal))
        enough = enough or is_small(plan.digests)
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
            share = 0.4 * depth.facts * options.fact_share
            digests = await asyncio.to_thread(choose, fact_share=share)
        lines = model.lines
        digests = [
            replace(d, lines=tuple(lines[d.call.id])) if lines.get(d.call.id) else d
            for d in digests
        ]
        summed, with_model = self._made(
            plan.with_digests(digests), options, tokens, references, "model", notes, depth
        )
        with_model = replace(with_model, dropped=len(model.dropped))
        notes_are_smaller = report.tokens_after < with_model.tokens_after
        if not asks and options.summary != "always" and notes_are_smaller:
            return Trial(report, made, model)
        return Trial(with_model, summed, model)

    def _made(
        self, plan: Plan, options: Compaction, tokens: int, references: References, level: str,
        notes: Sequence[str] = (), depth: Depth = WHOLE,
    ) -> tuple[Made, Report]:  # fmt: skip
        made = make(plan, references, self.session.agent.clock.now(), notes, depth=depth)
        before = plan.characters
        why = ""
        if made.characters > (1 - options.smaller_by) * before:
            shrunk = 1 - made.characters / before if before else 0.0
            why = f"it would be {shrunk:.0%} smaller; {options.smaller_by:.0%} is the least"
        after = round(tokens * (1 - (before - made.characters) / self._everything()))
        report = Report(
            options.strategy, False, level, why, made.calls, plan.kept,
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
            words += (
                f" {report.dropped} line(s) of the summary were dropped or replaced by quotations: "
                "they are not in the words of a source."
            )
        self._tell(words)
        return replace(report, done=True)

    # --- failures ---

    def _nothing(self, options: Compaction, tokens: int) -> Report:
        why = "there is nothing that may be left out: only what is newest, loaded or not finished"
        self._once("nothing", f"The context has about {tokens:,} tokens, and {why}.")
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
        units = units_for(self.session, tokens, self.budget)
        plan = plan_for(self.sources, units, fold=False, noise=True)
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

    def _once(self, key: str, words: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._tell(words)
