"""A shell text to its effects, and the effects to one of three words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from lorimer.core.calls import Effects
from lorimer.core.effects import CallEffects, Concern
from lorimer.safety.shell import characters, places
from lorimer.safety.shell.analysis import Analysis, TooMuch
from lorimer.safety.shell.state import State

Verdict = Literal["safe", "needs-approval", "deny"]


def analyse(
    text: str,
    *,
    cwd: str,
    roots: Sequence[str] = (),
    home: str | None = None,
    trusted_folder: bool | Callable[[str], bool] = True,
    environment: Mapping[str, str] | None = None,
) -> CallEffects:
    """What running `text` with bash in `cwd` would do, as far as its words tell.

    Nothing is run and no file is opened; links in paths are looked up, and for git whether another
    repository begins below a root. Whatever is not understood is a concern `UNKNOWN`. Never raises
    for any text.

    Args:
        cwd: the folder it would run in, absolute.
        roots: folders of the session; without any, `cwd` is the only one.
        home: the user's home folder; by default that of this process.
        trusted_folder: whether the person trusts the repository of a root; if not, git may run its
            configuration. A function is called with the resolved folder that git works in. In
            another repository below the root (a submodule, an embedded one) git is never trusted.
        environment: variables that the shell is known to have; others count as unknown.
    """
    home = places.resolve(home or os.path.expanduser("~"))
    folder = places.resolve(cwd)
    analysis = Analysis(
        roots=tuple(places.resolve(root) for root in roots) or (folder,),
        home=home,
        trusted=trusted_folder,
        state=State(folders=(folder,)),
        environment=environment or {},
    )
    for fault in characters.faults(text):
        analysis.unknown(fault, text)
    try:
        analysis.run_text(characters.as_parsed(text), keep=True)
    except TooMuch as fault:
        analysis.unknown(f"too much to analyse: {fault}", text[:200])
    except RecursionError:
        analysis.unknown("too much to analyse: it is nested too deep", text[:200])
    _leaks(analysis, text)
    return analysis.findings.effects()


def _leaks(analysis: Analysis, text: str) -> None:
    """A secret that is read by a text that also connects may be sent away."""
    if analysis.findings.has(Concern.SECRETS) and analysis.findings.has(Concern.NETWORK):
        analysis.forbid("it reads a secret and connects: the secret could be sent away", text)


def verdict(effects: CallEffects) -> Verdict:
    """One word: `deny` for what is forbidden, `safe` for a plain read, else `needs-approval`."""
    if effects.has(Concern.FORBIDDEN):
        return "deny"
    if effects.level is Effects.READ and not effects.reasons:
        return "safe"
    return "needs-approval"
