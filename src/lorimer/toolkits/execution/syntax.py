"""Does a text still parse, as a file of its kind?"""

from __future__ import annotations

import ast
import importlib
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 2 << 20
_GRAMMARS = {
    ".cs": "tree_sitter_c_sharp", ".css": "tree_sitter_css", ".go": "tree_sitter_go",
    ".java": "tree_sitter_java", ".rb": "tree_sitter_ruby", ".rs": "tree_sitter_rust",
}  # fmt: skip
"""Packages with a tree-sitter grammar, each used when it is installed. Not C and C++: macros make
many a good file unreadable to a grammar."""


def fault_in(kind: str, content: bytes) -> str | None:
    """What is wrong with `content` as a file of this suffix; `None` when it parses, or when nothing
    here can tell."""
    try:
        check = _BY_KIND.get(kind)
        return None if check is None else check(content)
    except SyntaxError as fault:
        return f"line {fault.lineno}: {fault.msg}"
    except (ValueError, RecursionError, MemoryError) as fault:
        return str(fault) or type(fault).__name__


def _python(content: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(content)


def _json(content: bytes) -> None:
    json.loads(content)


def _toml(content: bytes) -> None:
    tomllib.loads(content.decode("utf-8"))


def _yaml(content: bytes) -> str | None:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        return None
    try:
        for _ in yaml.parse(content, Loader=yaml.SafeLoader):
            pass  # events only: nothing is built from them
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        return f"{'' if mark is None else f'line {mark.line + 1}: '}{fault.problem}"
    except yaml.YAMLError as fault:
        return " ".join(str(fault).split())
    return None


def _by_grammar(package: str) -> Callable[[bytes], str | None]:
    def check(content: bytes) -> str | None:
        try:
            from tree_sitter import Language, Parser

            parser = Parser(Language(importlib.import_module(package).language()))
        except (ImportError, AttributeError, ValueError):  # not there, or of another version
            return None
        waiting = [parser.parse(content).root_node]
        while waiting:
            node = waiting.pop()
            if node.is_error:
                return f"line {node.start_point[0] + 1}: the grammar cannot read this"
            if node.is_missing:
                return f"line {node.start_point[0] + 1}: {node.type!r} is missing"
            if node.has_error:
                waiting += reversed(node.children)
        return None

    return check


_BY_KIND: Mapping[str, Callable[[bytes], str | None]] = {
    **{kind: _by_grammar(package) for kind, package in _GRAMMARS.items()},
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
PARSED = frozenset(_BY_KIND)
"""The suffixes that `fault_in` may know something of."""
