"""find: tests are read-only; actions delete, write or run."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence

from lorimer.safety.shell import places
from lorimer.safety.shell.analysis import NO_INPUT, Analysis, Output
from lorimer.safety.shell.invoke import Invocation
from lorimer.safety.shell.judges.wrappers import inner, substitute
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal, unknown

_FLAGS = frozenset(
    {
        "(", ")", "!", ",", "-not", "-a", "-and", "-o", "-or", "-true", "-false", "-depth", "-d",
        "-mount", "-xdev", "-daystart", "-follow", "-noleaf", "-empty", "-executable",
        "-readable", "-writable", "-nouser", "-nogroup", "-print", "-print0", "-ls", "-prune",
        "-quit", "-noignore_readdir_race", "-ignore_readdir_race", "-warn", "-nowarn", "-H", "-L",
        "-P", "-E", "-X", "-s", "-x",
    }
)  # fmt: skip
_VALUES = frozenset(
    {
        "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex",
        "-lname", "-ilname", "-type", "-xtype", "-size", "-mtime", "-atime", "-ctime", "-mmin",
        "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-perm", "-user", "-group", "-uid",
        "-gid", "-links", "-inum", "-samefile", "-maxdepth", "-mindepth", "-fstype", "-used",
        "-regextype", "-printf", "-context", "-flags", "-newermt", "-newerat", "-newerct",
        "-neweraa", "-newerac", "-newerca", "-newercc", "-newercm", "-newerma", "-newermc",
        "-newermm", "-newerBt", "-D",
    }
)  # fmt: skip
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_CHANGES = frozenset({"rm", "shred", "unlink", "chmod", "chown", "chgrp", "mv", "truncate"})
_WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def judge(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = list(call.arguments)
    where = call.source
    starts: list[Word] = []
    while words and not _is_test(words[0]):
        starts.append(words.pop(0))
    tests: list[str] = []
    looks = _looks(analysis, words, starts)
    deletes = False
    while words:
        word = words.pop(0)
        text = word.text
        if text is None:
            analysis.unknown(f"{word.source} may become an action of find", where)
            continue
        if text in _RUNS:
            for test in tests:
                analysis.suspect(literal(test), where)
            words = _run(analysis, call, text, words, starts, looks)
        elif text in _WRITES:
            if words:
                analysis.write(words[0], where)
            else:
                analysis.unknown(f"`find {text}` without a file", where)
            words = words[_WRITES[text] :]
        elif text == "-delete":
            deletes = True
        elif text == "-files0-from":
            analysis.unknown("where find looks is read from a file", where)
            words = words[1:]
        elif text in _VALUES:
            if words and text in ("-name", "-iname", "-path", "-ipath", "-wholename"):
                tests.append(words[0].text or "*")
            if words and words[0].text is None and words[0].many:
                analysis.unknown(f"{words[0].source} may become an action of find", where)
            if words and (words[0].text in _RUNS or words[0].text == "-delete"):
                analysis.unknown(f"{words[0]} where a value should stand", where)
                continue
            words = words[1:]
        elif text not in _FLAGS and not text.startswith(("-O", "-D")):
            analysis.unknown(f"`find {text}` is not in the table", where)
    for start in starts or [literal(".")]:
        if start.text is None and start.may_be_option:
            analysis.unknown(f"{start.source} may become an action of find", where)
        analysis.read(start, where, names_only=True)
    if deletes:
        for start in starts or [literal(".")]:
            analysis.delete(start, where, tree=not tests)
    return Output(None, Kind.NAMES if _near(starts) else Kind.ANY, looks)


_POSITIVE = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex")
_BY_LOOK = frozenset({"-samefile", "-inum", "-perm", "-lname", "-ilname", "-user", "-newer"})


def _near(starts: Sequence[Word]) -> bool:
    """Whether all it finds lies below this folder."""
    texts = [s.text if s.text is not None else "/" for s in starts]
    return not any(t.startswith(("/", "~")) or ".." in t.split("/") for t in texts)


def _looks(analysis: Analysis, words: Sequence[Word], starts: Sequence[Word]) -> frozenset[str]:
    """Whether what it finds may be hidden files, or is looked for as secrets are."""
    named, every = False, True
    for start in starts:
        known = start.text if start.text is not None else start.known
        if places.secret(posixpath.normpath(f"/{known}"), analysis.home):
            return frozenset({"aimed"})
    for place, word in enumerate(words[:-1]):
        text, value = word.text, words[place + 1]
        if text in ("-o", "-or", ","):
            named, every = False, every and named
        negated = place > 0 and words[place - 1].text in ("!", "-not")
        if text in _POSITIVE and not negated:
            if _aims(value.known, analysis.home):
                return frozenset({"aimed"})
            named = named or _ends_plainly(value.known)
        elif text in _BY_LOOK and (text != "-newer" or places.secret(f"/{value.known}", "")):
            return frozenset({"aimed"})
        elif text == "-prune" or (text in ("-type", "-xtype") and value.text == "d"):
            named = True
    return frozenset() if named and every else frozenset({"hidden"})


def _aims(pattern: str, home: str) -> bool:
    """`.env`, `*.pem`, `.*/id_rsa`, and patterns like `*nv` that say little else than a secret."""
    if places.secretive(pattern, home):
        return True
    name = pattern.rpartition("/")[2]
    short = len(re.sub(r"[\W_]", "", name)) < 3 and not re.search(r"\.\w+$", name)
    return short and bool(re.search(r"\w", name)) and fnmatch.fnmatchcase(".env", name)


def _ends_plainly(pattern: str) -> bool:
    """A pattern that no hidden file without an extension has: `*.py`, `Makefile`, `test_*`."""
    name = pattern.rpartition("/")[2]
    return bool(re.search(r"\.\w+\$?$", name)) or bool(re.match(r"\w", name))


def _is_test(word: Word) -> bool:
    text = word.text if word.text is not None else word.head
    if text in ("-H", "-L", "-P"):
        return True
    return text.startswith(("-", "(", "!")) or text == ","


def _run(
    analysis: Analysis,
    call: Invocation,
    action: str,
    words: list[Word],
    starts: list[Word],
    looks: frozenset[str],
) -> list[Word]:
    """`-exec COMMAND ;` or `-exec COMMAND {} +`: the command runs on what is found."""
    command: list[Word] = []
    while words:
        word = words.pop(0)
        if word.text == ";" or (word.text == "+" and command and command[-1].text == "{}"):
            break
        command.append(word)
    else:
        analysis.unknown(f"`find {action}` without an end", call.source)
    if not command:
        analysis.unknown(f"`find {action}` without a command", call.source)
        return words
    near = _near(starts)
    # What is found begins with the folder it was found in: never with a dash.
    found = unknown("a file that was found", Kind.NAMES if near else Kind.ANY, looks)
    filled = substitute(analysis, call, command, "{}", found)
    filled = [
        _below(word, starts) if word.text is None and word.head == "" else word for word in filled
    ]
    before = analysis.state
    if action in ("-execdir", "-okdir"):
        analysis.state = before.copy()
        analysis.state.deeper = True
    inner(analysis, call, filled, "find -exec", NO_INPUT)
    analysis.state = before
    program = (command[0].text or "").rpartition("/")[2]
    if program in _CHANGES:
        for start in starts:
            analysis.delete(start, call.source, tree=not near, verb="changes or deletes")
    return words


def _below(word: Word, starts: list[Word]) -> Word:
    if not _near(starts) or word.source != "{}":
        return word
    return Word(None, "{}", head="./", kind=Kind.NAMES, origins=word.origins, known="./")
