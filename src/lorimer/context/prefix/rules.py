"""The rules of a project, for the prompt: `AGENTS.md` and `CLAUDE.md` at the top of its folder.

They are a stranger's words until a person has trusted the folder: whoever calls this has asked that
first, and gives the digests of what was trusted.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lorimer.context.prefix.parts import PromptPart, Stability

NAMES = ("AGENTS.md", "CLAUDE.md")
"""In the order in which they are put into the prompt; compared without regard to case."""
MOST_BYTES = 32 * 1024
"""Of all rules together."""
_MOST_READ = 4 * 1024 * 1024
_BYTES_A_TOKEN = 3
_SHARE = 8


@dataclass(frozen=True, slots=True)
class Rules:
    """What was found: the part (`None` when there is nothing), and what a person should be told."""

    part: PromptPart | None
    notices: tuple[str, ...] = ()


def most_bytes(context_window: int | None) -> int:
    """How long the rules may be for a model: `MOST_BYTES`, and no more than an eighth of its window
    (tokens, at 3 bytes each)."""
    if context_window is None:
        return MOST_BYTES
    return min(MOST_BYTES, context_window * _BYTES_A_TOKEN // _SHARE)


def read_rules(folder: Path, trusted: Mapping[str, str], *, limit_bytes: int = MOST_BYTES) -> Rules:
    """The rules of `folder`, as one part of the owner `project`.

    Args:
        trusted: relative path → digest (`FolderTrust`) of the files that were trusted; what has
            another content now is left out, and that is said.
        limit_bytes: of all together; what is longer is cut at a line, and that is said in the part
            and in the notices.
    """
    notices: list[str] = []
    pieces: list[str] = []
    seen: set[str] = set()
    left = limit_bytes
    for name in _present(folder, trusted):
        data = _content(folder / name, trusted[name], notices)
        if data is None or hashlib.sha256(data).hexdigest() in seen:
            continue  # CLAUDE.md is often the same text as AGENTS.md
        seen.add(hashlib.sha256(data).hexdigest())
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff").strip()
        if not text:
            continue
        if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
            notices.append(f"{name} is not UTF-8; what cannot be read stands as \ufffd.")
        kept = _cut(text, left)
        if kept != text:
            whole = len(data)
            notices.append(
                f"{name} is cut: {len(kept.encode()):,} of {whole:,} bytes are in the prompt. "
                "Shorten it, or move what is seldom needed into another file."
            )
            kept += f"\n\n[{name} goes on: it has {whole:,} bytes. Read the file for the rest.]"
        left = max(0, left - len(kept.encode()))
        pieces.append(f"## {name}\n\n{kept}")
    if not pieces:
        return Rules(None, tuple(notices))
    text = "The rules of this project, from its own files.\n\n" + "\n\n".join(pieces)
    return Rules(PromptPart("project_rules", "project", Stability.DEPLOYMENT, text), tuple(notices))


def _present(folder: Path, trusted: Mapping[str, str]) -> list[str]:
    """The rule files among the trusted ones, in the order of `NAMES`."""
    return [
        found
        for name in NAMES
        for found in sorted(trusted)
        if found.casefold() == name.casefold() and (folder / found).is_file()
    ]


def _content(path: Path, trusted: str, notices: list[str]) -> bytes | None:
    """The bytes of `path`, when they are those that were trusted."""
    if not path.resolve().is_relative_to(path.parent.resolve()):
        notices.append(f"{path.name} leads out of the folder: it is not in the prompt.")
        return None
    try:
        # Not blocking: what was a file may be a pipe by now.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                notices.append(f"{path.name} is no file: it is not in the prompt.")
                return None
            data = file.read(_MOST_READ + 1)
    except OSError as fault:
        notices.append(f"{path.name} cannot be read ({fault.strerror}): it is not in the prompt.")
        return None
    if len(data) > _MOST_READ:
        notices.append(f"{path.name} is longer than 4 MiB: it is not in the prompt.")
        return None
    # A link's digest is `link:TARGET sha256:…`.
    if trusted.rpartition(" ")[2] != f"sha256:{hashlib.sha256(data).hexdigest()}":
        notices.append(
            f"{path.name} is not what was trusted: it is not in the prompt. Look at it with "
            "`lorimer trust`."
        )
        return None
    return data


def _cut(text: str, limit_bytes: int) -> str:
    data = text.encode()
    if len(data) <= limit_bytes:
        return text
    start = data[:limit_bytes].decode("utf-8", "ignore")
    return start[: start.rfind("\n")] if "\n" in start else start
