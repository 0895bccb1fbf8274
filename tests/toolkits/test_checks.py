# ruff: noqa: ASYNC240 - tests look at the disk
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.core.calls import Outcome
from lorimer.safety.sandbox import choose
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset
from lorimer.toolkits.execution import checks
from lorimer.toolkits.execution.checks import check_written
from lorimer.tools.tool import ToolContext

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]


def needs(program: str) -> pytest.MarkDecorator:
    from lorimer.toolkits.execution.visible import programs

    found = shutil.which(program, path=programs()[1])
    return pytest.mark.skipif(found is None, reason=f"{program} is needed")


@pytest.fixture
def check(workspace: Path, context: ToolContext) -> Callable[..., Any]:
    async def run(name: str, content: str | bytes) -> list[str]:
        raw = content.encode() if isinstance(content, str) else content
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(raw)
        found = await check_written({"path": name}, "", context)
        assert (workspace / name).read_bytes() == raw
        return [f"{one.severity}: {one.message}" for one in found]

    return run


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        pytest.param("a.py", "x = y\n", "error: ruff, line 1: F821", marks=needs("ruff")),
        pytest.param("a.py", "import os\n", "warning: ruff, line 1: F401", marks=needs("ruff")),
        pytest.param("ü/–a b.py", "x = y\n", "error: ruff, line 1: F821", marks=needs("ruff")),
        pytest.param("-rf.py", "x = y\n", "error: ruff, line 1: F821", marks=needs("ruff")),
        pytest.param("a.py", "x = 1\n", None, marks=needs("ruff")),
        pytest.param("a.js", "let a;\nlet x = ;\n", "error: node, line 2: SyntaxError",
                     marks=needs("node")),
        pytest.param("a.js", "const x = 1;\n", None, marks=needs("node")),
        pytest.param("a.mjs", "export const x = 1;\n", None, marks=needs("node")),
        pytest.param("a.mjs", "export const = 1;\n", "error: node, line 1", marks=needs("node")),
        pytest.param("a.cjs", "const x = require('x');\n", None, marks=needs("node")),
        ("a.sh", "echo 1\nif then\n", "error: bash, line 2: syntax error"),
        ("a.sh", "for f in *; do echo \"$f\"; done\n", None),
        ("a.bash", "shopt -s extglob\necho 1\n", None),
        ("a.yaml", "a: 1\nb: [1,\n", "error: a.yaml does not parse: line 3"),
        ("a.yml", "a: &x 1\nb: *x\n---\nc: 2\n", None),
        ("a.toml", "a = 1\na = 2\n", "error: a.toml does not parse"),
        ("a.txt", "if then\n", None),
        ("a.py", "", None),
    ],
)  # fmt: skip
async def test_what_is_found(check: Any, name: str, content: str, found: str | None) -> None:
    if name.endswith((".yaml", ".yml")):
        pytest.importorskip("yaml")
    said = await check(name, content)
    if found is None:
        assert said == []
    else:
        assert said[0].startswith(found), said


@needs("ruff")
async def test_the_project_s_own_rules_count(check: Any, workspace: Path) -> None:
    (workspace / "ruff.toml").write_text('lint.select = ["E501"]\nline-length = 20\n')
    said = await check("a.py", "import os\nx = 'a line that is rather long'\n")
    assert [s.split(" (")[0] for s in said] == ["warning: ruff, line 2: E501 Line too long"]


@needs("ruff")
async def test_many_findings_are_counted_not_listed(check: Any) -> None:
    said = await check("a.py", "".join(f"x{n} = y{n}\n" for n in range(50)))
    assert len(said) == 9 and said[-1].endswith("and 42 more of ruff")


async def test_a_linter_that_hangs_is_stopped_and_that_is_told(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_LONGEST_S", 0.5)
    slow = checks.Linter("sleep", ("600",), lambda _: [])
    monkeypatch.setattr(checks, "LINTERS", {".sh": slow})
    assert await check("a.sh", "x") == ["warning: sleep took longer than 0.5 s and was stopped"]


@pytest.mark.parametrize("words", ["", "no json", "[1]", "{}", '[{"code": 5}]'])
async def test_a_linter_that_talks_nonsense_is_no_finding(
    check: Any, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    odd = checks.Linter("printf", ("%s", words), checks._ruff)
    monkeypatch.setattr(checks, "LINTERS", {".sh": odd})
    assert await check("a.sh", "x") == []


async def test_a_linter_cannot_change_anything(
    check: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "other").write_text("as it was")
    bad = checks.Linter("sh", ("-c", "echo x > other; echo x > a.sh; rm -rf ."), lambda _: [])
    monkeypatch.setattr(checks, "LINTERS", {".sh": bad})
    await check("a.sh", "x")
    assert (workspace / "other").read_text() == "as it was"


async def test_a_missing_linter_or_sandbox_is_no_finding(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = checks.Linter("no-such-linter", (), lambda _: [])
    monkeypatch.setattr(checks, "LINTERS", {".sh": gone})
    assert await check("a.sh", "if then") == []
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert await check("a.sh", "if then") == []


@pytest.mark.parametrize(("level", "count"), [("off", 0), ("parse", 0), ("lint", 1), ("", 1)])
@needs("ruff")
async def test_the_switch(
    check: Any, monkeypatch: pytest.MonkeyPatch, level: str, count: int
) -> None:
    monkeypatch.setenv(checks.SWITCH, level)
    assert len(await check("a.py", "x = y\n")) == count


async def test_a_wrong_switch_is_told(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(checks.SWITCH, "on")
    assert "may be lint, parse, off" in (await check("a.sh", "x"))[0]


async def test_findings_are_notes_of_a_call_that_is_done(workspace: Path) -> None:
    model = ScriptedModel([call("write_file", path="a.sh", content="if then\n"), "ended"])
    agent = Agent(
        model, toolset(["files"]), store=":memory:", workspace=workspace, approver=lambda _: True
    )
    async with agent:
        (end,) = (await agent.run("go")).calls
    assert end.outcome is Outcome.DONE
    assert "notes:\n- error: bash, line 1: syntax error" in end.result
    assert [p.name for p in workspace.iterdir()] == ["a.sh"]
