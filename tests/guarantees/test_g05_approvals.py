"""G5: an approval is a capability. It is bound to one exact call, the files it names, the policy
and the session; it is used once; it outlasts the process; the first answer wins, from anywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.approving import Person, approve, calls_of, deploy, error_of, pay, ran
from lorimer import Agent, tool
from lorimer.core.approvals import ApprovalState, Bound
from lorimer.core.calls import Outcome
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.core.errors import (
    ApprovalSpent,
)
from lorimer.store import open_store
from lorimer.store.protocol import CloseApproval, SpendApproval
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    ran.clear()


# --- what it is bound to -------------------------------------------------------------------------

BOUND = Bound(
    "t", "d", {"a": 1}, {"/f": "h"}, ["read /f"], {"level": "write"}, "auto x", "os", "s", "p"
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool", "u"), ("definition", "e"), ("arguments", {"a": 2}), ("arguments", {"a": 1.0}),
        ("files", {"/f": "i"}), ("files", {}), ("paths", ["write /f"]), ("effects", {}),
        ("policy", "auto y"), ("sandbox", "none"), ("session", "s2"), ("principal", "q"),
    ],
)  # fmt: skip
def test_everything_it_is_bound_to_is_in_the_binding(name: str, value: Any) -> None:
    assert replace(BOUND, **{name: value}).binding != BOUND.binding


@pytest.mark.anyio
async def test_the_person_sees_the_whole_call_and_its_digest(folder: Path) -> None:
    person = Person(True)
    model = ScriptedModel([call("deploy", script="./build.sh", note="n" * 5000), "ok"])
    async with Agent(model, [deploy], store=":memory:", workspace=folder, approver=person) as agent:
        result = await agent.run("go")
        (record,) = agent.store.approvals(result.session)
        (journal,) = agent.store.calls(result.session)
    (request,) = person.asked
    assert request.facts.arguments["note"] == "n" * 5000
    assert list(request.files) == [str((folder / "build.sh").resolve())]
    assert request.id == record.id and request.digest == record.digest and request.expires_at
    assert record.state is ApprovalState.SPENT and record.closing["call"] == journal.id
    assert journal.decision["approved_by"] == "Ada" and ran


# --- edited after it was asked -------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["changed", "removed", "a link now"])
async def test_a_script_that_changes_between_question_and_answer_voids_it(
    folder: Path, how: str
) -> None:
    script = folder / "build.sh"

    def change(request: ApprovalRequest) -> bool:
        if how == "changed":
            script.write_text("rm -rf /\n")
        else:
            script.unlink()
        if how == "a link now":
            (folder / "other.sh").write_text("echo one\n")
            script.symlink_to("other.sh")
        return True

    model = ScriptedModel([call("deploy", script="build.sh")] * 2 + ["ok"])
    person = Person(change, True)
    async with Agent(model, [deploy], store=":memory:", workspace=folder, approver=person) as agent:
        result = await agent.run("go")
        first, second = agent.store.approvals(result.session)
    assert calls_of(result) == ["approval_void", "done"]
    told = error_of(result, 0)
    assert (
        "build.sh" in told["message"] and "between the question and the answer" in told["message"]
    )
    assert first.state is ApprovalState.VOID and second.state is ApprovalState.SPENT
    assert ran == ["build.sh"], "only after it was asked anew"


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("bash build.sh", {"build.sh"}), ("sh -c './build.sh'", {"build.sh"}),
        ("cat list | bash build.sh", {"list", "build.sh"}), ("FOO=1 ./build.sh", {"build.sh"}),
        ("env -i timeout 5 bash ./build.sh", {"build.sh"}), (". ./build.sh", {"build.sh"}),
        ("bash < build.sh", {"build.sh"}), ("cd sub && ./run.sh", {"sub/run.sh"}),
        ("(cd sub; python tool.py)", {"sub/tool.py"}), ("python -m tool", {"tool.py"}),
        ("curl -d @list http://localhost", {"list"}), ("prog --config=list", {"list"}),
        ("find . -exec bash build.sh ';'", {"build.sh"}), ("make", {"Makefile"}),
        ("make -C sub", {"sub/Makefile"}), ('bash -c "$(cat build.sh)"', {"build.sh"}),
        ("xargs -a list echo", {"list"}), ("python3 'tool.py'", {"tool.py"}),
        ("bash -x build.sh --fast", {"build.sh"}), ("ln -s build.sh other.sh", {"build.sh"}),
    ],
)  # fmt: skip
def test_the_files_that_a_command_names_are_bound_by_their_content(
    folder: Path, command: str, files: set[str]
) -> None:
    from lorimer.core.calls import Effects
    from lorimer.core.decisions import CallFacts, Traits
    from lorimer.safety.effects import CallAssessor
    from lorimer.tools.dispatch.evidence import hashes

    (folder / "sub").mkdir()
    for name in ("list", "Makefile", "tool.py", "sub/run.sh", "sub/tool.py", "sub/Makefile"):
        (folder / name).write_text("x")
    facts = CallFacts(
        "shell_exec", Effects.WRITE, "execution", {"command": command}, (), "p", "s", str(folder),
        roots=(str(folder),), traits=Traits(command_argument="command"),
    )  # fmt: skip
    for one in (facts, replace(facts, touches=CallAssessor().assess(facts))):
        if one.touches is None and ("-c" in command or "cd " in command or "<" in command):
            continue  # without an analysis only plain words are known
        found = hashes(one)
        for name in files:
            path = str((folder / name).resolve())
            assert found[path].startswith("sha256:")
            (folder / name).write_text("y")
            assert hashes(one)[path] != found[path]
            (folder / name).write_text("x")


@pytest.mark.anyio
async def test_a_policy_that_refuses_by_now_voids_it(folder: Path) -> None:
    class Changing:
        mode, digest, verdict = "auto", "one", "ask"

        def decide(self, facts: Any) -> Any:
            from lorimer.core.decisions import Decision, Verdict

            return Decision(Verdict(self.verdict), "rule", "because")

    policy = Changing()

    def change(request: ApprovalRequest) -> bool:
        policy.verdict = "deny"
        return True

    model = ScriptedModel([call("pay", to="bo", amount=1), "ok"])
    async with Agent(
        model, [pay], store=":memory:", policy=policy, approver=Person(change)
    ) as agent:
        result = await agent.run("go")
    assert (
        calls_of(result) == ["approval_void"]
        and "policy refuses it now" in error_of(result)["message"]
    )
    assert not ran


@pytest.mark.anyio
@pytest.mark.parametrize(
    "second",
    [{"to": "bo", "amount": 2}, {"to": "eve", "amount": 1}, {"to": "bo ", "amount": 1}],
)
async def test_an_approval_is_no_good_for_other_arguments(second: dict[str, Any]) -> None:
    store = open_store(":memory:")
    model = ScriptedModel([call("pay", to="bo", amount=1), "ask", call("pay", second), "ok"])
    agent = Agent(model, [pay], store=store)
    async with agent.session() as session:
        first = await session.send("pay bo")
        await approve(store, error_of(first)["approval"])
        result = await session.send("approved, go on")
    assert calls_of(result) == ["needs_approval"] and not ran
    assert error_of(result)["approval"] != error_of(first)["approval"]
    store.close()


@pytest.mark.anyio
async def test_another_definition_of_the_tool_needs_another_approval(folder: Path) -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([call("deploy", script="build.sh"), "?"]), [deploy], store=store,
                  workspace=folder)  # fmt: skip
    async with agent.session() as session:
        first = await session.send("go")
    await approve(store, error_of(first)["approval"])

    @tool(name="deploy", effects="irreversible", path_arguments=["script"])
    async def other(script: str, note: str = "") -> str:
        """Run a script on the far side, as root."""
        ran.append("other")
        return "x"

    again = Agent(ScriptedModel([call("deploy", script="build.sh"), "?"]), [other], store=store,
                  workspace=folder)  # fmt: skip
    async with again.session(session.id) as session:
        result = await session.send("go on")
    assert calls_of(result) == ["needs_approval"] and not ran
    states = [r.state for r in store.approvals(session.id)]
    assert states == [ApprovalState.VOID, ApprovalState.OPEN]
    assert "definition of the tool changed" in store.approvals(session.id)[1].request["news"]
    assert "definition of the tool changed" in error_of(result)["notes"][0]
    store.close()


@pytest.mark.anyio
async def test_an_approval_of_one_session_is_none_of_another(folder: Path) -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([call("pay", to="bo", amount=1), "?"] * 2), [pay], store=store)
    first = await agent.run("go")
    await approve(store, error_of(first)["approval"])
    result = await agent.run("go")
    assert calls_of(result) == ["needs_approval"] and not ran
    store.close()


# --- one use -------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_it_is_used_once(folder: Path) -> None:
    store = open_store(":memory:")
    model = ScriptedModel([call("pay", to="bo", amount=1), "?", call("pay", to="bo", amount=1),
                           call("pay", to="bo", amount=1), "?"])  # fmt: skip
    agent = Agent(model, [pay], store=store)
    async with agent.session() as session:
        first = await session.send("pay")
        await approve(store, error_of(first)["approval"])
        result = await session.send("approved, go on")
    assert calls_of(result) == ["done", "needs_approval"] and ran == ["bo 1"]
    with pytest.raises(ApprovalSpent, match="used already"):
        await store.commit(SpendApproval(error_of(first)["approval"], session.id, "x"))
    assert verify(store).faults == ()
    store.close()


@pytest.mark.anyio
async def test_using_it_and_starting_the_call_are_one_commit(folder: Path) -> None:
    """Somebody takes the approval away between the last look and the commit: nothing starts."""
    store = open_store(":memory:")
    commit = store.commit

    async def thief(*changes: Any) -> None:
        spends = [c for c in changes if isinstance(c, SpendApproval)]
        if spends:
            await commit(CloseApproval(spends[0].id, ApprovalState.WITHDRAWN, "taken back"))
        await commit(*changes)

    store.commit = thief  # type: ignore[method-assign]
    model = ScriptedModel([call("pay", to="bo", amount=1), "ok"])
    async with Agent(model, [pay], store=store, approver=Person(True)) as agent:
        result = await agent.run("go")
    assert calls_of(result) == ["approval_spent"] and not ran
    (journal,) = store.calls(result.session)
    assert journal.outcome is Outcome.NOT_STARTED and not journal.operation_key
    store.close()


# --- edited, for the session ---------------------------------------------------------------------


@pytest.mark.anyio
async def test_an_edited_call_runs_as_edited_and_the_model_is_told(folder: Path) -> None:
    store = open_store(":memory:")
    person = Person(Approval(True, "Ada", edited={"to": "bo", "amount": 5}))
    model = ScriptedModel([call("pay", to="bo", amount=500), "ok"])
    agent = Agent(model, [pay], store=store, approver=person)
    result = await agent.run("go")
    assert ran == ["bo 5"]
    (journal,) = store.calls(result.session)
    assert journal.value == {"to": "bo", "amount": 5}
    (diff,) = journal.diffs
    assert diff["written"] == 500 and diff["used"] == 5 and diff["rule"] == "edited by Ada"
    assert "Ada changed the arguments" in result.calls[0].result and "500" in result.calls[0].result
    (record,) = store.approvals()
    assert record.closing["bound"]["arguments"] == {"to": "bo", "amount": 5}
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ({"to": "bo"}, "amount"),
        ({"to": "bo", "amount": "5"}, "/amount"),
        ({"to": 1, "amount": 2}, "/to"),
    ],
)
async def test_an_edit_that_cannot_be_used_is_asked_again(
    edited: dict[str, Any], said: str
) -> None:
    person = Person(Approval(True, "Ada", edited=edited), True)
    model = ScriptedModel([call("pay", to="bo", amount=500), "ok"])
    async with Agent(model, [pay], store=":memory:", approver=person) as agent:
        result = await agent.run("go")
        first, second = agent.store.approvals(result.session)
    assert calls_of(result) == ["done"] and ran == ["bo 500"]
    assert "Ada wrote other arguments" in person.asked[1].news and said in person.asked[1].news
    assert "It was asked again" in result.calls[0].result
    assert first.state is ApprovalState.VOID and second.state is ApprovalState.SPENT


@pytest.mark.anyio
async def test_edits_that_never_can_be_used_are_no_rejection() -> None:
    person = Person(*[Approval(True, "Ada", edited={"to": 1})] * 3)
    model = ScriptedModel([call("pay", to="bo", amount=5), call("pay", to="bo", amount=5), "ok"])
    agent = Agent(model, [pay], store=":memory:", approver=person)
    person.answers += [True]
    result = await agent.run("go")
    assert calls_of(result) == ["approval_void", "done"] and ran == ["bo 5"]
    told = error_of(result, 0)
    assert "Ada wrote other arguments" in told["message"] and "nobody rejected" in told["message"]


@pytest.mark.anyio
async def test_an_edit_from_elsewhere_that_cannot_be_used_opens_the_question_again() -> None:
    store = open_store(":memory:")
    model = ScriptedModel(
        [call("pay", to="bo", amount=5), "?", call("pay", to="bo", amount=5), "!"]
    )
    agent = Agent(model, [pay], store=store)
    async with agent.session() as session:
        first = await session.send("pay")
        await approve(store, error_of(first)["approval"], edited={"to": 1})
        result = await session.send("go on")
    told = error_of(result)
    assert calls_of(result) == ["needs_approval"] and not ran
    assert "cannot be used" in told["message"] and "open again" in told["message"]
    assert store.approval(told["approval"]).state is ApprovalState.OPEN
    assert told["approval"] != error_of(first)["approval"]
    store.close()


@pytest.mark.anyio
async def test_a_file_changed_since_it_was_shown_voids_an_edit_too(folder: Path) -> None:
    def change(request: ApprovalRequest) -> Approval:
        (folder / "build.sh").write_text("rm -rf /\n")
        return Approval(True, "Ada", edited={"script": "build.sh", "note": "mine"})

    model = ScriptedModel([call("deploy", script="build.sh"), "ok"])
    agent = Agent(model, [deploy], store=":memory:", workspace=folder, approver=Person(change))
    result = await agent.run("go")
    assert calls_of(result) == ["approval_void"] and not ran


class Remembering:
    """A policy that can be given rules: names of those who may be paid."""

    mode = "auto"

    def __init__(self, *rules: str) -> None:
        self.rules = rules

    def decide(self, facts: Any) -> Any:
        from lorimer.core.decisions import Decision, Verdict

        known = f"to={facts.arguments['to']}" in self.rules
        return Decision(Verdict.ALLOW if known else Verdict.ASK, "rule", "money")

    def rule_for(self, facts: Any) -> str:
        return f"to={facts.arguments['to']}"

    def with_session_rule(self, rule: str, *, session: str) -> Remembering:
        return Remembering(*self.rules, rule)


@pytest.mark.anyio
async def test_approved_for_the_session_is_the_rule_that_was_shown_and_lasts(
    tmp_path: Path,
) -> None:
    store, policy = open_store(tmp_path / "store.db"), Remembering()
    person = Person(Approval(True, "Ada", for_session=True), Approval(False, "Ada"))
    script = [call("pay", to="bo", amount=1), call("pay", to="bo", amount=2), "ok"]
    agent = Agent(ScriptedModel(script), [pay], store=store, policy=policy, approver=person)
    async with agent.session() as session:
        await session.send("go")
    assert person.asked[0].remember_rule == "to=bo" and ran == ["bo 1", "bo 2"]
    again = Agent(
        ScriptedModel([call("pay", to="bo", amount=3), call("pay", to="eve", amount=3), "ok"]),
        [pay], store=store, policy=policy, approver=person,
    )  # fmt: skip
    async with again.session(session.id) as session:
        result = await session.send("once more, after a restart")
    assert calls_of(result) == ["done", "rejected"]
    other = Agent(ScriptedModel([call("pay", to="bo", amount=4), "ok"]), [pay], store=store,
                  policy=policy)  # fmt: skip
    assert calls_of(await other.run("in another session")) == ["needs_approval"]
    assert policy.rules == (), "the policy of others was changed"
    store.close()


@pytest.mark.anyio
async def test_with_the_real_policy_the_rule_spares_the_next_question(folder: Path) -> None:
    from lorimer.toolkits import toolset

    person = Person(Approval(True, "Ada", for_session=True), Approval(False, "Ada"))
    script = [
        call("write_file", path="notes/a.md", content="a\n"),
        call("write_file", path="notes/a.md", content="b\n"),
        call("write_file", path="other.md", content="c\n"), "ok",
    ]  # fmt: skip
    agent = Agent(
        ScriptedModel(script), toolset(["write_file"]), store=":memory:", workspace=folder,
        approver=person, mode="ask",
    )  # fmt: skip
    async with agent:
        result = await agent.run("go")
    assert "write_file" in person.asked[0].remember_rule
    assert "+a" in person.asked[0].preview
    assert calls_of(result) == ["done", "done", "rejected"] and len(person.asked) == 2
    assert (folder / "notes/a.md").read_text() == "b\n"


# --- lineage -------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_approval_of_a_parent_is_not_the_childs_but_its_rejection_is() -> None:
    store = open_store(":memory:")
    script = [call("pay", to="bo", amount=1), call("pay", to="eve", amount=9), "?"]
    agent = Agent(ScriptedModel(script), [pay], store=store)
    async with agent.session() as parent:
        first = await parent.send("go")
        await approve(store, error_of(first, 0)["approval"])
        await approve(store, error_of(first, 1)["approval"], False, reason="no money for eve")
        child = Agent(ScriptedModel(script), [pay], store=store, parent=parent.id)
        async with child.session() as session:
            result = await session.send("do what your parent may not")
        assert calls_of(result) == ["needs_approval", "rejected_before"] and not ran
        assert "no money for eve" in error_of(result)["message"]
        assert store.session(session.id).meta["root"] == parent.id
        grandchild = Agent(ScriptedModel([*script]), [pay], store=store, parent=session.id)
        assert calls_of(await grandchild.run("go"))[1] == "rejected_before"
    store.close()
