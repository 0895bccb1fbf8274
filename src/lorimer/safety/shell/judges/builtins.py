"""Builtins of the shell: they change what later commands mean, or evaluate their arguments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lorimer.core.effects import Concern
from lorimer.safety.shell import environment, options, places
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.conditions import TestExpressions
from lorimer.safety.shell.invoke import Invocation, by_table
from lorimer.safety.shell.state import join
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal, unknown

if TYPE_CHECKING:
    from lorimer.safety.shell.walk import Walker

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
SILENT = Output("")


def set_name(analysis: Analysis, call: Invocation, word: Word, value: Word | None = None) -> None:
    """A builtin sets the variable that `word` names; a subscript in it is evaluated."""
    text = word.text
    if text is None:
        analysis.unknown(f"which variable is set is not known: {word.source}", call.source)
        analysis.state.forget()
        return
    name, _, subscript = text.partition("[")
    if subscript:
        subscript_text(analysis, call, subscript.rstrip("]"))
    if not _NAME.fullmatch(name):
        analysis.unknown(f"{text} is no plain name of a variable", call.source)
        return
    environment.judge(analysis, name, value, call.source)
    analysis.state.assign(name, value)


def subscript_text(analysis: Analysis, call: Invocation, text: str) -> None:
    if call.walker is not None:
        call.walker.expander.text_operand(text, call.source)
    elif not re.fullmatch(r"\d*|@|\*", text):
        analysis.unknown(f"{text} is evaluated as an expression", call.source)


def declare(
    analysis: Analysis,
    walker: Walker,
    program: str,
    words: Sequence[Word],
    where: str,
    values: Mapping[str, Word | None] | None = None,
) -> None:
    """The words of `export`, `declare`, `unset` and their kind.

    Args:
        values: what variables get by assignments of the grammar; whatever runs in it is judged
            already, but a text may be read again, as the list of an array.
    """
    call = Invocation((literal(program), *words), where, walker=walker)
    prints = True
    letters = _letters(words)
    array = bool(set("aA") & set(letters))
    for assigned, given in (values or {}).items():
        _compound(analysis, call, assigned, given, array=array)
    exports = program == "export" or "x" in letters
    for word in words:
        text = word.text
        if text is not None and text.startswith(("-", "+")):
            if program in ("declare", "typeset", "local") and re.search(r"n", text):
                analysis.unknown("a name that stands for another name", where)
            if "f" in text and program == "export":
                analysis.unknown("an exported function takes the place of a program", where)
            if re.search("[iluc]", text) and program != "unset":
                analysis.unknown("values of this variable are evaluated or changed", where)
            continue
        prints = False
        name = re.split(r"\+?=|\[", text or "", maxsplit=1)[0]
        if exports and _NAME.fullmatch(name):
            analysis.state.exported.add(name)
        if array and _NAME.fullmatch(name):
            analysis.state.arrays.add(name)
        if "p" in letters and program != "unset" and environment.secret_name(name):
            analysis.ask(Concern.SECRETS, f"${name} may hold a secret", where)
        if text is not None and text.endswith("=") and _NAME.fullmatch(text[:-1]):
            continue
        name, equals, value = (text or "").partition("=")
        if text is not None and equals:
            set_name(analysis, call, literal(name.removesuffix("+")), literal(value))
            _compound(analysis, call, name.removesuffix("+"), literal(value), array=array)
        elif text is not None and _NAME.fullmatch(text):
            if program == "unset":
                environment.judge(analysis, text, literal(""), where)
                analysis.state.assign(text, None)
        else:
            set_name(analysis, call, word)
    if prints and program != "unset":
        analysis.ask(Concern.SECRETS, f"`{program}` alone prints all variables", where)


def _letters(words: Sequence[Word]) -> str:
    """The letters of all options."""
    return "".join(w.text[1:] for w in words if w.text is not None and w.text[:1] in ("-", "+"))


def _compound(
    analysis: Analysis, call: Invocation, name: str, value: Word | None, *, array: bool
) -> None:
    """A text that is given to an array by `declare` is read as a list: commands in it run."""
    text = value.text if value is not None else None
    if text is None:
        number = value is not None and value.kind is Kind.NUMBER
        if not number and (array or name in analysis.state.arrays):
            analysis.unknown(f"the value of {name} is read as a list, and runs", call.source)
        return
    if not text.lstrip().startswith("("):
        return
    analysis.unknown(f"the text given to {name} is read as a list, and runs", call.source)
    with analysis.inside_of("declare"):
        analysis.run_text(f"{name or 'x'}={text.strip()}")


def _declare(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    if call.walker is not None:
        declare(analysis, call.walker, name, call.arguments, call.source)
    else:
        analysis.unknown(f"`{name}` out of its shell", call.source)
    return SILENT


def _cd(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = [w for w in call.arguments if w.text not in ("-P", "-L", "-e", "-@", "--")]
    state = analysis.state
    if "CDPATH" in call.prefixed or "CDPATH" in state.variables:
        analysis.unknown("CDPATH changes where cd goes", call.source)
    if name == "popd" or (name == "pushd" and not words):
        state.enter(None)
        return Output()
    target = words[0] if words else literal(analysis.home)
    if target.kind is Kind.NAMES and not target.many:
        state.deeper = True
        return SILENT
    if target.text is None or target.glob or target.text == "-" or target.text.startswith("+"):
        state.enter(None)
        return SILENT
    if target.text.startswith("-"):
        analysis.unknown(f"the option {target.text} of {name} is not in the table", call.source)
    folders = state.folders
    if any(places.of_a_process(f"{f}/{target.text}") for f in folders or ("",)):
        state.enter(None)
    elif target.text.startswith("/"):
        state.enter(_entered(target.text))
    elif folders is None:
        state.enter(None)
    else:
        entered = [p for f in folders for p in _entered(f"{f}/{target.text}")]
        state.enter(join((), tuple(entered)))
    return SILENT


def _entered(path: str) -> tuple[str, ...]:
    """Where `cd path` leads: `..` leaves a link by its name, or by what it leads to with `-P`."""
    by_name = posixpath.normpath("/" + path.lstrip("/"))
    if ".." not in path.split("/"):
        return (by_name,)
    return tuple(dict.fromkeys((by_name, places.resolve(path))))


def _eval(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = [w for w in call.arguments if w.text != "--"]
    if not words:
        return SILENT
    analysis.unknown("eval runs a text", call.source)
    if any(w.origins & {"network", "decoded"} for w in words):
        analysis.forbid("text from the network or decoded text is run", call.source)
    if any(w.text is None for w in words):
        analysis.unknown("what eval runs is not known before it runs", call.source)
    text = " ".join(w.text if w.text is not None else w.known for w in words)
    with analysis.inside_of("eval"):
        output = analysis.run_text(text, keep=True)
    if any(w.text is None for w in words):
        analysis.state.forget()
    return output


def _trap(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = [w for w in call.arguments if w.text != "--"]
    if not words or words[0].text in ("-", "-l", "-p", ""):
        return SILENT
    analysis.unknown("trap runs a text later", call.source)
    if words[0].text is None:
        analysis.unknown("what trap runs is not known before it runs", call.source)
        return SILENT
    with analysis.inside_of("trap"):
        analysis.run_text(words[0].text)
    return SILENT


def _read(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments)
    for letter in parsed.unknown:
        analysis.unknown(f"the option {letter} of {name} is not in the table", call.source)
    callback = parsed.value("-C") if name != "read" else None
    if callback is not None and callback.text:
        analysis.forbid("a text given to an option is run for every line", call.source)
    given = call.given
    value = None
    if given.kind in (Kind.NAMES, Kind.NUMBER) and given.text is None:
        value = Word(None, "a line that is read", kind=given.kind, origins=given.origins)
    elif given.origins:
        value = unknown("a line that is read", origins=given.origins)
    for word in parsed.unclear:
        if word.kind is Kind.ANY:
            analysis.unknown(f"{word.source} may become an option of {name}", call.source)
    array = parsed.value("-a")
    for word in [*parsed.operands, *([array] if array else [])]:
        set_name(analysis, call, word, value)
    analysis.state.arrays |= {w.text for w in parsed.operands if w.text and name != "read"}
    if array is not None and array.text:
        analysis.state.arrays.add(array.text)
    if not parsed.operands and array is None:
        analysis.state.assign("REPLY", value)
        analysis.state.assign("MAPFILE", None)
    return SILENT


def _wait(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`wait -p NAME` sets a variable."""
    parsed = options.parse(program, call.arguments)
    for letter in parsed.unknown:
        analysis.unknown(f"the option {letter} of wait is not in the table", call.source)
    for word in parsed.unclear:
        if word.kind is not Kind.NUMBER:
            analysis.unknown(f"{word.source} may become an option of wait", call.source)
    for option, value, _ in parsed.options:
        if option == "-p" and value is not None:
            set_name(analysis, call, value)
    return SILENT


