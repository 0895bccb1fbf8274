"""The `os` level on macOS: a Seatbelt profile and `sandbox-exec`.

Not run by our own tests: they read the profile as text, and run everything around it with a
stand-in for `sandbox-exec`. What it cannot do that Linux can: end a program that leaves its
process group, limit the memory of one process (macOS ignores `RLIMIT_AS`), hide the names of other
processes. The result says so.

The profile denies everything and then allows, because the last matching rule wins; the protected
names come last. They are denied by name, so also those that do not exist yet.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety import protected
from lorimer.safety.sandbox import landlock, mounts, outer
from lorimer.safety.sandbox.spec import Limits, OnOutput, SandboxResult, SandboxSpec

_READ = (
    "/usr/bin", "/usr/lib", "/usr/libexec", "/usr/sbin", "/usr/share", "/bin", "/sbin",
    "/System", "/Library/Developer", "/Library/Frameworks", "/Library/Apple",
    "/opt/homebrew", "/usr/local", "/private/var/select", "/private/var/db/timezone",
    "/private/var/db/dyld", "/private/etc/ssl", "/private/etc/localtime",
    "/private/etc/protocols", "/private/etc/services",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SERVICES = ("com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo")
_GAPS = (
    "programs that leave their process group are not ended (macOS has no such means)",
    "the memory of the processes (macOS has no such limit)",
)


def profile(spec: SandboxSpec, private: Sequence[Path]) -> str:
    """The profile in Seatbelt's language.

    Args:
        private: empty folders of this run, which the program may write.

    Raises:
        SandboxUnavailable: when the workspace is a folder that cannot be given to a program.
    """
    lines = [
        "(version 1)",
        "(deny default)",
        "(deny network*)",
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        _rule("allow mach-lookup", "global-name", _SERVICES),
        _rule("allow file-read*", "subpath", _READ),
        _rule("allow file-read* file-write-data file-ioctl", "literal", _DEVICES),
    ]
    shown = [os.path.realpath(path) for path in spec.read_only]
    if spec.workspace is not None:
        mounts.workspace_of(spec.workspace)
        shown.append(os.path.realpath(spec.workspace))
    for inside, folder in spec.folders.items():
        if Path(inside) != folder:
            raise SandboxUnavailable(
                f"Seatbelt cannot show {folder} at another path ({inside}).",
                next="Run on Linux with bubblewrap.",
            )
    writable = [os.path.realpath(folder) for folder in (*private, *spec.folders.values())]
    if shown:
        lines.append(_rule("allow file-read*", "subpath", shown))
    if spec.workspace is not None and spec.writable:
        writable.append(os.path.realpath(spec.workspace))
    if writable:
        lines.append(_rule("allow file-read* file-write*", "subpath", writable))
    if spec.unix_sockets:
        lines.append("(allow network-outbound (remote unix-socket))")
    if spec.workspace is not None and spec.writable:
        lines += _protect(os.path.realpath(spec.workspace))
    lines.append("(deny file-write-setugid)")
    return "\n".join(lines) + "\n"


def _protect(workspace: str) -> list[str]:
    """Deny by name; regular expressions, because names may appear at any depth."""
    base = "^" + re.escape(workspace).replace('"', ".") + "/(.*/)?"
    names = "|".join(sorted(_any_case(n) for n in protected.FOLDERS | protected.FILES))
    inside = "|".join(
        _any_case(n) for n in ("hooks", "modules", "worktrees", "commondir", "gitdir")
    )
    git = _any_case(".git")
    return [
        f'(deny file-write* (regex #"{base}({names})(/.*)?$"))',
        f'(deny file-write* (regex #"{base}{git}/({inside}|{_any_case("config")}[^/]*)(/.*)?$"))',
        # renaming or removing `.git` itself, or making one
        f'(deny file-write-unlink file-write-create (regex #"{base}{git}$"))',
    ]


def _any_case(name: str) -> str:
    """The usual file system of macOS does not tell upper from lower case."""
    return "".join(
        f"[{c.lower()}{c.upper()}]" if c.isalpha() and c.isascii() else re.escape(c) for c in name
    )


def _rule(what: str, how: str, places: Sequence[str]) -> str:
    return f"({what} " + " ".join(f'({how} "{_quoted(p)}")' for p in places) + ")"


def _quoted(text: str) -> str:
    """For a string of the profile.

    Raises:
        SandboxUnavailable: for a name that cannot be written in one line of it.
    """
    if any(ord(c) < 32 for c in text):
        raise SandboxUnavailable(
            f"The path {text!r} has a control character, which a Seatbelt profile cannot name.",
            next="Rename it.",
        )
    return text.replace("\\", "\\\\").replace('"', '\\"')


def command(argv: Sequence[str], text: str, spec: SandboxSpec) -> list[str]:
    """What to run: `sandbox-exec`, which applies the profile and becomes the program.

    Raises:
        SandboxUnavailable: when `sandbox-exec` is not there.
    """
    found = shutil.which("sandbox-exec")
    if found is None:
        raise SandboxUnavailable(
            "The program `sandbox-exec` is not there; it is a part of macOS.",
            next="Run on macOS, or on Linux with bubblewrap.",
        )
    where = str(spec.workspace) if spec.workspace is not None else "/"
    start = 'cd "$1" && shift && exec "$@"'
    return [found, "-p", text, "/bin/sh", "-c", start, "sh", where, *argv]


def environment(spec: SandboxSpec, home: Path, tmp: Path) -> Mapping[str, str]:
    """The whole environment of the program."""
    return {
        **mounts.environment(spec),
        "PATH": "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        **spec.environment,
    }


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` under a profile made for this run. Cancellation kills its process group.

    Raises:
        SandboxUnavailable: `sandbox-exec` is missing, or the spec cannot be written as a profile.
    """
    if spec.pass_fds:
        raise SandboxUnavailable(
            "The level `os` cannot hand descriptors to a program on macOS yet.",
            next="Run on Linux with bubblewrap.",
        )
    private = Path(tempfile.mkdtemp(prefix="lorimer-"))
    try:
        home, tmp = private / "home", private / "tmp"
        home.mkdir(mode=0o700)
        tmp.mkdir(mode=0o700)
        text = profile(spec, [home, tmp])
        return await outer.run(
            command(argv, text, spec),
            spec=spec,
            environment=environment(spec, home, tmp),
            level="os",
            guard=None,  # the profile denies the protected names themselves
            prepare=lambda: _limit(spec.limits),
            not_enforced=_GAPS,
            stdin=stdin,
            on_output=on_output,
        )
    finally:
        landlock.remove(private)


def _limit(limits: Limits) -> None:
    for kind, value in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes), (resource.RLIMIT_NOFILE, limits.open_files),
    ):  # fmt: skip
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
