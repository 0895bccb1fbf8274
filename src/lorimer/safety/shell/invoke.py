"""One simple command: who it is, what it does by its table entry, what its options add."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lorimer.core.effects import Concern, SimpleCommand
from lorimer.safety.shell import environment, escapes, options, places, table
from lorimer.safety.shell.analysis import NO_INPUT, Analysis, Input, Output
from lorimer.safety.shell.options import Parsed
from lorimer.safety.shell.table import Program, Tags
from lorimer.safety.shell.words import Kind, Word, literal

if TYPE_CHECKING:
    from lorimer.safety.shell.walk import Walker

SYSTEM_BIN = (
    "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin",
    "/usr/local/sbin",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Invocation:
    """Attributes:
    words: the program and its arguments.
    source: the command as written.
    given: its standard input.
    walker: the walk that found it, which knows the functions.
    prefixed: names of variables set for it alone.
    """

    words: tuple[Word, ...]
    source: str
    given: Input = NO_INPUT
    walker: Walker | None = None
    prefixed: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[Word, ...]:
        return self.words[1:]

    def with_words(self, words: Sequence[Word]) -> Invocation:
        return replace(self, words=tuple(words))


def judge(analysis: Analysis, call: Invocation) -> Output:
    """Judge one command, and say what it prints as far as that is known."""
    words = call.words
    while len(words) > 1 and words[0].text is not None and _SETS.match(words[0].text):
        analysis.unknown(f"{words[0]} may be an assignment", call.source)
        words = words[1:]
    call = call.with_words(words)
    analysis.findings.command(
        SimpleCommand(tuple(w.text for w in words), call.source, analysis.via)
    )
    first = words[0]
    if first.text is None or first.glob or not first.text:
        if first.origins & {"network", "decoded"}:
            analysis.forbid("text from the network or decoded text is run", call.source)
        analysis.unknown(
            f"which program runs is not known before it runs: {first.source}", call.source
        )
        for word in words[1:]:
            if word.text is not None and not word.text.startswith("-"):
                analysis._secret_words(word, call.source)
        return Output()
    name = first.text
    if name in analysis.state.functions and call.walker is not None and "/" not in name:
        before = set(analysis.state.exported)
        analysis.state.exported |= set(call.prefixed)
        output = call.walker.call(name, words[1:], call.given, call.source)
        analysis.state.exported -= set(call.prefixed) - before
        return output
    if "$" in first.source or "`" in first.source:
        analysis.unknown(f"the program's name is put together: {first.source}", call.source)
    if "/" in name:
        found = _by_path(analysis, call, name)
        if found is None:
            return Output()
        name = found
    program = table.find(name)
    if program is None and name.lower() != name:
        program = table.find(name.lower())
        if program is not None:
            analysis.unknown(f"{name} is another program than {name.lower()} on most systems", name)
    if program is None:
        analysis.unknown(f"{name} is not in the table of programs", call.source)
        for word in words[1:]:
            analysis._secret_words(word, call.source)
        return Output(None, Kind.ANY, call.given.origins)
    return run_program(analysis, call, name, program)


def _by_path(analysis: Analysis, call: Invocation, name: str) -> str | None:
    """The program's base name if it is one of the system; else it is code of the workspace."""
    located = analysis.locate(name, call.source)
    if name.startswith("/"):
        plain = posixpath.normpath("/" + name.lstrip("/"))
        if posixpath.dirname(plain) in SYSTEM_BIN and not places.inside(plain, analysis.roots):
            return posixpath.basename(plain)
    for _, path in located:
        resolved = places.resolve(path)
        analysis.ask(Concern.RUNS_CODE, f"{name} is a program of this folder", call.source)
        if not places.inside(resolved, analysis.roots):
            analysis.ask(Concern.OUTSIDE, f"{name} lies outside the workspace", call.source)
        run_downloaded(analysis, resolved, call.source)
    analysis.ask(Concern.RUNS_CODE, f"{name} runs code that is not known here", call.source)
    return None


def run_downloaded(analysis: Analysis, path: str, where: str) -> None:
    """A file that this text wrote from the network, or decoded, is run by it."""
    fetched = {"network", "decoded"} & set(analysis.origins)
    if path in analysis.written and fetched:
        analysis.forbid("a file that was fetched or decoded here is run", where)


def apply(analysis: Analysis, found: Tags | None, where: str) -> None:
    """Note what `found` says."""
    if found is None:
        return
    for concern in found.concerns:
        analysis.ask(concern, found.text, where)
    analysis.raise_to(found.level)


