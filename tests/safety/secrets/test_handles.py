"""How secrets are named in arguments."""

from __future__ import annotations

from typing import Any

import pytest

from lorimer.core.errors import UsageFault
from lorimer.safety.secrets import check_name, handles_in
from lorimer.safety.secrets.handles import put_in

VALUES = {"github": "ghx-1234 5678", "db": 'p"w\\x'}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"token": "secret:github"}, ("github",)),
        ({"h": {"Authorization": "Bearer ${secret:github}"}}, ("github",)),
        ({"a": ["secret:db", "${secret:github}${secret:db}"]}, ("db", "github")),
        ({"t": "see secret:github"}, ()),
        ({"t": "$${secret:github}"}, ()),
        ({"t": "$${secret:github} ${secret:db}"}, ("db",)),
        ({"t": "secret:GitHub"}, ()),
        ({"t": "secret:github\n"}, ()),
        ({"secret:github": "x"}, ()),
        ({"n": 1, "z": None, "b": True}, ()),
        ("secret:" + "a" * 65, ()),
    ],
)
def test_handles_are_whole_values_or_in_braces(arguments: Any, names: tuple[str, ...]) -> None:
    assert handles_in(arguments) == names


def test_values_are_put_in_exactly_and_only_at_handles() -> None:
    given = {
        "whole": "secret:github",
        "inside": "a ${secret:db} b $${secret:db} ${secret:none}",
        "list": [1, None, "secret:db"],
        "secret:github": "key",
    }
    assert put_in(given, VALUES.get) == {
        "whole": "ghx-1234 5678",
        "inside": 'a p"w\\x b ${secret:db} ${secret:none}',
        "list": [1, None, 'p"w\\x'],
        "secret:github": "key",
    }
    assert given["whole"] == "secret:github", "the arguments themselves are not changed"


def test_a_value_that_looks_like_a_handle_is_not_resolved_again() -> None:
    values = {"a": "${secret:b}", "b": "deep"}
    assert put_in("${secret:a}", values.get) == "${secret:b}"


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", "a/b", "-a", "é", "a" * 65, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageFault):
        check_name(name)
