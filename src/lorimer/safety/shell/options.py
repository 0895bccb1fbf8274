"""Reading a program's words by its table: options, their values, and operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lorimer.safety.shell.table import Program, Rule
from lorimer.safety.shell.words import Word, literal

_NUMBER = re.compile(r"[-+]\d+[a-zA-Z]?")


@dataclass(slots=True)
class Parsed:
    """Attributes:
    options: (name as in the table, value if it takes one, rule), in order.
    operands: what is no option.
    unknown: options that the table does not have.
    unclear: words that may turn out to be options.
    """

    options: list[tuple[str, Word | None, Rule]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unclear: list[Word] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        return any(name in names for name, _, _ in self.options)

    def value(self, *names: str) -> Word | None:
        return next((v for name, v, _ in reversed(self.options) if name in names), None)


def parse(program: Program, words: Sequence[Word], *, permute: bool = True) -> Parsed:
    """Read `words` (without the program's name).

    With `permute` false the first operand ends the options, as for programs that run another.
    """
    out = Parsed()
    rest = list(words)
    stops = program.data.get("stops", ())
    while rest:
        if stops and out.has(*stops):
            out.operands += rest
            break
        word = rest.pop(0)
        text = word.text
        if text == "--":
            out.operands += rest
            break
        if text is None and not word.many and _harmless_value(program, word, out):
            continue
        if text is None or word.glob:
            if word.may_be_option or word.head.startswith("-"):
                out.unclear.append(word)
            if word.head.startswith("-") and len(word.head) > 1:
                _option(program, Word(word.head, word.source, head=word.head), rest, out)
                continue
        if text is None or text == "-" or not text.startswith("-"):
            out.operands.append(word)
            if not permute:
                out.operands += rest
                break
            continue
        _option(program, word, rest, out)
    return out


def _harmless_value(program: Program, word: Word, out: Parsed) -> bool:
    """`--author="$x"`: the option is known, and its value may be anything."""
    found = re.match(r"(--[a-zA-Z][\w-]*)=", word.head)
    if found is None:
        return False
    rule = _match(program, found[1])
    if rule is None or rule[1].effect != "none":
        return False
    out.options.append((rule[0], Word(None, word.source, kind=word.kind), rule[1]))
    return True


def _option(program: Program, word: Word, rest: list[Word], out: Parsed) -> None:
    text = word.text or ""
    if _NUMBER.fullmatch(text) and text[:2] not in program.options:
        return
    if text.startswith("--") or program.style == "single" or text in program.options:
        _long(program, text, rest, out)
        return
    letters = text[1:]
    while letters:
        name = f"-{letters[0]}"
        letters = letters[1:]
        rule = program.options.get(name)
        if rule is None:
            if not letters[:1].isdigit() or not program.open:
                out.unknown.append(name)
            continue
        value: Word | None = None
        if rule.takes:
            value = literal(letters) if letters else _next(program, rest, out)
            letters = ""
        out.options.append((name, value, rule))


def _long(program: Program, text: str, rest: list[Word], out: Parsed) -> None:
    name, equals, given = text.partition("=")
    found = _match(program, name)
    if found is None:
        out.unknown.append(name)
        return
    key, rule = found
    value: Word | None = literal(given) if equals else None
    if rule.takes and not equals:
        value = _next(program, rest, out)
    out.options.append((key, value, rule))


def _match(program: Program, name: str) -> tuple[str, Rule] | None:
    """The option that `name` is or abbreviates; the one of most weight if several."""
    if name in program.options:
        return name, program.options[name]
    if program.style == "single":
        other = name[1:] if name.startswith("--") else f"-{name}"
        return (other, program.options[other]) if other in program.options else None
    if len(name) < 3:
        return None
    candidates = [(k, r) for k, r in program.options.items() if k.startswith(name)]
    weight = {"run": 5, "ask": 4, "write": 3, "at": 2, "read": 2, "mild": 1, "none": 0}
    return max(candidates, key=lambda c: weight[c[1].effect], default=None)


def _next(program: Program, rest: list[Word], out: Parsed) -> Word | None:
    """The next word as a value; should it be an option after all, it counts as one too."""
    if not rest:
        return None
    word = rest.pop(0)
    text = word.text or word.head
    if text.startswith("-") and len(text) > 1:
        beside = Parsed()
        _option(program, literal(text), [], beside)
        out.options += [o for o in beside.options if o[2].effect in ("run", "ask", "write")]
    return word
