"""The TODO list of a session: items with ids that never change their meaning. Pure.

The list is what its tool calls come to, in order: the same calls give the same list, so that it can
be made again from the call journal after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from lorimer.core.errors import UsageFault

REWRITE: Final = "rewrite_todo_list"
UPDATE: Final = "update_todo_status"
MOST_ITEMS: Final = 40
LONGEST_TEXT: Final = 300


class TodoStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class TodoFault(UsageFault):
    """The list cannot be changed like that; it is as it was."""


@dataclass(frozen=True, slots=True)
class TodoItem:
    id: str
    text: str
    status: TodoStatus = TodoStatus.PENDING


@dataclass(frozen=True, slots=True)
class TodoList:
    """`next_number`: of the next new item; numbers are never used again."""

    items: tuple[TodoItem, ...] = ()
    next_number: int = 1

    def apply(self, tool: str, arguments: Mapping[str, Any]) -> TodoList:
        """The list after a call of `tool` with `arguments`.

        Raises:
            TodoFault: when they cannot be; the list is as it was.
        """
        if tool == REWRITE:
            return self.rewritten(arguments.get("items") or ())
        return self.updated(str(arguments.get("id")), str(arguments.get("status")))

    def rewritten(self, items: Iterable[Mapping[str, Any]]) -> TodoList:
        """A new list. An item with the id of an old one, or with the very text of one, is that one;
        its status stays where none is given. Every other item is new.

        Raises:
            TodoFault: for too many items, an empty or too long text, an id or status that is not
                known, an id used twice.
        """
        wanted = list(items)
        if len(wanted) > MOST_ITEMS:
            raise TodoFault(
                f"{len(wanted)} items are too many; {MOST_ITEMS} are the most.",
                next="Put small steps together, or leave out what is completed.",
            )
        old = {item.id: item for item in self.items}
        given = {str(one.get("id") or "") for one in wanted} - {""}
        by_text = {item.text: item for item in self.items if item.id not in given}
        number, made, taken = self.next_number, [], set()
        for place, one in enumerate(wanted, 1):
            text = _text(str(one.get("text") or ""), place)
            item_id = str(one.get("id") or "")
            if item_id and item_id not in old:
                raise TodoFault(
                    f"Item {place} has the id {item_id!r}, which is not in the list.",
                    next=f"Leave the id of a new item out. {self._known()}",
                )
            if item_id in taken:
                raise TodoFault(
                    f"The id {item_id!r} is given to two items.", next="Give each id once."
                )
            before = old.get(item_id) or by_text.pop(text, None)
            status = _status(one["status"]) if one.get("status") else None
            if before is None:
                before = TodoItem(f"t{number}", text)
                number += 1
            taken.add(before.id)
            made.append(replace(before, text=text, status=status or before.status))
        return TodoList(tuple(made), number)

    def updated(self, item_id: str, status: str) -> TodoList:
        """The list with another status of one item.

        Raises:
            TodoFault: when there is no such item or no such status.
        """
        wanted = _status(status)
        if all(item.id != item_id for item in self.items):
            raise TodoFault(f"There is no item {item_id!r} in the list.", next=self._known())
        return replace(
            self,
            items=tuple(
                replace(item, status=wanted) if item.id == item_id else item for item in self.items
            ),
        )

    def notice(self) -> str:
        """What is odd about the list, in words; empty when nothing is."""
        busy = [item.id for item in self.items if item.status is TodoStatus.IN_PROGRESS]
        if len(busy) < 2:
            return ""
        return (
            f"{len(busy)} items are in_progress ({', '.join(busy)}); one at a time is meant. Set "
            "the others to pending, or to completed when they are done."
        )

    def words(self) -> str:
        """The list as the tools give it back."""
        if not self.items:
            return "The TODO list is empty."
        lines = [f"{item.id} {item.status}: {item.text}" for item in self.items]
        notice = self.notice()
        return "\n".join([*lines, *([f"Notice: {notice}"] if notice else [])])

    def _known(self) -> str:
        if not self.items:
            return f"The list is empty; write one with {REWRITE}."
        return f"Its ids are: {', '.join(item.id for item in self.items)}."


def _text(text: str, place: int) -> str:
    text = " ".join(text.split())
    if not text:
        raise TodoFault(f"Item {place} has no text.", next="Say in a few words what is to do.")
    if len(text) > LONGEST_TEXT:
        raise TodoFault(
            f"The text of item {place} has {len(text):,} characters; {LONGEST_TEXT} are the most.",
            next="Say it shorter; details can stand in a file.",
        )
    return text


def _status(status: str) -> TodoStatus:
    try:
        return TodoStatus(status)
    except ValueError:
        known = ", ".join(TodoStatus)
        raise TodoFault(
            f"{str(status)[:40]!r} is no status.", next=f"Use one of: {known}."
        ) from None
