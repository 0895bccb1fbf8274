"""What git knows: which files changed how often. Hooks of the repository do not run."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

_MOST_COMMITS = 1000
_QUIET = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false",
    "-c", "core.quotePath=false", "-c", "diff.external=", "-c", "safe.directory=*",
)  # fmt: skip


@dataclass
class History:
    """Commits in which each file was changed, and lines added and removed."""

    commits: int = 0
    since: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    authors: int = 0
    notes: list[str] = field(default_factory=list)


def git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; `None` where there is no git, no repository, or it fails."""
    environment = {
        **os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
    }  # fmt: skip
    try:
        done = subprocess.run(
            ["git", *_QUIET, "-C", str(root), *arguments],
            capture_output=True, timeout=60, env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def read(root: Path) -> History:
    """The last thousand commits without merges."""
    past = History()
    told = git(
        root, "log", f"-{_MOST_COMMITS}", "--no-merges", "--no-ext-diff", "--no-textconv",
        "--no-renames", "--relative", "--numstat", "-z", "--format=%x01%ad%x02%ae", "--date=short",
    )  # fmt: skip
    if not told:
        past.notes.append("there are no commits to read")
        return past
    authors = set()
    for commit in told.split(b"\x01")[1:]:
        head, _, rest = commit.partition(b"\0")
        date, _, author = head.decode("utf-8", "replace").strip().partition("\x02")
        past.commits += 1
        past.since = date
        authors.add(author)
        for entry in rest.split(b"\0"):
            parts = entry.strip(b"\n").split(b"\t", 2)
            if len(parts) == 3:
                path = os.fsdecode(parts[2])
                past.counts[path] += 1
                past.lines[path] += sum(int(n) for n in parts[:2] if n.isdigit())
    past.authors = len(authors)
    if past.commits == _MOST_COMMITS:
        past.notes.append(f"history: only the last {_MOST_COMMITS} commits")
    return past
