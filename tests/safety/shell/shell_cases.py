"""The commands of the lists and of the development corpus, and a look at one of them."""

from __future__ import annotations

import json
from pathlib import Path

from lorimer.core.effects import CallEffects
from lorimer.safety.shell import analyse

HERE = Path(__file__).parent
ROOT = "/srv/project/ws"
HOME = "/home/me"
CORPUS = [
    json.loads(line)
    for line in (HERE / "commands_dev.jsonl").read_text("utf-8").split("\n")
    if line
]


def look(text: str, **options: object) -> CallEffects:
    return analyse(text, cwd=ROOT, roots=[ROOT], home=HOME, **options)  # type: ignore[arg-type]


def listed(name: str) -> list[str]:
    """The commands of a list; ⏎ stands for a new line."""
    lines = (HERE / f"{name}.txt").read_text("utf-8").split("\n")
    return [line.replace("⏎", "\n") for line in lines if line]
