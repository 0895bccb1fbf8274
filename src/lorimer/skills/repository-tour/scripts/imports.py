"""Which packages (folders) of a repository use which, from the imports in their files."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands import text_of
from files import Source

_PYTHON = re.compile(r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?([\w ,*]*)"
                     r"|import[ \t]+([\w., ]+))", re.M)  # fmt: skip
_SCRIPT = re.compile(r"(?:from|import|require)\s*\(?\s*['\"](\.{1,2}(?:/[^'\"]*)?|@/[^'\"]+)['\"]")
_GO = re.compile(r'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([^"\s]+)"\s*$', re.M)
_RUST = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+(crate|super|\w+)((?:::\w+)*)", re.M)
_JAVA = re.compile(r"^import\s+(?:static\s+)?([\w.]+)", re.M)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
_NO_CODE = re.compile(r"(^|/)(tests?|__tests__|spec|docs?|examples?|vendor|third_party)/")


@dataclass
class Graph:
    packages: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    cycles: list[list[str]] = field(default_factory=list)


def graph(root: Path, sources: list[Source], depth: int) -> Graph:
    """Packages are the first `depth` folders below the roots of the sources."""
    code = [s for s in sources if s.language in _READERS and not _NO_CODE.search(s.path)]
    package = {s.path: _package(s.path, depth) for s in code}
    known = _Known(root, code)
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    for source in code:
        mine = package[source.path]
        for path in _READERS[source.language](source.path, text_of(root, source.path), known):
            other = package.get(path)
            if other is not None and other != mine:
                uses[mine][other] += 1
    used_by: Counter[str] = Counter(other for mine in uses for other in uses[mine])
    files, lines = Counter(package.values()), Counter[str]()
    for source in code:
        lines[package[source.path]] += source.lines
    out = Graph()
    for name in sorted(files, key=lambda n: (-used_by[n], -lines[n])):
        out.packages.append(
            {
                "package": name, "files": files[name], "lines": lines[name],
                "used_by": used_by[name], "uses": [o for o, _ in uses[name].most_common()],
            }
        )  # fmt: skip
    for mine in sorted(uses):
        for other, count in uses[mine].most_common():
            out.edges.append({"from": mine, "to": other, "imports": count})
            if uses.get(other, {}).get(mine) and mine < other:
                out.cycles.append([mine, other])
    return out


def _package(path: str, depth: int) -> str:
    parts = path.split("/")[:-1]
    skip = next((n + 1 for n, p in enumerate(parts[:4]) if p in _ROOTS), 0)
    return "/".join(parts[: skip + depth]) or "."


_ROOTS = {"src", "lib", "pkg", "packages", "java", "kotlin"}


class _Known:
    """Which file an import may mean."""

    def __init__(self, root: Path, code: list[Source]) -> None:
        self.paths = {s.path for s in code}
        self.endings: dict[str, list[str]] = defaultdict(list)
        self.modules: dict[str, str] = {}
        self.go: dict[str, list[str]] = defaultdict(list)
        for source in code:
            self.endings[posixpath.basename(source.path)].append(source.path)
            if source.language == "Python":
                stem = source.path.removesuffix(".pyi").removesuffix(".py")
                parts = stem.removesuffix("/__init__").split("/")
                for n in range(len(parts)):
                    self.modules.setdefault(".".join(parts[n:]), source.path)
            elif source.language == "Go":
                self.go[posixpath.dirname(source.path)].append(source.path)
        self.go_module = ""
        found = re.search(r"^module\s+(\S+)", text_of(root, "go.mod"), re.M)
        if found:
            self.go_module = found[1]

    def module(self, name: str) -> str | None:
        return self.modules.get(name)


def _python(path: str, text: str, known: _Known) -> list[str]:
    out = []
    here = path.split("/")[:-1]
    for origin, names, plain in _PYTHON.findall(text):
        wanted = [n.strip().split(" ")[0] for n in (plain or names).split(",")]
        if plain:
            options = [[name] for name in wanted]
        elif origin.startswith("."):
            up = len(origin) - len(origin.lstrip(".")) - 1
            base = here[: len(here) - up] if up else here
            start = ".".join([*base, *[p for p in origin.strip(".").split(".") if p]])
            options = [[f"{start}.{name}", start] for name in wanted]
        else:
            options = [[f"{origin}.{name}", origin] for name in wanted]
        for choice in options:
            hit = next((h for h in map(known.module, choice) if h), None)
            top = choice[0].split(".")[0]
            if hit and hit != path and (top in hit.split("/") or f"{top}.py" == hit):
                out.append(hit)
    return out


def _script(path: str, text: str, known: _Known) -> list[str]:
    out = []
    for wanted in _SCRIPT.findall(text):
        base = f"src/{wanted[2:]}" if wanted.startswith("@/") else posixpath.normpath(
            posixpath.join(posixpath.dirname(path), wanted)
        )  # fmt: skip
        stem = re.sub(r"\.[cm]?js$", "", base)
        for ending in ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.js", ".vue"):
            if (found := (base if not ending else stem + ending)) in known.paths:
                out.append(found)
                break
    return out


def _go(path: str, text: str, known: _Known) -> list[str]:
    out = []
    for wanted in _GO.findall(text):
        if known.go_module and wanted.startswith(known.go_module + "/"):
            out += known.go.get(wanted[len(known.go_module) + 1 :], [])[:1]
    return out


def _rust(path: str, text: str, known: _Known) -> list[str]:
    out = []
    at = path.rfind("src/")
    root = path[: at + 4] if at >= 0 else ""
    for head, rest in _RUST.findall(text):
        parts = [p for p in rest.split("::") if p]
        base = root if head == "crate" else posixpath.dirname(path) + "/"
        if head not in ("crate", "super"):
            continue
        for n in range(len(parts), 0, -1):
            stem = base + "/".join(parts[:n])
            hit = next((p for p in (f"{stem}.rs", f"{stem}/mod.rs") if p in known.paths), None)
            if hit:
                out.append(hit)
                break
    return out


def _java(path: str, text: str, known: _Known) -> list[str]:
    out = []
    for wanted in _JAVA.findall(text):
        parts = wanted.split(".")
        for name in (f"{parts[-1]}.java", f"{parts[-1]}.kt"):
            inner = "/".join([*parts[:-1], name])
            out += [p for p in known.endings.get(name, []) if p.endswith(inner)][:1]
    return out


def _c(path: str, text: str, known: _Known) -> list[str]:
    out = []
    for wanted in _INCLUDE.findall(text):
        near = posixpath.normpath(posixpath.join(posixpath.dirname(path), wanted))
        if near in known.paths:
            out.append(near)
            continue
        ends = known.endings.get(posixpath.basename(wanted), [])
        out += [p for p in ends if p.endswith("/" + wanted)][:1]
    return out


_READERS = {
    "Python": _python, "JavaScript": _script, "TypeScript": _script, "Vue": _script, "Go": _go,
    "Rust": _rust, "Java": _java, "Kotlin": _java, "C": _c, "C++": _c,
}  # fmt: skip
