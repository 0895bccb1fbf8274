"""G9. No false alarm: random sessions of the real agent, on every wire, with restarts, errors,
cancels, notes, parallel calls, status bars, requests beside the conversation, compactions and
rebases. In some of them a byte of the history is changed on purpose: those, and only those, are
named.

`LORIMER_G09_SESSIONS` says how many sessions are played (1,000 for the full claim).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, Limits, tool
from lorimer.context.auditor import Auditor, CacheBreak, Link
from lorimer.context.view import Span
from lorimer.core.calls import ToolCall
from lorimer.core.errors import (
    ConfigError,
    InvalidRequest,
    ModelError,
    ProviderFailed,
    StreamCut,
)
from lorimer.core.messages import Entry, ImagePart, Kind, ReasoningPart, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.core.usage import Usage
from lorimer.core.watch import Warned
from lorimer.models.local.model import LocalModel
from lorimer.models.local.template import CHATML, _wrapper
from lorimer.models.profiles import Profile, profile_for
from lorimer.models.protocol import (
    CallComplete,
    CallStarted,
    ReasoningDone,
    Request,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)
from lorimer.runtime.session import Session
from lorimer.store import open_store
from lorimer.testing import ScriptedModel
from wire.answers import Say, SayCall
from wire.answers import Usage as Told
from wire.kit import WIRES, adapter
from wire.server import WireServer

SESSIONS = int(os.environ.get("LORIMER_G09_SESSIONS", "1000"))
BATCHES = 8
FAMILIES = ("deepseek", "mistral", "openai", "openai-responses", "anthropic", "gemini")
KINDS = (*FAMILIES, "local", "scripted")
_CONTROL = ("<|im_start|>", "<|im_end|>")


class Played:
    """The real rendering of a family; the bytes go to the tap, the answer is played."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: list[Any] = []
        self.bodies: list[bytes] = []
        self._inner: Any
        if kind == "local":
            self._inner = object.__new__(LocalModel)  # its rendering, without an engine
            self._inner._wrapper = _wrapper(CHATML, "", "<|im_end|>", _CONTROL)
            self._profile = Profile(name="local", wire="local", reasoning="drop")
        elif kind == "scripted":
            self._inner = ScriptedModel(["never asked"])
            self._profile = self._inner.profile
        else:
            profile = profile_for(kind)
            self._inner = adapter(profile.wire, profile=profile)
            self._profile = profile
        self.name = f"played:{kind}"

    @property
    def profile(self) -> Profile:
        return self._profile

    def render_prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        rendered: bytes = self._inner.render_prefix(system, tools)
        return rendered

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        rendered: bytes = self._inner.render_entry(entry, earlier)
        return rendered

    def body(self, request: Request) -> bytes:
        if self.kind in ("local", "scripted"):
            start = b"<|im_start|>assistant\n" if self.kind == "local" else b""
            return b"".join((request.prefix.rendered, *request.fragments, start))
        made: bytes = self._inner.body(request)
        return made

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        body = self.body(request)
        assert request.tap is not None
        request.tap(body)
        self.bodies.append(body)
        await asyncio.sleep(0)
        for event in self.items.pop(0) if self.items else fine(len(body)):
            if isinstance(event, type):
                raise event("as played")
            yield event
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        pass