def _getopts(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`getopts LETTERS NAME [WORD…]` sets NAME, OPTARG and OPTIND."""
    words = [w for w in call.arguments if w.text != "--"]
    for word in words[1:2]:
        set_name(analysis, call, word)
    if any(w.text is None and w.many for w in words[:2]):
        analysis.unknown("which variable getopts sets is not known", call.source)
    return SILENT


def _printf(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = call.arguments
    if words and (words[0].text or words[0].head).startswith("-v"):
        text = words[0].text or ""
        target = literal(text[2:]) if len(text) > 2 else (words[1] if len(words) > 1 else None)
        if target is not None:
            set_name(analysis, call, target)
        return SILENT
    if words and words[0].text is None and words[0].may_be_option:
        analysis.unknown(f"{words[0].source} may become an option of printf", call.source)
    return by_table(analysis, call, name, program)


def _let(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    for word in call.arguments:
        target, equals, value = (word.text or "").partition("=")
        if word.text is None:
            analysis.unknown(f"{word.source} is evaluated as an expression", call.source)
        elif equals and _NAME.fullmatch(target):
            if call.walker is not None and _NAME.fullmatch(value):
                call.walker.expander._operand(value, call.source)
            subscript_text(analysis, call, value)
            set_name(analysis, call, literal(target), Word(None, target, kind=Kind.NUMBER))
        else:
            subscript_text(analysis, call, word.text)
    return SILENT


def _test(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    if call.walker is None:
        for place, word in enumerate(call.arguments):
            if word.text in ("-v", "-R") or (word.text is None and word.many):
                analysis.unknown(f"argument {place + 1} of test is evaluated", call.source)
        return SILENT
    TestExpressions(call.walker).words_of(call.arguments, call.source)
    return SILENT


def _hash(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    for word in call.arguments:
        if word.text is None or word.text.startswith("-"):
            analysis.forbid(f"`{name} {word}` makes a name run another program", call.source)
    return SILENT


def _enable(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    texts = [w.text or "-f" for w in call.arguments]
    if any(re.match(r"-\w*f", t) for t in texts):
        analysis.forbid("`enable -f` loads a library into the shell", call.source)
    if any(not t.startswith("-") or "n" in t for t in texts):
        analysis.unknown("it changes which program a name means", call.source)
    return Output()


def _alias(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    for word in call.arguments:
        text = word.text
        if text in ("-p", "-a"):
            continue
        analysis.unknown(f"{word} makes a name mean something else", call.source)
        if text and "=" in text and name == "alias":
            with analysis.inside_of("alias"):
                analysis.run_text(text.partition("=")[2])
    return Output()


def _history(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    if name == "fc":
        analysis.unknown("fc runs an earlier command", call.source)
    else:
        analysis.ask(Concern.SECRETS, "earlier commands may hold secrets", call.source)
    if any((w.text or "-a").startswith("-") for w in call.arguments):
        analysis.unknown("it changes the history", call.source)
    return Output()


def _env_names(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`printenv NAME`: one variable; alone it prints all of them."""
    names = [w for w in call.arguments if w.text not in ("-0", "--null")]
    if not names:
        analysis.ask(Concern.SECRETS, f"`{name}` alone prints the environment", call.source)
    for word in names:
        if word.text is None or environment.secret_name(word.text):
            analysis.ask(Concern.SECRETS, f"{word} may hold a secret", call.source)
    return Output()


def _ps(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    for word in call.arguments:
        text = word.text
        if text is None or re.fullmatch(r"(?!-)[a-zA-Z]*e[a-zA-Z]*", text) or text == "-E":
            analysis.ask(Concern.SECRETS, "it prints environments of processes", call.source)
    return Output()


def _shift(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    analysis.state.arguments = None
    for number in range(1, 10):
        analysis.state.assign(str(number), None)
    return SILENT


JUDGES = {
    "shift": _shift,
    "cd": _cd, "eval": _eval, "trap": _trap, "read": _read, "printf": _printf, "let": _let,
    "test": _test, "wait": _wait, "getopts": _getopts, "hash": _hash, "enable": _enable,
    "alias": _alias, "history": _history, "printenv": _env_names, "ps": _ps, "declare": _declare,
}  # fmt: skip
