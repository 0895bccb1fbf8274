"""Secrets in arguments: refused before anybody is asked, put in just before the function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lorimer.core.calls import Effects, Outcome, Refusal
from lorimer.core.messages import TextPart
from lorimer.core.secrets import SecretRefused
from lorimer.tools.dispatch.state import CallState, Content, Surroundings, own_copy


def check_secrets(state: CallState, around: Surroundings) -> Refusal | None:
    """The refusal of a call whose secrets it cannot have; nothing is opened for it."""
    tool = state.tool
    if around.secrets is None or tool is None:
        return None
    try:
        around.secrets.check(tool.name, state.value, tool.secrets, tool.command_argument)
    except SecretRefused as fault:
        return _refusal(fault, Outcome.NOT_STARTED)
    if tool.effects is not Effects.READ:
        marks = around.secrets.marks_in(state.value)
        if marks:
            return _lost(marks)
    return None


def _lost(marks: Sequence[str]) -> Refusal:
    """A result that was shown without its secrets must not be written back without them."""
    shown = ", ".join(marks)
    return Refusal(
        "secret",
        f"The arguments hold {shown}, which stands for a secret that you were not shown; written "
        "like this, the secret itself would be lost.",
        next="Leave that part as it is: change only the other lines (edit_file), or ask the user.",
        retryable=True,
    )


async def put_secrets_in(state: CallState, around: Surroundings) -> dict[str, Any] | Refusal:
    """The arguments as the function gets them, with the values of its secrets; the call's own
    arguments, which are recorded, keep the handles."""
    tool, arguments = state.tool, own_copy(state.value)
    assert tool is not None
    if around.secrets is None:
        return arguments  # type: ignore[no-any-return]
    for name in around.secrets.copied(arguments):
        state.notes.append(
            f"The arguments hold the value of secret:{name} itself. Never write it out: where a "
            f"tool needs it, give secret:{name} instead."
        )
    try:
        return await around.secrets.resolve(
            tool.name, arguments, tool.secrets, tool.command_argument
        )
    except SecretRefused as fault:
        return _refusal(fault, Outcome.FAILED_BEFORE_EFFECT)


def _refusal(fault: SecretRefused, outcome: Outcome) -> Refusal:
    return Refusal("secret", fault.message, next=fault.next, retryable=True, outcome=outcome)


def without_secrets(parts: Content, value: Any, around: Surroundings) -> tuple[Content, Any]:
    """What a function returned, before anything else sees it."""
    if around.redact is None:
        return parts, value
    clean = tuple(
        TextPart(around.clean(p.text), p.trust, around.clean(p.source))
        if isinstance(p, TextPart)
        else p
        for p in parts
    )
    if len(parts) == 1 and isinstance(value, str) and parts[0].text is value:  # type: ignore[union-attr]
        return clean, clean[0].text  # type: ignore[union-attr]
    return clean, _clean_json(value, around)


def _clean_json(value: Any, around: Surroundings) -> Any:
    if isinstance(value, str):
        return around.clean(value)
    if isinstance(value, dict):
        return {around.clean(str(k)): _clean_json(v, around) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_json(one, around) for one in value]
    return value
