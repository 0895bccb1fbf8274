"""Shells, and `source`: they run a text, a file or what they read."""

from __future__ import annotations

import re

from lorimer.core.effects import Concern
from lorimer.safety.shell import options, places
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, judge_options, run_downloaded
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal

RISKY = frozenset({"network", "decoded"})
_STDIN = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"})


def _shell(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    where = call.source
    words = parsed.operands
    if parsed.has("-c"):
        if not words:
            return Output()
        return _text(analysis, call, words[0], words[1:], name)
    if _only_parses(call, name, words):
        analysis.read(words[0], where)
        return Output()
    if not words or parsed.has("-s") or words[0].text in _STDIN:
        return from_input(analysis, call, name)
    analysis.ask(Concern.RUNS_CODE, f"`{name}` runs a script", where)
    script(analysis, call, words[0])
    return Output()


_PARSERS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})


def _only_parses(call: Invocation, name: str, words: list[Word]) -> bool:
    """`bash -n FILE`: nothing runs, as long as no other option than these stands before the file.

    A `+n` or `+o noexec` after it turns it off again, and an interactive shell ignores it.
    """
    if name not in _PARSERS or not words or words[0].may_be_option or words[0].many:
        return False
    if (words[0].text or words[0].head).startswith("+"):
        return False
    before = [w.text for w in call.arguments[: len(call.arguments) - len(words)]]
    plain = all(t is not None and re.fullmatch(r"-[nvxeu]+|--", t) for t in before)
    return plain and any(t is not None and "n" in t for t in before)


def _text(analysis: Analysis, call: Invocation, text: Word, more: list[Word], name: str) -> Output:
    where = call.source
    analysis.ask(Concern.RUNS_CODE, f"`{name} -c` runs a text", where)
    if text.origins & RISKY:
        analysis.forbid("text from the network or decoded text is run", where)
    if text.text is None:
        analysis.unknown("the text that a shell runs is not known before it runs", where)
        fed = bool({"xargs", "find -exec"} & set(analysis.via)) and not text.head.strip()
        if text.kind is Kind.NAMES or fed:
            analysis.forbid("names of files, or lines of input, are run as a script", where)
        if "secret" in text.origins:
            analysis.unknown("a secret is run as a script", where)
    given = more or [literal(name)]
    with analysis.inside_of(f"{name} -c"):
        return analysis.run_text(
            text.text if text.text is not None else text.known, arguments=given
        )


def from_input(analysis: Analysis, call: Invocation, name: str) -> Output:
    """A shell that reads its commands from its standard input."""
    given = call.given
    where = call.source
    analysis.ask(Concern.RUNS_CODE, f"`{name}` runs what it reads", where)
    if given.origins & RISKY:
        analysis.forbid("text from the network or decoded text is run", where)
    if given.text is not None:
        with analysis.inside_of(f"{name} <"):
            return analysis.run_text(given.text)
    analysis.unknown("what the shell reads is not known before it runs", where)
    if given.kind is Kind.NAMES:
        analysis.forbid("names of files are run as commands", where)
    return Output(None, Kind.ANY, given.origins)


def script(analysis: Analysis, call: Invocation, word: Word) -> None:
    """A file that is run as a script."""
    where = call.source
    if word.origins & RISKY:
        analysis.forbid("text from the network or decoded text is run", where)
    if word.kind is Kind.PIPE:
        analysis.unknown("what runs is not known before it runs", where)
        return
    analysis.read(word, where)
    for _, path in analysis.locate(word, where):
        run_downloaded(analysis, places.resolve(path), where)


def _source(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = [w for w in call.arguments if w.text != "--"]
    analysis.ask(Concern.RUNS_CODE, f"`{name}` runs a file in this shell", call.source)
    if not words:
        return Output()
    if words[0].text in _STDIN:
        output = from_input(analysis, call, name)
    else:
        script(analysis, call, words[0])
        output = Output()
    analysis.state.forget()
    return output


JUDGES = {"shell": _shell, "source": _source}
