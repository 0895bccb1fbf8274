"""Secrets in an agent: the function gets the value; nothing and nobody else does."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from harness import world as w
from lorimer import Agent, tool
from lorimer.core.calls import Outcome
from lorimer.core.decisions import ApprovalRequest
from lorimer.core.watch import CallBegan, CallEnded, CallOutput
from lorimer.safety.secrets import MemoryVault
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call
from lorimer.tools.tool import Finding, ToolContext, ToolError

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-0815"
KEY = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN4"
HIDDEN = (VALUE, base64.b64encode(VALUE.encode()).decode()[:-2], KEY)


def vault() -> MemoryVault:
    return MemoryVault({"github": VALUE}, tools=["*"])


def leak(*more: Any) -> str:
    """What a careless tool says."""
    return f"used {VALUE} and {base64.b64encode(VALUE.encode()).decode()} and {KEY}"


@tool(effects="read")
async def read_it(token: str, context: ToolContext) -> str:
    """Say what it got."""
    assert context.on_output is not None
    for piece in (VALUE[:5], VALUE[5:], " half ", KEY[:20], KEY[20:], "\n"):
        context.on_output(piece)
    return f"got {len(token)}: {leak()}"


@tool(effects="read")
async def structured(token: str) -> dict[str, Any]:
    """Give it back in JSON."""
    return {"token": token, "list": [1, {token: None}], "key": KEY}


@tool(effects="write")
def in_worker(token: str) -> str:
    """Run in a worker process."""
    return f"got {token}"


@tool(effects="read")
async def raises(token: str) -> str:
    """Fail with the value in the message."""
    raise RuntimeError(f"401 for {token} {leak()}")


@tool(effects="read")
async def tool_error(token: str) -> str:
    """Fail on purpose."""
    raise ToolError(f"bad {token}", next=f"not {token}", details={"sent": token, KEY: 1})


def look(arguments: Any, value: Any, context: ToolContext) -> list[Finding]:
    return [Finding(f"saw {arguments['token']} and {value} and {VALUE}")]


@tool(effects="read", verify=look)
async def checked(token: str) -> str:
    """Is checked afterwards."""
    return f"got {token}"


@tool(effects="read")
async def long_text(token: str) -> str:
    """Give more than fits."""
    return "\n".join(f"{n} {token} {KEY}" for n in range(2000))


TOOLS = [read_it, structured, in_worker, raises, tool_error, checked, long_text]


def on_disk(folder: Path) -> str:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return "".join(file.read_bytes().decode("utf-8", "replace") for file in files)


async def run(name: str, tmp_path: Path, token: str = "secret:github") -> tuple[Any, list[Any]]:
    seen: list[Any] = []
    model = ScriptedModel([call(name, token=token), "ok"])
    async with Agent(
        model, TOOLS, store=tmp_path / "s.db", secrets=vault(), watch=seen.append, mode="trusted"
    ) as agent:
        result = await agent.run("go")
        record = agent.store.calls(result.session)[0]
        assert verify(agent.store).faults == ()
        audit = [(line.action, line.why) for line in agent.store.audit(result.session)]
    return (result.calls[0], record, audit), seen


@pytest.mark.parametrize("name", [t.name for t in TOOLS])
async def test_a_value_reaches_the_function_and_no_place_else(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        (report, record, audit), seen = await run(name, tmp_path)
    assert report.outcome in (Outcome.DONE, Outcome.FAILED_BEFORE_EFFECT)
    assert "[secret:github]" in report.result, "the value did not come to the function"
    assert record.value == {"token": "secret:github"}, "the record keeps the handle"
    told = f"{report} {record} {audit} {seen} {caplog.text}"
    told += on_disk(tmp_path)
    for hidden in HIDDEN:
        assert hidden not in told


async def test_output_in_pieces_is_told_without_it(tmp_path: Path) -> None:
    _, seen = await run("read_it", tmp_path)
    output = "".join(event.text for event in seen if isinstance(event, CallOutput))
    assert output == "[secret:github] half [redacted: github token]\n"
    (began,) = (event for event in seen if isinstance(event, CallBegan))
    assert began.arguments == {"token": "secret:github"}
    (ended,) = (event for event in seen if isinstance(event, CallEnded))
    assert "[secret:github]" in ended.text


async def test_a_value_that_the_model_copied_is_kept_as_written_and_said(tmp_path: Path) -> None:
    (report, record, _), seen = await run("structured", tmp_path, token=VALUE)
    assert json.loads(record.raw) == {"token": VALUE}, "what the model wrote is the record (G4)"
    assert "hold the value of secret:github itself" in report.result
    assert VALUE not in report.result
    (began,) = (event for event in seen if isinstance(event, CallBegan))
    assert began.arguments == {"token": "[secret:github]"}


async def test_keys_are_taken_out_without_any_vault() -> None:
    @tool(effects="read")
    async def env() -> str:
        """Read .env."""
        return f"GITHUB_TOKEN={KEY}"

    async with Agent(ScriptedModel([call("env"), "ok"]), [env], store=":memory:") as agent:
        result = await agent.run("go")
    assert result.calls[0].result == "GITHUB_TOKEN=[redacted: github token]"


async def test_a_secret_not_given_to_the_tool_is_refused_before_anybody_is_asked() -> None:
    asked: list[ApprovalRequest] = []

    @tool(effects="irreversible")
    async def send(token: str) -> str:
        """Send it."""
        raise AssertionError("must not run")

    def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    secrets = MemoryVault({"github": VALUE}, tools=["fetch"])
    model = ScriptedModel([call("send", token="secret:github"), "ok"])
    async with Agent(model, [send], store=":memory:", secrets=secrets, approver=person) as agent:
        result = await agent.run("go")
        (record,) = agent.store.calls(result.session)
    (end,) = result.calls
    assert (end.code, end.outcome) == ("secret", Outcome.NOT_STARTED) and not asked
    assert "lorimer secrets allow github send" in end.result and record.started_at is None


async def test_an_approval_shows_the_handle_and_the_function_gets_the_value() -> None:
    asked: list[ApprovalRequest] = []
    got: list[str] = []

    @tool(effects="irreversible", secrets=["github"])
    async def push(token: str) -> str:
        """Push."""
        got.append(token)
        return "pushed"

    def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    secrets = MemoryVault({"github": VALUE})
    model = ScriptedModel([call("push", token="secret:github"), "ok"])
    async with Agent(model, [push], store=":memory:", secrets=secrets, approver=person) as agent:
        result = await agent.run("go")
    assert result.calls[0].outcome is Outcome.DONE and got == [VALUE]
    assert asked[0].facts.arguments == {"token": "secret:github"}
    assert VALUE not in str(asked)


async def test_a_late_result_is_told_without_it() -> None:
    gate = asyncio.Event()

    @tool(effects="read", timeout_s=0.05)
    async def stubborn(token: str) -> str:
        """Does not stop."""
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return f"late {token} {KEY}"

    seen: list[Any] = []
    model = ScriptedModel([call("stubborn", token="secret:github"), "ok", "again"])
    async with (
        Agent(
            model, [stubborn], store=":memory:", secrets=vault(), watch=seen.append, mode="trusted"
        ) as agent,
        agent.session() as session,
    ):
        session.dispatcher.around.grace_s = 0.01
        await session.send("go")
        gate.set()
        await w.until(lambda: not session._units.left)
        await session.send("and?")
        told = str(session.entries) + str(seen)
    assert "late [secret:github]" in told and VALUE not in told and KEY not in told


async def test_the_system_prompt_names_the_handles() -> None:
    async with Agent(ScriptedModel(["ok"]), [read_it], store=":memory:", secrets=vault()) as agent:
        assert "secret:github" in agent.system and VALUE not in agent.system
    async with Agent(ScriptedModel(["ok"]), [read_it], store=":memory:") as agent:
        assert "secret:" not in agent.system


async def test_a_programs_long_output_is_kept_on_disk_without_it(tmp_path: Path) -> None:
    from lorimer.safety.sandbox import choose
    from lorimer.toolkits import toolset

    if not any(one.usable for one in choose.available() if one.level == "os"):
        pytest.skip("no sandbox here")
    code = f"for n in range(9000): print(n, {VALUE[:9]!r} + {VALUE[9:]!r})"
    model = ScriptedModel([call("run_python", code=code), "ok"])
    (workspace := tmp_path / "w").mkdir()
    async with Agent(
        model, toolset(["run_python"]), store=tmp_path / "s.db", secrets=vault(), mode="trusted",
        workspace=workspace,
    ) as agent:  # fmt: skip
        result = await agent.run("go")
    assert result.calls[0].outcome is Outcome.DONE, result.calls[0].result
    assert "8999 [secret:github]" in result.calls[0].result
    assert VALUE not in on_disk(tmp_path), "the whole output lies there"


async def test_a_file_that_was_read_without_its_key_is_not_written_back_without_it(
    tmp_path: Path,
) -> None:
    from lorimer.toolkits import toolset

    config = tmp_path / "app.conf"
    config.write_text(f"name = a\ntoken = {KEY}\n")
    script = [
        call("read_file", path="app.conf"),
        call("write_file", path="app.conf", content="name = b\ntoken = [redacted: github token]\n"),
        call("edit_file", path="app.conf", old_text="name = a", new_text="name = b"),
        call("write_file", path="new.txt", content="about [redacted: aws key] and [secret:x]"),
        "ok",
    ]
    async with Agent(
        ScriptedModel(script), toolset(["read_file", "write_file", "edit_file"]),
        store=":memory:", workspace=tmp_path, mode="trusted",
    ) as agent:  # fmt: skip
        read, written, edited, other = (await agent.run("go")).calls
    assert "[redacted: github token]" in read.result
    assert (written.code, written.outcome) == ("secret", Outcome.NOT_STARTED)
    assert edited.outcome is Outcome.DONE, edited.result
    assert config.read_text() == f"name = b\ntoken = {KEY}\n"
    assert other.outcome is Outcome.DONE, "marks that were never given are text"
