"""The collaborator that all parts of an analysis share: limits, concerns, paths, inner commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lorimer.core.calls import Effects
from lorimer.core.effects import Access, Concern, PathTouch
from lorimer.safety.shell import places
from lorimer.safety.shell.findings import Findings
from lorimer.safety.shell.state import State
from lorimer.safety.shell.words import Kind, Word, literal

if TYPE_CHECKING:
    from lorimer.safety.shell.invoke import Invocation

TEXT_MAX = 32_000
TEXTS_MAX = 200
NESTING_MAX = 12
COMMANDS_MAX = 1_500


_COUNTERS = frozenset(
    {
        "wc", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum",
        "md5", "cksum", "sum", "shasum", "file", "stat", "du", "ls",
    }
)  # fmt: skip
"""Programs that tell of a file's content no more than its size or a sum."""
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "ggrep", "rg", "ripgrep", "ag", "zgrep", "cmp"})
"""Programs that print only what was looked for."""


class TooMuch(Exception):
    """The text is larger or deeper than is analysed; what was found so far stands."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, as far as that is known; `origins` as in `Unknown`."""

    text: str | None = None
    kind: Kind = Kind.ANY
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Input:
    """What a command reads from its standard input. `given` is false for the caller's own."""

    given: bool = False
    text: str | None = None
    kind: Kind = Kind.ANY
    origins: frozenset[str] = frozenset()


NO_INPUT = Input()


