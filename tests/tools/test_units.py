"""Where functions run: what comes back, how they get there, and that nothing kills the agent."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from harness import world as w
from lorimer import Agent, Tool, ToolContext, ToolError, tool
from lorimer.core.calls import Outcome
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.watch import CallOutput
from lorimer.runtime.results import CallReport
from lorimer.testing import ScriptedModel, call
from lorimer.tools.tool import Principal

pytestmark = pytest.mark.anyio
WHERE = ("loop", "thread", "process")


def placed(function: Callable[..., Any], where: str, **options: Any) -> Tool:
    """`function` as a tool that runs there."""
    if where == "loop":

        @functools.wraps(function)
        async def in_loop(**arguments: Any) -> Any:
            return function(**arguments)

        made = tool(name="act", **options)(in_loop)
    else:
        made = tool(name="act", isolation=where, **options)(function)
    assert made.where == where
    return made


async def once(act: Tool, *calls: dict[str, Any], **options: Any) -> list[CallReport]:
    model = ScriptedModel([*(calls or (call("act"),)), "ok"])
    async with Agent(model, [act], store=":memory:", **options) as agent:
        result = await agent.run("go")
    assert result.answer == "ok"
    return list(result.calls)


# --- what comes back -----------------------------------------------------------------------------


class Odd:
    """JSON cannot hold it."""


class Explosive(dict[str, Any]):
    """Asking for its content runs its own code, which fails."""

    def items(self) -> Any:
        raise LookupError("boom")

    def __iter__(self) -> Any:
        raise LookupError("boom")


def a_loop() -> Any:
    made: list[Any] = []
    made.append(made)
    return made


VALUES: dict[str, tuple[Callable[[], Any], str | None]] = {
    "text": (lambda: "häßlich 工作 \x00 \u2028", "häßlich 工作 \x00 \u2028"),
    "empty": (lambda: "", ""),
    "nothing": (lambda: None, "(the tool returned nothing)"),
    "object": (lambda: {"b": [1, 2.5, None], "a": "ä"}, '{"b": [1, 2.5, null], "a": "ä"}'),
    "big integer": (lambda: 10**30, str(10**30)),
    "parts": (lambda: [TextPart("a"), ImagePart("image/png", data="aGk=")], "a[image/png image]"),
    "half a pair": (lambda: "a\ud800", "a\\ud800"),
    "object()": (Odd, None),
    "bytes": (lambda: b"\xff\x00", None),
    "nan": (lambda: float("nan"), None),
    "a loop": (a_loop, None),
    "explosive": (lambda: Explosive(a=Odd()), None),
    "huge integer": (lambda: 10**5000, None),
}  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("value", VALUES)
async def test_what_a_function_returns_is_told_or_refused_as_it_is(value: str, where: str) -> None:
    make, expected = VALUES[value]

    def act() -> Any:
        """Act."""
        return make()

    (end,) = await once(placed(act, where))
    if expected is not None:
        assert end.outcome is Outcome.DONE
        assert end.result == expected
    else:
        assert end.code == "bad_result"
        assert end.outcome is Outcome.FAILED_AFTER_EFFECT, "the function ran to its end"
        assert json.loads(end.result)["retryable"] is False


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_read_with_a_bad_result_had_no_effect(where: str) -> None:
    def act() -> Any:
        """Act."""
        return Odd()

    (end,) = await once(placed(act, where, effects="read"))
    assert (end.code, end.outcome) == ("bad_result", Outcome.FAILED_BEFORE_EFFECT)


class Base(BaseException):
    """Not an Exception."""


FAULTS: dict[str, Callable[[], BaseException]] = {
    "an exception": lambda: ValueError("what was wrong"),
    "sys.exit": lambda: SystemExit("what was wrong"),
    "a group": lambda: ExceptionGroup("what was wrong", [ValueError("x")]),
    "half a pair": lambda: ValueError("what was wrong \ud800"),
    "what was wrong cannot be shown": lambda: Unshown(),
    "a ToolError": lambda: ToolError("what was wrong", details={"odd": Odd()}),
}


class Unshown(Exception):
    def __str__(self) -> str:
        raise LookupError("what was wrong")


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_a_function_raises_is_its_result_and_the_run_goes_on(
    fault: str, where: str
) -> None:
    make = FAULTS[fault]

    def act() -> Any:
        """Act."""
        raise make()

    first, second = await once(placed(act, where), call("act"), call("act"))
    for end in (first, second):
        assert (end.code, end.outcome) == ("tool_error", Outcome.UNKNOWN)
        assert ("Unshown" if "cannot" in fault else "what was wrong") in end.result


@pytest.mark.parametrize("where", ["thread", "process"])
async def test_a_base_exception_in_a_thread_or_worker_is_a_result(where: str) -> None:
    def act() -> Any:
        """Act."""
        raise Base("what was wrong")

    (end,) = await once(placed(act, where))
    assert "what was wrong" in end.result


# --- how they get into a worker ------------------------------------------------------------------


def by_name(n: int) -> int:
    """Add."""
    return n + 1


@tool
def decorated(n: int) -> int:
    """Add."""
    return n + 1


@dataclass
class Adder:
    much: int

    def add(self, n: int) -> int:
        """Add."""
        return n + self.much

    def __call__(self, n: int) -> int:
        """Add."""
        return n + self.much


def closure() -> Callable[..., Any]:
    much = 1

    def add(n: int) -> int:
        """Add."""
        return by_name(n) + much - 1

    return add


async def test_functions_get_into_a_worker_by_name_or_by_value() -> None:
    add: Any = lambda n: n + 1  # noqa: E731
    kinds: list[Tool] = [
        tool(name="named")(by_name),
        decorated,
        tool(name="method")(Adder(1).add),
        tool(name="callable", description="Add.")(Adder(1)),
        tool(name="closure")(closure()),
        tool(name="lambda_", description="Add.")(add),
        tool(name="partial", description="Add.")(functools.partial(add)),
    ]
    assert {kind.where for kind in kinds} == {"process"}
    model = ScriptedModel([[call(kind.name, n=1) for kind in kinds], "ok"])
    async with Agent(model, kinds, store=":memory:") as agent:
        result = await agent.run("go")
    assert {c.name: c.result for c in result.calls} == {kind.name: "2" for kind in kinds}


_PROGRAM = '''
from lorimer import Agent, tool
from lorimer.testing import ScriptedModel, call
MUCH = 1
def helper(n): return n + MUCH
@tool
def add(n: int) -> int:
    """Add."""
    return helper(n)
if __name__ == "__main__":
    agent = Agent(ScriptedModel([call("add", n=1), "ok"]), [add], store=":memory:")
    print(agent.run_sync("go").calls[0].result)
'''


@pytest.mark.parametrize("how", ["file", "stdin", "-c"])
async def test_functions_of_the_program_itself_get_into_a_worker(how: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    arguments = {"file": ["program.py"], "stdin": ["-"], "-c": ["-c", _PROGRAM]}[how]
    done = subprocess.run(  # noqa: ASYNC221 - the loop has nothing else to do
        [sys.executable, *arguments], cwd=tmp_path, input=_PROGRAM, text=True, check=False,
        capture_output=True, env=w.environment(),
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr


async def test_what_cannot_be_sent_to_a_worker_says_so_and_what_to_do() -> None:
    lock = threading.Lock()

    def act() -> str:
        """Act."""
        with lock:
            return "acted"

    (end,) = await once(tool(act))
    assert end.outcome is Outcome.FAILED_BEFORE_EFFECT
    assert "lock" in end.result and 'isolation=\\"thread\\"' in end.result
    (end,) = await once(tool(isolation="thread")(act))
    assert end.result == "acted"


async def test_arguments_that_a_functions_own_types_refuse_never_reach_it() -> None:
    from pydantic import AfterValidator

    def odd(n: int) -> int:
        raise LookupError(f"{n} is not odd")

    for where in ("thread", "process"):

        def act(n: Annotated[int, AfterValidator(odd)]) -> int:
            """Act."""
            return n

        act.__annotations__["n"] = Annotated[int, AfterValidator(odd)]
        (end,) = await once(placed(act, where), call("act", n=2))
        assert end.outcome in (Outcome.NOT_STARTED, Outcome.FAILED_BEFORE_EFFECT)
        assert "2 is not odd" in end.result


# --- the context ---------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["thread", "process"])
async def test_the_context_is_the_same_everywhere(where: str, tmp_path: Path) -> None:
    def act(context: ToolContext) -> dict[str, Any]:
        """Act."""
        assert context.on_output is not None and context.deadline is not None
        context.on_output("half")
        with context.effect():
            context.views.remember("file", "hash")
        return {
            "session": context.session, "call": context.call_id, "key": context.operation_key,
            "who": context.principal.id, "roles": sorted(context.principal.roles),
            "workspace": str(context.workspace), "seen": context.views.seen("file"),
            "left": 0 < context.deadline - context.clock.monotonic() <= 50,
        }  # fmt: skip

    seen: list[Any] = []
    model = ScriptedModel([call("act"), call("act"), "ok"])
    async with (
        Agent(
            model, [placed(act, where, timeout_s=50.0)], store=":memory:", workspace=tmp_path,
            principal=Principal("ada", frozenset({"clerk"})), watch=seen.append,
        ) as agent,
        agent.session() as session,
    ):  # fmt: skip
        result = await session.send("go")
        records = agent.store.calls(session.id)
        assert session.dispatcher.around.views.seen("file") == "hash"
    for record, end in zip(records, result.calls, strict=True):
        assert json.loads(end.result) == {
            "session": session.id, "call": record.id, "key": record.operation_key, "who": "ada",
            "roles": ["clerk"], "workspace": str(tmp_path), "seen": "hash", "left": True,
        }  # fmt: skip
    assert records[0].views == {"file": "hash"}
    assert [e.text for e in seen if isinstance(e, CallOutput)] == ["half", "half"]


async def test_reports_of_several_threads_of_a_worker_all_arrive_whole() -> None:
    def act(context: ToolContext) -> str:
        """Act."""

        def report(letter: str) -> None:
            assert context.on_output is not None
            for _ in range(50):
                context.on_output(letter * 5000)

        threads = [threading.Thread(target=report, args=(letter,)) for letter in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "reported"

    seen: list[str] = []

    def watch(event: Any) -> None:
        if isinstance(event, CallOutput):
            seen.append(event.text)

    (end,) = await once(tool(act), watch=watch)
    assert end.result == "reported"
    assert sorted(seen) == sorted(letter * 5000 for letter in "abcd" for _ in range(50))


async def test_a_generator_yields_progress_and_then_its_result() -> None:
    async def act() -> AsyncIterator[Any]:
        """Act."""
        yield "one"
        yield {"two": 2}
        yield "result"

    seen: list[Any] = []
    (end,) = await once(tool(act), watch=seen.append)
    assert end.result == "result"
    assert [e.text for e in seen if isinstance(e, CallOutput)] == ["one", "{'two': 2}"]


# --- workers that die ----------------------------------------------------------------------------


async def test_an_idle_worker_that_died_is_replaced_and_the_call_runs_once(tmp_path: Path) -> None:
    def act(world: str) -> int:
        """Act."""
        w.act(world, str(os.getpid()))
        return os.getpid()

    one = call("act", world=str(tmp_path))
    model = ScriptedModel([one, "ok", one, "ok"])
    async with Agent(model, [tool(act)], store=":memory:") as agent, agent.session() as session:
        (first,) = (await session.send("go")).calls
        os.kill(int(first.result), signal.SIGKILL)
        w.wait_until(lambda: not Path(f"/proc/{first.result}").exists())
        (second,) = (await session.send("go")).calls
        assert second.outcome is Outcome.DONE
    assert w.effects(tmp_path) == [first.result, second.result]


async def test_a_worker_is_used_again_while_it_lives() -> None:
    def act() -> int:
        """Act."""
        return os.getpid()

    first, second = await once(tool(act), call("act"), call("act"))
    assert first.result == second.result != str(os.getpid())


async def test_a_worker_that_cannot_be_started_ran_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act() -> str:
        """Act."""
        return "acted"

    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (end,) = await once(tool(act))
    assert (end.code, end.outcome) == ("crashed", Outcome.FAILED_BEFORE_EFFECT)
    assert "no worker process can be started" in end.result


@pytest.mark.slow
async def test_two_hundred_megabytes_go_to_a_blob_and_a_preview_to_the_model(
    tmp_path: Path,
) -> None:
    def act() -> str:
        """Act."""
        return "a line of output\n" * (200 * 1024 * 1024 // 17)

    model = ScriptedModel([call("act"), "ok"])
    async with Agent(model, [tool(act)], store=tmp_path / "store.db") as agent:
        (end,) = (await agent.run("go")).calls
        assert end.outcome is Outcome.DONE and len(end.result) < 20_000
        (blob,) = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
        assert blob.stat().st_size == 200 * 1024 * 1024 // 17 * 17
        (own,) = [p for p in (tmp_path / "results").rglob("*") if p.is_file()]
        assert str(own) in end.result and own.samefile(blob)
        whole = agent.store.get_blob(f"sha256:{blob.parent.name}{blob.name}")
        assert whole[:17] == b"a line of output\n"


async def test_a_finished_thread_is_used_again_also_by_another_loop() -> None:
    """A unit that outlives its loop must not hand a job to a thread that has gone."""
    from lorimer.tools.tool import ToolContext as Context
    from lorimer.tools.units.units import Stop, Units

    units = Units()
    gate = threading.Event()

    def act(wait: bool) -> str:
        """Act."""
        if wait:
            gate.wait()
        return threading.current_thread().name

    made = placed(act, "thread")

    def in_a_loop(wait: bool) -> Any:
        async def go() -> Any:
            stop = Stop()
            if wait:
                stop.set("timeout")
            context = Context("s", "c", Principal("p"), "k", Path("."))
            return await units.run(made, {"wait": wait}, context, stop, grace_s=0.01, late=None)

        return asyncio.run(go())

    def both() -> Any:
        left = in_a_loop(True)
        gate.set()
        w.wait_until(lambda: units._threads._idle)
        return left, in_a_loop(False)

    left, ended = await asyncio.to_thread(both)
    assert (left.ending, ended.ending) == ("left", "returned")


@pytest.mark.anyio
async def test_a_far_side_that_hangs_holds_up_nothing_else_and_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from lorimer.tools.dispatch import once

    monkeypatch.setattr(once, "_FIND_TIMEOUT_S", 0.2)
    gone = threading.Event()
    ticks = 0

    def find_outcome(key: str, context: ToolContext) -> object:
        gone.wait(60)
        return "done"

    @tool(effects="write", idempotency="queryable", find_outcome=find_outcome, timeout_s=0.05)
    async def pay() -> str:
        """Pay."""
        await asyncio.sleep(60)
        return "paid"

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    model = ScriptedModel([{"name": "pay", "arguments": {}}, "done"])
    async with Agent(model, [pay], store=tmp_path / "s.db") as agent:
        ticking = asyncio.create_task(tick())
        result = await agent.run("pay")
        ticking.cancel()
    gone.set()
    assert result.calls[0].outcome is Outcome.UNKNOWN
    assert ticks > 100
