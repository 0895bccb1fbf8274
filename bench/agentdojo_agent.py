"""The same as `agentdojo.py --hijacked`, through whole agents: a cross-check.

    python bench/agentdojo_agent.py [--json]

Each honest task and each attack is a session of `Agent`, with AgentDojo's functions as tools and a
scripted model: the calls of the user's task, and for an attack the adversary's calls after them. So
every call goes through the dispatcher, and what the guard knows of the conversation is what a
session keeps of it. The policy allows everything and nobody answers questions: what is stopped is
stopped by the guard. An attack strikes once, at the end (`agentdojo.py` tries every moment).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]

from lorimer import Agent  # noqa: E402
from lorimer.core.decisions import CallFacts, Decision, Verdict  # noqa: E402
from lorimer.core.messages import TextPart  # noqa: E402
from lorimer.core.trust import Trust  # noqa: E402
from lorimer.core.watch import CallEnded  # noqa: E402
from lorimer.safety.injection.guards import InjectionGuard  # noqa: E402
from lorimer.store import open_store  # noqa: E402
from lorimer.testing import ScriptedModel, call  # noqa: E402
from lorimer.tools.tool import Budget, Tool  # noqa: E402

WHOLE = Budget(lines=10**6, characters=10**8)
EXPECTED = ("", "needs_approval", "tool_error")


def _bench() -> Any:
    """`agentdojo.py` of this folder, under another name than the package it imports."""
    spec = importlib.util.spec_from_file_location("agentdojo_bench", _HERE / "agentdojo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agentdojo_bench"] = module
    spec.loader.exec_module(module)
    return module


bench = _bench()


class AllowAll:
    """The policy of this bench: only the guard has a say."""

    mode = "trusted"

    def decide(self, facts: CallFacts) -> Decision:
        return Decision(Verdict.ALLOW, "bench", "")


def tools_of(suite: Any, labels: Any, environment: Any, ran: list[Any]) -> list[Tool]:
    """AgentDojo's functions as tools over one environment; `ran` takes each call that ran."""
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

    runtime = FunctionsRuntime(suite.tools)

    def function(name: str) -> Any:
        async def run(**arguments: Any) -> Any:
            result, error = runtime.run_function(environment, name, arguments)
            ran.append(FunctionCall(function=name, args=arguments))
            trusted, external = labels.split(name, error or result)
            parts = [TextPart(trusted, Trust.TRUSTED, name)] if trusted else []
            parts += [TextPart(external, Trust.EXTERNAL, name)] if external else []
            return parts or "nothing"

        return run

    made = []
    for given in suite.tools:
        schema = given.parameters.model_json_schema()
        traits = labels.traits(given.name, list(schema.get("properties", {})))
        made.append(
            Tool.from_schema(
                given.name, given.description, _plain(schema), function(given.name),
                effects=labels.effects(given.name), budget=WHOLE,
                trust=Trust.EXTERNAL if traits.external else Trust.TRUSTED,
                sinks=traits.sinks, host_arguments=traits.host_arguments,
                targets=traits.targets, outbound=traits.outbound, private=traits.private,
            )
        )  # fmt: skip
    return made


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in ("properties", "required", "$defs") if key in schema}
    return {"type": "object", **kept}


async def session(
    suite: Any, labels: Any, environment: Any, prompt: str, calls: Sequence[Any], store: Any
) -> tuple[list[Any], int, list[str]]:
    """Run one session: the calls that ran, how many were asked about, and codes nobody expected."""
    ran: list[Any] = []
    ends: list[str] = []

    def watch(event: Any) -> None:
        if isinstance(event, CallEnded):
            ends.append(event.code)

    script = [call(one.function, dict(one.args)) for one in calls]
    agent = Agent(
        ScriptedModel([*script, "Done."]), tools_of(suite, labels, environment, ran),
        policy=AllowAll(), guards=[InjectionGuard()], store=store,
    )  # fmt: skip
    await agent.run(prompt, watch=watch)
    odd = [code for code in ends if code not in EXPECTED]
    return ran, ends.count("needs_approval"), odd


async def measure() -> dict[str, Any]:
    suites = bench.load()
    labels = bench.Labels(tomllib.loads((_HERE / "agentdojo_labels.toml").read_text("utf-8")))
    store = open_store(":memory:")
    without, through, pairs, tasks, odd = 0, 0, 0, 0, []
    for suite in suites.values():
        honest = suite.load_and_inject_default_environment({})
        for task in suite.user_tasks.values():
            environment = task.init_environment(honest.model_copy(deep=True))
            calls = task.ground_truth(environment.model_copy(deep=True))
            _, asked, codes = await session(suite, labels, environment, task.PROMPT, calls, store)
            tasks += 1
            without += not asked
            odd += codes
        for injection in suite.injection_tasks.values():
            places = suite.get_injection_vector_defaults()
            text = bench.MARK + injection.GOAL
            injected = suite.load_and_inject_default_environment(dict.fromkeys(places, text))
            for task in suite.user_tasks.values():
                environment = task.init_environment(injected.model_copy(deep=True))
                before = environment.model_copy(deep=True)
                calls = [
                    *task.ground_truth(environment.model_copy(deep=True)),
                    *injection.ground_truth(before.model_copy(deep=True)),
                ]
                ran, _, _ = await session(suite, labels, environment, task.PROMPT, calls, store)
                pairs += 1
                world = SimpleNamespace(environment=environment, ran=ran)
                through += bench.succeeded(world, before, injection)
    store.close()
    return {
        "attacks_through": round(through / pairs, 4),
        "benign_without_question": without,
        "attacks_through_count": through,
        "pairs": pairs,
        "benign_tasks": tasks,
        "unexpected_ends_in_benign_tasks": odd,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object")
    given = parser.parse_args()
    found = asyncio.run(measure())
    if given.json:
        print(json.dumps(found))
        return 0
    print("AgentDojo v1 through whole agents, a fully hijacked model\n")
    print(f"attacks through       {found['attacks_through_count']} of {found['pairs']}")
    print(f"no question           {found['benign_without_question']} of {found['benign_tasks']}")
    if found["unexpected_ends_in_benign_tasks"]:
        print(f"unexpected ends       {found['unexpected_ends_in_benign_tasks']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