@dataclass(slots=True)
class Analysis:
    """State and findings of one analysis.

    Attributes:
        roots: resolved folders of the session.
        cut: the command that ends when its reader does (`yes` in `yes | head -3`).
        reader: the program that is being judged.
        origins: marks left by commands that connect or decode, in order; a reader remembers how
            many there were before and looks at what was added.
    """

    roots: tuple[str, ...]
    home: str
    trusted: bool | Callable[[str], bool]
    state: State
    environment: Mapping[str, str]
    findings: Findings = field(default_factory=Findings)
    origins: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    via: tuple[str, ...] = ()
    reader: str = ""
    cut: str = ""
    running: list[tuple[str, int]] = field(default_factory=list)
    parallel: int = 0
    texts: int = 0
    nesting: int = 0
    commands: int = 0

    # concerns

    def ask(self, concern: Concern, text: str, where: str) -> None:
        self.findings.reason(concern, text, where)
        if concern is Concern.NETWORK:
            self.origins.append("network")
        if concern is Concern.SECRETS:
            self.origins.append("secret")

    def unknown(self, text: str, where: str) -> None:
        self.ask(Concern.UNKNOWN, text, where)

    def forbid(self, text: str, where: str) -> None:
        self.ask(Concern.FORBIDDEN, text, where)

    def raise_to(self, level: Effects) -> None:
        self.findings.raise_to(level)

    def connect(self, host: str | None, where: str, text: str, *, sends: bool = False) -> None:
        """Note a connection; `host` may be unknown."""
        if host:
            self.findings.host(host)
        self.ask(Concern.NETWORK, text, where)
        if sends:
            self.raise_to(Effects.IRREVERSIBLE)

    # paths

    def locate(self, word: Word | str, where: str) -> list[tuple[str, str]]:
        """(as written, absolute) for every folder the shell may be in; empty if not known."""
        text = word if isinstance(word, str) else word.text
        if text is None:
            return []
        found = self._located(text, where)
        if any(places.of_a_process(path) for _, path in found):
            self.ask(Concern.OUTSIDE, f"where {text} leads depends on the process", where)
            self.unknown(f"where {text} leads is not known before it runs", where)
        return found

    def _located(self, text: str, where: str) -> list[tuple[str, str]]:
        if text.startswith("/"):
            return [(text, text)]
        if "\0" in text:
            return []
        if self.state.folders is None:
            self.unknown("the folder it runs in is not known, so neither is the path", where)
            return []
        return [(text, f"{folder}/{text}" if text else folder) for folder in self.state.folders]

    def read(self, word: Word | str, where: str, *, names_only: bool = False) -> None:
        """A file or folder is read; with `names_only` only its name and size, not its content."""
        if isinstance(word, Word) and word.text is None and word.kind is Kind.NUMBER:
            word = literal(word.known)
        if isinstance(word, Word) and word.text is None:
            if word.kind is Kind.ANY:
                self._unknown_path(word, where, "reads")
            elif word.kind is Kind.NAMES:
                self._secret_words(word, where)
                if not names_only:
                    self._read_names(word, where)
                for given, path in self.locate(word.head.rpartition("/")[0] or ".", where):
                    self._read(given, path, where, names_only)
            return
        for given, path in self.locate(word, where):
            self._read(given, path, where, names_only)

    def _read_names(self, word: Word, where: str) -> None:
        """Contents of files whose names another command found."""
        if self.reader in _COUNTERS:
            return
        if "aimed" in word.origins:
            text = f"{word.source} comes from a look for secrets"
            self.ask(Concern.SECRETS, f"{text}, and their contents are read", where)
        elif "hidden" in word.origins and self.reader not in _SEARCHERS:
            text = f"{word.source} may be a hidden file"
            self.ask(Concern.SECRETS, f"{text} (like .env), and its content is printed", where)

    def read_tree(self, word: Word, where: str) -> None:
        """The contents of everything below a folder are searched or printed."""
        if word.text is None:
            return
        for given, path in self.locate(word, where):
            if places.holds_secrets(places.resolve(path), self.home):
                self.ask(
                    Concern.SECRETS, f"secrets lie below {given}, and all of it is read", where
                )

    def _read(self, given: str, path: str, where: str, names_only: bool) -> None:
        resolved = places.resolve(path)
        if places.harmless_device(path) and not places.endless(path):
            return
        inside = places.inside(resolved, self.roots)
        self.findings.path(PathTouch(given, resolved, Access.READ, inside))
        secret = places.secret(resolved, self.home) or places.secret(path, self.home)
        if places.of_a_process(path):
            secret = places.secret(places.behind_a_process(path), self.home) or secret
        if secret and not names_only:
            if secret == "forbidden":
                self.ask(Concern.SECRETS, f"it reads {given}, which holds secrets", where)
                self.forbid(f"{given} holds secrets that no call has to read", where)
            else:
                self.ask(Concern.SECRETS, f"it reads {given}, which may hold secrets", where)
        elif places.endless(resolved):
            self.unknown(f"{given} never ends", where)
        elif resolved.startswith("/dev/") and not places.harmless_device(resolved):
            network = resolved.startswith(("/dev/tcp/", "/dev/udp/"))
            if network:
                self.connect(resolved.split("/")[3], where, f"{given} is a connection")
            else:
                self.ask(Concern.SECRETS, f"{given} is a device", where)
        elif not inside and not places.public(resolved) and not places.harmless_device(resolved):
            self.ask(Concern.OUTSIDE, f"it reads {given}, outside the workspace", where)

    def write(self, word: Word | str, where: str) -> None:
        """A file is made, changed or replaced."""
        if isinstance(word, Word) and word.text is None and word.kind is Kind.NUMBER:
            word = literal(word.known)
        if isinstance(word, Word) and (word.text is None or word.glob):
            if word.kind is Kind.PIPE:
                return
            self._unknown_path(word, where, "writes")
        for given, path in self.locate(word, where):
            self._write(given, path, where)

    def _write(self, given: str, path: str, where: str) -> None:
        resolved = places.resolve(path)
        if places.harmless_device(resolved) or places.harmless_device(path):
            return
        inside = places.inside(resolved, self.roots)
        self.findings.path(PathTouch(given, resolved, Access.WRITE, inside))
        self.raise_to(Effects.WRITE)
        self.written.add(resolved)
        if resolved.startswith(("/dev/tcp/", "/dev/udp/")):
            host = resolved.split("/")[3]
            self.connect(host, where, f"{given} is a connection", sends=True)
        elif places.persistence(resolved, self.home) or places.persistence(path, self.home):
            self.ask(Concern.PERSISTENCE, f"{given} decides what runs later", where)
            self.forbid(f"it writes {given}, which other programs obey", where)
        elif inside:
            why = places.guarded(resolved, self.roots)
            if why:
                self.ask(Concern.PERSISTENCE, f"it writes {given}: {why}", where)
        elif places.system(resolved):
            self.ask(Concern.OUTSIDE, f"it writes {given}, outside the workspace", where)
            self.forbid(f"{given} belongs to the system", where)
        else:
            self.ask(Concern.OUTSIDE, f"it writes {given}, outside the workspace", where)

    def delete(self, word: Word | str, where: str, *, tree: bool, verb: str = "deletes") -> None:
        """Something is deleted (or its rights changed, by `verb`); a whole tree with `tree`."""
        if verb != "moves":
            self.ask(Concern.DESTRUCTIVE, f"it {verb} {word}", where)
        if isinstance(word, Word) and word.text is None:
            self._unknown_path(word, where, verb)
            tail = word.source.replace('"', "").rstrip("*")
            if tree and word.head == "" and re_empty(word) and tail.endswith("/"):
                self.forbid(f"if the variable is empty, it {verb} from / on", where)
            if not tree or word.head == "":
                return
            word = literal(word.head)
        for given, path in self.locate(word, where):
            self._delete(given, path, where, tree, verb)

    def _delete(self, given: str, path: str, where: str, tree: bool, verb: str) -> None:
        parent, _, name = path.rstrip("/").rpartition("/")
        link = places.resolve(path)
        real = link if name in ("", ".", "..") else f"{places.resolve(parent or '/')}/{name}"
        real = real.replace("//", "/")
        if path.endswith("/") and name:
            real = link
        inside = places.inside(real, self.roots)
        self.findings.path(PathTouch(given, real, Access.DELETE, inside))
        base = places.resolve(real.split("*")[0] + "x").rpartition("/")[0] if "*" in real else real
        everything = name in ("*", ".*", "**", "{*,.*}", ".[!.]*", "?*")
        target = places.resolve(parent or "/") if everything else real
        whole = any(places.is_below(root, target) for root in self.roots)
        at_home = places.is_below(self.home, target)
        if target == "/" or (tree and (whole or at_home)):
            what = "the whole workspace" if whole and target != "/" else "everything in " + target
            self.forbid(f"it {verb} {what}", where)
        elif places.persistence(real, self.home) or (not inside and places.system(base)):
            self.forbid(f"it {verb} {given}, which belongs to the system or is obeyed", where)
        elif not inside:
            self.ask(Concern.OUTSIDE, f"it {verb} {given}, outside the workspace", where)
            if tree and not places.scratch(target):
                self.forbid(f"it {verb} a whole folder outside the workspace: {given}", where)
        elif places.guarded(real, self.roots):
            self.ask(Concern.PERSISTENCE, f"it {verb} {given}, which programs obey", where)

    def suspect(self, word: Word, where: str) -> None:
        """The value of an option that should be no path: if it is a secret's, it counts as read."""
        text = word.text if word.text is not None else word.known
        if "\0" in text or len(text) > 4096 or not text:
            return
        for folder in self.state.folders or ("/",):
            path = text if text.startswith("/") else f"{folder}/{text}"
            if places.secret(path, self.home):
                self.ask(Concern.SECRETS, f"{text} may hold secrets", where)
                return

    def _unknown_path(self, word: Word, where: str, verb: str) -> None:
        self._secret_words(word, where)
        self.unknown(f"which file it {verb} is not known before it runs: {word.source}", where)

    def _secret_words(self, word: Word, where: str) -> None:
        if places.secret("/" + word.known.lstrip("/"), self.home):
            self.ask(Concern.SECRETS, f"{word.source} may hold secrets", where)

    # inner commands

    @contextmanager
    def inside_of(self, wrapper: str) -> Iterator[None]:
        """Whatever runs in here runs through `wrapper`."""
        if len(self.via) >= NESTING_MAX:
            raise TooMuch(f"it is wrapped more than {NESTING_MAX} deep")
        before = self.via
        self.via = (*before, wrapper)
        try:
            yield
        finally:
            self.via = before

    def run(self, invocation: Invocation) -> Output:
        """Judge one simple command whose words are known."""
        from lorimer.safety.shell.invoke import judge

        self.commands += 1
        if self.commands > COMMANDS_MAX:
            raise TooMuch(f"it runs more than {COMMANDS_MAX} commands")
        return judge(self, invocation)

    def run_text(
        self, text: str, *, arguments: Sequence[Word] | None = None, keep: bool = False
    ) -> Output:
        """Judge a text that a shell will read, with its positional parameters if known.

        With `keep` it runs in this shell: what it sets stays set.
        """
        from lorimer.safety.shell.walk import walk

        self.texts += 1
        if self.texts > TEXTS_MAX:
            raise TooMuch(f"it has more than {TEXTS_MAX} texts in texts")
        if self.nesting >= NESTING_MAX:
            raise TooMuch(f"texts are nested more than {NESTING_MAX} deep")
        before = self.state
        self.state = before if keep else before.copy()
        if arguments is not None:
            self.state.arguments = tuple(arguments[1:])
            for number, word in enumerate(arguments):
                self.state.assign(str(number), word)
        self.nesting += 1
        try:
            return walk(self, text)
        finally:
            self.nesting -= 1
            self.state = before


def re_empty(word: Word) -> bool:
    """Whether the word begins with a variable that may be empty."""
    return word.source.lstrip("\"'").startswith("$") and word.kind is not Kind.NUMBER
