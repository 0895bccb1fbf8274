"""What an approval of a call is bound to, looked up in the world as it is now.

The files whose content decides what a call does are read and hashed: path arguments, the paths it
would touch, scripts and files that its commands name, files that any other argument names, and the
file a build program reads unasked. Of patterns and deleted folders the names are kept.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import anyio.to_thread

from lorimer.core.approvals import ABSENT, Bound, names_count, names_in, what_changed
from lorimer.core.decisions import CallFacts
from lorimer.core.effects import Access
from lorimer.tools.dispatch.context import make_context
from lorimer.tools.dispatch.listing import (
    MOST_IN_ALL,
    MOST_SHOWN,
    files_in,
    inside,
    is_pattern,
    matches,
    told,
)
from lorimer.tools.dispatch.state import CallState, Surroundings, own_copy

_LARGEST_BYTES = 64 << 20
_MOST_FILES = 2000
_MOST_FOLDERS = 20
_MOST_PATTERNS = 100
_MORE = "(more files)"
_OF_THE_KERNEL = ("/proc/", "/sys/", "/dev/")
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_UNASKED = {
    "make": ("GNUmakefile", "makefile", "Makefile"), "gmake": ("GNUmakefile", "Makefile"),
    "just": ("justfile", "Justfile"), "npm": ("package.json",), "pnpm": ("package.json",),
    "yarn": ("package.json",), "bun": ("package.json",), "cargo": ("Cargo.toml", "build.rs"),
    "tox": ("tox.ini",), "nox": ("noxfile.py",), "rake": ("Rakefile",), "ninja": ("build.ninja",),
    "pytest": ("conftest.py",),
}  # fmt: skip
"""Files that decide what a program does although the command does not name them."""


async def bound_of(facts: CallFacts, around: Surroundings) -> Bound:
    """What an approval of this call would be bound to now."""
    files, sandbox = await anyio.to_thread.run_sync(_look, facts, around.sandbox)
    touches = facts.touches
    if touches is not None and touches.paths:
        paths = sorted({f"{p.access} {p.path}" for p in touches.paths})
    else:
        paths = sorted({resolved(p, facts.cwd) for p in facts.paths})
    policy = around.policy
    return Bound(
        tool=facts.tool,
        definition=facts.traits.definition,
        arguments=own_copy(dict(facts.arguments)),
        files=files,
        paths=paths,
        effects={"level": str(facts.level)} if touches is None else touches.to_json(),
        policy=f"{policy.mode} {getattr(policy, 'digest', '')}".strip(),
        sandbox=sandbox,
        session=facts.session,
        principal=facts.principal,
    )


def _look(facts: CallFacts, sandbox: Callable[[], str] | None) -> tuple[dict[str, str], str]:
    runs = bool(facts.traits.command_argument) or facts.traits.runs_code
    return hashes(facts), sandbox() if runs and sandbox is not None else ""


def hashes(facts: CallFacts) -> dict[str, str]:
    """Content hash by resolved path, of every file that the call names; `absent` where there is
    none. Of patterns and of folders that are deleted the names (`core.approvals.listed`)."""
    out = _names(facts)
    for path, always in _files(facts, dict(out)):
        if path in out:
            continue
        if len(out) >= _MOST_FILES:
            out[_MORE] = "not looked at"
            break
        found = _hash(path)
        if found is not None and (always or found != ABSENT):
            out[path] = found
    return out


def changed_files(files: Mapping[str, str]) -> list[str]:
    """In words, which of the bound `files` (`hashes`) are not as they were, as far as this process
    may look."""
    now: dict[str, str] = {}
    for path, before in files.items():
        found: str | None = before
        if before == "unreadable":
            pass
        elif names_in(before) is not None:
            names = inside(path[:-1]) if path.endswith("/") else matches(path)
            shown, count = names_in(before) or (), names_count(before)
            found = told(names, path, len(shown) if count > len(shown) else MOST_SHOWN)
        elif path != _MORE:
            found = _hash(path)
        if found == "unreadable":
            found = before  # whoever asked could read it; it is looked at again before the start
        if found is not None:
            now[path] = found
    return what_changed({"files": files}, {"files": now})


def _names(facts: CallFacts) -> dict[str, str]:
    """The names that stand behind patterns and deleted folders."""
    out: dict[str, str] = {}
    left = MOST_IN_ALL

    def keep(key: str, names: list[str] | None) -> None:
        nonlocal left
        if key not in out and len(out) < _MOST_PATTERNS:
            out[key] = told(names, key, min(MOST_SHOWN, left))
            left -= min(MOST_SHOWN, left, len(names or ()))

    for touch in () if facts.touches is None else facts.touches.paths:
        found = [touch.path]
        if is_pattern(touch.given):
            names = matches(touch.path)
            keep(touch.path, names)
            found = names or []
        for path in found[:_MOST_PATTERNS] if touch.access is Access.DELETE else ():
            if os.path.isdir(path) and not os.path.islink(path):
                keep(f"{path}/", inside(path))
    for pattern in islice(_patterns(facts), _MOST_PATTERNS):
        if pattern not in out and (names := matches(pattern)):
            keep(pattern, names)
    return out


def _patterns(facts: CallFacts) -> Iterator[str]:
    spoken, folders = _spoken(facts)
    for folder in folders[:_MOST_FOLDERS]:
        for words in spoken:
            yield from (resolved(word, folder) for word in words if is_pattern(word))


def _files(facts: CallFacts, listings: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Resolved paths whose content counts, and whether it matters when nothing is there."""
    deleted = set()
    if facts.touches is not None:
        deleted = {p.path for p in facts.touches.paths if p.access is Access.DELETE}
    for path, always in _named(facts):
        yield path, always and path not in listings
    for pattern in listings:
        if not pattern.endswith("/") and pattern not in deleted:
            for path in (matches(pattern) or ())[:MOST_SHOWN]:
                yield path, False
    text = facts.traits.command_argument
    plain = {name: value for name, value in facts.arguments.items() if name != text}
    for path in files_in(plain, (facts.cwd, *facts.roots)):
        yield resolved(path, facts.cwd), False


