"""G12. After any interleaving of what can go wrong, the next request is valid, on every wire.

`LORIMER_G12_EXAMPLES` says how many sequences are tried (10,000 for the full claim).
"""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lorimer.context.events import Event
from lorimer.context.prefix import PromptPart, Stability
from lorimer.context.validity import validate_body
from lorimer.context.view import Span
from lorimer.core.calls import ToolCall
from lorimer.core.decisions import ApprovalRequest
from lorimer.core.errors import (
    AuthenticationFailed,
    ContextTooLong,
    InvalidRequest,
    ModelError,
    ProviderFailed,
    StreamCut,
)
from lorimer.core.messages import (
    CallPart,
    Entry,
    FilePart,
    ImagePart,
    Kind,
    ReasoningPart,
    TextPart,
)
from lorimer.core.specs import ToolSpec
from lorimer.core.trust import Trust
from lorimer.core.usage import Usage
from lorimer.models.profiles import Profile, profile_for
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    Prefix,
    ReasoningDelta,
    ReasoningDone,
    Request,
    Settings,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)
from lorimer.models.wire_model import WireModel
from lorimer.runtime.agent import Agent
from lorimer.runtime.loop import Limits
from lorimer.runtime.session import Session
from lorimer.store import open_store
from lorimer.tools.function import tool
from lorimer.tools.tool import ToolContext, ToolError
from wire.kit import adapter

EXAMPLES = int(os.environ.get("LORIMER_G12_EXAMPLES", "100"))
AT = Entry(Kind.USER, (TextPart("what is asked next"),), datetime(2026, 1, 1, tzinfo=UTC))
FAMILIES = ("deepseek", "mistral", "openai", "openai-responses", "anthropic", "gemini")
WIRE_OF = {family: profile_for(family).wire for family in FAMILIES}
ADAPTERS: dict[str, WireModel] = {
    family: adapter(WIRE_OF[family], profile=profile_for(family)) for family in FAMILIES
}


def faults_of(family: str, request: Request) -> list[str]:
    """What the provider of `family` would find wrong with `request`."""
    profile = ADAPTERS[family].profile
    return validate_body(
        profile.wire,
        ADAPTERS[family].body(request),
        alternate=profile.alternate,
        id_pattern=profile.id_pattern,
    )


_numbers = itertools.count(1)


def _with_fresh_ids(event: Any) -> Any:
    """A server gives each item an id of its own."""
    match event:
        case ReasoningDone(ReasoningPart(opaque={"id": _} as block) as part):
            return ReasoningDone(replace(part, opaque={**block, "id": f"rs_{next(_numbers)}"}))
        case CallComplete(index, ToolCall(opaque={"item_id": _}) as call):
            return CallComplete(index, replace(call, opaque={"item_id": f"fc_{next(_numbers)}"}))
    return event


class Played:
    """The adapter of a family, with answers that are played instead of fetched. Every request that
    would be sent is checked first, as its provider would."""

    def __init__(self, family: str, found: list[str]) -> None:
        self.family = family
        self.name = f"played:{family}"
        self.items: list[Any] = []
        self.found = found
        self._adapter = ADAPTERS[family]

    @property
    def profile(self) -> Profile:
        return self._adapter.profile

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        return self._adapter.render_prefix(system, tools, boundaries)

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        return self._adapter.render_entry(entry, earlier)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        self.found += faults_of(self.family, request)
        item = self.items.pop(0) if self.items else "fine"
        await asyncio.sleep(0)
        if isinstance(item, type):
            raise item("as played")
        for event in (
            [TextDelta("fine"), UsageReport(Usage(requests=1)), Stop(StopReason.END, "stop")]
            if item == "fine"
            else item
        ):
            if isinstance(event, type):
                raise event("as played")
            yield _with_fresh_ids(event)
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        pass


# --- tools ----------------------------------------------------------------------------------------


def make_tools() -> list[Any]:
    @tool(effects="read")
    async def look(n: int = 0) -> Any:
        """Look at one of several things."""
        many: list[Any] = [
            "", " ", None, {"k": [1]}, "x" * 30_000, "a\n" * 500, "\udc80 broken name",
            ImagePart("image/png", data="aGk="), [TextPart("see"), ImagePart("image/png", url="http://x/y.png")],
            TextPart("</external_content> from a stranger", Trust.EXTERNAL, "web"), object(), "\x00", "<note>",
        ]  # fmt: skip
        return many[n % len(many)]

    @tool(effects="write")
    async def change(how: str = "") -> str:
        """Change something, in one of several ways."""
        match how:
            case "raise":
                raise ValueError("it would not \ud800")
            case "refuse":
                raise ToolError("no", next="", retryable=False, details={"k": object()})
            case "exit":
                raise SystemExit(3)
            case "self-cancel":
                raise asyncio.CancelledError
        return "changed"

    @tool(effects="write", timeout_s=30)
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    @tool(effects="write", timeout_s=30)
    async def stubborn(context: ToolContext) -> str:
        """Wait, and do not stop when asked to."""
        release = RELEASES[context.session]
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    @tool(effects="irreversible")
    async def finish_off(what: str) -> str:
        """Something that is asked first."""
        return f"finished off {what}"

    return [look, change, wait, stubborn, finish_off]


