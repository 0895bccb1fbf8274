"""The TODO list is a function of its calls; ids never change their meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.status.todo import (
    MOST_ITEMS,
    REWRITE,
    UPDATE,
    TodoFault,
    TodoList,
    TodoStatus,
)


def of(*texts: str) -> TodoList:
    return TodoList().rewritten([{"text": text} for text in texts])


def shown(todo: TodoList) -> list[tuple[str, str, str]]:
    return [(item.id, item.text, str(item.status)) for item in todo.items]


def test_items_keep_their_ids_through_a_rewrite() -> None:
    todo = of("a", "b", "c").updated("t2", "completed")
    todo = todo.rewritten([{"text": "c"}, {"text": "new"}, {"id": "t2", "text": "b, better"}])
    assert shown(todo) == [
        ("t3", "c", "pending"), ("t4", "new", "pending"), ("t2", "b, better", "completed"),
    ]  # fmt: skip
    assert shown(todo.rewritten([{"text": "a"}])) == [("t5", "a", "pending")]


def test_a_number_is_never_used_again() -> None:
    todo = of("a", "b").rewritten([])
    assert shown(todo.rewritten([{"text": "a"}])) == [("t3", "a", "pending")]


@pytest.mark.parametrize(
    ("items", "what"),
    [
        ([{"text": ""}], "Item 1 has no text"),
        ([{"text": "a"}, {"text": " \n "}], "Item 2 has no text"),
        ([{"text": "x" * 301}], "301 characters"),
        ([{"text": "a", "id": "t9"}], "'t9'"),
        ([{"text": "a", "status": "later"}], "'later' is no status"),
        ([{"text": "a", "id": "t1"}, {"text": "b", "id": "t1"}], "two items"),
        ([{"text": str(n)} for n in range(MOST_ITEMS + 1)], "too many"),
    ],
)
def test_what_cannot_be_written_is_refused_with_what_to_do(items: Any, what: str) -> None:
    with pytest.raises(TodoFault, match=what) as told:
        of("a").rewritten(items)
    assert told.value.next


def test_an_unknown_id_or_status_names_those_there_are() -> None:
    with pytest.raises(TodoFault) as told:
        of("a", "b").updated("t7", "completed")
    assert "t1, t2" in told.value.next
    with pytest.raises(TodoFault) as told:
        of("a").updated("t1", "done")
    assert "completed" in told.value.next
    with pytest.raises(TodoFault) as told:
        TodoList().updated("t1", "completed")
    assert REWRITE in told.value.next


def test_two_items_in_progress_are_noticed_not_refused() -> None:
    todo = of("a", "b").updated("t1", "in_progress")
    assert not todo.notice()
    todo = todo.updated("t2", "in_progress")
    assert "t1, t2" in todo.notice() and todo.notice() in todo.words()


STATUSES = st.sampled_from([None, *map(str, TodoStatus)])
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a", "b", "c", "d"])},
        optional={"id": st.sampled_from(["t1", "t2", "t3", "t9"]), "status": STATUSES},
    ),
    max_size=5,
)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just(REWRITE), st.fixed_dictionaries({"items": ITEMS})),
        st.tuples(
            st.just(UPDATE),
            st.fixed_dictionaries(
                {"id": st.sampled_from(["t1", "t2", "t5"]), "status": st.sampled_from(TodoStatus)}
            ),
        ),
    ),
    max_size=12,
)


@given(CALLS)
def test_ids_are_unique_and_old_ones_do_not_come_back(calls: Any) -> None:
    todo, gone = TodoList(), set()
    for name, arguments in calls:
        before = {item.id for item in todo.items}
        try:
            todo = todo.apply(name, arguments)
        except TodoFault:
            continue
        ids = [item.id for item in todo.items]
        assert len(set(ids)) == len(ids)
        gone |= before - set(ids)
        assert gone.isdisjoint(ids)
        assert all(int(i[1:]) < todo.next_number for i in ids)
