"""Variables that programs obey, as data (`programs/environment.toml`)."""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.effects import Concern
from lorimer.safety.shell import places
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
    return any(_in(name, rules[kind]) for kind in ("runs", "network", "asks", "code_paths"))


def judge(analysis: Analysis, name: str, value: Word | None, where: str) -> None:
    """Say what setting `name` means for the programs that are started with it."""
    rules = table()
    text = value.text if value is not None else None
    if _in(name, rules["harmless"]):
        return
    if _in(name, rules["names"]) and text is not None and _PLAIN.fullmatch(text):
        return
    if _in(name, rules["code_paths"]) and _inside(analysis, name, value):
        analysis.ask(Concern.RUNS_CODE, f"{name} names code that programs load", where)
        return
    if value is not None:
        analysis.suspect(value, where)
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
    elif _in(name, rules["asks"]) or _in(name, rules["names"]) or _in(name, rules["code_paths"]):
        analysis.unknown(f"{name} changes what programs find or run", where)


def given(analysis: Analysis, names: Iterable[str], program: str, where: str) -> None:
    """A program is started with variables of which nothing is known: it may obey them."""
    for name in names:
        if program not in _BUILTINS and not _known(name):
            text = f"{program} may obey the variable {name}, which is not in the table"
            analysis.ask(Concern.RUNS_CODE, text, where)


def _known(name: str) -> bool:
    """Whether setting it was judged already."""
    rules = table()
    kinds = ("harmless", "names", "code_paths", "runs", "network", "asks")
    return any(_in(name, rules[kind]) for kind in kinds)


def _inside(analysis: Analysis, name: str, value: Word | None) -> bool:
    """Whether a list of folders names none outside the workspace; its own old value may follow."""
    if value is None:
        return False
    text = value.text
    if text is None and name not in analysis.state.variables:
        text = re.sub(rf"""["']|:?\$(?:{name}|\{{{name}(?::\+[^}}]*)?\}}):?""", "", value.source)
        text = None if re.search(r"[$`*?]", text) else text.removeprefix(f"{name}=")
    folders = analysis.state.folders
    if text is None or folders is None:
        return False
    found = [os.path.join(folder, part) for part in text.split(":") for folder in folders]
    return all(places.inside(places.resolve(path), analysis.roots) for path in found)


_PLAIN = re.compile(r"(?![/:])(?!.*\.\.)[\w.@:+,<>/-]*")
_BUILTINS = frozenset(
    {
        ":", "true", "false", "echo", "printf", "test", "[", "cd", "pushd", "popd", "pwd",
        "read", "export", "mapfile", "readarray", "declare", "typeset", "local",
        "readonly", "unset", "set", "shopt", "let", "exit", "return", "break", "continue",
        "shift", "wait", "jobs", "times", "type", "hash", "umask", "ulimit", "dirs",
        "getopts", "eval", "source", ".", "trap", "command", "builtin", "exec", "kill",
        "alias", "enable", "history", "fc", "help", "caller",
    }
)  # fmt: skip


def _in(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