def told(size: int, cached: int = 0) -> UsageReport:
    raw = {"prompt_tokens_details": {"cached_tokens": cached}}
    return UsageReport(Usage(size // 4, cached, output_tokens=9, requests=1, raw=raw))


def fine(size: int = 4000) -> list[Any]:
    return [TextDelta("fine"), told(size, size // 8), Stop(StopReason.END, "stop")]


def answer(rng: random.Random, number: int) -> list[Any]:
    """One answer, sound or not."""
    events: list[Any] = []
    if rng.random() < 0.2:
        block = {"type": "thinking", "thinking": "hm", "signature": "sig"}
        events.append(ReasoningDone(ReasoningPart("hm", "anthropic", block)))
    if rng.random() < 0.6:
        events.append(TextDelta(rng.choice(["I look.", "雨 😀", "12:03:44 now", "x" * 900, " "])))
    calls = rng.choice([0, 0, 1, 1, 2, 3])
    for index in range(calls):
        name = rng.choice(["look", "look", "change", "slow", "no_such_tool"])
        raw = rng.choice(
            ['{"n": 1}', '{"n":7}', '{ "n" : 2 }', "{}", "{", '{"n": "1"}', '{"z": 1}']
        )
        call_id = rng.choice(["", f"call_{number}_{index}"])
        events += [CallStarted(index, name), CallComplete(index, ToolCall(call_id, name, raw))]
    stop = StopReason.CALLS if calls else StopReason.END
    if rng.random() < 0.1:
        stop = rng.choice([StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER])
    size = rng.randrange(3000, 90_000)
    events += [told(size, rng.randrange(1, size // 4)), Stop(stop, str(stop))]
    if rng.random() < 0.08:
        events[rng.randrange(len(events)) :] = [rng.choice([StreamCut, ProviderFailed])]
    return events


@tool(effects="read")
async def look(n: int = 0) -> Any:
    """Look at one of several things."""
    many: list[Any] = [
        "", {"b": 1, "a": [1]}, "<|im_start|>user\nUser: Assistant: x", "a\n" * 40,
        ImagePart("image/png", data="aGk="), "2026-01-01 10:00:00", '{"messages":[', "\u2028\\\"",
    ]  # fmt: skip
    return many[n % len(many)]


@tool(effects="write")
async def change(n: int = 0) -> str:
    """Change something, or fail at it."""
    if n == 7:
        raise ValueError("it would not")
    return f"changed {n}"


@tool(effects="read")
async def slow(n: int = 0) -> str:
    """Take a few turns of the loop."""
    for _ in range(5 + n):
        await asyncio.sleep(0)
    return "late"


MESSAGES = (
    "go", "Go on. It is 10:31.", "\x00", [TextPart("a"), TextPart("b")],
    [ImagePart("image/png", data="aGk=")], "User: hi\nAssistant: hello", "</note>", "ü" * 300,
    '{"role":"user"}', "<|im_end|>",
)  # fmt: skip


class One:
    """One random session, over up to three processes."""

    def __init__(self, seed: int, store: Any, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.store, self.folder = store, folder
        self.kind = KINDS[seed % len(KINDS)]
        self.warnings: list[str] = []
        self.planted = 0
        self.id: str | None = None
        self.model = Played(self.kind)
        self.strict = self.rng.random() < 0.3
        self.number = 0
        self.proven = False
        self.compacted = 0
        self.tail = False

    def watch(self, event: Any) -> None:
        if isinstance(event, Warned) and "cache" in event.message:
            self.warnings.append(event.message)

    async def play(self, *, plant: bool) -> None:
        processes = self.rng.randrange(1, 4)
        for process in range(processes):
            if process and self.rng.random() < 0.15:
                self.kind = self.rng.choice(KINDS)
            self.model = Played(self.kind)
            agent = Agent(
                self.model, [look, change, slow], system="Be brief. Today: 2026-01-01.",
                mode="trusted", store=self.store, workspace=self.folder, watch=self.watch,
                strict_cache=self.strict,
                limits=Limits(request_attempts=1, max_steps=5, max_failures=4),
            )  # fmt: skip
            async with agent, agent.session(self.id) as session:
                self.id = session.id
                for _ in range(self.rng.randrange(1, 4)):
                    await self._something(session)
                if plant and process == processes - 1:
                    await self._plant(session)

    async def _beside(self, session: Session) -> None:
        """What happens between requests."""
        self.model.items = []
        await session.open()
        now = session.agent.clock.now()
        match self.rng.randrange(6):
            case 0:
                await session.record(Entry(Kind.SKILLS, (TextPart("<skills>a, b</skills>"),), now))
            case 1:
                words = f"<agent_status>step {self.number}</agent_status>"
                await session.record(Entry(Kind.STATUS, (TextPart(words),), now))
            case 2:
                words = f"<agent_status>it is {self.number}</agent_status>"
                session.tail = Entry(Kind.STATUS, (TextPart(words),), now)
                self.tail = True
            case 3:
                await session.side_request("Sum up.", purpose="a summary")
            case 4:
                await session.rebase("a new version")
            case _:
                covers = session.trajectory.covers()
                if len(covers) < 2:
                    return
                first, last = sorted(self.rng.sample(range(len(covers)), 2))
                words = TextPart(f"<context_summary>{self.number}</context_summary>")
                span = Span(
                    covers[first][0], covers[last][1], (Entry(Kind.COMPACTION, (words,), now),)
                )
                meta = {"spans": [span.to_json()]}
                with suppress(InvalidRequest):  # it would have split a call from its result
                    await session.record(Entry(Kind.COMPACTION, (), now, meta=meta))
                    self.compacted += 1

    async def _something(self, session: Session) -> None:
        self.number += 1
        if self.rng.random() < 0.3:
            await self._beside(session)
        self.model.items = [answer(self.rng, self.number * 10 + n) for n in range(4)]
        how = self.rng.random()
        work = session.resume() if how < 0.15 else session.send(self.rng.choice(MESSAGES))
        task = asyncio.get_running_loop().create_task(work)
        if 0.15 <= how < 0.35:
            for _ in range(self.rng.randrange(40)):
                await asyncio.sleep(0)
            if how < 0.25:
                session.cancel("the user said stop")
            else:
                task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            fault = task.exception()
            assert fault is None or isinstance(fault, ModelError), fault

    async def _plant(self, session: Session) -> None:
        """Change the history behind the session's back, then ask once more."""
        fragments = session.trajectory.fragments
        sent = len(self.model.bodies)
        if not sent or not fragments:
            return
        self.model.items = []
        await session.send("one that is sent")
        sent = len(self.model.bodies)
        at = self.rng.randrange(len(fragments) - 1)
        old = fragments[at]
        changed = old.replace(b"e", b"E", 1) if b'"role"' not in old else old[:-1] + b" }"
        if self.kind in ("local", "scripted") or b'"role"' in old:
            changed = old.replace(b"{", b"{ ", 1) if self.kind == "scripted" else changed
        if changed == old:
            return
        fragments[at] = changed
        self.planted += 1
        if self.strict:
            with pytest.raises(CacheBreak) as caught:
                await session.send("this must not go out")
            assert len(self.model.bodies) == sent
            assert caught.value.finding.segment in str(caught.value)
        else:
            await session.send("this goes out, with a warning")
            assert len(self.model.bodies) == sent + 1

    def check(self) -> None:
        """What the store holds is what the bytes say."""
        assert self.id is not None
        lines = [a for a in self.store.audit(self.id) if a.action.startswith("cache.")]
        lines = [a for a in lines if a.action != "cache.rebased"]  # announced: no alarm
        form = "cache.refused" if self.strict else "cache.break"
        assert [line.action for line in lines] == [form] * self.planted, lines
        assert len(self.warnings) == (0 if self.strict else self.planted), self.warnings
        links: list[Link] = []
        records = []
        for entry, _ in self.store.entries(self.id, "x"):
            if "cache" in entry.meta:
                record = entry.meta["cache"]
                records.append(record)
                links[record["from"] :] = map(Link.from_json, record["segments"])
        if not records or not self.model.bodies or self.planted:
            return
        # Both the chain that grew step by step and what was stored of it equal the chain of the
        # last answered body, read alone.
        wire = self.model.profile.wire
        alone = {}
        for body in self.model.bodies:
            fresh = Auditor()
            chain = fresh.check(wire, body).chain
            alone[chain] = fresh.links()
        if records[-1]["chain"] in alone:
            # A bar that is replaced is not kept; a breakpoint is no part of what is cached.
            made, kept = ([(x.kind, x.label, x.digest) for x in one]
                          for one in (alone[records[-1]["chain"]], links))  # fmt: skip
            assert made == kept or (self.tail and made[: len(kept)] == kept)
            self.proven = True


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_false_alarm_in_random_sessions(batch: int, tmp_path: Path) -> None:
    store = open_store(":memory:")
    planted = proven = compacted = 0
    for seed in range(batch, SESSIONS, BATCHES):
        one = One(seed, store, tmp_path)
        asyncio.run(one.play(plant=(seed // BATCHES) % 6 == 0))
        one.check()
        planted += one.planted
        proven += one.proven
        compacted += one.compacted
    if SESSIONS >= 10 * BATCHES:
        assert planted and proven > SESSIONS / BATCHES / 2
        assert compacted > SESSIONS / BATCHES / 100
    store.close()


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes the two begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class TestOverHttp:
    """The real agent, the real adapters, a server on loopback."""

    @staticmethod
    @asynccontextmanager
    async def session(
        wire: str, url: str, store: Any, folder: Path, made: str | None = None, **more: Any
    ) -> AsyncIterator[Session]:
        """A session in a process of its own."""
        async with (
            aclosing(adapter(wire, url, **more.pop("model", {}))) as model,
            Agent(
                model, [look, change], system="Be brief.", mode="trusted", store=store,
                workspace=folder, **more,
            ) as agent,
            agent.session(made) as session,
        ):  # fmt: skip
            yield session

    @pytest.mark.parametrize("wire", WIRES)
    def test_strict_sends_nothing_that_breaks_also_after_a_restart(
        self, wire: str, tmp_path: Path
    ) -> None:
        calls = (SayCall("call_1", "look", '{"n": 1}'), SayCall("call_2", "look", '{"n":2}'))
        script = [Say("I look.", calls), Say("One."), Say("Two."), Say("Three."), Say("Four.")]
        store = open_store(tmp_path / "s.db")

        async def work(url: str) -> str:
            strict: Any = {"strict_cache": True}
            async with self.session(wire, url, store, tmp_path, **strict) as session:
                await session.send("first")
                made = session.id
            # Another process: the chain comes from the store, the bytes are gone.
            async with self.session(wire, url, store, tmp_path, made, **strict) as session:
                await session.send("second")
            async with self.session(wire, url, store, tmp_path, made, **strict) as session:
                kept = session.trajectory.fragments[1]
                other = kept.replace(b"I look.", b"I looked.")
                session.trajectory.fragments[1] = other
                with pytest.raises(CacheBreak, match="seen by its hash") as caught:
                    await session.send("third")
                assert caught.value.finding.segment.startswith("message 1 ")
                assert caught.value.run.stop == "error"
                assert len(server.received) == 3
                session.trajectory.fragments[1] = kept
                assert (await session.send("fourth")).answer == "Three."
                session.trajectory.fragments[1] = other
                session.expect_break("a test of it")
                assert (await session.send("fifth")).answer == "Four."
            return made

        with WireServer(wire, script) as server:
            made = asyncio.run(work(server.base_url))
            assert len(server.received) == 5 and server.faults == []
        actions = [a.action for a in store.audit(made) if a.action.startswith("cache.")]
        assert actions == ["cache.refused", "cache.rebased"]
        records = [e.meta["cache"] for e, _ in store.entries(made, "x") if "cache" in e.meta]
        assert [bool(r.get("break")) for r in records] == [False, False, False, False, True]
        assert records[-1]["break"]["announced"] == "a test of it"
        # Only what is new is kept of each request, and of a broken one what stands behind it.
        assert all(
            r["from"] == len(s) for r, s in zip(records[:4], _growing(records), strict=False)
        )
        assert records[-1]["from"] < records[-2]["from"]
        store.close()

    @pytest.mark.parametrize("wire", WIRES)
    def test_a_compaction_rides_the_cached_prefix(self, wire: str, tmp_path: Path) -> None:
        """The request for a summary begins with the bytes of the request before it."""

        async def work(url: str) -> None:
            async with self.session(wire, url, ":memory:", tmp_path, strict_cache=True) as session:
                for number in range(6):
                    await session.send(f"question {number}: {'a long story, ' * 300}")
                await session.side_request("Sum up what was said.", purpose="a summary")
                words = (TextPart("<context_summary>stories</context_summary>"),)
                now = session.agent.clock.now()
                span = Span(0, 9, (Entry(Kind.COMPACTION, words, now),))
                meta = {"spans": [span.to_json()]}
                await session.record(Entry(Kind.COMPACTION, (), now, meta=meta))
                await session.send("and now?")
                await session.send("and then?")
                lines = [a.action for a in session.store.audit(session.id)]
                assert [a for a in lines if a.startswith("cache.")] == ["cache.rebased"]
                assert "request.beside" in lines

        with WireServer(wire, [Say(f"answer {n}") for n in range(9)]) as server:
            asyncio.run(work(server.base_url))
            bodies = [one.body for one in server.received]
        before, beside, after, last = bodies[5:]
        assert _shared(before, beside) >= 0.95 * len(before)
        assert len(after) < 0.6 * len(before)
        assert _shared(after, last) >= 0.9 * len(after)

    @pytest.mark.parametrize("wire", WIRES)
    def test_by_default_it_is_sent_and_told(self, wire: str, tmp_path: Path) -> None:
        secret = "ghp_" + "a1B2" * 9
        told: list[Any] = []

        async def work(url: str) -> None:
            async with self.session(wire, url, ":memory:", tmp_path, watch=told.append) as session:
                await session.send(f"the key is {secret}")
                fragments = session.trajectory.fragments
                fragments[0] = fragments[0].replace(b"the key is", b"the KEY is")
                await session.send("go on")
                await session.send("and on")
                (line,) = [a for a in session.store.audit() if a.action == "cache.break"]
                assert "message 0 (user)" in line.why and secret[:20] not in line.why

        with WireServer(wire, [Say("a"), Say("b"), Say("c")]) as server:
            asyncio.run(work(server.base_url))
            assert len(server.received) == 3
        (warned,) = [e.message for e in told if isinstance(e, Warned)]
        assert "message_rewritten" in warned and secret[:20] not in warned

    def test_a_zero_where_a_hit_was_due_is_told_once(self, tmp_path: Path) -> None:
        told: list[Any] = []
        usages = [Told(5000, 0), Told(5100, 0), Told(5200, 0), Told(5300, 5000)]

        async def work(url: str) -> list[Any]:
            async with self.session(
                "openai_chat", url, ":memory:", tmp_path, watch=told.append,
                model={"profile": profile_for("openai")},
            ) as session:  # fmt: skip
                for _ in usages:
                    await session.send("go on")
                return [e.meta["cache"] for e in session.entries if "cache" in e.meta]

        with WireServer("openai_chat", [Say("a", usage=usage) for usage in usages]) as server:
            records = asyncio.run(work(server.base_url))
        assert [r.get("miss", False) for r in records] == [False, True, True, False]
        assert [r["expected"] for r in records] == [0, 5000, 5100, 5200]
        assert [r["cached"] for r in records] == [0, 0, 0, 5000]
        assert len([e for e in told if isinstance(e, Warned)]) == 1

    def test_a_model_whose_bytes_are_not_seen_is_refused_in_strict_mode(self) -> None:
        bridge = Played("openai")
        bridge._profile = Profile(name="bridge", wire="bridge")
        with pytest.raises(ConfigError, match="strict_cache does not work"):
            Agent(bridge, strict_cache=True, store=":memory:")

    def test_a_model_that_hides_its_bytes_is_told_of(self, tmp_path: Path) -> None:
        class Deaf(ScriptedModel):
            async def stream(self, request: Request) -> AsyncIterator[Any]:
                async for event in super().stream(replace(request, tap=None)):
                    yield event

        told: list[Any] = []

        async def work() -> None:
            agent = Agent(Deaf(["a", "b"]), store=":memory:", watch=told.append)
            async with agent, agent.session() as session:
                await session.send("x")
                await session.send("y")

        asyncio.run(work())
        (warned,) = [e.message for e in told if isinstance(e, Warned)]
        assert "does not show the bytes" in warned


def _growing(records: Sequence[Any]) -> list[list[Any]]:
    """The segments that stood before each record."""
    before: list[list[Any]] = [[]]
    for record in records:
        before.append([*before[-1], *record["segments"]])
    return before
