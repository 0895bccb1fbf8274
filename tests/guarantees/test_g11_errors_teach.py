"""G11. Each fault has its own message that says what was wrong and what to do next; tool exceptions
never end a run; retries are bounded and say how many are left.

`snapshots/fault_table.md` holds every message; `LORIMER_UPDATE_SNAPSHOTS=1` writes it again.
"""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from lorimer.core.calls import Effects, Outcome, Refusal
from lorimer.core.decisions import Approval, ApprovalRequest, Decision, Verdict
from lorimer.core.errors import ToolDefinitionError
from lorimer.core.messages import ImagePart, TextPart
from lorimer.models.protocol import StopReason
from lorimer.runtime.agent import Agent
from lorimer.runtime.loop import Limits
from lorimer.store import open_store
from lorimer.store.protocol import SpendApproval, StartCall
from lorimer.testing import ScriptedModel, call, reply
from lorimer.tools.function import tool
from lorimer.tools.tool import Limit, Tool, ToolContext, ToolError

pytestmark = pytest.mark.anyio

SNAPSHOT = Path(__file__).parent / "snapshots" / "fault_table.md"


# --- the tools that faults happen to ---------------------------------------------------------------


@tool(effects="read", limits=[Limit(9)])
async def search(
    query: Annotated[str, Field(description='what to look for, e.g. "late orders"')],
    limit: Annotated[int, Field(ge=1, le=50, description="how many results, e.g. 10")] = 10,
    sort: Literal["date", "price", "name"] = "date",
) -> str:
    """Search the orders."""
    return f"nothing found for {query}"


@tool(effects="write")
async def send_mail(to: str, text: str = "") -> str:
    """Send a mail."""
    if to == "raise":
        raise ConnectionError("the mail server refused the connection")
    if to == "said":
        raise ToolError(
            "There is no mailbox 'said'.",
            next="Use one of: anna, ben.",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
        )
    if to == "hang":
        await asyncio.Event().wait()
    return f"sent to {to}"


@tool(effects="write")
async def save(context: ToolContext, how: str) -> str:
    """Save, saying how far it came."""
    context.will_mark()
    if how == "early":
        raise ValueError("the file name is empty")
    with context.effect():
        pass
    raise ValueError("the index could not be written")


@tool(effects="read")
async def look(how: str) -> Any:
    """Look at something."""
    if how == "raise":
        raise KeyError("no such page")
    if how == "hang":
        await asyncio.Event().wait()
    return {"bytes": b"\xff\xfe"} if how == "bytes" else {"Größe": "naïve – 価格 😀"}


@tool(effects="irreversible")
async def wire_money(amount: float, to: str) -> str:
    """Wire money."""
    return "wired"


@tool(effects="irreversible", confirm=True)
async def close_account(account: str) -> str:
    """Close an account."""
    return "closed"


@tool(effects="write")
def crash() -> str:
    """End its process."""
    os._exit(7)


def only_own(arguments: Mapping[str, Any], context: ToolContext) -> Refusal | None:
    if arguments["order"] != 1:
        return Refusal(
            "not_owner",
            f"Order {arguments['order']} belongs to someone else.",
            next="Use an order of this customer: 1.",
        )
    return None


def broken_check(arguments: Mapping[str, Any], context: ToolContext) -> Refusal | None:
    raise RuntimeError("the rule book is missing")


@tool(effects="write", checks=[only_own])
async def cancel_order(order: int) -> str:
    """Cancel an order."""
    return "cancelled"


@tool(effects="write", checks=[broken_check])
async def check_fails(n: int = 0) -> str:
    """Its check fails."""
    return "ran"


@tool(effects="read", limits=[Limit(1, "query")])
async def once_each(query: str) -> str:
    """Once for each query."""
    return "found"


@tool(effects="write", timeout_s=0.05)
async def slow(n: int = 0) -> str:
    """Take too long."""
    await asyncio.Event().wait()
    return "never"


