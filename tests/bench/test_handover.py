"""`bench/handover.py` compares the hand-overs in one command; what it counts is the same every
time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_hand_overs_are_compared_by_right_answers_and_tokens() -> None:
    ended = subprocess.run(
        [sys.executable, "bench/handover.py", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    rows = {row["way"]: row for row in report["rows"]}
    assert list(rows) == ["minimal", "written_out", "distilled", "inherit"]
    assert report["files"] == 2_000 and all(row["failed"] == 0 for row in rows.values())
    assert rows["minimal"]["right"] < rows["distilled"]["right"] == rows["distilled"]["asked"]
    assert rows["written_out"]["right"] == rows["inherit"]["right"] == 6
    assert rows["distilled"]["dropped"] == 6, "the constraint nobody said was dropped each time"
    assert rows["inherit"]["child_tokens"] > rows["distilled"]["child_tokens"]
    assert rows["distilled"]["parent_requests"] == rows["minimal"]["parent_requests"] + 6
    for row in rows.values():
        assert row["parent_added"] / row["asked"] < 400
        assert row["child_cached"] > 0.5
