"""A command reaches the hosts that it names, once it was allowed, and no others."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.net import Seen, Server, local_rules, reply, running
from lorimer import Agent
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.core.messages import ResultPart, TextPart
from lorimer.safety.network import NetworkRules
from lorimer.safety.sandbox import choose
from lorimer.safety.secrets import MemoryVault
from lorimer.safety.shell import analyse
from lorimer.testing import ScriptedModel
from lorimer.toolkits.execution.shell_exec import make_shell_tools
from lorimer.toolkits.execution.shell_grant import Grant


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def grant(command: str) -> Grant:
    return Grant(analyse(command, cwd="/w", roots=("/w",), home="/h"), NetworkRules())


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("ls", ()),
        ("echo https://example.com", ()),
        ("curl https://example.com/a", ("example.com",)),
        (
            "curl https://a.example/x && curl https://b.example:8443/y",
            ("a.example", "b.example:8443"),
        ),
        ("pip install attrs", ("pypi.org", "files.pythonhosted.org")),
        ("env X=1 npm install", ("registry.npmjs.org",)),
        ("pip list", ()),
        ("git push", ()),
    ],
)
def test_the_hosts_are_those_of_the_command(command: str, hosts: tuple[str, ...]) -> None:
    made = grant(command)
    assert made.hosts == hosts
    egress = made.egress()
    assert (egress.rules.allow_hosts if egress else ()) == hosts


def test_a_command_that_gets_no_network_although_it_wants_one_is_told_so() -> None:
    assert "had no network" in grant("git push").notes()[0]
    assert grant("ls").notes() == []


def answer(seen: Seen) -> bytes:
    return reply(b"a page", headers=["Content-Type: text/plain"])


@pytest.fixture
def server() -> Iterator[Server]:
    with running(answer) as one:
        yield one


async def said(command: str, server: Server, folder: Path, *, approve: bool) -> tuple[str, int]:
    """The result of a command in mode `auto`, and how many questions there were."""
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return Approval(approve, "tester")

    model = ScriptedModel(
        [{"calls": [{"name": "shell_exec", "arguments": {"command": command}}]}, "ok"]
    )
    tools = make_shell_tools(network=local_rules(server))
    agent = Agent(
        model, tools, mode="auto", approver=approver, workspace=folder, store=folder.parent / "s.db"
    )
    async with agent, agent.session() as session:
        await session.send("go")
        results = [p for e in session.entries for p in e.parts if isinstance(p, ResultPart)]
    text = "".join(p.text for p in results[0].content if isinstance(p, TextPart))
    return text, len(asked)


@pytest.mark.anyio
@pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason)
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
async def test_an_approved_command_reaches_its_host_and_nothing_else(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "ein ordner – ü"
    folder.mkdir()
    here = f"http://127.0.0.1:{server.port}"
    command = f'curl -sS --noproxy "" {here}/a'  # curl would not take a proxy to loopback
    text, asked = await said(command, server, folder, approve=True)
    assert asked == 1
    assert text.startswith("a page"), text
    assert f"[network: only 127.0.0.1:{server.port}; " in text
    assert server.connections == 1
    text, asked = await said(command, server, folder, approve=False)
    assert asked == 1
    assert '"rejected"' in text
    assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason)
async def test_code_that_names_no_host_has_no_network(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "go.py").write_text(
        f"import socket\nprint(socket.socket().connect_ex(('127.0.0.1', {server.port})) != 0)\n"
    )
    text, asked = await said("python3 go.py", server, folder, approve=True)
    assert asked == 0
    assert text == "True", text
    assert server.connections == 0


def files_with(text: bytes, folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*") if f.is_file() and text in f.read_bytes()]


async def with_env(env: dict[str, str], folder: Path, *commands: str) -> list[str]:
    """Results of commands; the first is given `env`."""
    calls = [{"name": "shell_exec", "arguments": {"command": c}} for c in commands]
    calls[0]["arguments"]["env"] = env
    model = ScriptedModel([*({"calls": [call]} for call in calls), "ok"])
    vault = MemoryVault({"github": "tok-123456789"}, tools=["shell_exec"])
    agent = Agent(
        model, make_shell_tools(), mode="auto", workspace=folder, secrets=vault,
        approver=lambda _: True, store=folder.parent / "s.db",
    )  # fmt: skip
    async with agent, agent.session() as session:
        await session.send("go")
        results = [p for e in session.entries for p in e.parts if isinstance(p, ResultPart)]
    return ["".join(p.text for p in r.content if isinstance(p, TextPart)) for r in results]


@pytest.mark.anyio
@pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason)
async def test_a_secret_is_given_to_one_command_and_nothing_keeps_it(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    first, second = await with_env(
        {"GH_TOKEN": "secret:github"},
        folder,
        "X=kept; test ${#GH_TOKEN} = 13 && echo right; echo $GH_TOKEN",
        "echo ${GH_TOKEN-gone} $X",
    )
    assert first.startswith("right\n[secret:github]"), first
    assert second.startswith("gone kept"), second
    assert files_with(b"tok-123456789", tmp_path) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "env",
    [
        {"LD_PRELOAD": "secret:github"},
        {"GIT_PAGER": "secret:github"},
        {"PATH": "secret:github"},
        {"X": "plain"},
        {"x y": "secret:github"},
        {"HTTPS_PROXY": "secret:github"},
        {"A) ;; *": "secret:github"},
    ],
)
async def test_other_variables_are_refused_before_anything_runs(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (refused,) = await with_env(env, folder, "echo ran > ran")
    assert '"error": "value"' in refused
    assert "env holds secrets only" in refused
    assert not (folder / "ran").exists()
