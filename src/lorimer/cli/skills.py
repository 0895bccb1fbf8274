"""`lorimer skills`: which skills there are, whether they are well formed, and their review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.context.skills.library import SkillLibrary
    from lorimer.context.skills.record import Listed, NotLoaded
    from lorimer.context.skills.validate import Verdict

app = typer.Typer(
    no_args_is_help=True,
    help="Skills: folders with a SKILL.md, instructions and scripts for a kind of task.\n\n"
    "They are looked for in .agents/skills, .lorimer/skills and .claude/skills of the folder (when "
    "it is trusted) and of your home, in installed packages, and among those that lorimer brings.",
    epilog="Examples: `lorimer skills list` · `lorimer skills new quarterly-report` · `lorimer "
    "skills validate skills/* --json` · `lorimer skills review pdf-forms`",
)
AsJson = Annotated[bool, typer.Option("--json", help="For programs; asks nothing.")]
Folder = Annotated[Path, typer.Option("--folder", "-C", help="The folder the agent works in.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A skill's name, or its folder.")]
_ROOM = 78


def opened(folder: Path, *more: Path) -> SkillLibrary:
    """The skills that an agent in `folder` finds, and those in `more`."""
    from lorimer.context.skills.sources import SkillSources
    from lorimer.runtime.skills import skill_library

    if not folder.is_dir():
        raise UsageFault(f"{folder} is not a folder.", next="Choose one with --folder.")
    paths = tuple(one.absolute() for one in more)
    library = skill_library(SkillSources(paths=paths), folder.absolute())
    assert library is not None
    return library


def chosen(name: str, folder: Path) -> tuple[SkillLibrary, Listed]:
    """The skill of this name, or the one in this folder.

    Raises:
        UsageFault: when there is none; says which are near, or why it cannot be loaded.
    """
    from lorimer.context.skills.library import key
    from lorimer.context.skills.sources import is_path

    as_path = Path(name).expanduser()
    if is_path(name) or (as_path / "SKILL.md").is_file():
        real = (as_path.parent if as_path.name.lower() == "skill.md" else as_path).resolve()
        for library in (opened(folder), opened(folder, real)):  # as it is by its name, if found
            for listed in library.listed:
                if listed.skill.folder == real:
                    return library, listed
        for refused in library.not_loaded:
            if refused.folder.resolve() == real:
                raise UsageFault(refused.message, next=refused.next)
        raise UsageFault(f"{as_path} is no skill.", next="Name a folder with a SKILL.md.")
    library = opened(folder)
    found = library.find(name)
    if found is not None:
        return library, found
    for one in library.not_loaded:
        if key(one.folder.name) == key(name):
            raise UsageFault(one.message, next=one.next)
    import difflib

    names = [listed.skill.name for listed in library.listed]
    near = difflib.get_close_matches(name, names, n=3)
    step = f"Did you mean {', '.join(near)}?" if near else "`lorimer skills list` shows them."
    raise UsageFault(f"There is no skill {name!r}.", next=step)


@app.command("list")
def list_skills(folder: Folder = Path("."), as_json: AsJson = False) -> None:
    """The skills an agent in this folder has, those that wait for you, and why."""
    from lorimer.cli.terminal import flat, wrapped

    library = opened(folder)
    if as_json:
        print(json.dumps({
            "skills": [_plain(one) for one in library.listed],
            "not_loaded": [_refused(one) for one in library.not_loaded],
            "faults": list(library.faults),
        }))  # fmt: skip
        return
    if not library.listed:
        print("No skills were found.")
    for one in library.listed:
        state = "" if one.state == "available" else f"  NOT USED: {one.state}"
        print(f"{flat(one.skill.name)}  ({one.skill.source}){state}")
        text = one.why.capitalize() if one.why else _shortened(one.skill.description)
        for line in wrapped(flat(text), _ROOM, "    "):
            print(line)
        if one.skill.forgiven:
            count = len(one.skill.forgiven)
            things = "thing was" if count == 1 else "things were"
            print(f"    {count} {things} forgiven: lorimer skills show {flat(one.skill.name)}")
    for refused in library.not_loaded:
        print(f"{flat(str(refused.folder))}  NOT LOADED: {refused.code}")
        for line in wrapped(flat(f"{refused.message} {refused.next}"), _ROOM, "    "):
            print(line)
    for fault in library.faults:
        for line in wrapped(flat(fault), _ROOM):
            print(line)


@app.command("show")
def show_skill(name: Name, folder: Folder = Path("."), as_json: AsJson = False) -> None:
    """One skill: where it is from, what was forgiven, its files and its text."""
    from lorimer.cli.terminal import flat, safe, wrapped

    _, found = chosen(name, folder)
    if as_json:
        print(json.dumps(_plain(found) | {"body": found.skill.body}))
        return
    skill = found.skill
    print(f"{flat(skill.name)}  ({skill.source}, {found.state})")
    print(f"folder: {flat(str(skill.folder))}")
    for line in wrapped(flat(skill.description), _ROOM):
        print(line)
    if found.why:
        print("\n".join(wrapped(flat(f"not used: {found.why}"), _ROOM)))
    for what in skill.forgiven:
        print("\n".join(wrapped(flat(f"forgiven: {what}"), _ROOM)))
    print(f"files: {', '.join(map(flat, skill.files)) or 'no others'}\n")
    print(safe(skill.body))


@app.command("new")
def new_skill(
    name: Annotated[str, typer.Argument(help="Lowercase letters, digits, single hyphens.")],
    where: Annotated[Path, typer.Option("--in", help="The folder of skills it is made in.")] = Path(
        ".agents/skills"
    ),
    description: Annotated[
        str | None,
        typer.Option("--description", "-d", help="What it does, and when to use it."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make a new, valid skill to fill in. Nothing is ever overwritten.

    Example: lorimer skills new quarterly-report -d "Writes the quarterly report from sales.csv. Use
    when somebody asks for the quarter's figures."
    """
    from lorimer.cli.terminal import flat
    from lorimer.context.skills.scaffold import scaffold

    made = scaffold(name, where, description=description)
    if as_json:
        print(json.dumps(_verdict(made)))
        return 0 if made.valid else 1
    print(f"Made {flat(made.path)}; it is valid.")
    print("Write its SKILL.md; check it with `lorimer skills validate`. In the folder of a project")
    print("it is used when you trust the folder: `lorimer trust`.")
    return 0


