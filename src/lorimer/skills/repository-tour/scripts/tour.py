"""Map a repository: languages, entry points, commands, packages, history, tests, docs.

Reads files and `git log` only; runs nothing of the repository. Standard library only.

Example: python tour.py . --out TOUR.md
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
from pathlib import Path
from typing import Any

import commands
import files
import history
import imports
from needs import fail, output_file

_LISTED = 12


def survey(root: Path, depth: int, most: int) -> dict[str, Any]:
    """Everything that is known of the repository at `root`."""
    found = files.find(root, most)
    sources = [f for f in found.files if f.language]
    past = history.read(root) if found.by_git else history.History()
    graph = imports.graph(root, sources, depth)
    tests, test_files = files.tests(found.files)
    here = {f.path for f in found.files}
    return {
        "root": str(root),
        "files": len(found.files),
        "notes": [*found.notes, *past.notes],
        "languages": files.languages(sources),
        "read_first": files.read_first(found.files),
        "entry_points": commands.entry_points(root, found.files),
        "commands": commands.commands(root, found.files),
        "packages": graph.packages,
        "edges": graph.edges,
        "cycles": graph.cycles,
        "largest": [
            {"path": f.path, "lines": f.lines}
            for f in sorted(sources, key=lambda f: -f.lines)[:_LISTED]
        ],
        "commits": past.commits,
        "since": past.since,
        "most_changed": [
            {"path": path, "commits": count, "lines_changed": past.lines[path]}
            for path, count in past.counts.most_common()
            if path in here
        ][:_LISTED],
        "authors": past.authors,
        "tests": {"folders": tests, "files": test_files},
        "docs": files.docs(found.files),
    }


def outline(report: dict[str, Any]) -> str:
    """The report as a short Markdown file."""
    name = Path(report["root"]).resolve().name
    lines = [f"# Tour of {name}", "", f"{report['files']:,} files."]
    lines += [f"Note: {note}" for note in report["notes"]]
    lines += ["", "## Languages", ""]
    for one in report["languages"][:8]:
        lines.append(f"- {one['language']}: {one['files']:,} files, {one['lines']:,} lines")
    _section(lines, "Read first", [f"`{path}`" for path in report["read_first"]])
    entries = [f"`{e['path']}:{e['line']}` {e['what']}" for e in report["entry_points"]]
    _section(lines, "Entry points", entries)
    told = [
        f"{c['what']}: `{c['command']}` (`{c['path']}:{c['line']}`)" for c in report["commands"]
    ]
    _section(lines, "Build and test", told, 20)
    packages = []
    for one in report["packages"][:20]:
        uses = ", ".join(one["uses"][:6]) + (" …" if len(one["uses"]) > 6 else "")
        packages.append(
            f"`{one['package']}` {one['files']} files, {one['lines']:,} lines, used by "
            f"{one['used_by']}" + (f"; uses {uses}" if uses else "")
        )
    _section(lines, "Packages, most used first", packages, 20)
    _section(lines, "Cycles", [" ↔ ".join(cycle) for cycle in report["cycles"]], 6)
    _section(
        lines, "Largest files", [f"`{f['path']}` {f['lines']:,} lines" for f in report["largest"]]
    )
    changed = [
        f"`{f['path']}` {f['commits']} commits, {f['lines_changed']:,} lines"
        for f in report["most_changed"]
    ]
    head = f"Most changed ({report['commits']} commits since {report['since']})"
    _section(lines, head, changed)
    tests = report["tests"]
    folders = [f"`{f['folder']}/` {f['files']} files" for f in tests["folders"]]
    _section(lines, f"Tests ({tests['files']} files)", folders)
    _section(lines, "Docs", [f"`{path}`" for path in report["docs"]])
    return "\n".join(lines) + "\n"


def _section(lines: list[str], title: str, entries: list[str], most: int = _LISTED) -> None:
    if entries:
        lines += ["", f"## {title}", "", *[f"- {entry}" for entry in entries[:most]]]
        if len(entries) > most:
            lines.append(f"- and {len(entries) - most} more (--json)")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--out", metavar="TOUR.md")
    parser.add_argument("--depth", type=int, default=2, help="folders in a package's name")
    parser.add_argument("--max-files", type=int, default=50_000)
    parser.add_argument("--force", action="store_true", help="replace --out where it exists")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    root = Path(options.root)
    if not root.is_dir():
        fail(f"{options.root!r} is no folder.", "give the root of the repository.")
    report = survey(root, max(options.depth, 1), max(options.max_files, 1))
    if not report["files"]:
        fail(f"there are no files in {options.root!r}.", "give the root of the repository.")
    text = outline(report)
    if options.out:
        with output_file(options.out, (".md",), force=options.force) as path:
            path.write_text(text, encoding="utf-8")
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    elif options.out:
        print(f"written: {options.out} ({len(text.splitlines())} lines)")
        for note in report["notes"]:
            print(f"note: {note}")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