@tool(effects="read", timeout_s=0.05)
async def slow_look(n: int = 0) -> str:
    """Take too long, reading."""
    await asyncio.Event().wait()
    return "never"


TOOLS = [
    search,
    send_mail,
    save,
    look,
    wire_money,
    crash,
    cancel_order,
    check_fails,
    once_each,
    slow,
    slow_look,
]


class Asked:
    """What to do in one case of the table."""

    def __init__(
        self, *calls: Mapping[str, Any], tools: list[Tool] | None = None, stop: StopReason | None = None,
        act: Callable[[Any], None] | None = None, **agent: Any,
    ) -> None:  # fmt: skip
        self.calls, self.tools, self.stop, self.act, self.agent = calls, tools, stop, act, agent


def raw(name: str, arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def no(request: ApprovalRequest) -> Approval:
    return Approval(False, "anna", "not to this account")


async def never(request: ApprovalRequest) -> bool:
    await asyncio.Event().wait()
    return True


def _approval_time(session: Any) -> None:
    session.dispatcher.around.approval_timeout_s = 0.01


def _cancel_soon(session: Any) -> None:
    async def wait() -> None:
        while not session.dispatcher.around.stops:  # noqa: ASYNC110 - until it runs
            await asyncio.sleep(0)
        session.cancel("the user pressed stop")

    session.side = asyncio.get_running_loop().create_task(wait())


def _cancel_before(session: Any) -> None:
    old = session.dispatcher.run

    async def run(*given: Any) -> Any:
        session.dispatcher.around.cancel("the user pressed stop")
        return await old(*given)

    session.dispatcher.run = run


def _not_loaded(session: Any) -> None:
    session.dispatcher.around.unloaded = {"paint": 'Call load_tools(names=["paint"]) first.'}


class Shifting:
    """A policy that is another one once somebody has said yes."""

    mode, digest = "auto", "one"

    def decide(self, facts: Any) -> Decision:
        return Decision(Verdict.ASK, "rule", "it cannot be undone")

    @staticmethod
    def yes(request: ApprovalRequest) -> bool:
        Shifting.digest += " more"
        return True


def _taken(session: Any) -> None:
    store = session.dispatcher.around.store
    commit = store.commit

    async def taken(*changes: Any) -> None:
        for change in changes:
            if isinstance(change, SpendApproval):
                await commit(SpendApproval(change.id, change.session, "call_other"))
        await commit(*changes)

    store.commit = taken


SAME = [call("look", how="text")] * 4
FAILING = [call("look", how="raise")] * 4
REJECTED = [call("wire_money", amount=n, to="x") for n in range(4)]

CASES: dict[str, Asked] = {
    # parse
    "bad JSON": Asked(raw("search", "{query: 'late'}")),
    "text after the JSON": Asked(raw("search", '{"query": "late"} I hope this helps.')),
    "arguments that end in the middle": Asked(raw("search", '{"query": "la')),
    "a key twice": Asked(raw("search", '{"query": "a", "query": "b"}')),
    "NaN": Asked(raw("search", '{"query": "a", "limit": NaN}')),
    "half a character": Asked(raw("search", '{"query": "\\ud83d"}')),
    "a number without end": Asked(raw("search", '{"query": "a", "limit": 1e400}')),
    "cut by length": Asked(raw("search", '{"query": "late"}'), stop=StopReason.LENGTH),
    # find
    "unknown tool, near names": Asked(raw("serch", "{}")),
    "unknown tool, nothing near": Asked(raw("paint_house", "{}")),
    "unknown tool, no tools at all": Asked(raw("search", "{}"), tools=[]),
    "unknown tool, endless name": Asked(raw("x" * 5000, "{}")),
    "a tool that is not loaded": Asked(raw("paint", "{}"), act=_not_loaded),
    # shape
    "not an object": Asked(raw("search", '["late"]')),
    "missing key": Asked(raw("search", "{}")),
    "extra key": Asked(raw("search", '{"query": "a", "colour": "red"}')),
    '"2" for an integer': Asked(raw("search", '{"query": "a", "limit": "2"}')),
    "true for an integer": Asked(raw("search", '{"query": "a", "limit": true}')),
    "enum": Asked(raw("search", '{"query": "a", "sort": "colour"}')),
    "out of range": Asked(raw("search", '{"query": "a", "limit": 500}')),
    "all of it at once": Asked(raw("search", '{"limit": "many", "sort": "x", "page": 2}')),
    # rules
    "a rule of the tool": Asked(call("cancel_order", order=2)),
    "a rule that fails itself": Asked(call("check_fails")),
    "limit for each value": Asked(call("once_each", query="a"), call("look", how="text"), call("once_each", query="a")),
    "the same read again and again": Asked(*SAME),
    "too many failures": Asked(*FAILING),
    "the last attempt": Asked(*FAILING[:3]),
    # permit, review
    "denied": Asked(call("send_mail", to="anna"), mode="plan"),
    "needs approval, nobody to ask": Asked(call("wire_money", amount=5, to="x")),
    "rejected": Asked(call("wire_money", amount=5, to="x"), approver=no),
    "nobody answers": Asked(call("wire_money", amount=5, to="x"), approver=never, act=_approval_time),
    "rejected too often": Asked(*REJECTED, approver=no),
    "rejected before": Asked(*REJECTED[:1] * 2, approver=no),
    "approved, but not for this": Asked(call("wire_money", amount=5, to="x"), policy=Shifting(), approver=Shifting.yes),
    "approved, but used by another": Asked(call("wire_money", amount=5, to="x"), approver=Shifting.yes, act=_taken),
    "in two phases, the first": Asked(call("close_account", account="a1"), tools=[close_account]),
    "in two phases, a wrong token": Asked(call("close_account", account="a1", confirmation_token="c_1"), tools=[close_account]),
    # run
    "tool raises, reading": Asked(call("look", how="raise")),
    "tool raises, effect not known": Asked(call("send_mail", to="raise")),
    "tool raises before its effect": Asked(call("save", how="early")),
    "tool raises after its effect": Asked(call("save", how="late")),
    "tool says what to do": Asked(call("send_mail", to="said")),
    "time-out, reading": Asked(call("slow_look")),
    "time-out, effect not known": Asked(call("slow")),
    "cancelled before the start": Asked(call("send_mail", to="anna"), act=_cancel_before),
    "cancelled while it ran": Asked(call("send_mail", to="hang"), act=_cancel_soon),
    "crashed worker": Asked(call("crash")),
    "result that is no JSON": Asked(call("look", how="bytes")),
    "skipped after a failed write": Asked(call("save", how="late"), call("send_mail", to="anna")),
}  # fmt: skip


async def outcome_of(case: Asked) -> dict[str, Any]:
    """The error object of the last call of a case."""
    store = open_store(":memory:")
    options: dict[str, Any] = {"mode": "auto", **case.agent}
    together = case.stop or len({c["name"] for c in case.calls}) > 1 or len(case.calls) == 1
    script: list[Any] = [reply("", *case.calls, stop=case.stop)] if together else [*case.calls]
    agent = Agent(ScriptedModel([*script, "done"]), TOOLS if case.tools is None else case.tools,
                  store=store, **options)  # fmt: skip
    async with agent.session() as session:
        session.dispatcher.around.grace_s = 0.5
        if case.act is not None:
            case.act(session)
        await session.send("go")
        results = [r for entry in session.entries for r in entry.results]
    store.close()
    assert results[-1].is_error, results[-1]
    return json.loads(results[-1].content[0].text)  # type: ignore[union-attr, no-any-return]


async def interrupted() -> list[dict[str, Any]]:
    """What is told of calls that a crash interrupted: one that had started, one that had not."""
    store = open_store(":memory:")

    agent = Agent(ScriptedModel(["done"]), TOOLS, store=store)
    async with agent.session() as session:
        from lorimer.core.calls import ToolCall
        from lorimer.core.messages import CallPart, Entry, Kind, TextPart
        from lorimer.runtime.reply import Reply

        await session._append(Entry(Kind.USER, (TextPart("go"),), session._now()), "user")
        made = [CallPart(ToolCall("", "wire_money", '{"amount": 5, "to": "x"}')),
                CallPart(ToolCall("", "send_mail", '{"to": "anna"}'))]  # fmt: skip
        calls = await session.record_reply(Reply([*made], StopReason.CALLS))
        await store.commit(
            StartCall(session.id, calls[0].id, "key", 0, "digest", {"amount": 5, "to": "x"}, [],
                      Effects.IRREVERSIBLE, wire_money.recovery, {}, session._now())
        )  # fmt: skip
        await session.send("go on")
        results = [r for entry in session.entries for r in entry.results]
    store.close()
    return [json.loads(r.content[0].text) for r in results]  # type: ignore[union-attr]


def registration() -> dict[str, tuple[str, str]]:
    """What the author of a tool reads when it cannot be registered."""

    def two(a: int, *rest: int) -> None:
        """Two."""

    def odd(a: Odd) -> None:
        """Odd."""

    def bare(a: int) -> None: ...

    def made(**options: Any) -> Callable[[], Any]:
        return lambda: Tool.from_schema(
            "t", "d", function=print, **{"input_schema": {"type": "object"}, **options}
        )

    broken: dict[str, Callable[[], Any]] = {
        "schema with a wrong keyword value": made(input_schema={"type": "object", "properties": {"a": {"type": "text"}}}),
        "schema of a list": made(input_schema={"type": "array"}),
        "schema that is no object": made(input_schema="object"),
        "schema that refers elsewhere": made(input_schema={"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}),
        "schema that refers to nothing": made(input_schema={"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}),
        "example that does not fit": made(examples=({"a": 1},)),
        "name with a space": lambda: Tool.from_schema("my tool", "d", {"type": "object"}, print),
        "time-out of zero": made(timeout_s=0),
        "queryable without a query": lambda: tool(idempotency="queryable")(send_mail.function),
        "unknown effect": lambda: tool(effects="destroy")(send_mail.function),
        "unknown option": lambda: tool(colour="red")(send_mail.function),
        "no description": lambda: tool(bare),
        "parameters without a name": lambda: tool(two),
        "a type that JSON has not": lambda: tool(odd),
        "two tools of one name": lambda: Agent(ScriptedModel([]), [search, search], store=":memory:"),
    }  # fmt: skip
    told = {}
    for name, make in broken.items():
        with pytest.raises(ToolDefinitionError) as caught:
            make()
        told[name] = (caught.value.message, caught.value.next)
    return told


class Odd:
    """Not a JSON type."""


def steady(text: str) -> str:
    """`text` without what differs from run to run."""
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"\b(a|c|call)_[0-9a-hjkmnp-tv-z]{26}(\.[0-9a-f]{16})?", r"\1_…", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"<function [\w.<>]*?(\w+) at 0x…>", r"<function \1>", text)
    text = re.sub(r"tests\.guarantees\.\w+|test_g11_errors_teach", "…", text)
    return re.sub(r"(after|took) \d+\.\d s", r"\1 N s", text)


def lines_of(name: str, error: Mapping[str, Any]) -> list[str]:
    out = [f"### {name}", "", f"- code: `{error['error']}`, outcome `{error['outcome']}`"
           + (", may be called again" if error["retryable"] else "")
           + (f", attempt {error['attempt']}" if "attempt" in error else "")]  # fmt: skip
    out.append(f"- message: {error['message']}")
    for problem in error.get("problems", ()):
        given = json.dumps(problem["given"], ensure_ascii=False)
        out.append(
            f"- problem at `{problem['path']}`: given `{given}`, expected {problem['expected']}"
        )
    out.append(f"- next: {error['next']}")
    known = {
        "error",
        "message",
        "problems",
        "next",
        "retryable",
        "attempt",
        "outcome",
        "stopped_in_s",
    }
    for key in sorted(error.keys() - known):
        out.append(f"- {key}: {error[key]}")
    return [*out, ""]


async def test_the_fault_table_is_as_it_was_read_and_approved() -> None:
    lines = ["# What is told of every fault", "",
             "Written by `tests/guarantees/test_g11_errors_teach.py`; read each change of it.", "",
             "## To the model", ""]  # fmt: skip
    for name, case in CASES.items():
        lines += lines_of(name, await outcome_of(case))
    for name, error in zip(
        ("outcome unknown after a crash", "not started before a crash"),
        await interrupted(),
        strict=True,
    ):
        lines += lines_of(name, error)
    lines += ["## To the author of a tool", ""]
    for name, (message, step) in registration().items():
        lines += [f"### {name}", "", f"- message: {message}", f"- next: {step}", ""]
    text = steady("\n".join(lines))
    if os.environ.get("LORIMER_UPDATE_SNAPSHOTS"):
        assert not os.environ.get("CI"), "a snapshot is never written in CI"
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(text, "utf-8")
    assert text == SNAPSHOT.read_text("utf-8")


@pytest.mark.parametrize("name", CASES)
async def test_each_message_says_what_was_wrong_and_what_to_do(name: str) -> None:
    error = await outcome_of(CASES[name])
    assert len(error["message"]) > 20 and len(error["next"]) > 15
    assert len(json.dumps(error)) < 1500, "a small model must read it"
    assert "Traceback" not in json.dumps(error)
    if error["retryable"]:
        assert error.get("attempt", "").endswith("/3") or error["error"] in (
            "unknown_tool", "not_loaded", "truncated", "interrupted", "confirm_first",
            "approval_void", "approval_spent",
        )  # fmt: skip


async def test_each_kind_of_fault_has_a_message_of_its_own() -> None:
    seen: dict[str, str] = {}
    for name, case in CASES.items():
        if name == "the last attempt":
            continue  # the same fault as before, told with another next step
        error = await outcome_of(case)
        words = error["message"] + json.dumps(error.get("problems", ""))
        assert words not in seen, f"{name} and {seen[words]} are told in the same words"
        seen[words] = name


async def test_a_result_with_other_than_ascii_is_told_as_it_is() -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([call("look", how="text"), "done"]), TOOLS, store=store)
    result = await agent.run("go")
    store.close()
    assert result.calls[0].result == '{"Größe": "naïve – 価格 😀"}'


# --- a run never ends because of a tool ------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class OwnBase(BaseException):
    pass


RAISED: dict[str, Callable[[], BaseException]] = {
    "an exception": lambda: ValueError("x"),
    "without words": ValueError,
    "one that cannot be put into words": Unspeakable,
    "with half a character": lambda: ValueError("\ud800"),
    "with a megabyte of words": lambda: ValueError("x" * 1_000_000),
    "a group": lambda: ExceptionGroup("many", [ValueError("a"), KeyError("b")]),
    "a base exception": OwnBase,
    "SystemExit": lambda: SystemExit("bye"),
    "asyncio.CancelledError": asyncio.CancelledError,
    "TimeoutError": TimeoutError,
    "StopIteration": StopIteration,
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "a tool error with odd details": lambda: ToolError("no", details={"k": object(), 5: {1: {2}}}),
    "a tool error with details named like ours": lambda: ToolError("no", details={"error": "x", "next": 5}),
    "a tool error without code": lambda: ToolError("no", code=""),
}  # fmt: skip


@pytest.mark.parametrize("make", RAISED.values(), ids=RAISED)
@pytest.mark.parametrize("effects", ["read", "write"])
@pytest.mark.parametrize("where", ["loop", "thread", "process"])
async def test_whatever_a_tool_raises_the_run_goes_on(
    make: Callable[[], BaseException], effects: str, where: str
) -> None:
    async def in_loop() -> str:
        raise make()

    def elsewhere() -> str:
        raise make()

    function = in_loop if where == "loop" else elsewhere
    made = Tool.from_schema("fail", "Fail.", {"type": "object"}, function, effects=Effects(effects),
                            isolation=where)  # fmt: skip
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([call("fail"), "done"]), [made], store=store, mode="trusted")
    result = await agent.run("go")
    store.close()
    assert result.answer == "done"
    (failed,) = result.calls
    error = json.loads(failed.result)
    assert failed.outcome is not Outcome.DONE and error["next"]
    assert len(failed.result) <= 10_000


RETURNED: dict[str, Any] = {
    "an object": object(),
    "bytes": b"\xff",
    "a set of objects": {object()},
    "NaN": float("nan"),
    "an endless integer": 10**5000,
    "tuple keys": {(1, 2): 3},
    "a generator": (x for x in ()),
    "a picture of bytes": ImagePart("image/png", data=b"x"),
    "a text part of no text": TextPart(5),
    "half a character": "\udc80",
    "half a character inside": {"name": "\udc80"},
    "nothing": None,
    "an empty list": [],
}  # fmt: skip


@pytest.mark.parametrize("value", RETURNED.values(), ids=RETURNED)
@pytest.mark.parametrize("effects", ["read", "write"])
async def test_whatever_a_tool_returns_the_run_goes_on(value: Any, effects: str) -> None:
    async def give() -> Any:
        return value

    made = Tool.from_schema("give", "Give.", {"type": "object"}, give, effects=Effects(effects))
    store = open_store(":memory:")
    agent = Agent(
        ScriptedModel([call("give"), "done", "still there"]), [made], store=store, mode="trusted"
    )
    async with agent.session() as session:
        result = await session.send("go")
        assert result.answer == "done" and result.calls[0].result
        assert (await session.send("go on")).answer == "still there"
    store.close()
    result.calls[0].result.encode("utf-8")


def test_a_circular_result_is_no_json() -> None:
    from lorimer.tools.units.content import NotJson, parts_of

    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(NotJson):
        parts_of(circle)


# --- bounded retries ------------------------------------------------------------------------------


async def test_attempts_are_counted_and_end() -> None:
    store = open_store(":memory:")
    script = [call("look", how="raise")] * 5
    agent = Agent(ScriptedModel([*script, "done"]), TOOLS, store=store)
    result = await agent.run("go")
    store.close()
    told = [json.loads(c.result) for c in result.calls]
    assert [e.get("attempt") for e in told] == ["1/3", "2/3", "3/3", None, None]
    assert [e["retryable"] for e in told] == [True, True, False, False, False]
    assert [e["error"] for e in told] == ["tool_error"] * 3 + ["limit"] * 2


async def test_a_success_begins_the_count_again() -> None:
    store = open_store(":memory:")
    script = [call("look", how=h) for h in ("raise", "raise", "text", "raise")]
    agent = Agent(ScriptedModel([*script, "done"]), TOOLS, store=store)
    told = [c.result for c in (await agent.run("go")).calls]
    store.close()
    assert '"1/3"' in told[0] and '"2/3"' in told[1] and '"1/3"' in told[3]


async def test_a_model_that_only_fails_is_stopped() -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([raw(f"none_{n}", "{}") for n in range(50)]), TOOLS, store=store,
                  limits=Limits(max_failures=5))  # fmt: skip
    result = await agent.run("go")
    store.close()
    assert result.stop == "failures" and len(result.calls) == 5


# --- 10,000 malformed calls -------------------------------------------------------------------------


def malformed(rng: random.Random) -> dict[str, Any]:
    """One call that is wrong in some way, or in several."""
    names = [t.name for t in TOOLS if t.name not in ("slow", "slow_look", "crash")]
    name = rng.choice(
        [
            *names,
            *names,
            rng.choice(names).upper(),
            rng.choice(names)[:-1],
            "",
            " ",
            "\x00",
            "é" * 9,
            "x" * 300,
        ]
    )
    good: dict[str, Any] = {
        "query": "a",
        "limit": 3,
        "sort": "date",
        "to": "said",
        "how": "raise",
        "order": 2,
        "amount": 1.5,
    }
    odd = [
        None,
        True,
        -1,
        1.5,
        10**30,
        "",
        "2",
        "\x00",
        [],
        [[]],
        {},
        {"query": "x"},
        "é",
        "\ud800",
        "x" * 500,
    ]
    value = {k: rng.choice([v, v, rng.choice(odd)]) for k, v in good.items() if rng.random() < 0.5}
    if rng.random() < 0.1:
        name, value = (
            "search",
            {"query": "a", rng.choice(["limit", "sort"]): rng.choice([500, "x"])},
        )
    if rng.random() < 0.2:
        value[rng.choice(["queri", "", "\x00", "__class__", "self", "context", "a/b~c"])] = (
            rng.choice(odd)
        )
    text = json.dumps(rng.choice([value, value, value, [value], rng.choice(odd)]))
    for _ in range(rng.choice([0, 0, 1, 1, 3])):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at]
            case 1:
                text = (
                    text[:at]
                    + rng.choice(
                        ['"', "{", "}", "[", ",", "\\", "\\u", "NaN", "\x00", "'", "-", "1e999"]
                    )
                    + text[at:]
                )
            case 2:
                text = text[:at] + text[at + rng.randrange(1, 6) :]
            case 3:
                text += rng.choice(["}", " trailing", text, "\n```"])
            case _:
                text = text.replace('"', rng.choice(["'", "“", '"']), rng.randrange(1, 5))
    return {"name": name, "arguments": text, "id": rng.choice(["", "same", "x y"])}