TOOLS = make_tools()
RELEASES: dict[str, asyncio.Event] = {}
"""What the stubborn tool waits for, by session: the one of the process that runs it."""


# --- answers --------------------------------------------------------------------------------------

ids = st.sampled_from(
    [
        "",
        "a",
        "a",
        "call_1",
        "toolu_01A",
        "x" * 64,
        "x" * 600,
        "with space",
        "é",
        "a\n",
        "abc123DEF",
        "a:b|c.d",
    ]
)
names = st.sampled_from(
    [
        "look",
        "look",
        "change",
        "change",
        "wait",
        "finish_off",
        "stubborn",
        "unknown",
        "",
        "näme with spaces",
        "x" * 90,
        "look\n",
    ]
)
raws = st.sampled_from(
    ["{}", "{}", '{"n": 1}', '{"n": 7}', '{"how": "raise"}', '{"how": "refuse"}', '{"how": "exit"}', '{"how": "self-cancel"}',
     '{"what": "it"}', "", "[]", "null", '"x"', "{", '{"n":', "{'n': 1}", '{"n": 1} trailing', '{"n": 1, "n": 2}', '{"n": "1"}',
     '{"n": 1.0}', '{"n": NaN}', '{"n": 1e999}', '{"x": "\\ud800"}', '{"n": ' + "9" * 5000 + "}", '{"a": ' + "[" * 3000 + "]" * 3000 + "}", "not json at all"]
    + [f'{{"n": {n}}}' for n in range(13)]
)  # fmt: skip
opaque = st.sampled_from([None, {"thoughtSignature": "c2ln"}, {"item_id": "fc_0"}])


@st.composite
def reasonings(draw: Any) -> ReasoningPart:
    text = draw(st.sampled_from(["", "hm", " "]))
    wire = draw(
        st.sampled_from(["openai_chat", "openai_responses", "anthropic", "gemini", "scripted"])
    )
    block: dict[str, Any] | None = {
        "openai_chat": {"reasoning_content": text or "hm"},
        "openai_responses": {
            "id": "rs_0",
            "type": "reasoning",
            "summary": [],
            "encrypted_content": "ZW5j",
        },
        "anthropic": {"type": "thinking", "thinking": text, "signature": "sig"},
        "gemini": {"text": text, "thought": True, "thoughtSignature": "c2ln"},
        "scripted": {"anything": 1},
    }[wire]
    if wire == "anthropic" and draw(st.booleans()):
        block = {"type": "redacted_thinking", "data": "ZW5j"}
    return ReasoningPart(text, wire, draw(st.sampled_from([block, block, None])))


@st.composite
def answers(draw: Any) -> list[Any]:
    """The events of one answer, sound or not."""
    events: list[Any] = []
    if draw(st.booleans()):
        thought = draw(reasonings())
        events += [ReasoningDelta("hm"), ReasoningDone(thought)]
    text = draw(st.sampled_from(["", "", "I act.", " ", "\n", "Ünïcödé 😀", "x" * 2000]))
    if text:
        events.append(TextDelta(text))
    count = draw(st.integers(0, 3))
    for index in range(count):
        name, raw = draw(names), draw(raws)
        events.append(CallStarted(index, name))
        if draw(st.booleans()):
            events.append(CallDelta(index, raw))
        if draw(st.integers(0, 9)):
            events.append(CallComplete(index, ToolCall(draw(ids), name, raw, opaque=draw(opaque))))
        if draw(st.integers(0, 5)) == 0:
            events.append(ReasoningDone(draw(reasonings())))
    events.append(UsageReport(Usage(requests=1)))
    sound = StopReason.CALLS if count else StopReason.END
    stop = draw(st.sampled_from([sound] * 6 + [*StopReason]))
    events.append(Stop(stop, str(stop)))
    how = draw(st.integers(0, 9))
    if how == 0:
        at = draw(st.integers(0, len(events) - 1))
        events[at:] = [StreamCut]
    return events


