"""Entry points, and commands to build and test, read from the files that declare them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from files import Source

_LARGEST = 1 << 20
_WANTED = re.compile(r"build|test|check|lint|fmt|format|run|start|dev|install|setup|ci|docs?|all")
_MAINS = {
    "Python": re.compile(r"^if __name__ == ['\"]__main__['\"]"),
    "Go": re.compile(r"^func main\(\)"),
    "Rust": re.compile(r"^(?:pub )?(?:async )?fn main\("),
    "C": re.compile(r"^(?:int|void)\s+main\s*\("),
    "C++": re.compile(r"^(?:int|auto|void)\s+main\s*\("),
    "Java": re.compile(r"\s*public static void main\s*\("),
    "Kotlin": re.compile(r"^(?:suspend )?fun main\("),
}
_MOST_MAINS = 30


def text_of(root: Path, path: str) -> str:
    full = root / path
    try:
        if full.stat().st_size > _LARGEST:
            return ""
        return full.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def line_of(text: str, wanted: str) -> int:
    """The number of the first line that holds `wanted`; 1 where none does."""
    return next((n for n, line in enumerate(text.splitlines(), 1) if wanted in line), 1)


def entry_points(root: Path, files: list[Source]) -> list[dict[str, Any]]:
    """Declared ones first, then files with a main."""
    out: list[dict[str, Any]] = []

    def add(path: str, line: int, what: str) -> None:
        out.append({"path": path, "line": line, "what": what})

    for one in files:
        name = one.path.rpartition("/")[2]
        if name == "pyproject.toml":
            text, table = text_of(root, one.path), ""
            for number, line in enumerate(text.splitlines(), 1):
                table = line.strip() if line.startswith("[") else table
                found = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=\s*[\"']([\w.:]+)[\"']", line)
                if found and table in ("[project.scripts]", "[tool.poetry.scripts]"):
                    add(one.path, number, f"command `{found[1]}` → {found[2]}")
        elif name == "package.json":
            text = text_of(root, one.path)
            declared = _json(text)
            binaries = declared.get("bin")
            for command, target in (binaries if isinstance(binaries, dict) else {}).items():
                add(one.path, line_of(text, f'"{command}"'), f"command `{command}` → {target}")
            if isinstance(declared.get("main"), str):
                add(one.path, line_of(text, '"main"'), f"main → {declared['main']}")
        elif name == "Cargo.toml":
            text = text_of(root, one.path)
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip() == "[[bin]]":
                    add(one.path, number, "a binary")
        elif name.startswith("Dockerfile"):
            for number, line in enumerate(text_of(root, one.path).splitlines(), 1):
                if re.match(r"(ENTRYPOINT|CMD)\b", line):
                    add(one.path, number, line.strip()[:80])
        elif name == "__main__.py":
            package = one.path.removesuffix("/__main__.py").replace("/", ".")
            add(one.path, 1, f"`python -m {package.removeprefix('src.')}`")
    mains = 0
    for one in files:
        pattern = _MAINS.get(one.language)
        quiet = re.search(r"(^|/)(tests?|examples?|bench(marks?)?|fixtures|vendor)/", one.path)
        if pattern is None or quiet or one.path.endswith("__main__.py") or mains >= _MOST_MAINS:
            continue
        for number, line in enumerate(text_of(root, one.path).splitlines(), 1):
            if pattern.match(line):
                add(one.path, number, f"{one.language} main")
                mains += 1
                break
    return out


def commands(root: Path, files: list[Source]) -> list[dict[str, Any]]:
    """What builds, tests and checks, each with the place where it stands."""
    out: list[dict[str, Any]] = []

    def add(what: str, command: str, path: str, line: int) -> None:
        out.append({"what": what, "command": command, "path": path, "line": line})

    for one in sorted(files, key=lambda f: f.path.count("/")):
        folder, _, name = one.path.rpartition("/")
        go = f"cd {folder} && " if folder else ""
        if folder.count("/") > 1 or re.search(r"(^|/)(vendor|third_party|fixtures)/", one.path):
            continue
        if name == "package.json":
            text = text_of(root, one.path)
            scripts = _json(text).get("scripts")
            for script in scripts if isinstance(scripts, dict) else {}:
                if _WANTED.search(script):
                    command = f"{go}npm run {script}"
                    add(_kind(script), command, one.path, line_of(text, f'"{script}"'))
        elif name in ("Makefile", "makefile", "GNUmakefile", "justfile"):
            tool = "just" if name == "justfile" else "make"
            for number, line in enumerate(text_of(root, one.path).splitlines(), 1):
                found = re.match(r"([A-Za-z][\w-]*)(?:\s+[\w='\" -]*)?:(?!=)", line)
                if found and _WANTED.fullmatch(found[1].split("-")[0]):
                    add(_kind(found[1]), f"{go}{tool} {found[1]}", one.path, number)
        elif name == "pyproject.toml":
            text = text_of(root, one.path)
            if "pytest" in text:
                add("test", f"{go}python -m pytest", one.path, line_of(text, "pytest"))
            if "[tool.ruff" in text:
                add("check", f"{go}ruff check", one.path, line_of(text, "[tool.ruff"))
            if "[tool.mypy" in text:
                add("check", f"{go}mypy", one.path, line_of(text, "[tool.mypy"))
            if "[build-system]" in text:
                command = f"{go}pip install -e ."
                add("install", command, one.path, line_of(text, "[build-system]"))
        elif name in _FIXED:
            for what, command in _FIXED[name]:
                add(what, go + command, one.path, 1)
        elif one.path.startswith(("scripts/", "bin/", ".ci/")) and _WANTED.search(name):
            add(_kind(name), one.path, one.path, 1)
        elif one.path.startswith(".github/workflows/") or name == ".gitlab-ci.yml":
            for number, line in enumerate(text_of(root, one.path).splitlines(), 1):
                found = re.match(r"\s*-?\s*run:\s*([^|>\s].*)", line)
                if found:
                    add("CI", found[1].strip()[:100], one.path, number)
    return out


_FIXED = {
    "Cargo.toml": (("build", "cargo build"), ("test", "cargo test")),
    "go.mod": (("build", "go build ./..."), ("test", "go test ./...")),
    "pom.xml": (("build", "mvn package"), ("test", "mvn test")),
    "build.gradle": (("build", "gradle build"), ("test", "gradle test")),
    "build.gradle.kts": (("build", "gradle build"), ("test", "gradle test")),
    "CMakeLists.txt": (("build", "cmake -B build && cmake --build build"),),
    "tox.ini": (("test", "tox"),),
    "noxfile.py": (("test", "nox"),),
    "mix.exs": (("build", "mix compile"), ("test", "mix test")),
    "Gemfile": (("install", "bundle install"),),
}


def _kind(name: str) -> str:
    for kind in ("test", "build", "check", "lint", "format", "install", "setup", "docs"):
        if kind in name:
            return kind
    return name.split(".")[0]


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