def run_program(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    from lorimer.safety.shell.judges import JUDGES

    arguments = call.arguments
    given = dict.fromkeys((*call.prefixed, *sorted(analysis.state.exported)))
    environment.given(analysis, given, name, call.source)
    if len(arguments) == 1 and arguments[0].text in program.versions:
        return Output(None, Kind.ANY)
    before, analysis.reader = analysis.reader, name
    if program.lists and _prints_all(arguments):
        analysis.reader = f"{name}, of every line"
    try:
        if program.judge:
            return JUDGES[program.judge](analysis, call, name, program)
        return by_table(analysis, call, name, program)
    finally:
        analysis.reader = before


def _prints_all(arguments: Sequence[Word]) -> bool:
    """Whether a search matches every line: `grep .`, `grep ''`, `grep -v x`."""
    plain = [w.known for w in arguments if not w.known.startswith("-")]
    inverted = any(re.match(r"-[a-zA-Z]*v|--inv", w.known) for w in arguments)
    return inverted or not plain or not re.search(r"\w", plain[0])


def by_table(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """Judge by the table alone."""
    apply(analysis, program.always, call.source)
    if program.sub:
        return by_sub_command(analysis, call, name, program)
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    operands(analysis, call, program, parsed)
    if program.here and program.hidden and program.operands == "read":
        seen = {o for o, _, _ in parsed.options} | set(parsed.unknown)
        words = [w for w in call.arguments if not w.known.startswith("-")]
        if seen & set(program.hidden) and any(
            places.secretive(w.known, analysis.home) for w in words
        ):
            text = f"`{name}` searches hidden files for what looks like a secret"
            analysis.ask(Concern.SECRETS, text, call.source)
    if name in _BINUTILS and any(w.known.startswith("@") for w in parsed.operands):
        analysis.unknown(f"`{name}` takes options from a file that is named with @", call.source)
    if name in _LOOPS and any(_HUGE.search(w.known) for w in call.arguments):
        analysis.unknown(f"`{name}` prints without end, or very much", call.source)
    return output_of(analysis, call, name, program, parsed)


def judge_options(
    analysis: Analysis, call: Invocation, name: str, program: Program, parsed: Parsed
) -> None:
    """What the options add; options that the table does not know ask."""
    where = call.source
    for option, value, rule in parsed.options:
        if rule.effect in ("read", "at") and rule.tags is not None:
            apply(analysis, rule.tags, where)
        if rule.effect == "read" and value is not None:
            if value.text != "-":
                analysis.read(value, where)
        elif rule.effect == "write":
            if value is not None and value.text != "-":
                analysis.write(value, where)
        elif rule.effect == "at" and value is not None:
            at_file(analysis, value, where)
        elif rule.effect in ("run", "ask", "mild") and rule.tags is not None:
            tagged = replace(rule.tags, text=f"`{name} {option}`: {rule.tags.text}")
            apply(analysis, tagged, where)
            if rule.effect == "run" and value is not None and value.text:
                with analysis.inside_of(f"{name} {option}"):
                    analysis.run_text(value.text)
        elif rule.effect == "none" and value is not None:
            analysis.suspect(value, where)
    plus = [w.text for w in parsed.operands if w.text is not None and w.text.startswith("+")]
    if program.plus is not None and any(not _MOVES.fullmatch(text) for text in plus):
        apply(analysis, program.plus, where)
    if not program.open:
        for option in dict.fromkeys(parsed.unknown):
            analysis.unknown(f"the option {option} of {name} is not in the table", where)
    names_files = any(rule.effect == "read" for rule in program.options.values())
    for word in parsed.unclear:
        wild = word.text is None and word.kind is Kind.ANY and names_files
        if wild or not program.any_option_is_harmless:
            analysis.unknown(
                f"{word.source} may become an option of {name}; write ./ before a pattern", where
            )


def at_file(analysis: Analysis, value: Word, where: str) -> None:
    """`@file` and `name=@file` send what the file holds."""
    text = value.text if value.text is not None else value.head
    match = re.match(r"(?:[^=@]*=)?[@<](.+)", text, re.DOTALL)
    if match and match[1] != "-":
        analysis.read(match[1].split(";")[0], where)


def operands(analysis: Analysis, call: Invocation, program: Program, parsed: Parsed) -> None:
    """What the operands mean by the table."""
    words = list(parsed.operands)
    where = call.source
    if program.skip and not parsed.has(*program.skip_unless):
        skipped, words = words[: program.skip], words[program.skip :]
        for word in skipped:
            if word.text is None and word.many and word.kind is Kind.ANY:
                analysis.unknown(f"{word.source} may become several words", where)
    kind = program.operands
    if program.here and not words:
        analysis.read(".", where, names_only=True)
    if kind in ("read", "stat"):
        for word in words:
            if word.text != "-":
                analysis.read(word, where, names_only=kind == "stat")
        if kind == "read" and (program.here or parsed.has(*program.tree)):
            for word in words or [literal(".")]:
                analysis.read_tree(word, where)
    elif kind == "write":
        for word in words:
            if word.text != "-":
                analysis.write(word, where)
    elif kind == "delete":
        for word in words:
            analysis.delete(word, where, tree=parsed.has("-r", "-R", "--recursive"))
    elif kind in ("copy", "move", "link"):
        _copy(analysis, words, parsed, where, kind)
    elif kind == "in-out":
        for word in words[:1]:
            if word.text != "-":
                analysis.read(word, where)
        for word in words[1:]:
            if word.text != "-":
                analysis.write(word, where)


def _copy(analysis: Analysis, words: list[Word], parsed: Parsed, where: str, kind: str) -> None:
    target = parsed.value("-t", "--target-directory")
    sources, targets = (words, [target]) if target else (words[:-1], words[-1:])
    for word in sources:
        if kind == "move":
            analysis.delete(word, where, tree=True, verb="moves")
        analysis.read(word, where, names_only=kind == "link")
    for goal in targets:
        if goal is not None:
            analysis.write(goal, where)
            for source in sources:
                if goal.text and source.text and not source.glob:
                    inside = posixpath.join(goal.text, posixpath.basename(source.text))
                    analysis.write(inside, where)


def by_sub_command(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`npm test`, `docker ps`: what the sub-command does stands in the table."""
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    rest = parsed.operands
    if not rest:
        if not parsed.has(*program.versions):
            apply(analysis, program.bare or table.tags("unknown: it runs alone"), call.source)
        return Output()
    first = rest[0].text
    plain = [w.text for w in rest if w.text is not None and not w.text.startswith("-")]
    second = plain[1] if len(plain) > 1 else None
    found = None
    if first is not None:
        pair = f"{first} {second}"
        found = program.sub.get(pair) if second is not None else None
        found = found or program.sub.get(first) or program.sub.get("*")
    if found is None:
        analysis.unknown(f"what `{name} {rest[0]}` does is not in the table", call.source)
    else:
        apply(analysis, replace(found, text=f"`{name} {first}` {found.text}"), call.source)
        if any(w.text in program.decodes for w in rest):
            analysis.origins.append("decoded")
        # A sub-command that only reads may do so with options that are known; the others ask
        # for more than their options could add.
        loose = replace(program, open=program.open or bool(found.concerns))
        tail = options.parse(loose, rest[1:])
        judge_options(analysis, call, name, loose, tail)
        for word in rest[1:]:
            analysis._secret_words(word, call.source)
    return Output()


def output_of(
    analysis: Analysis, call: Invocation, name: str, program: Program, parsed: Parsed
) -> Output:
    """What it prints, as far as that matters to whoever reads it."""
    origins = call.given.origins
    if program.decodes and ("always" in program.decodes or parsed.has(*program.decodes)):
        analysis.origins.append("decoded")
        origins |= {"decoded"}
    for word in call.words:
        origins |= word.origins
    if name in ("echo", "printf") and all(w.text is not None for w in call.words):
        texts = [w.text or "" for w in call.arguments]
        text = escapes.echo(texts) if name == "echo" else escapes.printf(texts)
        return Output(text, Kind.ANY, origins)
    folders = analysis.state.folders
    if name == "pwd" and folders is not None and len(folders) == 1 and not analysis.state.if_failed:
        return Output(folders[0], Kind.ANY, origins)
    if name == "tee" or (name == "cat" and not parsed.operands and not parsed.options):
        return Output(call.given.text, call.given.kind, origins)
    kind = Kind(program.output)
    origins |= marks(analysis, call, name, program, parsed)
    if program.output == "names":
        far = any(
            (w.text or w.head).startswith(("/", "~", ".."))
            or places.secret("/" + w.known, analysis.home)
            for w in call.arguments
        )
        kind = Kind.ANY if far else Kind.NAMES
    elif program.lists and parsed.has(*program.lists):
        far = any((w.text or w.head).startswith(("/", "~", "..")) for w in parsed.operands[1:])
        kind = Kind.ANY if far else Kind.NAMES
    elif call.given.kind is Kind.NAMES and len(parsed.operands) <= program.skip:
        whole = not parsed.has("-o", "-c") and "--only-matching" not in parsed.unknown
        kind = Kind.NAMES if name in _PASS_NAMES and whole else Kind.ANY
    return Output(None, kind, origins)


def marks(
    analysis: Analysis, call: Invocation, name: str, program: Program, parsed: Parsed
) -> frozenset[str]:
    """What names of files that it prints have to do with secrets: "hidden", "aimed"."""
    lists = program.output == "names" or (program.lists and parsed.has(*program.lists))
    out = set()
    given = {option for option, _, _ in parsed.options} | set(parsed.unknown)
    if lists and given & set(program.hidden):
        out.add("hidden")
    searches = name in _PASS_NAMES and program.skip and not given & {"-v", "--invert-match"}
    if lists or searches:
        words = [w for w in call.arguments if not (w.text or w.head).startswith("--color")]
        if any(places.secretive(w.known.removeprefix("-"), analysis.home) for w in words):
            out.add("aimed")
    return frozenset(out)


_LOOPS = frozenset({"printf", "head", "tail", "jot", "fold"})
_BINUTILS = frozenset({"nm", "objdump", "readelf", "size", "strings", "addr2line", "c++filt"})
_HUGE = re.compile(r"\d{8,}|\binf|\d{3,}[GTPE]\b")
_SETS = re.compile(r"\w+\+?=", re.ASCII)
_MOVES = re.compile(r"\+(?:F|G|\d+[gG]?)")
_PASS_NAMES = frozenset({"sort", "uniq", "head", "tail", "cat", "tac", "shuf", "grep", "egrep"})
