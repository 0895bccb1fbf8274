"""The values of a policy file, each checked for its kind; a fault names file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lorimer.safety.policy.faults import PolicyError, near
from lorimer.safety.policy.lines import Key, find_line
from lorimer.safety.policy.patterns import CommandGlob, PathGlob, Texts
from lorimer.safety.policy.rules import ArgumentTest
from lorimer.safety.policy.sense import FAULTS, glob_fault

TESTS = ("glob", "regex", "min", "max", "one_of", "own")
"""What the test of an argument may say."""


class Values:
    """Reads values of one file; `at` is always the way to the value."""

    def __init__(self, file: str, layer: str, lines: dict[Key, int]) -> None:
        self.file, self.layer_name, self.lines = file, layer, lines

    def fault(self, key: Key, what: str, next: str = "") -> PolicyError:
        return PolicyError(self.file, find_line(self.lines, key), what, next=next)

    def text(self, at: Key, value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str) or not value.strip():
            raise self.fault(at, f"{at[-1]} is {value!r}, not text.", "Write it in quotes.")
        return value

    def flag(self, at: Key, value: Any) -> bool | None:
        if value is None or isinstance(value, bool):
            return value
        raise self.fault(at, f"{at[-1]} is {value!r}.", "Write true or false, without quotes.")

    def texts(self, at: Key, value: Any, *, empty: bool = False) -> tuple[str, ...] | None:
        if value is None:
            return None
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
            raise self.fault(at, f"{at[-1]} is {value!r}.", "Write one text or a list of texts.")
        if not values and not empty:
            raise self.fault(
                at,
                f"{at[-1]} is empty: the rule can never match.",
                "Add a value, or remove the key.",
            )
        return tuple(values)

    def words(self, at: Key, value: Any, allowed: Iterable[str]) -> tuple[str, ...] | None:
        known = tuple(allowed)
        values = self.texts(at, value, empty=True)
        for one in values or ():
            if one not in known:
                raise self.fault(
                    at,
                    f"{at[-1]} names {one!r}.",
                    near(one, known) if known else "There is nothing below it.",
                )
        return values

    def made(self, at: Key, value: Any, make: Callable[[tuple[str, ...]], Any]) -> Any:
        texts = self.patterns(at, value)
        return None if texts is None else make(texts)

    def patterns(self, at: Key, value: Any) -> tuple[str, ...] | None:
        """Texts that are patterns of the kind that the last part of `at` takes; each can match."""
        texts = self.texts(at, value)
        check = FAULTS.get(str(at[-1]), glob_fault) if at[-2:-1] != ("arguments",) else glob_fault
        for one in texts or ():
            if not one.strip():
                raise self.fault(
                    at, f"{at[-1]} holds {one!r}: it can never match.", "Write what is meant."
                )
            if (found := check(one)) is not None:
                what, right = found
                raise self.fault(
                    at, what if what.startswith("the ") else f"{at[-1]}: {what}", right
                )
        return texts

    def globs(self, at: Key, value: Any) -> Texts | None:
        found: Texts | None = self.made(at, value, Texts.of)
        return found

    def commands(self, at: Key, value: Any) -> tuple[CommandGlob, ...] | None:
        texts = self.texts(at, value)
        if texts is None:
            return None
        out = []
        for one in texts:
            try:
                out.append(CommandGlob.of(one))
            except re.error:
                continue  # said below
            except ValueError as fault:
                raise self.fault(
                    at,
                    f"the command pattern {one!r} cannot be read: {fault}.",
                    "Write words as in a shell, e.g. 'git diff *'.",
                ) from fault
        self.patterns(at, value)
        return tuple(out)

    def paths(self, at: Key, value: Any) -> tuple[PathGlob, ...] | None:
        texts = self.patterns(at, value)
        return None if texts is None else tuple(map(PathGlob, texts))

    def enums(self, at: Key, value: Any, kind: Any) -> Any:
        texts = self.texts(at, value)
        return None if texts is None else frozenset(self.one_of(at, one, kind) for one in texts)

    def one_of(self, at: Key, value: Any, kind: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise self.fault(at, f"{at[-1]} is {value!r}.", near(str(value), kind)) from None

    def arguments(self, at: Key, value: Any) -> Mapping[str, ArgumentTest] | None:
        if value is None:
            return None
        if not isinstance(value, dict) or not value:
            raise self.fault(
                at, f"arguments is {value!r}.", 'Write e.g. arguments = { to = "*@example.org" }.'
            )
        return {name: self.test((*at, name), test) for name, test in value.items()}

    def test(self, at: Key, value: Any) -> ArgumentTest:
        if isinstance(value, str):
            return ArgumentTest(glob=self.globs(at, value))
        if isinstance(value, bool | int | float):
            return ArgumentTest(one_of=(value,))
        if isinstance(value, list):
            return ArgumentTest(glob=self.globs(at, value))
        if not isinstance(value, dict) or not value:
            raise self.fault(
                at,
                f"the test of argument {at[-1]!r} is {value!r}.",
                f"Write a glob, or a table with: {', '.join(TESTS)}.",
            )
        for key in value:
            if key not in TESTS:
                raise self.fault(
                    (*at, key), f"a test of an argument has no key {key!r}.", near(key, TESTS)
                )
        least, most = (self.number((*at, key), value.get(key)) for key in ("min", "max"))
        if least is not None and most is not None and least > most:
            raise self.fault(
                at,
                f"min {least:g} is above max {most:g}: the rule can never match.",
                "Exchange them.",
            )
        one_of = value.get("one_of")
        if one_of is not None and (not isinstance(one_of, list) or not one_of):
            raise self.fault(
                (*at, "one_of"), f"one_of is {one_of!r}.", "Write a list with at least one value."
            )
        return ArgumentTest(
            glob=self.globs((*at, "glob"), value.get("glob")),
            regex=self.regex((*at, "regex"), value.get("regex")),
            least=least,
            most=most,
            one_of=None if one_of is None else tuple(one_of),
            own=self.flag((*at, "own"), value.get("own")),
        )

    def number(self, at: Key, value: Any) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise self.fault(at, f"{at[-1]} is {value!r}.", "Write a number.")
        return value

    def regex(self, at: Key, value: Any) -> re.Pattern[str] | None:
        text = self.text(at, value)
        if not text:
            return None
        try:
            return re.compile(text, re.S)
        except re.error as fault:
            raise self.fault(
                at,
                f"the regular expression {text!r} cannot be read: {fault}.",
                "Correct it; it must match the whole value.",
            ) from fault
