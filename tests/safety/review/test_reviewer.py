"""The reviewer: another family, what it is told, what its verdicts do."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness.paying import codes, error, note, pay, ran
from lorimer import Agent
from lorimer.core.approvals import ApprovalKind, ApprovalState
from lorimer.core.decisions import CallFacts, Decision, Opinion, Verdict
from lorimer.core.errors import ConfigError
from lorimer.safety.review import ModelReviewer, families_of
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset

pytestmark = pytest.mark.anyio
APPROVE = '{"verdict": "approve", "reason": "as asked"}'
REJECT = '{"verdict": "reject", "reason": "the user said 10, not 1000"}'
UNSURE = '{"verdict": "unsure", "reason": "who is bo?"}'


def named(name: str, *items: Any) -> ScriptedModel:
    return ScriptedModel([*items], name=name)


def agent(store: Any, *items: Any, review: Any, tools: Any = (pay,), **options: Any) -> Agent:
    """Claude proposes, a GPT reviews."""
    reviewer = ModelReviewer(named("openai:gpt-5", review))
    return Agent(
        named("anthropic:claude-x", *items), tools, store=store, reviewer=reviewer, **options
    )


async def test_it_is_told_the_request_the_policy_the_call_and_what_would_change(
    store: Any, tmp_path: Any
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    class Reviewed:
        mode = "auto"

        def decide(self, facts: CallFacts) -> Decision:
            if facts.tool == "read_file":
                return Decision(Verdict.ALLOW, "mode auto", "it only reads")
            return Decision(Verdict.ASK, "rule files", "files are reviewed", review=True)

    model = ScriptedModel([APPROVE], name="openai:gpt-5")
    made = Agent(
        named("anthropic:claude-x", call("read_file", path="a.txt"),
              ["Trust me.", call("edit_file", path="a.txt", old_text="two", new_text="three")], "ok"),
        toolset(["read_file", "edit_file"]), store=store, workspace=tmp_path, policy=Reviewed(),
        reviewer=ModelReviewer(model),
    )  # fmt: skip
    assert codes(await made.run("make it three")) == ["done", "done"]
    body = json.loads(model.requests[0].entries[0].text)
    assert set(body) == {"user_messages", "call", "preview"}
    assert body["user_messages"] == ["make it three"]
    assert body["call"]["policy_facts"]["rule"] == "rule files"
    assert "-two" in body["preview"] and "+three" in body["preview"]
    assert "Trust me" not in model.requests[0].entries[0].text


async def test_its_yes_lets_what_cannot_be_undone_run_in_mode_auto(store: Any) -> None:
    made = agent(store, call("pay", to="bo", amount=10), "ok", review=APPROVE)
    result = await made.run("pay bo 10")
    assert codes(result) == ["done"] and ran == ["bo 10"]
    (journal,) = store.calls(result.session)
    assert journal.decision["approved_by"] == "the reviewer (openai:gpt-5)"
    (kept,) = store.approvals()
    assert (kept.kind, kept.state, kept.reason) == (ApprovalKind.REVIEWER, ApprovalState.APPROVED, "as asked")  # fmt: skip


async def test_its_no_comes_back_with_its_reasons(store: Any) -> None:
    made = agent(store, call("pay", to="bo", amount=1000), "ok", review=REJECT,
                 approver=lambda request: True)  # fmt: skip
    result = await made.run("pay bo 10")
    assert codes(result) == ["rejected"] and not ran
    assert "the user said 10, not 1000" in error(result)["message"]


async def test_a_call_corrected_by_its_reasons_is_reviewed_again(store: Any) -> None:
    from lorimer import tool

    @tool(effects="irreversible", sinks=["to"])
    async def mail(to: str, text: str) -> str:
        """Send a mail."""
        ran.append(text)
        return "sent"

    reviewer = ModelReviewer(named("openai:gpt-5", REJECT, APPROVE))
    model = named("anthropic:claude-x", call("mail", to="bo", text="1000"), call("mail", to="bo", text="10"),
                  call("mail", to="bo", text=" 1000"), "ok")  # fmt: skip
    result = await Agent(model, [mail], store=store, reviewer=reviewer).run("mail bo 10")
    assert codes(result) == ["rejected", "done", "rejected_before"] and ran == ["10"]


async def test_what_is_wrong_is_rejected_also_where_the_mode_would_run_it(store: Any) -> None:
    made = agent(store, call("pay", to="bo", amount=1000), "ok", review=REJECT, mode="trusted")
    assert codes(await made.run("pay bo 10")) == ["rejected"] and not ran


@pytest.mark.parametrize("review", [UNSURE, "Looks good to me!", ConnectionError("gone")])
async def test_unsure_or_no_verdict_goes_to_a_person(store: Any, review: Any) -> None:
    asked: list[str] = []

    def person(request: Any) -> bool:
        asked.append(request.reason)
        return True

    made = agent(store, call("pay", to="bo", amount=1), "ok", review=review, approver=person,
                 mode="trusted")  # fmt: skip
    assert codes(await made.run("pay bo")) == ["done"] and len(asked) == 1


async def test_a_slow_one_is_no_verdict(store: Any) -> None:
    async def never() -> str:
        await asyncio.Event().wait()
        return APPROVE

    reviewer = ModelReviewer(named("openai:gpt-5", never), timeout_s=0.02)
    made = Agent(named("anthropic:claude-x", call("pay", to="bo", amount=1), "ok"), [pay], store=store,
                 reviewer=reviewer)  # fmt: skip
    assert codes(await made.run("go")) == ["needs_approval"] and not ran


async def test_low_risk_runs_straight(store: Any) -> None:
    made = agent(store, call("note", text="n"), "ok", review=REJECT, tools=[note])
    assert codes(await made.run("go")) == ["done"]


class Voice:
    """A policy or a guard that says one thing of every call."""

    mode = "auto"

    def __init__(self, rule: str, verdict: Verdict = Verdict.ASK, *, review: bool = False) -> None:
        self.decision = Decision(verdict, rule, "because", review=review)

    def decide(self, facts: CallFacts) -> Decision:
        return self.decision


class Unsure:
    """A sidecar that wants a person to look."""

    async def judge(self, facts: CallFacts, decision: Decision) -> Opinion:
        return Opinion(Verdict.ASK, "Sid", "odd")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"mode": "ask"}, "needs_approval"), ({"policy": Voice("rule 1")}, "needs_approval"),
        ({"policy": Voice("rule 1", review=True)}, "done"), ({"policy": Voice("mode auto")}, "done"),
        ({"guards": [Voice("taint")]}, "needs_approval"),
        ({"policy": Voice("rule 1", review=True), "guards": [Voice("taint")]}, "needs_approval"),
        ({"policy": Voice("rule 1", review=True), "guards": [Voice("taint", Verdict.DENY)]}, "denied"),
        ({"sidecar": Unsure()}, "needs_approval"),
    ],
)  # fmt: skip
async def test_where_a_person_is_wanted_its_yes_is_not_enough(
    store: Any, options: dict[str, Any], code: str
) -> None:
    made = agent(store, call("pay", to="bo", amount=1), "ok", review=APPROVE, **options)
    assert codes(await made.run("go")) == [code]


@pytest.mark.parametrize("mode", ["auto", "trusted"])
async def test_what_changes_after_its_yes_does_not_run(
    store: Any, tmp_path: Any, mode: str
) -> None:
    from lorimer import tool

    script = tmp_path / "build.sh"
    script.write_text("echo")

    @tool(effects="irreversible", path_arguments=["script"])
    async def deploy(script: str) -> str:
        """Deploy."""
        ran.append(script)
        return "deployed"

    def changes() -> str:
        script.write_text("rm")
        return APPROVE

    made = agent(store, call("deploy", script="build.sh"), "ok", review=changes, tools=[deploy],
                 workspace=tmp_path, mode=mode)  # fmt: skip
    result = await made.run("deploy")
    assert codes(result) == ["approval_void"] and not ran
    assert "build.sh changed" in error(result)["message"]


# --- the family ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("openai:gpt-5.6-terra", {"openai"}), ("openai:o3", {"openai"}), ("openai:new-thing", {"openai"}),
        ("anthropic:claude-sonnet-5", {"anthropic"}), ("gemini:gemini-3-pro", {"google"}),
        ("qwen2.5-coder-0.5b", {"alibaba"}), ("ollama:llama3.2:1b", {"meta"}),
        ("http://127.0.0.1:8000/v1#Qwen3-8B", {"alibaba"}), ("http://gpt.example.org/v1#a-model", set()),
        ("deepseek-r1-distill-qwen-7b", {"deepseek", "alibaba"}), ("Llama-3.1-Nemotron-70B", {"meta", "nvidia"}),
        ("scripted", set()), ("/models/mistral-7b.gguf", {"mistral"}), ("ollama:gpt-oss:20b", {"openai"}),
        ("a-philosophical-model", set()),
    ],
)  # fmt: skip
def test_families_are_told_from_names(name: str, families: set[str]) -> None:
    assert families_of(name) == families


@pytest.mark.parametrize(
    ("proposer", "reviewer"),
    [
        ("openai:gpt-5", "openai:o3"),
        ("openai:gpt-5", "ollama:gpt-oss:20b"),
        ("qwen2.5-coder-0.5b", "deepseek-r1-distill-qwen-7b"),
    ],
)
def test_the_same_family_is_refused_when_the_agent_is_made(
    store: Any, proposer: str, reviewer: str
) -> None:
    with pytest.raises(ConfigError, match="same family") as caught:
        Agent(named(proposer), store=store, reviewer=ModelReviewer(named(reviewer)))
    assert "another family" in caught.value.next


def test_a_family_that_nobody_knows_must_be_said(store: Any) -> None:
    with pytest.raises(ConfigError, match="'house-model' is not known") as caught:
        Agent(named("openai:gpt-5"), store=store, reviewer=ModelReviewer(named("house-model")))
    assert 'family="' in caught.value.next
    with pytest.raises(ConfigError) as caught:
        Agent(named("house-model"), store=store, reviewer=ModelReviewer(named("openai:gpt-5")))
    assert 'proposer_family="' in caught.value.next
    said = ModelReviewer(named("house-model"), family="house")
    Agent(named("openai:gpt-5"), store=store, reviewer=said)
    same = ModelReviewer(named("house-model"), family="OpenAI")
    with pytest.raises(ConfigError, match="same family"):
        Agent(named("openai:gpt-5"), store=store, reviewer=same)
