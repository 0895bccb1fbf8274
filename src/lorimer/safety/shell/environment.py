"""Variables that programs obey, as data (`programs/environment.toml`)."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.effects import Concern
from lorimer.safety.shell.words import Word

if TYPE_CHECKING:
    from lorimer.safety.shell.analysis import Analysis


@cache
def table() -> dict[str, Any]:
    text = (Path(__file__).parent / "programs" / "environment.toml").read_text("utf-8")
    return tomllib.loads(text)


def secret_name(name: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    upper = name.upper()
    return any(fnmatch.fnmatchcase(upper, pattern) for pattern in table()["secret"])


def obeyed(name: str) -> bool:
    """Whether programs obey a variable of this name: run what it names, look or connect where it
    says. `_proxy` names count."""
    rules = table()
    return any(_in(name, rules[kind]) for kind in ("runs", "network", "asks"))


def judge(analysis: Analysis, name: str, value: Word | None, where: str) -> None:
    """Say what setting `name` means for the programs that are started with it."""
    rules = table()
    text = value.text if value is not None else None
    if _in(name, rules["harmless"]):
        return
    if _in(name, rules["runs"]):
        if text is not None and text.strip() in rules["harmless_values"]:
            return
        analysis.unknown(f"{name} names what other programs run", where)
        analysis.forbid(f"{name} makes another program run a command", where)
        if text and re.search(r"\s|/", text) is not None:
            with analysis.inside_of(f"{name}="):
                analysis.run_text(text)
    elif _in(name, rules["network"]):
        analysis.ask(Concern.NETWORK, f"{name} sends connections another way", where)
    elif _in(name, rules["asks"]):
        analysis.unknown(f"{name} changes what programs find or run", where)


def _in(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
