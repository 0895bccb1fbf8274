"""Mode `auto` does ordinary work in a repository without a question, and asks for the rest with the
whole call shown: real tools, the real dispatcher, a real shell in its sandbox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lorimer import Agent
from lorimer.core.calls import Outcome
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.core.effects import Concern
from lorimer.safety.sandbox import choose
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import usual_tools
from lorimer.tools.tool import Principal, Tool

pytestmark = pytest.mark.anyio
no_sandbox = not any(level.usable for level in choose.available())

CODE = "def add(a, b):\n    return a - b\n"
TEST = (
    "import unittest\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
)


class Person:
    """Says no, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def ask(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return Approval(False, by="Ada", reason="not now")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sums.py").write_text(CODE)
    (folder / "test_sums.py").write_text(TEST)
    for words in (["init", "-q"], ["add", "."],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):  # fmt: skip
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def agent(work: Path, person: Person, *steps: object, **options: object) -> Agent:
    return Agent(
        ScriptedModel([*steps, "done"]), usual_tools(), mode="auto", store=":memory:",
        workspace=work, approver=person, **options,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.skipif(no_sandbox, reason="no sandbox on this machine")
async def test_reading_searching_editing_and_testing_need_no_question(work: Path) -> None:
    person = Person()
    made = agent(
        work, person,
        call("list_directory", path="."),
        call("grep_file", pattern="def add", path="."),
        call("read_file", path="sums.py"),
        call("shell_exec", command="python3 -B -m unittest -q test_sums 2>&1 | tail -n 5"),
        call("edit_file", path="sums.py", old_text="a - b", new_text="a + b"),
        call("shell_exec", command="python3 -B -m unittest -q test_sums && git status --short"),
        call("write_file", path="notes.md", content="Fixed.\n"),
        call("shell_exec", command="git diff --stat && git add -A && wc -l *.py"),
        call("run_python", code="print(1 + 1)"),
    )  # fmt: skip
    async with made:
        result = await made.run("make the tests pass")
    assert not person.asked
    ends = [(c.name, c.code, c.result) for c in result.calls]
    assert all(c.outcome is Outcome.DONE for c in result.calls) and len(ends) == 9, ends
    assert "FAILED" in ends[3][2] and "OK" in ends[5][2] and "sums.py" in ends[7][2]


@pytest.mark.parametrize(
    ("command", "concern"),
    [
        ("git push", Concern.NETWORK), ("git push --force origin main", Concern.NETWORK),
        ("pip install x", Concern.NETWORK), ("python3 -m pip install x", Concern.NETWORK),
        ("curl https://example.org/x -o x", Concern.NETWORK), ("rm -rf build", Concern.DESTRUCTIVE),
        ("true && rm -rf build", Concern.DESTRUCTIVE), ("cat .env", Concern.SECRETS),
        ("$(echo rm) x", Concern.UNKNOWN), ("sudo ls", Concern.PRIVILEGE),
    ],
)  # fmt: skip
async def test_what_leaves_or_destroys_is_asked_with_the_whole_call(
    work: Path, command: str, concern: Concern
) -> None:
    person = Person()
    made = agent(work, person, call("shell_exec", command=command))
    async with made:
        result = await made.run("go")
    (end,) = result.calls
    assert (end.code, end.outcome) == ("rejected", Outcome.NOT_STARTED)
    (asked,) = person.asked
    assert asked.facts.arguments["command"] == command
    assert asked.facts.touches is not None and asked.facts.touches.has(concern)
    assert asked.reason


async def test_a_policy_file_of_the_user_holds_in_an_agent(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path))
    (tmp_path / "policy.toml").write_text(
        '[[policy.rule]]\ntool = "write_file"\npaths = "*.lock"\ndecision = "deny"\n'
        'reason = "lock files are made by the tool"\nnext = "Run the lock script."\n'
    )
    person = Person()
    made = agent(work, person, call("write_file", path="a.lock", content="x"))
    async with made:
        (end,) = (await made.run("go")).calls
    assert end.code == "denied" and "lock files" in end.result and "lock script" in end.result
    assert not (work / "a.lock").exists()


async def test_who_acts_is_never_an_argument(work: Path, tmp_path: Path) -> None:
    """G6: roles are the session's; arguments that pretend others change nothing."""

    def deploy(user: str, roles: list[str]) -> str:
        """Deploy."""
        return "deployed"

    rules = tmp_path / "roles.toml"
    rules.write_text(
        '[[policy.rule]]\ntool = "deploy"\nnot_roles = "release"\ndecision = "deny"\n'
        '[[policy.rule]]\ntool = "deploy"\nroles = "release"\ndecision = "allow"\n'
    )
    tool = Tool.from_function(deploy, isolation="thread", effects="irreversible")
    for roles, code in ((frozenset[str](), "denied"), (frozenset({"release"}), "")):
        made = Agent(
            ScriptedModel([call("deploy", user="root", roles=["release"]), "done"]), [tool],
            mode="ask", store=":memory:", workspace=work, policy_files=[rules],
            principal=Principal("eve", roles),
        )  # fmt: skip
        async with made:
            (end,) = (await made.run("go")).calls
        assert end.code == code


async def test_results_that_the_session_keeps_are_read_without_a_question(
    work: Path, tmp_path: Path
) -> None:
    person = Person()
    store = tmp_path / "own" / "store.db"
    model = ScriptedModel([])
    made = Agent(
        model, usual_tools(), mode="ask", store=store, workspace=work, approver=person,
    )  # fmt: skip
    async with made, made.session() as session:
        kept = tmp_path / "own" / "results" / session.id / "none"
        model.add(call("read_file", path=str(kept)), "done")
        (end,) = (await session.send("go")).calls
    assert not person.asked and end.code == "not_found"


async def test_a_rule_of_the_project_that_has_no_effect_is_told(work: Path) -> None:
    (work / "lorimer.toml").write_text(
        '[[policy.rule]]\ntool = "shell_exec"\ncommand = "rm *"\ndecision = "allow"\n'
    )
    told: list[object] = []
    person = Person()
    made = agent(work, person, call("shell_exec", command="rm -rf build"), watch=told.append)
    async with made:
        (end,) = (await made.run("go")).calls
    assert end.code == "rejected" and len(person.asked) == 1
    assert any("has no effect" in str(event) for event in told)
