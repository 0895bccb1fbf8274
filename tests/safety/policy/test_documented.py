"""The policies of the docs are policies; the week of ordinary work asks as little as they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lorimer.safety.policy import load_policy
from lorimer.safety.policy.examples import check_examples, known_tools
from lorimer.safety.policy.load import CONDITIONS, SETTINGS, parse_layer
from lorimer.safety.policy.rules import Place
from lorimer.toolkits import all_tools

ROOT = Path(__file__).parents[3]


_RULES = re.compile(r"^\[\[?policy\b", re.M)
_BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for number, block in enumerate(
        re.findall(r"^ *```toml\n(.*?)^ *```", page.read_text("utf-8"), re.S | re.M), 1
    )
    if _RULES.search(block)
]


@pytest.mark.parametrize("block", _BLOCKS)
def test_every_policy_in_the_docs_loads_and_its_examples_hold(block: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(block, "utf-8")
    known = known_tools(all_tools())
    made = load_policy(
        "ask", tmp_path, home=tmp_path / "none", extra=[file], extra_layer="user",
        known=lambda: known,
    )  # fmt: skip
    assert made.layers


def test_rules_in_the_docs_have_examples_that_are_tried(tmp_path: Path) -> None:
    place = Place(str(tmp_path), str(tmp_path))
    found = [
        check_examples(parse_layer(str(b.values[0]), name="user", file=str(b.id)), place)
        for b in _BLOCKS
    ]
    assert sum(found) >= 5 and {str(b.id).split("-")[0] for b in _BLOCKS} >= {
        "policy.md", "commands.md"
    }  # fmt: skip


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