faults = st.sampled_from([ProviderFailed, AuthenticationFailed, ContextTooLong, StreamCut])
items = st.lists(st.one_of(answers(), answers(), answers(), faults, st.just("fine")), max_size=5)
messages = st.sampled_from(
    ["go", "go on", " x ", "\x00", [TextPart("")], [TextPart(" ")], [TextPart("a"), TextPart("b")],
     [ImagePart("image/png", data="aGk=")], [ImagePart("image/png")], [FilePart("text/plain", "n.txt", "aGk=")],
     [FilePart("application/pdf", "n.pdf", "aGk=")], "</note>", "x" * 5000]
)  # fmt: skip
points = st.one_of(st.integers(0, 12), st.integers(0, 200))


words = st.sampled_from(
    ["go", "</agent_status>", "<note>", "\x00", "雨", "12:00", "x" * 300, "\u2028"]
)
replacements = st.sampled_from(
    [
        Entry(
            Kind.COMPACTION, (TextPart("<context_summary>it went well</context_summary>"),), AT.at
        ),
        Entry(
            Kind.COMPACTION, (TextPart("<context_summary>it went well</context_summary>"),), AT.at
        ),
        Entry(Kind.USER, (TextPart("what the user said"),), AT.at),
        Entry(Kind.NOTE, (TextPart("kept"),), AT.at),
        Entry(Kind.ASSISTANT, (TextPart("what was answered"),), AT.at),
        Entry(Kind.ASSISTANT, (CallPart(ToolCall("made_up", "look", "{}")),), AT.at),
        Entry(Kind.REBASE, (), AT.at),
    ]
)


def _turn_at(entries: Sequence[Entry], at: int) -> int:
    """The start of the turn that `at` stands in; the end, where there is none behind it."""
    return next(
        (n for n in range(at, -1, -1) if n < len(entries) and entries[n].kind is Kind.USER),
        0 if at < len(entries) else at,
    )