def _named(facts: CallFacts) -> Iterator[tuple[str, bool]]:
    """Resolved paths, and whether it matters when nothing is there."""
    for path in facts.paths:
        yield resolved(path, facts.cwd), True
    if facts.touches is not None:
        for touch in facts.touches.paths:
            yield touch.path, True
    spoken, folders = _spoken(facts)
    said = _said(spoken)
    for folder in folders[:_MOST_FOLDERS]:
        for word in said:
            yield resolved(word, folder), False
        for words in spoken:
            for name in _UNASKED.get(os.path.basename(words[0]), ()) if words else ():
                yield resolved(name, folder), True


def _spoken(facts: CallFacts) -> tuple[list[list[str]], list[str]]:
    """The words of each command, and the folders that they may start from: a command may go into
    one that it names before it reads a file (`cd`, `make -C`)."""
    touches = facts.touches
    if touches is not None and touches.commands:
        spoken = [[w for w in c.words if w is not None] for c in touches.commands]
    else:
        spoken = [_words(facts)]
    found = (resolved(word, facts.cwd) for word in _said(spoken))
    return spoken, [facts.cwd, *(folder for folder in found if os.path.isdir(folder))]


def _said(spoken: list[list[str]]) -> list[str]:
    return list(dict.fromkeys(p for words in spoken for word in words for p in _in_word(word)))


def _in_word(word: str) -> Iterator[str]:
    """The word itself, what stands behind `=` or `@` in it (`--file=x`, `-d@x`), and the files of a
    Python module of that name (`-m tool`)."""
    yield word
    if _MODULE.fullmatch(word):
        yield f"{word.replace('.', '/')}.py"
        yield f"{word.replace('.', '/')}/__main__.py"
    for mark in ("=", "@"):
        _, found, rest = word.partition(mark)
        if found and rest:
            yield rest


def _words(facts: CallFacts) -> list[str]:
    """Words of a command that nobody has analysed."""
    text = (
        facts.arguments.get(facts.traits.command_argument) if facts.traits.command_argument else ""
    )
    if not isinstance(text, str):
        return []
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def resolved(path: str, cwd: str) -> str:
    """`path` as it is used in `cwd`: absolute, without links."""
    try:
        return os.path.realpath(os.path.join(cwd, path))
    except (OSError, ValueError):
        return path


def _hash(path: str) -> str | None:
    """The content hash; `None` for folders and whatever has no content of its own to read."""
    if path.startswith(_OF_THE_KERNEL):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, ValueError) as fault:
        too_long = isinstance(fault, OSError) and fault.errno == errno.ENAMETOOLONG
        return ABSENT if too_long else "unreadable"
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > _LARGEST_BYTES:  # too large to read for a question: any write shows
            return f"stat:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
        made = hashlib.sha256()
        while piece := os.read(fd, 1 << 20):
            made.update(piece)
        return f"sha256:{made.hexdigest()}"
    except OSError:
        return "unreadable"
    finally:
        os.close(fd)


async def preview_of(state: CallState, around: Surroundings) -> str:
    """What the call would change, as its tool shows it; empty when it cannot. A preview that fails
    says so: it never hides the call."""
    tool = state.tool
    show = None if tool is None else tool.preview
    if show is None:
        return ""
    context = make_context(state, around)
    try:
        shown = await anyio.to_thread.run_sync(show, own_copy(state.value), context)
        if inspect.isawaitable(shown):
            shown = await shown
    except Exception as fault:  # noqa: BLE001 - a fault of the tool's author, or of the call itself
        return f"(it cannot be shown: {fault})"
    return shown or ""
