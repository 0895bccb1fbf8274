"""`skill`: the instructions of one skill, once. Which skills there are stands in the catalogue, an
entry of the conversation; their names are never in the tool's schema."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from lorimer.core.calls import Effects, Outcome
from lorimer.core.messages import TextPart
from lorimer.core.trust import Trust
from lorimer.toolkits.opening import nothing_done, shown_name
from lorimer.tools.function import tool
from lorimer.tools.tool import Budget, Category, Description, Tool, ToolContext

if TYPE_CHECKING:
    from lorimer.context.skills.library import SkillLibrary
    from lorimer.context.skills.record import Listed, Skill

NAME = "skill"
_BUDGET = Budget(lines=4_000, characters=80_000, head_lines=400, tail_lines=40)
_MOST_FILES = 60
_MOST_NAMES = 20


def make_skill_tool(library: SkillLibrary) -> Tool:
    """The tool `skill` over the skills of `library`."""

    @tool(
        description=Description(
            "Load a skill: instructions for a kind of task, written for you.",
            use_when="the task fits a skill in the list of skills; before you begin.",
            not_when="it was loaded before in this conversation: it still counts.",
            cost="its text, some pages.",
            returns="the instructions, its folder, and the files in it.",
        ),
        examples=({"name": "data-plot"},),
        category=Category.PERCEPTION,
        effects=Effects.READ,
        timeout_s=60,
        budget=_BUDGET,
        trust=Trust.USER_DATA,
        group="skills",
    )
    def skill(
        name: Annotated[
            str, Field(min_length=1, max_length=200, description="As listed, e.g. 'data-plot'")
        ],
        *,
        context: ToolContext,
    ) -> list[TextPart]:
        library.refresh()
        found = library.find(name)
        if found is None:
            raise nothing_done(
                f"There is no skill {name!r}.", next=_instead(library, name), code="not_found"
            )
        if found.why:
            raise nothing_done(
                f"The skill {found.skill.name!r} may not be used: {found.why}.",
                next="Do without it, or ask the user to do that.",
                code=f"skill_{found.state}",
            )
        return _told(found, context)

    return skill


def _instead(library: SkillLibrary, name: str) -> str:
    near = library.near(name)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    names = [skill.name for skill in library.available]
    if not names:
        return "No skill can be used here; do without."
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"There are: {', '.join(names[:_MOST_NAMES])}{more}."


def _told(found: Listed, context: ToolContext) -> list[TextPart]:
    skill = found.skill
    version = hashlib.sha256(skill.body.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    mark = f"Skill {skill.name}, version {version}"
    if earlier := _earlier(context, skill.name, mark):
        return [
            TextPart(
                f"The skill {skill.name} was loaded before in this conversation and has not "
                f"changed: its instructions stand in the result of call {earlier}, and still "
                f"count. Its folder: {_folder(skill, context)}",
                Trust.USER_DATA,
                NAME,
            )
        ]
    head = f"{mark}. Its folder (<skill folder> in the text): {_folder(skill, context)}\n"
    head += _files(skill) + "\n"
    return [
        TextPart(head, Trust.USER_DATA, NAME),
        TextPart(skill.body + "\n", Trust.USER_DATA, f"skill {skill.name}"),
    ]


def _earlier(context: ToolContext, name: str, mark: str) -> str:
    """The id of the call that loaded this very text; from the journal, so also after a restart."""
    for call in context.past(NAME) if context.past is not None else ():
        if call.outcome is Outcome.DONE and call.result.startswith(f"{mark}."):
            return call.id
    return ""


def _folder(skill: Skill, context: ToolContext) -> str:
    """As the file tools and programs take it: from the workspace when it lies there."""
    workspace = os.path.realpath(context.workspace)
    if skill.folder.is_relative_to(workspace):
        return shown_name(os.path.relpath(skill.folder, workspace))
    return shown_name(str(skill.folder))


def _files(skill: Skill) -> str:
    if not skill.files:
        return "It has no other files."
    shown = ", ".join(map(shown_name, skill.files[:_MOST_FILES]))
    rest = len(skill.files) - _MOST_FILES
    more = f", and {rest} more (list_directory)" if rest > 0 else ""
    return (
        f"Its files, to be read when the text says so and run where it says so; the folder cannot "
        f"be written: {shown}{more}"
    )