@app.command("validate")
def validate_skills(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of skills.")],
    below: Annotated[
        bool, typer.Option("--below", help="Check every skill below the folders instead.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check folders against the Agent Skills specification, strictly. Exit code 1: one is invalid.

    Loading forgives more than this (`lorimer skills show` says what), and refuses some that are
    valid: that, and what is odd, is said as a note. With --json a list of {"path", "name", "valid",
    "problems": [{"field", "message", "next"}], "remarks": the same}.
    """
    from lorimer.cli.terminal import flat, wrapped
    from lorimer.context.skills.remarks import remarked
    from lorimer.context.skills.validate import validate

    if below:
        folders = _below(folders)
    verdicts = [remarked(validate(folder)) for folder in folders]
    if as_json:
        print(json.dumps([_verdict(one) for one in verdicts]))
    else:
        for one in verdicts:
            print(f"{'valid  ' if one.valid else 'INVALID'}  {flat(one.path)}")
            for problem in one.problems:
                told = f"{problem.field}: {problem.message} {problem.next}"
                print("\n".join(wrapped(flat(told), _ROOM, "    ")))
            for problem in one.remarks:
                told = f"note: {problem.field}: {problem.message} {problem.next}"
                print("\n".join(wrapped(flat(told), _ROOM, "    ")))
    return 0 if all(one.valid for one in verdicts) else 1


@app.command("review")
def review_skill(
    name: Name,
    folder: Folder = Path("."),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept it without asking.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Forget what was accepted.")] = False,
    as_json: AsJson = False,
) -> int:
    """Look at a skill from elsewhere, and accept it as it is now.

    Shows its text, its scripts, what a linter found in them, and what changed since the last time.
    Once accepted, agents may use it until a file of it changes. Exit code 0: it is accepted now; 1:
    it is not. With --json nothing is asked: add --yes to accept.
    """
    from lorimer.cli.skill_review import review

    return review(name, folder, yes=yes, forget=forget, as_json=as_json)


def _below(folders: list[Path]) -> list[Path]:
    from lorimer.context.skills.record import Place, Source
    from lorimer.context.skills.sources import skill_folders

    found: list[Path] = []
    for folder in folders:
        inner, whole = skill_folders(Place(Source.PATH, folder.absolute()))
        if not whole:
            raise UsageFault(
                f"{folder} holds too many folders to look into.", next="Name fewer of them."
            )
        found += inner
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:200].rstrip() + "…"


def _plain(one: Listed) -> dict[str, Any]:
    from lorimer.context.skills.load import allowed_tools

    skill = one.skill
    return {
        "name": skill.name, "description": skill.description, "source": str(skill.source),
        "state": str(one.state), "why": one.why, "folder": text_of(skill.folder),
        "files": list(skill.files), "forgiven": list(skill.forgiven),
        "allowed_tools": list(allowed_tools(dict(skill.fields))),
        "changed": dict(one.changed or {}),
    }  # fmt: skip


def _refused(one: NotLoaded) -> dict[str, str]:
    return {
        "folder": text_of(one.folder), "source": str(one.place.source), "code": one.code,
        "message": one.message, "next": one.next,
    }  # fmt: skip


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "path": one.path,
        "name": one.name,
        "valid": one.valid,
        "problems": [
            {"field": p.field, "message": p.message, "next": p.next,
             "beyond_reference": p.beyond_reference}
            for p in one.problems
        ],
        "remarks": [{"field": p.field, "message": p.message, "next": p.next} for p in one.remarks],
    }  # fmt: skip


def text_of(path: Path) -> str:
    """A path that JSON can hold: bytes that are not UTF-8 as escapes."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
