"""What a path means: a secret, a start-up file, a device, the system, the workspace.

The rules are data (`programs/places.toml`): path patterns with `~` for the home folder.
"""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath

from lorimer.safety import protected

_OWN = re.compile(
    r"/proc/(?:self|thread-self)/(?!root|cwd|fd|task)|/dev/(?:fd/\d+|std(?:in|out|err))$"
)
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Rules:
    secret_names: tuple[str, ...]
    secret_paths: tuple[str, ...]
    forbidden_reads: tuple[str, ...]
    allowed_names: tuple[str, ...]
    public: tuple[str, ...]
    harmless_devices: tuple[str, ...]
    endless: tuple[str, ...]
    persistence: tuple[str, ...]
    system: tuple[str, ...]
    scratch: tuple[str, ...]


@cache
def rules() -> Rules:
    text = (Path(__file__).parent / "programs" / "places.toml").read_text("utf-8")
    return Rules(**{key: tuple(value) for key, value in tomllib.loads(text).items()})


def resolve(path: str) -> str:
    """`path` with links and `..` resolved as far as it exists; never fails. What leads through a
    process is not resolved: it would be this one, and where it stands decides nothing."""
    if _OWN.match(path) and ".." not in path.split("/"):
        return path
    if of_a_process(path):
        return os.path.normpath(path)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def of_a_process(path: str) -> bool:
    """Whether it leads through a link of `/proc` that means another place in each process."""
    parts = path.split("/")
    return "proc" in parts and not _LINKS.isdisjoint(parts[parts.index("proc") :])


def behind_a_process(path: str) -> str:
    """Where a path through a link of `/proc` ends, if that link (with the `..` behind it) leads to
    the root: `/etc/shadow` of `/proc/self/cwd/../../etc/shadow`."""
    parts = path.split("/")
    at = max(i for i, part in enumerate(parts) if part in _LINKS or part == "..")
    return "/" + "/".join(part for part in parts[at + 1 :] if part not in ("", "."))


COPY = r"(?:~|\.(?:bak|backup|old|orig|save))*"
"""What follows a name in the names of its copies."""
_LINKS = frozenset({"cwd", "root", "exe", "task", "map_files"})


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def inside(path: str, roots: Sequence[str]) -> bool:
    return any(is_below(path, root) for root in roots)


def _matches(path: str, patterns: Sequence[str], home: str) -> bool:
    """Whether `path` (it may itself be a pattern) is, or lies below, one of `patterns`."""
    folded = path.casefold()
    if not _GLOB.search(folded):
        return _below_any(tuple(patterns), home).match(folded) is not None
    return any(_parts_match(folded, full) for full in _full(patterns, home))


def _full(patterns: Sequence[str], home: str) -> list[str]:
    return [(home + p[1:] if p.startswith("~") else p).casefold() for p in patterns]


@lru_cache(maxsize=64)
def _below_any(patterns: tuple[str, ...], home: str) -> re.Pattern[str]:
    """Matches a path that is, or lies below, one of `patterns`."""
    return re.compile(f"(?:{'|'.join(_one(full) for full in _full(patterns, home))})(?:/|$)")


def _one(pattern: str) -> str:
    text = re.escape(pattern).replace(r"/\*\*/", "/(?:.*/)?").replace(r"\*", "[^/]*")
    text = text.replace("(?:.[^/]*/)?", "(?:.*/)?")
    return re.sub(r"\\\[(.*?)\\\]", lambda m: f"[{m[1]}]".replace("\\", ""), text)


