"""Names that no tool and no sandboxed program may write, because other programs obey them.

A git hook, a shell start-up file, an editor's task file or our own configuration is code that runs
later, outside the sandbox, as the user. The rule holds by name, so it also holds for names that do
not exist yet. Compared without regard to case, Unicode form, invisible characters and trailing dots
or spaces, because file systems differ in what they treat as the same name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

FOLDERS = frozenset({".lorimer", ".vscode", ".idea", ".zed", ".fleet", ".cursor", ".ssh"})
"""Everything below these is protected, at any depth of the workspace."""

FILES = frozenset(
    {
        "lorimer.toml", ".mcp.json", ".envrc", ".gitconfig", ".vimrc", ".exrc", ".nvimrc",
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
        ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc",
        ".login", ".inputrc", ".xprofile", ".xinitrc", ".xsessionrc",
    }
)  # fmt: skip
"""Files with these names are protected, at any depth of the workspace."""

_GIT_INSIDE = frozenset({"hooks", "modules", "worktrees", "commondir", "gitdir"})
_ROOT_ONLY = frozenset({(".config", "fish"), (".config", "git"), (".config", "autostart")})

AT_ROOT = (
    ".git", ".git/hooks", ".git/config", ".git/config.worktree", ".git/modules", ".git/commondir",
    ".mcp.json", ".envrc", ".vscode", ".idea", ".zed", ".fleet", ".cursor", ".ssh", ".lorimer",
    "lorimer.toml", ".gitconfig", ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc",
    ".zshenv", ".zprofile", ".exrc",
)  # fmt: skip
"""Paths that the sandbox guards at the top of a writable folder."""


def folded(name: str) -> str:
    """`name` as the most forgiving file system would compare it."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", name) if _visible(c))
    return plain.casefold().rstrip(". ")


def _visible(character: str) -> bool:
    return unicodedata.category(character) not in ("Cf", "Cc")


def reason(parts: Sequence[str]) -> str | None:
    """Why the path of these components (from the root of the workspace) may not be written.

    `None` when it may.
    """
    names = [folded(part) for part in parts]
    for place, name in enumerate(names):
        rest = names[place + 1 :]
        if name == ".git":
            if not rest:
                return "it is a git repository's own folder"
            if rest[0] in _GIT_INSIDE or rest[0].startswith("config"):
                return "git runs programs named there"
        if name in FOLDERS:
            return f"programs outside the sandbox obey what lies in {parts[place]}"
        if name in FILES and not rest:
            return f"programs outside the sandbox obey a file named {parts[place]}"
    if tuple(names[:2]) in _ROOT_ONLY:
        return f"programs outside the sandbox obey what lies in {'/'.join(parts[:2])}"
    return None
