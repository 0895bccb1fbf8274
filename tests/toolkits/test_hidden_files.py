"""Code that a model runs does not read secret files that nobody was asked about. Run once more as
a normal user."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.core.calls import Effects
from lorimer.core.decisions import ApprovalRequest, Assessor, CallFacts
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, Reason
from lorimer.core.messages import ResultPart, TextPart
from lorimer.safety.sandbox import choose, hidden
from lorimer.testing import ScriptedModel
from lorimer.toolkits.execution.hiding import Hiding, hiding
from lorimer.toolkits.execution.run_python import make_run_python
from lorimer.toolkits.execution.shell_exec import make_shell_tools
from lorimer.tools.tool import Principal, ToolContext

SECRET = "tok-4711-geheim"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "wörk space"
    (made / "app").mkdir(parents=True)
    for name in (".env", "app/.env.local"):
        (made / name).write_text(f"KEY={SECRET}\n")
    (made / "plain.txt").write_text("plain\n")
    return made


def shell(command: str, **more: Any) -> dict[str, Any]:
    return {"name": "shell_exec", "arguments": {"command": command, **more}}


def python(code: str) -> dict[str, Any]:
    return {"name": "run_python", "arguments": {"code": code}}


class Writes:
    """An analysis that sees no secret in anything."""

    def assess(self, facts: CallFacts) -> CallEffects:
        return CallEffects(Effects.WRITE)


async def said(
    folder: Path, *calls: dict[str, Any], assessor: Assessor | None = None
) -> tuple[list[str], list[ApprovalRequest]]:
    """What the calls said in one session of mode `auto`, in which every question is allowed."""
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    agent = Agent(
        ScriptedModel([*({"calls": [call]} for call in calls), "ok"]),
        [*make_shell_tools(), make_run_python()], mode="auto", workspace=folder,
        approver=approver, store=folder.parent / "s.db", assessor=assessor,
    )  # fmt: skip
    async with agent, agent.session() as session:
        await session.send("go")
        found = [p for e in session.entries for p in e.parts if isinstance(p, ResultPart)]
    texts = ["".join(p.text for p in r.content if isinstance(p, TextPart)) for r in found]
    return texts, asked


@pytest.mark.parametrize(
    "call",
    [
        shell("grep -rn KEY ."),
        shell("python3 -c \"import os; print(open('.e' + 'nv').read())\""),
        shell("tar cf - . | strings"),
        shell("printf 'all:\\n\\tcat .env\\n' > Makefile && make"),
        shell("cp -r app copy; cat copy/.env.local"),
        shell("cat .env app/.env.local"),
        shell("find . -type f -exec cat {} +"),
        python("print(open('.env').read())"),
        python("import subprocess; print(subprocess.run('cat .env app/.env*', shell=True))"),
        python("import os; os.rename('.env', 'x'); print(open('x').read())"),
    ],
)
async def test_nothing_is_read_that_nobody_was_asked_about(
    folder: Path, call: dict[str, Any]
) -> None:
    texts, _ = await said(folder, call, assessor=Writes())
    assert SECRET not in texts[0]
    assert (folder / ".env").read_text() == f"KEY={SECRET}\n"


async def test_what_was_allowed_for_one_call_is_seen_by_that_call_only(folder: Path) -> None:
    code = "python3 -c \"print(open('.e' + 'nv').read())\""
    texts, asked = await said(folder, shell("cat .env"), shell(code))
    assert len(asked) == 1, texts
    assert f"KEY={SECRET}" in texts[0]
    assert SECRET not in texts[1]
    assert "PermissionError" in texts[1]


async def test_only_what_the_call_named_is_shown_to_it(folder: Path) -> None:
    texts, asked = await said(folder, shell("cat .env; grep -rc KEY app"))
    assert len(asked) == 1, texts
    assert f"KEY={SECRET}" in texts[0]
    assert "app/.env.local: Permission denied" in texts[0]


async def test_a_secret_for_a_variable_shows_no_files(folder: Path) -> None:
    reason = Reason(Concern.SECRETS, "it uses the secret github", "secret:github")
    touches = CallEffects(Effects.WRITE, reasons=(reason,))
    found = await hidden_for(folder, touches)
    assert found == {".env", "app/.env.local"}


def real(folder: Path) -> str:
    return os.path.realpath(folder)


async def hidden_for(folder: Path, touches: CallEffects) -> set[str]:
    context = ToolContext(
        session="s", call_id="c", principal=Principal("t"), operation_key="k", workspace=folder
    )
    made = await hiding(context, "os", approved=touches)
    return {str(path.relative_to(folder)) for path in made.paths}


@pytest.mark.parametrize(
    ("named", "left"),
    [
        (".env", {"app/.env.local"}),
        ("app/.env*", {".env"}),
        ("*/.env.local", {".env"}),
        (".env*", {"app/.env.local"}),
        ("elsewhere/.env", {".env", "app/.env.local"}),
        ("nothing", set()),
    ],
)
async def test_which_files_a_call_was_allowed_to_read(
    folder: Path, named: str, left: set[str]
) -> None:
    reason = Reason(Concern.SECRETS, "it may hold secrets", named)
    path = PathTouch(named, f"{real(folder)}/{named}", Access.READ, True)
    touches = CallEffects(Effects.WRITE, paths=(path,), reasons=(reason,))
    assert await hidden_for(folder, touches) == left


async def test_our_own_home_is_hidden_whatever_was_allowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "policy.toml").write_text("")
    monkeypatch.setenv("LORIMER_HOME", str(folder / "own"))
    reason = Reason(Concern.SECRETS, "it may hold secrets", "x")
    touches = CallEffects(Effects.WRITE, reasons=(reason,))
    assert await hidden_for(folder, touches) == {"own"}
    texts, _ = await said(folder, shell("python3 -c \"import os; print(os.listdir('own'))\""))
    assert "policy.toml" not in texts[0]
    assert "PermissionError" in texts[0]


async def test_the_session_is_told_once_and_when_it_matters(folder: Path) -> None:
    note = "[hidden from programs, because they may hold secrets: .env, app/.env.local."
    texts, _ = await said(
        folder, shell("echo 1"), shell("echo 2"), python("print(3)"),
        shell("make -f .env"), python("open('.env')"),
    )  # fmt: skip
    assert note in texts[0]
    assert [note in text for text in texts] == [True, False, False, True, True]


async def test_a_workspace_without_secrets_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    texts, _ = await said(tmp_path / "w", shell("echo 1"), python("print(1)"))
    assert texts == ["1", "1"]


async def test_in_a_weaker_sandbox_it_says_that_they_can_be_read(folder: Path) -> None:
    context = ToolContext(
        session="s", call_id="c", principal=Principal("t"), operation_key="k", workspace=folder
    )
    made = Hiding(folder, "landlock", hidden.find(folder))
    assert made.paths == ()
    assert made.notes(context, "") == [
        "[programs can read secret files here, in this weaker sandbox: .env, app/.env.local]"
    ]
    assert made.notes(context, "") == []


async def test_the_interpreter_does_not_see_them(
    folder: Path, make_context: Callable[..., ToolContext]
) -> None:
    pytest.importorskip("ipykernel")
    from lorimer.toolkits.execution.code_interpreter import make_code_interpreter

    tool = make_code_interpreter().function
    context = make_context(folder)
    try:
        first = str(await tool(code="print(open('plain.txt').read())", context=context))
        second = str(await tool(code="print(open('.env').read())", context=context))
    finally:
        await context.belongings.close()
    assert "plain" in first
    assert "[hidden from programs" in first
    assert SECRET not in second
    assert "PermissionError" in second
    assert "[hidden from programs" in second
