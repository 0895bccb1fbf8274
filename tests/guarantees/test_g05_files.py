"""G5: what a call runs over without declaring it is bound, too: files that any argument names, and
the names that patterns and folders stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.approving import Person, approve, calls_of, error_of, ran
from lorimer import Agent, tool
from lorimer.core.approvals import ApprovalState, names_count, names_in, what_changed
from lorimer.core.calls import Effects
from lorimer.core.decisions import ApprovalRequest, CallFacts, Decision, Traits, Verdict
from lorimer.safety.effects import CallAssessor
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, call
from lorimer.tools.dispatch.evidence import changed_files, hashes


class Asking:
    mode = "auto"

    def decide(self, facts: Any) -> Decision:
        return Decision(Verdict.ASK, "rule", "all is asked")


@tool(effects="write")
async def runfile(path: str = "", options: dict[str, list[str]] | None = None) -> str:
    """Run a file."""
    ran.append(path)
    return "ran"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "arguments", [{"path": "build.sh"}, {"path": "./world/../build.sh"}, {"path": "ABSOLUTE"},
                  {"options": {"more": ["x", "build.sh"]}}],
)  # fmt: skip
async def test_a_file_that_an_undeclared_argument_names_is_bound(
    folder: Path, arguments: dict[str, Any]
) -> None:
    script = folder / "build.sh"
    if arguments.get("path") == "ABSOLUTE":
        arguments = {"path": str(script)}

    def change(request: ApprovalRequest) -> bool:
        assert list(request.files) == [str(script.resolve())]
        script.write_text("rm -rf /\n")
        return True

    model = ScriptedModel([call("runfile", arguments), "ok"])
    agent = Agent(model, [runfile], store=":memory:", workspace=folder, policy=Asking(),
                  approver=Person(change))  # fmt: skip
    result = await agent.run("go")
    assert calls_of(result) == ["approval_void"] and not ran
    assert "build.sh changed" in error_of(result)["message"]


@pytest.mark.parametrize("text", ["build.sh\n", "x" * 5_000, "no such file", "", "a\0b", "y" * 300])
def test_other_text_is_no_file(folder: Path, text: str) -> None:
    facts = CallFacts("t", Effects.WRITE, "x", {"a": text}, (), "p", "s", str(folder),
                      roots=(str(folder),))  # fmt: skip
    assert hashes(facts) == {}


def test_so_many_values_are_looked_at_and_no_more(folder: Path) -> None:
    values = ["nothing"] * 199
    facts = CallFacts("t", Effects.WRITE, "x", {"a": [*values, "build.sh"]}, (), "p", "s",
                      str(folder))  # fmt: skip
    assert hashes(facts)
    facts.arguments["a"].insert(0, "one more")
    assert not hashes(facts)


def shell(folder: Path, command: str) -> CallFacts:
    facts = CallFacts(
        "shell_exec", Effects.WRITE, "execution", {"command": command}, (), "p", "s", str(folder),
        roots=(str(folder),), traits=Traits(command_argument="command"),
    )  # fmt: skip
    from dataclasses import replace

    return replace(facts, touches=CallAssessor().assess(facts))


@pytest.fixture
def many(folder: Path) -> Path:
    made = folder / "d"
    (made / "sub").mkdir(parents=True)
    for name in ("a", "b", ".hidden", "sub/deep"):
        (made / name).write_text(name)
    return made.resolve()


@pytest.mark.parametrize(
    ("command", "key", "names"),
    [
        ("rm d/*", "d/*", ["a", "b", "sub"]), ("cd d && rm ./?", "d/?", ["a", "b"]),
        ("rm d/.h*", "d/.h*", [".hidden"]), ("rm d/[!a]", "d/[!a]", ["b"]),
        ("rm d/[^a]", "d/[^a]", ["b"]), ("rm d/none*", "d/none*", []),
        ("rm -rf d", "d/", [".hidden", "a", "b", "sub", "sub/deep"]),
        ("rm -rf d/s*", "d/sub/", ["sub/deep"]), ("tool d/*", "d/*", ["a", "b", "sub"]),
    ],
)  # fmt: skip
def test_the_names_that_a_command_stands_for_are_bound(
    many: Path, command: str, key: str, names: list[str]
) -> None:
    found = hashes(shell(many.parent, command))
    assert names_in(found[f"{many.parent}/{key}"]) == [str(many / name) for name in names]


def test_a_folder_with_a_pattern_in_its_own_name(folder: Path) -> None:
    odd = (folder / "[x]*").resolve()
    odd.mkdir()
    (odd / "one").write_text("1")
    found = hashes(shell(odd, "rm *"))
    assert names_in(found[f"{odd}/*"]) == [str(odd / "one")]


def test_the_content_of_what_a_pattern_reads_is_bound_and_of_what_it_deletes_not(
    many: Path,
) -> None:
    assert str(many / "a") in hashes(shell(many.parent, "cat d/* | sh"))
    assert str(many / "a") not in hashes(shell(many.parent, "rm d/*"))


def test_of_very_many_names_there_are_their_number_and_a_digest(many: Path) -> None:
    for n in range(300):
        (many / f"f{n:03}").write_text("")
    key = f"{many}/*"
    before = hashes(shell(many.parent, "rm d/*"))[key]
    assert names_count(before) == 303 and len(names_in(before) or ()) == 200
    (many / "f299").rename(many / "g299")
    after = hashes(shell(many.parent, "rm d/*"))[key]
    assert after != before and what_changed({"files": {key: before}}, {"files": {key: after}}) == [
        f"{key} has other files now"
    ]


def test_a_request_holds_so_many_names_and_a_change_of_the_others_shows(many: Path) -> None:
    for folder in "wxyz":
        (many / folder).mkdir()
        for n in range(150):
            (many / folder / f"f{n:03}").write_text("")
    before = hashes(shell(many.parent, "rm -rf d/*"))
    assert sum(len(names_in(value) or ()) for value in before.values()) == 400
    assert changed_files(before) == []
    (many / "z" / "f000").rename(many / "z" / "g000")
    assert changed_files(before) == [f"{many}/z/ has other files now"]


@pytest.mark.parametrize(
    ("command", "change", "said"),
    [
        ("rm d/*", lambda d: (d / "c").write_text("new"), "has {d}/c now"),
        ("rm d/*", lambda d: (d / "a").unlink(), "has {d}/a no more"),
        ("rm -rf d", lambda d: (d / "sub" / "new").write_text("x"), "has {d}/sub/new now"),
        ("rm d/a", lambda d: (d / "a").write_text("y"), "{d}/a changed"),
    ],
)  # fmt: skip
def test_what_changed_is_seen_by_whoever_answers(
    many: Path, command: str, change: Callable[[Path], Any], said: str
) -> None:
    files = hashes(shell(many.parent, command))
    assert changed_files(files) == []
    change(many)
    (found,) = changed_files(files)
    assert said.format(d=many) in found


def test_what_this_process_may_not_read_is_left_to_the_start() -> None:
    assert changed_files({"/x": "unreadable", "(more files)": "not looked at"}) == []


@pytest.mark.anyio
async def test_a_file_made_after_the_question_is_not_deleted(many: Path) -> None:
    @tool(effects="write", name="remove")
    async def remove(command: str) -> str:
        """Remove files."""
        ran.append(command)
        return "removed"

    from dataclasses import replace

    shelly = replace(remove, command_argument="command")

    def change(request: ApprovalRequest) -> bool:
        (many / "c").write_text("new")
        return True

    model = ScriptedModel([call("remove", command="rm d/*"), "ok"])
    agent = Agent(model, [shelly], store=":memory:", workspace=many.parent, policy=Asking(),
                  approver=Person(change))  # fmt: skip
    result = await agent.run("go")
    assert calls_of(result) == ["approval_void"] and not ran
    assert f"has {many}/c now" in error_of(result)["message"]


@pytest.mark.anyio
async def test_a_request_that_became_void_while_it_waited_is_no_rejection(folder: Path) -> None:
    import asyncio

    from harness import world as w
    from lorimer.store.protocol import CloseApproval

    store = open_store(":memory:")
    again = call("runfile", path="build.sh")
    agent = Agent(ScriptedModel([again, again, "ok"]), [runfile], store=store, workspace=folder,
                  policy=Asking(), approval_wait_s=60)  # fmt: skip
    going = asyncio.create_task(agent.run("go"))
    await w.until(lambda: len(store.approvals()) == 1, "a request")
    (one,) = store.approvals()
    await store.commit(CloseApproval(one.id, ApprovalState.VOID, "build.sh changed"))
    await w.until(lambda: len(store.approvals()) == 2, "the question anew")
    await approve(store, store.approvals()[-1].id)
    assert calls_of(await going) == ["approval_void", "done"] and ran == ["build.sh"]
    store.close()


@pytest.mark.anyio
async def test_a_rule_for_the_session_is_for_these_arguments_only(folder: Path) -> None:
    from lorimer.core.decisions import Approval

    person = Person(Approval(True, "Ada", for_session=True), False)
    script = [call("runfile", path="build.sh"), call("runfile", path="build.sh"),
              call("runfile", path="other.sh"), "ok"]  # fmt: skip
    agent = Agent(ScriptedModel(script), [runfile], store=":memory:", workspace=folder,
                  approver=person, mode="ask")  # fmt: skip
    result = await agent.run("go")
    assert calls_of(result) == ["done", "done", "rejected"] and len(person.asked) == 2
    rule = person.asked[0].remember_rule
    assert 'path = { one_of = ["build.sh"] }' in rule and "other_arguments = false" in rule
    assert f"by the rule: {rule}" in result.calls[0].result, "what is shown is what is added"


@pytest.mark.anyio
async def test_where_the_values_cannot_be_pinned_there_is_no_rule(folder: Path) -> None:
    person = Person(True)
    model = ScriptedModel([call("runfile", options={"more": ["x"]}), "ok"])
    agent = Agent(model, [runfile], store=":memory:", workspace=folder, approver=person, mode="ask")
    assert calls_of(await agent.run("go")) == ["done"] and person.asked[0].remember_rule == ""
