"""The review of one skill: everything of it that a person can read, and what to look at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.context.skills.files import Files
    from lorimer.context.skills.library import SkillLibrary
    from lorimer.context.skills.lint import Finding
    from lorimer.context.skills.record import Listed

_ROOM = 78
_LONGEST = 20_000
"""Characters of one file that are shown; how much more there is, is said."""


def review(name: str, folder: Path, *, yes: bool, forget: bool, as_json: bool) -> int:
    """Show the skill, and pin its content when the person accepts it; the exit code."""
    from lorimer.cli.skills import chosen
    from lorimer.context.skills.files import survey
    from lorimer.context.skills.lint import lint

    library, found = chosen(name, folder)
    if forget:
        return _forget(library, found, as_json)
    found = library.waiting(name) or found  # a usable one of this name needs no review
    skill = found.skill
    files = survey(skill.folder)
    contents = library.contents(skill)
    findings = lint(files)
    own = skill.source in ("bundled", "project")
    if not as_json:
        _show(found, files, findings)
    accepted = not own and found.state == "available"
    if not own and not accepted and (yes or (not as_json and _agreed())):
        _unchanged(files)
        _pin(library, found, contents)
        library.refresh()
        found = next(one for one in library.listed if one.skill.folder == skill.folder)
        accepted = True
        if not as_json:
            print("Accepted, as it is now.")
    elif own and not as_json:
        print(_own_words(found))
    elif accepted and not as_json:
        print("It was accepted before, and has not changed since.")
    if as_json:
        usable = accepted or found.state == "available"
        print(json.dumps(_plain(found, contents, findings) | {"accepted": usable}))
    return 0 if accepted or found.state == "available" else 1


def _own_words(found: Listed) -> str:
    if found.skill.source == "bundled":
        return "It comes with lorimer: there is nothing to accept."
    if found.state == "available":
        return "It belongs to this folder, which is trusted: there is nothing to accept."
    return "It belongs to this folder: trust the folder with `lorimer trust` to use it."


def _pin(library: SkillLibrary, found: Listed, contents: dict[str, str]) -> None:
    import getpass

    from lorimer.core.clock import SystemClock

    try:
        by = getpass.getuser()
    except (OSError, KeyError):
        by = "unknown"
    skill = found.skill
    library.reviews.pin(skill.name, contents, folder=skill.folder, by=by, clock=SystemClock())


def _unchanged(files: Files) -> None:
    from lorimer.context.skills.files import survey

    if survey(files.folder).signature != files.signature:
        raise UsageFault(
            f"{files.folder} changed while it was shown; it was not accepted.",
            next="Look at it again.",
        )


def _forget(library: SkillLibrary, found: Listed, as_json: bool) -> int:
    from lorimer.cli.terminal import flat

    gone = library.reviews.forget(found.skill.name)
    if as_json:
        print(json.dumps({"name": found.skill.name, "forgotten": gone}))
    else:
        what = "is not accepted any more" if gone else "had not been accepted"
        print(f"{flat(found.skill.name)} {what}.")
    return 0 if gone else 1


def _agreed() -> bool:
    if not sys.stdin.isatty():
        print("Nobody is there to ask: read it, then run the command with --yes.")
        return False
    print("Its author will speak to the agent, and its scripts run in the sandbox.")
    return input("Accept this skill as it is? yes / no: ").strip().casefold() in ("y", "yes")


def _show(found: Listed, files: Files, findings: list[Finding]) -> None:
    from lorimer.cli.terminal import flat, safe, wrapped
    from lorimer.context.skills.files import content
    from lorimer.context.skills.load import allowed_tools

    def say(text: str, first: str = "") -> None:
        print("\n".join(wrapped(flat(text), _ROOM, first)))

    skill = found.skill
    say(f"{skill.name}  ({skill.source}, {found.state})")
    print(f"folder: {flat(str(skill.folder))}")
    say(f"description: {skill.description}")
    tools = allowed_tools(dict(skill.fields))
    if tools:
        say(f"It wants these tools without a question: {', '.join(tools)}. Here it gets none.")
    for what in skill.forgiven:
        say(f"forgiven: {what}")
    if found.changed:
        print("\nChanged since it was accepted:")
        for name, how in found.changed.items():
            say(f"{how}: {name}", "  ")
    print("\nFiles:")
    for one in files.files.values():
        more = ", may be run" if one.executable else ""
        say(f"{one.name}  ({one.size:,} bytes{more})", "  ")
    for one in files.files.values():
        data = content(files, one.name, 4 * _LONGEST) if not one.link else b""
        if one.link or b"\0" in data[:8192]:
            continue
        text = data.decode("utf-8", "backslashreplace")
        print(f"\n--- {flat(one.name)} " + "-" * max(3, 70 - len(one.name)))
        print(_revealed(safe, text[:_LONGEST]).rstrip("\n"))
        if len(text) > _LONGEST or one.size > len(data):
            print(f"[only the beginning; read the rest in {flat(str(skill.folder / one.name))}]")
    _say_findings(findings, say)


def _say_findings(findings: list[Finding], say: Any) -> None:
    if not findings:
        print("\nThe linter found nothing; that proves nothing.\n")
        return
    print(f"\nLook at these {len(findings)} places (a linter proves nothing):")
    for one in findings:
        where = one.file + (f":{one.line}" if one.line else "")
        mark = "!!" if one.level == "danger" else "  "
        say(f"{where}  {one.message} [{one.rule}]", f"{mark} ")
        if one.text:
            say(one.text, "      ")
    print()


def _revealed(safe: Any, text: str) -> str:
    from lorimer.context.skills.invisible import revealed

    return str(safe("\n".join(revealed(line) for line in text.split("\n"))))


def _plain(found: Listed, contents: dict[str, str], findings: list[Finding]) -> dict[str, Any]:
    from lorimer.cli.skills import text_of
    from lorimer.context.skills.files import whole_digest

    return {
        "name": found.skill.name, "folder": text_of(found.skill.folder),
        "source": str(found.skill.source), "state": str(found.state), "why": found.why,
        "digest": whole_digest(contents), "files": contents, "changed": dict(found.changed or {}),
        "forgiven": list(found.skill.forgiven),
        "findings": [
            {"rule": f.rule, "level": f.level, "file": f.file, "line": f.line,
             "message": f.message, "text": f.text}
            for f in findings
        ],
    }  # fmt: skip
