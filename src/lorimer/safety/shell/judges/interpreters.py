"""Python, Node, Perl and others: a version is read; everything else runs code.

What code does is not decided here, the sandbox holds it. Code given on the command line is looked
through for deletions, processes and connections, because a command hidden in a text is not what a
person sees when they approve it (`programs/code.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options, table
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, judge_options
from lorimer.safety.shell.judges.shells import RISKY, script
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal


@cache
def patterns() -> list[tuple[re.Pattern[str], str, str]]:
    """(pattern, what to do, sentence), from the table."""
    text = (table.FOLDER / "code.toml").read_text("utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["code"]
    return [(re.compile(p), e["means"], e["text"]) for e in entries for p in e["patterns"]]


def inline(analysis: Analysis, code: str, where: str) -> None:
    """Look through code that is given as a text."""
    for pattern, means, sentence in patterns():
        if not pattern.search(code):
            continue
        if means == "forbidden":
            analysis.ask(Concern.DESTRUCTIVE, f"inline code: {sentence}", where)
            analysis.forbid(f"inline code: {sentence}; write it as a plain command", where)
        elif means == "network":
            analysis.connect(None, where, f"inline code: {sentence}", sends=True)
        elif means == "secrets":
            analysis.ask(Concern.SECRETS, f"inline code: {sentence}", where)
        elif means == "write":
            analysis.raise_to(Effects.WRITE)
        else:
            analysis.unknown(f"inline code: {sentence}", where)


def _interpreter(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    harmless = set(program.data.get("harmless", ()))
    arguments = call.arguments
    if arguments and not call.given.given and all(w.text in harmless for w in arguments):
        return Output()
    where = call.source
    parsed = options.parse(program, arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    analysis.ask(Concern.RUNS_CODE, f"`{name}` runs code", where)
    codes = [v for o, v, _ in parsed.options if o in program.data.get("inline", ())]
    for code in codes:
        if code is None or code.text is None:
            analysis.unknown("the code that runs is not known before it runs", where)
        if code is not None:
            inline(analysis, code.text if code.text is not None else code.known, where)
            if code.origins & RISKY:
                analysis.forbid("text from the network or decoded text is run", where)
    module = parsed.value("-m") if "-m" in program.data.get("modules", ()) else None
    if module is not None:
        return _module(analysis, call, module, parsed.operands)
    if codes:
        return Output()
    words = parsed.operands
    if words and program.data.get("sub_commands") and words[0].text in program.sub:
        return Output()
    if words and words[0].text != "-":
        script(analysis, call, words[0])
        return Output()
    _from_input(analysis, call, name)
    return Output()


def _module(analysis: Analysis, call: Invocation, module: Word, operands: Sequence[Word]) -> Output:
    """`python -m pip …`: a module that is a program of the table is judged as that program."""
    text = module.text
    # What stands after the module's name are its own words, in whatever form.
    place = next((i for i, w in enumerate(call.words) if w == module), None)
    rest = call.words[place + 1 :] if place is not None else tuple(operands)
    if text in ("pip", "pytest", "black", "ruff", "mypy", "venv", "uv", "poetry", "twine"):
        with analysis.inside_of("python -m"):
            return analysis.run(call.with_words([literal(text), *rest]))
    if text in ("http.server", "smtpd", "xmlrpc.server", "ensurepip", "ftplib", "telnetlib"):
        analysis.connect(None, call.source, f"the module {text} connects or serves")
    if text is None:
        analysis.unknown("which module runs is not known before it runs", call.source)
    return Output()


def _from_input(analysis: Analysis, call: Invocation, name: str) -> None:
    given = call.given
    where = call.source
    if given.origins & RISKY:
        analysis.forbid("text from the network or decoded text is run", where)
    if given.text is not None:
        inline(analysis, given.text, where)
    elif given.given:
        analysis.unknown(f"what `{name}` reads and runs is not known before it runs", where)
        if given.kind is Kind.NAMES:
            analysis.forbid("names of files are run as code", where)
    else:
        analysis.unknown(f"`{name}` waits for what it should run", where)


JUDGES = {"interpreter": _interpreter}
