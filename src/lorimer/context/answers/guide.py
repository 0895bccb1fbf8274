"""What the model is told about templates; the same in every session."""

from __future__ import annotations

from typing import Final

from lorimer.context.prefix.parts import PromptPart, Stability

ANSWER_GUIDE: Final = """\
When an answer gives a value from a tool result (an amount, a date, a status, an id), do not copy \
it: write where it stands, and it is filled in exactly.
- {{tool_name.field}} is a field of the last result of that tool: {{get_order.total}}. When a tool \
ran more than once, use the id of the call: {{call_id.field}}.
- Deeper: {{get_order.items[0].price}} or {{get_order/items/0/price}}.
- Optional formats, which never change a value: |money, |number, |percent, |date, |datetime, \
|list, |count, as in {{get_order.total|money}}.
- Only fields that you have seen in a result. Anything else stays visible as you wrote it."""


def guide_part() -> PromptPart:
    """The guide as a part of the system prompt."""
    return PromptPart("answers", "lorimer", Stability.GLOBAL, ANSWER_GUIDE)
