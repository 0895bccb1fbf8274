"""G10: the cost of a step does not grow, and importing lorimer costs next to nothing.

Counts, not times: function calls are the same on every machine. Times are in `docs/benchmarks.md`.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, Limits, tool
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel


@tool(effects="read")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effects="write")
async def note(a: int, b: int) -> int:
    """Note two numbers."""
    return a + b


def calls_of(steps: int, name: str, folder: Path) -> int:
    """Function calls (Python and C) on the main thread of a session of `steps` steps, with the
    store on disk, journal, policy and audit on."""
    profile = cProfile.Profile()

    async def work() -> None:
        script: list[Any] = [{"name": name, "arguments": {"a": n, "b": 2}} for n in range(steps)]
        model = ScriptedModel([*script, "done"])
        limits = Limits(max_steps=None)
        async with Agent(model, [add, note], store=folder / f"{steps}.db", limits=limits) as agent:
            async with agent.session() as session:
                profile.enable()
                result = await session.send("go")
                profile.disable()
            assert result.answer == "done" and len(result.calls) == steps
            assert verify(agent.store).faults == ()

    asyncio.run(work())
    return int(pstats.Stats(profile).total_calls)


@pytest.mark.parametrize("name", ["add", "note"])
def test_a_step_is_flat_and_under_two_thousand_calls(name: str, tmp_path: Path) -> None:
    few, many = calls_of(100, name, tmp_path), calls_of(500, name, tmp_path)
    late_step = (many - few) / 400
    assert late_step < 2000
    assert late_step < 1.05 * few / 100


def test_import_loads_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import lorimer; "
        "new = sorted(set(sys.modules) - before); import json; print(json.dumps(new))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert {name for name in loaded if name.startswith("lorimer")} == {"lorimer"}
    heavy = {"anyio", "asyncio", "httpx2", "json", "jsonschema_rs", "pydantic", "rich", "sqlite3",
             "typer", "xllamacpp"}  # fmt: skip
    assert not heavy & {name.partition(".")[0] for name in loaded}


def test_every_public_name_is_there() -> None:
    import lorimer

    for name in lorimer.__all__:
        assert getattr(lorimer, name) is not None
    assert set(lorimer.__all__) <= set(dir(lorimer))
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = lorimer.nothing_of_this_name