def once_each(turn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without calls delivered twice: same id, name and arguments (those count as one, G2)."""
    seen: set[tuple[Any, ...]] = set()
    out = []
    for one in turn:
        same = (one.get("id"), one["name"], str(one["arguments"]))
        if not one.get("id") or same not in seen:
            out.append(one)
        seen.add(same)
    return out


@pytest.mark.parametrize("allow_repair", [False, True])
async def test_ten_thousand_malformed_calls_each_have_one_result(allow_repair: bool) -> None:
    rng = random.Random(f"malformed {allow_repair}")
    store = open_store(":memory:")
    turns = [once_each([malformed(rng) for _ in range(100)]) for _ in range(50)]
    expected = sum(len(turn) for turn in turns)
    assert expected > 4900
    agent = Agent(ScriptedModel([*turns, "done"]), TOOLS, store=store, allow_repair=allow_repair,
                  limits=Limits(max_steps=None, max_failures=10**9))  # fmt: skip
    async with agent.session() as session:
        around = session.dispatcher.around
        around.concurrency = 32

        def forget(event: Any) -> None:
            around.failures.clear()
            around.counts.clear()
            around.same.clear()

        result = await session.send("go", watch=forget)
        assert result.answer == "done"
        calls = [c for entry in session.entries for c in entry.calls]
        results = [r for entry in session.entries for r in entry.results]
        lines = store.calls(session.id)
    store.close()
    assert len(calls) == expected
    assert [c.id for c in calls] == [r.call_id for r in results] == [line.id for line in lines]
    assert len({c.id for c in calls}) == expected
    assert [c.raw for c in calls] == [c["arguments"] for turn in turns for c in turn]
    codes = {c.code for c in result.calls}
    assert codes >= {
        "not_json",
        "truncated",
        "unknown_tool",
        "not_object",
        "missing",
        "extra",
        "type",
        "value",
    }
    assert "internal" not in codes - {c.code for c in result.calls if c.name == "check_fails"}
    for r in results:
        text = "".join(getattr(p, "text", "") for p in r.content)
        if r.is_error:
            error = json.loads(text)
            assert error["error"] and error["message"] and error["next"]