class Process:
    """One run of the program: an event loop, a store handle, an agent. `kill` leaves everything as
    it stands, as kill -9 does."""

    def __init__(self, machine: AnySession, family: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # of runs that nobody waits for
        self.release = asyncio.Event()
        self.model = Played(family, machine.found)
        self.store = machine.shared or open_store(machine.path)
        self.owns_store = machine.shared is None
        self.agent = Agent(
            self.model,  # type: ignore[arg-type]
            TOOLS,
            system="Be brief.",
            mode=machine.mode,
            approver=machine.approve,
            store=self.store,
            workspace=machine.folder.name,
            limits=Limits(request_attempts=1, max_steps=machine.max_steps, max_failures=6),
        )
        self.session: Session = self.agent.session(machine.session_id)
        self.tasks: list[asyncio.Task[Any]] = []

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    async def opened(self) -> Session:
        await self.session.open()
        RELEASES[self.session.id] = self.release
        self.session.dispatcher.around.grace_s = 0.0
        return self.session

    def kill(self) -> None:
        if self.session._lock is not None:
            self.session._lock.release()
        if self.owns_store:
            self.store.close()
        else:
            self.store.commit_now()  # what was handed to the writer is written, as on disk

    def bury(self) -> None:
        """After the test: end what a killed process left in memory."""

        async def end() -> None:
            self.release.set()
            for _ in range(50):
                left = asyncio.all_tasks() - {asyncio.current_task()}
                if not left:
                    return
                for task in left:
                    task.cancel()
                await asyncio.wait(left, timeout=1)

        self.run(end())
        self.loop.close()


class AnySession(RuleBasedStateMachine):
    """A session to which everything happens that can happen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db"
        self.shared: Any = None
        self.found: list[str] = []
        self.dead: list[Process] = []
        self.session_id: str | None = None
        self.approvals: list[bool] = []
        self.before: dict[str, bytes] = {}
        self.changes = 0
        self.mode = "auto"
        self.max_steps = 4

    @initialize(
        family=st.sampled_from(FAMILIES),
        on_disk=st.sampled_from([False, False, False, True]),
        mode=st.sampled_from(["auto", "trusted", "ask"]),
        max_steps=st.integers(1, 6),
    )
    def begin(self, family: str, on_disk: bool, mode: str, max_steps: int) -> None:
        self.mode, self.max_steps = mode, max_steps
        self.shared = None if on_disk else open_store(":memory:")
        self.now = Process(self, family)
        self.now.run(self.now.opened())
        self.session_id = self.now.session.id

    def approve(self, request: ApprovalRequest) -> bool:
        return self.approvals.pop(0) if self.approvals else False

    # --- what happens ---

    @rule(message=messages, script=items, approvals=st.lists(st.booleans(), max_size=3))
    def send(self, message: Any, script: list[Any], approvals: list[bool]) -> None:
        self.approvals = approvals
        self.now.model.items = script
        self._until_waiting(self.now.session.send(message))

    @rule(script=items)
    def resume(self, script: list[Any]) -> None:
        self.now.model.items = script
        self._until_waiting(self.now.session.resume())

    @rule(message=messages, script=items, at=points)
    def send_and_cancel(self, message: Any, script: list[Any], at: int) -> None:
        self.now.model.items = script
        task = self._start(self.now.session.send(message), at)
        self.now.session.cancel("the user said stop")
        self._end(task)

    @rule(script=items, at=points, again=st.integers(0, 5))
    def send_and_cancel_the_task(self, script: list[Any], at: int, again: int) -> None:
        self.now.model.items = script
        task = self._start(self.now.session.send("go"), at)
        task.cancel()
        self.now.run(self._turns(again))
        task.cancel()
        self._end(task)

    @rule(script=items, at=points)
    def resume_and_cancel(self, script: list[Any], at: int) -> None:
        self.now.model.items = script
        task = self._start(self.now.session.resume(), at)
        self.now.session.cancel()
        self._end(task)

    @rule(script=items, at=points, family=st.sampled_from(FAMILIES))
    def kill_while_running(self, script: list[Any], at: int, family: str) -> None:
        self.now.model.items = script
        self._start(self.now.session.send("go"), at)
        self._new_process(family)

    @rule(family=st.sampled_from(FAMILIES))
    def kill(self, family: str) -> None:
        self._new_process(family)

    @rule(family=st.sampled_from(FAMILIES))
    def close_and_open(self, family: str) -> None:
        self.now.run(self.now.session.close())
        self._new_process(family)

    @rule(script=items, at=points)
    def close_while_running(self, script: list[Any], at: int) -> None:
        self.now.model.items = script
        task = self._start(self.now.session.send("go"), at)
        closing = self.now.loop.create_task(self.now.session.close())
        self._end(task)
        self._end(closing)
        self.now.run(self.now.opened())

    @rule(turns=st.integers(0, 20))
    def the_stubborn_ones_end(self, turns: int) -> None:
        self.now.release.set()
        self.now.run(self._turns(turns + 5))
        self.now.release = RELEASES[self.now.session.id] = asyncio.Event()

    # --- what the context makes of it ---

    @rule(text=words, trust=st.sampled_from(Trust), at=st.integers(0, 30), script=items)
    def post_an_event_while_running(
        self, text: str, trust: Trust, at: int, script: list[Any]
    ) -> None:
        self.now.model.items = script
        task = self._start(self.now.session.send("go"), at)
        self.now.session.post(Event("somebody", "webhook", text, trust=trust))
        self.now.session.cancel("enough")
        self._end(task)

    @rule(text=words)
    def post_an_event(self, text: str) -> None:
        self.now.session.post(Event("user", "terminal", text, trust=Trust.TRUSTED))

    @rule(kind=st.sampled_from([Kind.STATUS, Kind.SKILLS, Kind.NOTE, Kind.EVENT]), text=words)
    def tell_something(self, kind: Kind, text: str) -> None:
        self._record(Entry(kind, (TextPart(f"<{kind}>{text}</{kind}>"),), AT.at))

    @rule(text=st.one_of(st.none(), words))
    def replace_the_bar(self, text: str | None) -> None:
        bar = (TextPart(f"<agent_status>{text}</agent_status>"),)
        self.now.session.tail = None if text is None else Entry(Kind.STATUS, bar, AT.at)

    @rule(text=words)
    def rebase(self, text: str) -> None:
        self.now.agent.parts[:] = [
            PromptPart("role", "app", Stability.GLOBAL, "Be brief."),
            PromptPart("more", "app", Stability.SESSION, text),
        ]
        try:
            self.now.run(self.now.session.rebase())
        except InvalidRequest:
            assert self.now.session.trajectory.open_calls

    @rule(
        places=st.lists(st.integers(0, 60), min_size=2, max_size=4),
        whole=st.booleans(),
        inside=st.lists(replacements, max_size=2),
    )
    def compact(self, places: list[int], whole: bool, inside: list[Entry]) -> None:
        trajectory = self.now.session.trajectory
        ends = sorted({at % (trajectory.next_seq + 1) for at in places})
        if whole:  # whole turns: these compactions are sound
            ends = [_turn_at(trajectory.entries, at) for at in ends]
        spans = [
            Span(first, last - 1, tuple(inside))
            for first, last in itertools.pairwise(ends)
            if first < last
        ][::2]
        meta = {"spans": [span.to_json() for span in spans]}
        before = list(trajectory.view), list(trajectory.fragments)
        if not self._record(Entry(Kind.COMPACTION, (), AT.at, meta=meta)):
            assert before == (list(trajectory.view), list(trajectory.fragments))

    def _record(self, entry: Entry) -> bool:
        """Record an entry; `False` when it was refused."""
        count = self.now.session.trajectory.next_seq
        try:
            self.now.run(self.now.session.record(entry))
        except InvalidRequest:
            assert self.now.session.trajectory.next_seq == count
            return False
        return True

    # --- how ---

    async def _turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    def _start(self, work: Any, at: int) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self.now.loop.create_task(work)
        self.now.run(self._turns(at))
        return task

    def _until_waiting(self, work: Any) -> None:
        """Run to the end; a tool that waits for ever is cancelled as soon as it waits."""
        task = self.now.loop.create_task(work)

        async def watch() -> None:
            around = None
            while not task.done():
                await asyncio.wait((task,), timeout=0.0)
                session = self.now.session
                around = session.dispatcher.around if session._record is not None else None
                if around is not None and around.stops:
                    await self._turns(20)
                    if around.stops:
                        session.cancel("it waits")
                await asyncio.wait((task,), timeout=0.001)

        self.now.run(watch())
        self._end(task)

    def _end(self, task: asyncio.Task[Any]) -> None:
        async def wait() -> None:
            await asyncio.wait((task,), timeout=20)
            assert task.done(), "the run does not end"

        self.now.run(wait())
        if not task.cancelled():
            fault = task.exception()
            if fault is not None and not isinstance(fault, ModelError):
                raise fault

    def _new_process(self, family: str) -> None:
        self.now.kill()
        self.dead.append(self.now)
        self.now = Process(self, family)
        self.now.run(self.now.opened())

    # --- what must hold ---

    @invariant()
    def the_next_request_is_valid_on_every_wire(self) -> None:
        assert self.found == []
        if not hasattr(self, "now"):
            return
        session = self.now.session
        if session._record is None:
            return
        entries = list(session.trajectory.entries)
        stored = [entry for entry, _ in self.now.store.entries(session.id, "x")]
        assert [e.kind for e in entries] == [e.kind for e in stored], "memory and disk differ"
        assert entries == stored, "memory and disk differ"
        if session.trajectory.open_calls:
            return  # the next send or resume ends them first; what it sends then is checked
        changes = sum(e.kind in (Kind.COMPACTION, Kind.REBASE) for e in entries)
        if changes != self.changes:
            self.changes, self.before = changes, {}
        view = list(session.trajectory.view)
        if not session.trajectory.asked:
            view.append(AT)
        mine = self.now.model.family
        for family, model in ADAPTERS.items():
            system, tools = session.trajectory.prefix.system, session.trajectory.prefix.tools
            fragments = [model.render_entry(e, view[:at]) for at, e in enumerate(view)]
            prefix = Prefix(system, tools, model.render_prefix(system, tools))
            assert faults_of(family, Request(prefix, view, fragments, Settings())) == []
            kept = fragments[:-1] if view[-1] is AT else fragments
            if family == mine:
                assert kept == session.trajectory.fragments, "the frozen renderings have changed"
            joined = b",".join([prefix.rendered, *kept])
            assert joined.startswith(self.before.get(family, b"")), f"{family}: the prefix moved"
            self.before[family] = joined

    def teardown(self) -> None:
        if not hasattr(self, "now"):
            self.folder.cleanup()
            return
        try:
            self.max_steps = 50
            self._new_process(self.now.model.family)
            result = self.now.run(self.now.session.send("one last question"))
            assert result.stop == "answered" and result.answer == "fine"
            assert self.found == []
            entries = self.now.store.entries(self.now.session.id, "x")
            calls = [c.id for e, _ in entries for c in e.calls]
            results = [r.call_id for e, _ in entries for r in e.results]
            assert calls == results and len(set(calls)) == len(calls)
            lines = self.now.store.calls(self.now.session.id)
            assert [line.id for line in lines] == calls
            assert all(line.outcome is not None and line.result is not None for line in lines)
            self.now.run(self.now.session.close())
        finally:
            if self.shared is not None:
                self.shared.close()
            for process in [*self.dead, self.now]:
                process.store.close()
                process.bury()
            self.folder.cleanup()


AnySession.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAnySession = AnySession.TestCase
