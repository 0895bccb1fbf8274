"""`bench/code_orchestration.py`: what a script keeps out of the context. Counted, not timed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")
ROOT = Path(__file__).resolve().parents[2]


def test_a_script_keeps_two_orders_of_magnitude_out_of_the_context() -> None:
    ended = subprocess.run(
        [sys.executable, "bench/code_orchestration.py", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    found = json.loads(line)
    plain, script = found["ways"]["plain calls"], found["ways"]["run_script"]
    assert plain["facts_found"] == script["facts_found"] == found["pages"] == 50
    assert plain["calls"] == script["calls_inside"] == 50
    assert found["ratio"]["context"] > 100
