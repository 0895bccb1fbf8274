"""The files of a repository that are not ignored, with their languages and lines."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from history import git

LANGUAGES = {
    ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".mjs": "JavaScript",
    ".cjs": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".c": "C", ".h": "C",
    ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".hpp": "C++", ".hh": "C++", ".cs": "C#",
    ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".scala": "Scala", ".sh": "Shell",
    ".bash": "Shell", ".lua": "Lua", ".r": "R", ".jl": "Julia", ".ex": "Elixir", ".exs": "Elixir",
    ".hs": "Haskell", ".ml": "OCaml", ".clj": "Clojure", ".dart": "Dart", ".vue": "Vue",
    ".sql": "SQL", ".css": "CSS", ".scss": "CSS", ".html": "HTML", ".zig": "Zig", ".pl": "Perl",
}  # fmt: skip
_ALWAYS_OUT = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox"}
_LARGEST = 2 << 20
_TEST = re.compile(
    r"(^|/)(tests?|__tests__|spec|specs)/|(^|/)test_[^/]*\.py$|_test\.(py|go|cc|cpp|rs)$"
    r"|\.(test|spec)\.[cm]?[jt]sx?$|Tests?\.(java|kt|cs|swift)$"
)
_FIRST = re.compile(
    r"^(readme|agents|claude|contributing|architecture|hacking|development)\b", re.I
)


@dataclass(frozen=True)
class Source:
    """A file: its path from the root, language (or empty) and lines."""

    path: str
    language: str
    lines: int


@dataclass
class Found:
    files: list[Source] = field(default_factory=list)
    by_git: bool = False
    notes: list[str] = field(default_factory=list)


def find(root: Path, most: int) -> Found:
    """At most `most` files, in order."""
    found = Found()
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        found.by_git = True
        paths = sorted({os.fsdecode(p) for p in listed.split(b"\0") if p})
    else:
        found.notes.append("not a git repository: no history")
        paths = sorted(_walk(root))
    if len(paths) > most:
        found.notes.append(f"only the first {most:,} of {len(paths):,} files were looked at")
        paths = paths[:most]
    for path in paths:
        full = root / path
        if full.is_symlink() or not full.is_file():
            continue
        language = LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")
        found.files.append(Source(path, language, _lines(full) if language else 0))
    return found


def _lines(path: Path) -> int:
    try:
        if path.stat().st_size > _LARGEST:
            return 0
        content = path.read_bytes()
    except OSError:
        return 0
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def _walk(root: Path) -> Iterator[str]:
    """Files by a simple reading of the .gitignore files."""
    rules: dict[str, list[tuple[str, bool, bool]]] = {}
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root).replace(os.sep, "/")
        here = "" if here == "." else here
        if ".gitignore" in names:
            rules[here] = _rules(Path(folder, ".gitignore"))
        folders[:] = sorted(
            name
            for name in folders
            if name not in _ALWAYS_OUT and not _ignored(_join(here, name), rules, folder=True)
        )
        for name in names:
            if not _ignored(_join(here, name), rules, folder=False):
                yield _join(here, name)


def _join(here: str, name: str) -> str:
    return f"{here}/{name}" if here else name


def _rules(path: Path) -> list[tuple[str, bool, bool]]:
    """(pattern, whether it takes back, whether for folders only), in order."""
    out = []
    for line in path.read_text("utf-8", "replace").splitlines():
        text = line.rstrip()
        if not text or text.startswith("#"):
            continue
        back = text.startswith("!")
        text = text[1:] if back else text
        only = text.endswith("/")
        out.append((text.rstrip("/"), back, only))
    return out


def _ignored(path: str, rules: dict[str, list[tuple[str, bool, bool]]], *, folder: bool) -> bool:
    ignored = False
    for base, patterns in rules.items():
        if base and not path.startswith(base + "/"):
            continue
        inner = path[len(base) + 1 :] if base else path
        for pattern, back, only in patterns:
            if only and not folder:
                continue
            if "/" in pattern:
                hit = fnmatch.fnmatchcase(inner, pattern.lstrip("/").replace("**/", "*"))
            else:
                hit = fnmatch.fnmatchcase(inner.rpartition("/")[2], pattern)
            if hit:
                ignored = not back
    return ignored


def languages(sources: list[Source]) -> list[dict[str, Any]]:
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for one in sources:
        files[one.language] += 1
        lines[one.language] += one.lines
    return [
        {"language": name, "files": files[name], "lines": count}
        for name, count in lines.most_common()
    ]


def tests(files: list[Source]) -> tuple[list[dict[str, Any]], int]:
    """Folders with tests, the fullest first, and how many test files there are."""
    hits = [f.path for f in files if f.language and _TEST.search(f.path)]
    folders: Counter[str] = Counter()
    for path in hits:
        parts = path.split("/")[:-1]
        place = next((n for n, p in enumerate(parts) if p in _TEST_FOLDERS), None)
        folders["/".join(parts[: place + 1] if place is not None else parts) or "."] += 1
    return [{"folder": f, "files": n} for f, n in folders.most_common(12)], len(hits)


_TEST_FOLDERS = {"test", "tests", "__tests__", "spec", "specs"}


def read_first(files: list[Source]) -> list[str]:
    top = [f.path for f in files if "/" not in f.path and _FIRST.match(f.path)]
    return sorted(top, key=lambda p: (not p.lower().startswith("readme"), p.lower()))


def docs(files: list[Source]) -> list[str]:
    """Folders of documents, and documents at the root."""
    out: Counter[str] = Counter()
    single = []
    for one in files:
        low = one.path.lower()
        if low.startswith(("doc/", "docs/", "documentation/", "website/")):
            out[one.path.split("/")[0] + "/"] += 1
        elif "/" not in low and low.endswith((".md", ".rst")) and not _FIRST.match(low):
            single.append(one.path)
    return [f"{folder} ({count} files)" for folder, count in out.most_common()] + single[:10]
