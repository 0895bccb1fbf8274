"""The environment in which git, while it only reads, starts nothing that a repository names.

A repository's own settings can name programs for reading: a file watcher (`core.fsmonitor`), a
pager, an outside diff, converters by file name (`textconv`, `filter`). Settings given by the
environment win over those of the repository. What has a fixed name is overruled always; what the
repository names itself (`diff.NAME.…`, `filter.NAME.…`) is looked up in its files first.

Second to the sandbox, in which such a command can write nothing. Not covered: what git starts in a
submodule, where it drops these settings; so it is told not to look into submodules.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lorimer.safety.git_config import Entry, of_repository

_PLAIN_DIFF = 'f() { diff -u --label "a/$1" --label "b/$1" "$2" "$5"; :; }; f'
"""Instead of an outside diff that the repository names."""

_ALWAYS = {
    "core.fsmonitor": "false",
    "core.checkStat": "minimal",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "true",
    "credential.helper": "",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    "uploadpack.packObjectsHook": "",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "status.submoduleSummary": "false",
    "maintenance.auto": "false",
    "gc.auto": "0",
}
_DRIVERS = {
    "diff": {"command": _PLAIN_DIFF, "textconv": "cat"},
    "filter": {"clean": "", "smudge": "", "process": "", "required": "false"},
    "merge": {"driver": "false"},
    "trailer": {"command": "true", "cmd": "true"},
    "submodule": {"ignore": "all"},
}


def environment(repositories: Iterable[Path]) -> dict[str, str]:
    """Variables for a command that only reads.

    Args:
        repositories: the `.git` of those it may look into.
    """
    given = {key: value for git in repositories for key, value in of_repository(git)}
    settings = _ALWAYS | dict(_overruled(given.items()))
    out = {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_ASKPASS": "false",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        out[f"GIT_CONFIG_KEY_{number}"] = key
        out[f"GIT_CONFIG_VALUE_{number}"] = value
    return out


def _overruled(given: Iterable[Entry]) -> Iterable[Entry]:
    for key, _ in given:
        section, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if "\n" in key or "\0" in key:
            continue
        if key == "diff.external":
            yield key, _PLAIN_DIFF
        elif section == "pager" or (section == "interactive" and last == "difffilter"):
            yield key, "cat"
        elif name and last in _DRIVERS.get(section, {}):
            for setting, value in _DRIVERS[section].items():
                if setting == last or section in ("filter", "submodule"):
                    yield f"{section}.{name}.{setting}", value
