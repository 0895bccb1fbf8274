"""The main line, whole: the command, a real local model, real files, the sandbox, the record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.conftest import Cli
from lorimer.models.local.catalogue import is_present, model_path
from lorimer.safety.sandbox import choose

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [pytest.mark.local_model, pytest.mark.slow]


def with_model(cli: Cli, name: str) -> str:
    """Lend the model of this machine to the command's own home."""
    if not is_present(name):
        pytest.skip(f"no {name}: `lorimer models pull {name}`")
    (cli.home / "models").mkdir(parents=True)
    (cli.home / "models" / model_path(name).name).symlink_to(model_path(name).resolve())
    return name


def test_a_question_about_a_file_is_answered_by_the_half_billion_model(cli: Cli) -> None:
    sandbox = choose.available()[0]
    if not sandbox.usable:
        pytest.skip(sandbox.reason)
    model = with_model(cli, "qwen2.5-coder-0.5b")
    shutil.copy(EXAMPLES / "orders.csv", cli.folder)
    question = "How many orders in orders.csv have the status cancelled?"
    ended = cli.run("run", "--model", model, "--mode", "auto", "--json", question, timeout_s=600)
    assert ended.returncode == 0, ended.stderr.decode()
    result = json.loads(ended.stdout)
    assert "18" in result["answer"]
    assert [c["outcome"] for c in result["calls"] if c["name"] == "run_python"][-1] == "done"
    assert result["usage"]["input_tokens"] > 500
    assert result["usage"]["cached_tokens"] > 500  # the fixed part was read once
    assert cli.run("audit", "verify").returncode == 0


def test_the_tokens_of_a_local_model_are_shown_as_it_writes_them(cli: Cli) -> None:
    model = with_model(cli, "smollm2-135m")
    ended = cli.run(
        "run", "--model", model, "--tools", "none", "--show-tokens", "Say hello.", timeout_s=600
    )
    assert ended.returncode in (0, 3), ended.stderr.decode()
    lines = [line.split() for line in ended.stderr.decode().splitlines()]
    ids = [int(words[0]) for words in lines if words and words[0].isdigit()]
    assert len(ids) > 3
