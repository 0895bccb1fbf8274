"""What one command is given: hosts, secrets, and whether it may write the workspace.

It reaches the hosts of the very call that was allowed, and no others.

A command line that names its hosts gets exactly these; a package manager gets its public registry.
Everything else has no network, whatever was approved, and the result says so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lorimer.core.calls import Effects
from lorimer.core.effects import CallEffects, Concern
from lorimer.safety.network import NetworkRules
from lorimer.toolkits.execution.hiding import Hiding
from lorimer.tools.tool import ToolContext

if TYPE_CHECKING:
    from lorimer.safety.sandbox.choose import Level
    from lorimer.safety.sandbox.egress import Attempt, Egress
    from lorimer.safety.sandbox.spec import SandboxResult

_READ_ONLY = ("read-only file system", "erofs", "[errno 30]")
_PYPI = ("pypi.org", "files.pythonhosted.org")
_NPM = ("registry.npmjs.org",)
_CRATES = ("index.crates.io", "static.crates.io", "crates.io")
REGISTRIES = {
    "pip": _PYPI, "pip3": _PYPI, "pipx": _PYPI, "uv": _PYPI, "uvx": _PYPI, "poetry": _PYPI,
    "npm": _NPM, "npx": _NPM, "pnpm": _NPM, "yarn": (*_NPM, "registry.yarnpkg.com"), "bun": _NPM,
    "cargo": _CRATES, "go": ("proxy.golang.org", "sum.golang.org"),
    "gem": ("rubygems.org", "index.rubygems.org"), "bundle": ("rubygems.org", "index.rubygems.org"),
}  # fmt: skip
"""Where package managers get packages from when nothing else is configured."""


class Grant:
    """What one command is given, and what it did with the network.

    Attributes:
        secrets: variables for this command only; the shell does not keep them.
        read_only: the call was taken to only read, so it gets a workspace that it cannot write:
            also when that was wrong.
        hiding: the secret files that it is not shown; `None` before they were looked for.
    """

    def __init__(
        self,
        touches: CallEffects | None,
        rules: NetworkRules,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.secrets = dict(secrets or {})
        self.read_only = touches is not None and touches.level is Effects.READ
        self.hiding: Hiding | None = None
        self.wanted = touches is not None and touches.has(Concern.NETWORK)
        self.hosts = () if touches is None else _hosts(touches)
        self._rules = rules
        self._attempts: Counter[tuple[str, str]] = Counter()

    def egress(self) -> Egress | None:
        """For the sandbox; `None`: no network."""
        if not self.hosts:
            return None
        from lorimer.safety.sandbox.egress import Egress

        return Egress(replace(self._rules, allow_hosts=self.hosts), on_attempt=self._note)

    def _note(self, attempt: Attempt) -> None:
        where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
        self._attempts[(where, str(attempt.verdict))] += 1

    def notes_after(
        self, context: ToolContext, level: Level, result: SandboxResult | None = None
    ) -> list[str]:
        """What the model and the person should know, after it ran or (no result) was begun."""
        output = "" if result is None else result.stdout.text()
        notes = self.notes()
        if self.read_only and result is not None and result.exit_code:
            signs = (*_READ_ONLY, "permission denied") if level == "landlock" else _READ_ONLY
            if any(sign in output.casefold() for sign in signs):
                notes.append(
                    "[the workspace was read-only for this command, because it was taken to only "
                    "read; to write, use a command that says so (cp, tee, > file), or write_file]"
                )
        if self.hiding is not None:
            notes += self.hiding.notes(context, output if result and result.exit_code else "")
        return notes

    def notes(self) -> list[str]:
        """What is to be said of the network."""
        if self.wanted and not self.hosts:
            return [
                "[it had no network: which hosts it needs does not stand in the command. Name them "
                "in it, as URLs, or tell the user to run it]"
            ]
        if not self.hosts:
            return []
        done = [f"{where} {verdict} {n}×" for (where, verdict), n in self._attempts.most_common(12)]
        return [f"[network: only {', '.join(self.hosts)}; {', '.join(done) or 'not used'}]"]


def _hosts(touches: CallEffects) -> tuple[str, ...]:
    if not touches.has(Concern.NETWORK):
        return ()
    found = dict.fromkeys(touches.hosts)
    for command in touches.commands:
        name = os.path.basename(command.program or "")
        found |= dict.fromkeys(REGISTRIES.get(name, ()))
    return tuple(found)
