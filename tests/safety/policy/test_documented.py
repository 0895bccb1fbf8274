"""The policies of the docs are policies; the week of ordinary work asks as little as they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from lorimer.safety.policy import load_policy
from lorimer.safety.policy.examples import check_examples
from lorimer.safety.policy.load import CONDITIONS, SETTINGS, parse_layer
from lorimer.safety.policy.rules import Place

ROOT = Path(__file__).parents[3]


def test_every_policy_in_the_docs_loads_and_its_examples_hold(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "policy.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.S)
    assert blocks
    place = Place(str(tmp_path), str(tmp_path))
    tried = [
        check_examples(parse_layer(b, name="user", file=f"block {n}"), place)
        for n, b in enumerate(blocks)
    ]
    assert sum(tried) >= 2


def test_every_condition_is_documented() -> None:
    text = (ROOT / "docs" / "policy.md").read_text("utf-8")
    for key in (*CONDITIONS, *(k for k in SETTINGS if k != "rule")):
        assert re.search(rf"`{key}`|`{key} = ", text), key


def test_the_example_policy_holds(tmp_path: Path) -> None:
    made = load_policy(
        "ask", tmp_path, home=tmp_path / "none", extra=[ROOT / "examples" / "policy.toml"]
    )
    assert len(made.rules) == 5 and not made.notices


def test_a_week_of_ordinary_work_is_replayed() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "false_questions.py"), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(ended.stdout)
    assert found["calls"] >= 200
    for mode in ("plan", "ask", "auto"):
        assert found["trusted_folder"][mode]["missed"] == 0, "it is asked where a person wants it"
    assert found["trusted_folder"]["auto"]["false_questions"] <= 0.05 * found["calls"]
    assert found["trusted_folder"]["ask"]["false_questions"] <= 0.05 * found["calls"]
