"""awk: its program is read, because it can run commands, read files and write them."""

from __future__ import annotations

import re
from itertools import pairwise

from lorimer.core.effects import Concern
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.escapes import decode
from lorimer.safety.shell.invoke import Invocation, judge_options
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import literal

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n|#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+))"
    r"|(?P<op>\|&|\|\||&&|>>|[-+*/%^!=<>]=|\+\+|--|\*\*=?|@/|[-+*/%^!<>|?:~$(){}\[\],;@=&\n])",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[(?:\]|\^\])?(?:[^\]\\\n]|\\.)*\])*/")
_VALUE_ENDS = frozenset({")", "]", "$"})


class NotUnderstood(Exception):
    """The program has a token we do not know."""


def judge(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    where = call.source
    words = list(parsed.operands)
    codes = [v for o, v, _ in parsed.options if o in ("-e", "--source") and v is not None]
    files = parsed.has("-f", "--file", "-E", "--exec", "-i", "--include")
    if files:
        analysis.ask(Concern.RUNS_CODE, "a program file of awk may run commands", where)
    if not codes and not files and words:
        codes = [words.pop(0)]
    for code in codes:
        if code.text is None:
            analysis.unknown("the awk program is not known before it runs", where)
        else:
            _program(analysis, call, code.text)
    for word in words:
        text = word.text or word.head
        if text == "-":
            continue
        if re.match(r"[A-Za-z_]\w*=", text):
            if "|" in text or "/" in text:
                analysis.unknown(f"{text} sets a variable of the program", where)
            continue
        analysis.read(word, where)
    return Output(None, origins=call.given.origins)


def tokens(code: str) -> list[tuple[str, str]]:
    """(kind, text) of a program: string, name, number, op, regex.

    Raises:
        NotUnderstood: for text that is no token.
    """
    out: list[tuple[str, str]] = []
    place = 0
    while place < len(code):
        if code[place] == "/" and not _after_value(out):
            match = _REGEX.match(code, place)
            if match is None:
                raise NotUnderstood("a pattern without an end")
            out.append(("regex", match[0]))
            place = match.end()
            continue
        match = _TOKEN.match(code, place)
        if match is None:
            raise NotUnderstood(f"the character {code[place]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            out.append((kind, match[0]))
        place = match.end()
    return out


def _after_value(out: list[tuple[str, str]]) -> bool:
    if not out:
        return False
    kind, text = out[-1]
    if kind == "name":
        return text not in ("return", "print", "printf", "in", "getline", "case", "do", "else")
    return kind in ("string", "number") or text in _VALUE_ENDS or text in ("++", "--")


def _program(analysis: Analysis, call: Invocation, code: str) -> None:
    where = call.source
    try:
        found = tokens(code)
    except NotUnderstood as fault:
        analysis.unknown(f"the awk program is not understood: {fault}", where)
        return
    if _ambiguous(found) and re.search(r"system|getline|[|>]", code):
        analysis.unknown("a `/` of the awk program may begin a pattern, or divide", where)
    depth = 0
    prints_at: int | None = None
    for place, (kind, text) in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else ("", "")
        before = found[place - 1] if place else ("", "")
        if kind == "string":
            analysis.suspect(literal(decode(text[1:-1])), where)
        if kind == "name":
            if text in ("ARGV", "ARGC"):
                analysis.unknown("awk changes which files it reads", where)
            if text == "system":
                _runs(analysis, call, "system()", _argument(found, place + 1))
            elif text == "getline":
                skip = 2 if after[0] == "name" else 1
                end = found[place + skip][1] if place + skip < len(found) else ""
                if end not in ("", "<", ";", "}", "\n", ")"):
                    analysis.unknown("where awk's getline reads is not understood", where)
                if end == "<":
                    _file(analysis, call, found, place + skip + 1, reads=True)
            elif text in ("print", "printf"):
                prints_at = depth
            elif text in ("ENVIRON", "PROCINFO"):
                analysis.ask(Concern.SECRETS, f"awk reads {text}, the environment", where)
        elif kind == "op":
            if text in "([":
                depth += 1
            elif text in ")]":
                depth -= 1
            elif text in ";{}":
                # A line may end inside of a list: only these surely end what is printed.
                depth = 0 if text != ";" else depth
                prints_at = None
            elif text in ("|", "|&"):
                command = before[1] if after[1] == "getline" else after[1]
                _runs(analysis, call, "a pipe", command)
            elif text == ">>" or (text == ">" and prints_at is not None and depth <= prints_at):
                _file(analysis, call, found, place + 1, reads=False)
            elif text in ("@", "@/"):
                analysis.unknown("awk loads or calls something by a name in a value", where)


def _ambiguous(found: list[tuple[str, str]]) -> bool:
    """Whether a `/` that we read as a division may begin a pattern."""
    return any(
        kind == "op" and text in ("/", "/=") and before[1] in (")", "length", "$", "++", "--")
        for before, (kind, text) in pairwise(found)
    )


def _argument(found: list[tuple[str, str]], place: int) -> str:
    rest = found[place : place + 3]
    if len(rest) == 3 and rest[0][1] == "(" and rest[1][0] == "string" and rest[2][1] == ")":
        return rest[1][1]
    return ""


def _runs(analysis: Analysis, call: Invocation, how: str, command: str) -> None:
    analysis.unknown(f"awk runs a command by {how}", call.source)
    analysis.forbid(f"awk runs a command by {how}", call.source)
    if command.startswith('"'):
        with analysis.inside_of("awk"):
            analysis.run_text(decode(command[1:-1]))


def _file(
    analysis: Analysis, call: Invocation, found: list[tuple[str, str]], place: int, *, reads: bool
) -> None:
    kind, text = found[place] if place < len(found) else ("", "")
    after = found[place + 1][1] if place + 1 < len(found) else ""
    if kind != "string" or after not in ("", ";", "}", "\n", ")"):
        analysis.unknown("which file awk opens is not known before it runs", call.source)
        return
    name = decode(text[1:-1])
    if name.startswith("/inet"):
        analysis.connect(None, call.source, "awk connects", sends=True)
    elif reads:
        analysis.read(name, call.source)
    else:
        analysis.write(name, call.source)
