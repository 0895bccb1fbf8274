"""The benchmarks' commands give what they promise. No time is asserted, only what is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lorimer.models.local.catalogue import is_present

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("10", "100", "1000")


def _run(*arguments: str) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 1, ended.stdout
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def steps() -> dict[str, Any]:
    return _run(
        "bench/steps.py", "--only", "lorimer", "--json", "--rounds", "1", "--repeat", "1"
    )  # fmt: skip


@pytest.mark.slow
def test_steps_prints_one_object_with_calls_cpu_wall_and_memory_for_each_length(
    steps: dict[str, Any],
) -> None:
    assert "failed" not in steps
    for key in ("calls_per_step", "calls_per_step_in_other_threads", "cpu_ms_per_step",
                "wall_ms_per_step", "memory_kib_per_step"):  # fmt: skip
        assert set(steps[key]) == set(STEPS), key


@pytest.mark.slow
def test_a_step_makes_at_most_two_thousand_calls_in_the_main_thread(steps: dict[str, Any]) -> None:
    assert steps["calls_per_step"]["1000"] <= 2000


@pytest.mark.slow
def test_calls_a_step_are_flat_from_100_to_1000_steps(steps: dict[str, Any]) -> None:
    for key in ("calls_per_step", "calls_per_step_all_threads"):
        assert steps[key]["1000"] == pytest.approx(steps[key]["100"], rel=0.05), key
    assert steps["calls_last_to_first_part"] == pytest.approx(1, abs=0.05)


@pytest.mark.slow
def test_the_measured_session_was_journalled_decided_and_audited(steps: dict[str, Any]) -> None:
    proof = steps["proof"]
    assert proof["calls_journalled"] == 1000
    assert proof["calls_with_policy_decision"] == 1000
    assert proof["audit_lines_of_calls"] == 3000  # planned, started, finished
    assert proof["sqlite"] == "journal_mode=wal, synchronous=2"


def test_imports_prints_one_object_with_both_costs_and_their_ratio() -> None:
    found = _run("bench/imports.py", "--json", "--repeat", "2")
    assert found["lorimer_cpu_ms"] / found["baseline_cpu_ms"] == pytest.approx(found["ratio"])
    for case in ("pass", "import asyncio, json, sqlite3", "import lorimer"):
        assert set(found["plain"][case]) == {"min_ms", "median_ms"}
    assert found["first_use_ratio"] > 0


@pytest.mark.parametrize("wrong", ["0", "ten", "1"])
def test_wrong_steps_are_refused_with_a_message(wrong: str) -> None:
    ended = subprocess.run(
        [sys.executable, "bench/steps.py", "--only", "lorimer", "--steps", wrong],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "--steps" in ended.stderr


@pytest.mark.slow
@pytest.mark.local_model
def test_cache_gives_a_share_a_time_and_a_name_for_each_habit() -> None:
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    if not is_present("smollm2-135m"):
        pytest.skip("smollm2-135m is not on this machine: lorimer models pull smollm2-135m")
    names = ("lorimer", "dynamic_system", "shuffled_tools")
    only = [word for name in names for word in ("--only", name)]
    found = _run(
        "bench/cache.py", "--json", "--model", "smollm2-135m", "--turns", "3", "--words", "8", *only
    )  # fmt: skip
    shares = found["prefix_tokens_from_cache"]
    assert set(shares) == set(found["cpu_s_to_first_token"]) == set(names)
    assert shares["lorimer"] >= 0.98
    assert shares["dynamic_system"] < 0.5 and shares["shuffled_tools"] < 0.5
    assert found["named"] == {
        "lorimer": "none", "dynamic_system": "time_in_prefix", "shuffled_tools": "tools_reordered",
    }  # fmt: skip
