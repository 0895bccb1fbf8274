"""What was rejected is known again in another dress, until the user speaks."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from harness.paying import codes, error, pay, ran
from lorimer import Agent, tool
from lorimer.core.calls import Effects
from lorimer.core.decisions import Approval, ApprovalRequest, CallFacts, Traits
from lorimer.core.effects import Access, CallEffects, PathTouch, SimpleCommand
from lorimer.core.intents import intent_of, is_variant
from lorimer.store import open_store
from lorimer.testing import ManualClock, ScriptedModel, call

CWD = "/here"
FACTS = CallFacts("shell_exec", Effects.WRITE, "execution", {}, (), "p", "s", CWD, roots=(CWD,))


def shell(
    *commands: str, hosts: tuple[str, ...] = (), changes: tuple[str, ...] = (), level: str = "irreversible"
) -> CallFacts:  # fmt: skip
    made = tuple(SimpleCommand(tuple(shlex.split(c)), c) for c in commands)
    paths = tuple(PathTouch(p, p, Access.DELETE, True) for p in changes)
    touches = CallEffects(Effects(level), paths, hosts, made)
    return replace(FACTS, arguments={"command": "; ".join(commands)}, touches=touches)


def other(name: str, *, hosts: tuple[str, ...] = (), changes: tuple[str, ...] = (), level: str = "irreversible",
          traits: Traits | None = None, **arguments: Any) -> CallFacts:  # fmt: skip
    paths = tuple(PathTouch(p, p, Access.WRITE, True) for p in changes)
    return replace(FACTS, tool=name, arguments=arguments, traits=traits or Traits(),
                   touches=CallEffects(Effects(level), paths, hosts))  # fmt: skip


RM = shell("rm -rf build", changes=("/here/build",))
PUSH = shell("git push origin main", hosts=("example.org",))
SINKS = Traits(sinks=("to", "amount"))


@pytest.mark.parametrize(
    ("denied", "again"),
    [
        (RM, shell("rm -r -f ./build/", changes=("/here/build",))),
        (RM, shell("rm -fr '/here/build'", changes=("/here/build",))),
        (RM, shell("/bin/rm -rf build", "true", changes=("/here/build",))),
        (RM, shell("cd .", "rm  -rf   build", changes=("/here/build",))),
        (shell("cd .", "rm -rf build", changes=("/here/build",)), RM),
        (RM, shell("find build -delete", changes=("/here/build",))),
        (RM, shell("make", "rm -rf build", changes=("/here/build", "/here/x"))),
        (RM, other("delete_folder", changes=("/here/build",), path="build")),
        (PUSH, shell("git push --force origin main", hosts=("example.org",))),
        (PUSH, shell("echo hi", "git push origin main", hosts=("example.org",))),
        (shell("curl https://a.example/x", hosts=("a.example",)), other("fetch", hosts=("a.example",), url="u")),
        (other("write_file", path="a", content="x y"), other("write_file", path="a", content="x\n y ")),
        (other("t", a=1, b=[1, 2]), other("t", b=[1, 2], a=1)),
        (other("pay", traits=SINKS, to="Bo", amount=5, note="a"), other("pay", traits=SINKS, to=" bo", amount=5, note="b")),
        (other("mail", traits=Traits(sinks=("to",)), to=["a@x", "b@x"]), other("mail", traits=Traits(sinks=("to",)), to=["B@x", "a@x"])),
    ],
)  # fmt: skip
def test_a_variant_is_known_again(denied: CallFacts, again: CallFacts) -> None:
    assert is_variant(intent_of(denied), intent_of(again))


@pytest.mark.parametrize(
    ("denied", "other_call"),
    [
        (RM, shell("rm -rf dist", changes=("/here/dist",))),
        (RM, shell("ls build", level="read")),
        (RM, other("read_file", path="build/x", level="read")),
        (PUSH, shell("git fetch origin", hosts=("example.org",), level="write")),
        (PUSH, shell("git status", level="read")),
        (shell("make", "git push origin main", hosts=("e.org",)), shell("make", level="write")),
        (other("write_file", changes=("/here/a",), path="a", content="x"),
         other("write_file", changes=("/here/a",), path="a", content="y")),
        (other("pay", traits=SINKS, to="bo", amount=5), other("pay", traits=SINKS, to="bo", amount=4)),
        (other("pay", traits=SINKS, to="bo", amount=5), other("mail", traits=SINKS, to="bo", amount=5)),
        (other("t", a=1), other("t", a="1")),
        (other("t", changes=("/here",)), shell("cargo build", changes=("/here",), level="write")),
    ],
)  # fmt: skip
def test_another_intent_is_another(denied: CallFacts, other_call: CallFacts) -> None:
    assert not is_variant(intent_of(denied), intent_of(other_call))


@pytest.mark.anyio
async def test_the_same_is_not_asked_again_until_the_user_speaks() -> None:
    clock = ManualClock()
    store = open_store(":memory:", clock=clock)
    asked: list[Any] = []

    def person(request: ApprovalRequest) -> Approval:
        asked.append(request.facts.arguments)
        clock.advance(1)
        return Approval(len(asked) > 1, "Ada", "not now")

    model = ScriptedModel(
        [call("pay", to="bo", amount=5), call("pay", to="BO", amount=5, note="please"), "It may not be.",
         call("pay", to="bo", amount=5), "Paid."]
    )  # fmt: skip
    agent = Agent(model, [pay], store=store, approver=person, clock=clock)
    async with agent.session() as session:
        first = await session.send("pay bo")
        clock.advance(1)
        assert codes(first) == ["rejected", "rejected_before"] and len(asked) == 1
        assert "Ada rejected this already" in error(first)["message"]
        assert "not now" in error(first)["message"]
        second = await session.send("now you may")
    assert codes(second) == ["done"] and ran == ["bo 5"]
    store.close()


@pytest.mark.anyio
async def test_it_is_kept_over_a_restart(store: Any) -> None:
    agent = Agent(ScriptedModel([call("pay", to="bo", amount=5)]), [pay], store=store,
                  approver=lambda r: False)  # fmt: skip
    async with agent.session() as session:
        with pytest.raises(Exception, match="script"):
            await session.send("pay bo")
    again = Agent(ScriptedModel([call("pay", to="bo", amount=5), "x"]), [pay], store=store,
                  approver=lambda r: True)  # fmt: skip
    async with again.session(session.id) as session:
        assert codes(await session.resume()) == ["rejected_before"] and not ran


@pytest.mark.anyio
async def test_a_read_is_never_a_variant_of_a_rejection(store: Any) -> None:
    @tool(effects="read")
    async def balance(to: str) -> str:
        """Look up a balance."""
        return "5"

    model = ScriptedModel([call("pay", to="bo", amount=5), call("balance", to="bo"), "x"])
    agent = Agent(model, [pay, balance], store=store, approver=lambda r: False)
    assert codes(await agent.run("go")) == ["rejected", "done"]