@cache
def _secret_names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Whole names that are one of `patterns`, or a copy of it that an editor or a person made."""
    ends = len(r"\Z")
    return re.compile(f"(?:{'|'.join(fnmatch.translate(p)[:-ends] for p in patterns)}){COPY}\\Z")


@cache
def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(p) for p in patterns))


def _parts_match(path: str, pattern: str) -> bool:
    have, want = path.split("/"), pattern.split("/")
    if want[:2] == ["", "**"]:
        want = want[2:]
        return any(
            all(_part_matches(h, w) for h, w in zip(have[at:], want, strict=False))
            for at in range(1, len(have) - len(want) + 1)
        )
    if len(have) < len(want):
        return False
    return all(_part_matches(h, w) for h, w in zip(have, want, strict=False))


def _part_matches(have: str, want: str) -> bool:
    if fnmatch.fnmatchcase(have, want):
        return True
    if not _GLOB.search(have):
        return False
    return any(fnmatch.fnmatchcase(want.replace("*", fill), have) for fill in ("1", ""))


def secret(path: str, home: str) -> str | None:
    """`forbidden` for what no call has to read, `ask` for other secrets, `None` for the rest."""
    table = rules()
    name = PurePosixPath(path).name.casefold()
    if _names(table.allowed_names).match(name):
        return None
    if _matches(path, table.forbidden_reads, home):
        return "forbidden"
    if _matches(path, table.secret_paths, home):
        return "ask"
    hidden = tuple(p for p in table.secret_names if p.startswith("."))
    for part in PurePosixPath(path.casefold()).parts:
        patterns = table.secret_names if part == name else hidden
        if _secret_names(patterns).match(part):
            return "ask"
        if _GLOB.search(part) and any(
            _pattern_reaches(part, p.replace("*", fill)) for p in patterns for fill in ("x", "")
        ):
            return "ask"
    return None


_ORDINARY = re.compile(
    r"[*?]+\.(?:json|txt|toml|ya?ml|xml|ini|cfg|conf|php|sqlite|py|md|csv|properties|js|ts)"
)


def _pattern_reaches(pattern: str, name: str) -> bool:
    """Whether a pattern aims at `name`; `*`, `*.py` and `*.json` alone do not."""
    if not fnmatch.fnmatchcase(name, pattern) or _ORDINARY.fullmatch(pattern):
        return False
    letters = re.sub(r"\[[^\]]*\]", "x", pattern)
    letters = re.sub(r"[*?]", "", letters)
    return pattern.startswith((".", "[.")) or len(letters) >= 3


_SECRETIVE = re.compile(
    r"(?:^|[^a-z])(?:env|pem|keys?|ssh|aws|gnupg|gpg|kube|rsa|dsa|jks|p12|pfx|kdbx|pgpass|netrc"
    r"|npmrc|pypirc|tfstate|tfvars|vault|auth|htpasswd|shadow|sudoers|keyring|oauth|cookies?|jwt"
    r"|begin)(?![a-z])|secret|token|passw|credential|priv\w*[ _-]?key|private|api[_-]?key|keystore"
    r"|id_rsa|id_ed|service-account"
)


def secretive(text: str, home: str = "") -> bool:
    """Whether a pattern (a glob, or a regular expression) is a look for secrets."""
    plain = re.sub(r"\.[*+?]|[\\^$()*+?]|\[(.)\]", r"\1", text).casefold()
    plain = re.sub(r"\.\.+", ".", plain)
    if _SECRETIVE.search(plain) or plain.startswith((".e", "/.e")):
        return True
    return any(
        secret("/" + part.lstrip("/"), home) is not None for part in (text, *plain.split("|"))
    )


def holds_secrets(folder: str, home: str) -> bool:
    """Whether known secrets lie somewhere below `folder`, though it is no secret itself."""
    table = rules()
    parts = [p for p in folder.casefold().split("/") if p]
    for full in _full([*table.secret_paths, *table.forbidden_reads], home):
        want = [p for p in full.split("/") if p]
        if want[0] == "**" or len(want) <= len(parts):
            continue
        if all(fnmatch.fnmatchcase(h, w) for h, w in zip(parts, want, strict=False)):
            return True
    return False


def public(path: str) -> bool:
    fixed = _GLOB.split(path, maxsplit=1)[0]
    if fixed != path:
        path = fixed.rpartition("/")[0]
    return _matches(path, rules().public, "")


def harmless_device(path: str) -> bool:
    return path in rules().harmless_devices or bool(re.fullmatch(r"/dev/fd/\d+", path))


def endless(path: str) -> bool:
    return _matches(path, rules().endless, "")


def persistence(path: str, home: str) -> bool:
    return _matches(path, rules().persistence, home)


def system(path: str) -> bool:
    return path == "/" or _matches(path, rules().system, "")


def scratch(path: str) -> bool:
    """Whether it lies below a folder for temporary files (not that folder itself)."""
    return any(is_below(path, s) and path != s for s in rules().scratch)


def other_repository(folder: str, root: str) -> bool:
    """Whether git, run in `folder`, would find another repository than that of `root`: one that
    begins between them, or files of a bare one (it obeys their configuration)."""
    if _looks_bare(root) and not os.path.lexists(os.path.join(root, ".git")):
        return True
    while folder != root:
        if os.path.lexists(os.path.join(folder, ".git")) or _looks_bare(folder):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return True
        folder = parent
    return False


def _looks_bare(folder: str) -> bool:
    return all(os.path.lexists(os.path.join(folder, n)) for n in ("HEAD", "objects", "refs"))


def guarded(path: str, roots: Sequence[str]) -> str | None:
    """Why a path inside a root may not be written without a person."""
    for root in roots:
        if is_below(path, root):
            parts = PurePosixPath(path).relative_to(root).parts
            return protected.reason(parts)
    return None
