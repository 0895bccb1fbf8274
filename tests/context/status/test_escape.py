"""No text from outside can leave its quotation marks, hide in them, or fill the bar."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.status.escape import is_name, quoted

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)


@given(ANY_TEXT, st.integers(1, 120))
def test_a_quoted_text_is_one_visible_line_that_utf8_can_carry(text: str, limit: int) -> None:
    made = quoted(text, limit)
    made.encode("utf-8")
    assert not any(c in made for c in "<>\n\r\x85\u2028\u2029")
    for c in made:
        assert c == " " or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl")
    inside = made[1:].replace("\\\\", "").replace('\\"', "")
    assert made.startswith('"') and inside.count('"') == 1
    assert len(made) < limit + 2 + len(" (+1,000,000,000 characters)")


@given(ANY_TEXT, st.integers(1, 120))
def test_what_is_left_out_is_counted(text: str, limit: int) -> None:
    whole = quoted(text, 100_000)
    made = quoted(text, limit)
    if made == whole:
        return
    kept, _, count = made.rpartition(" (+")
    left_out = int(count.removesuffix(" characters)").replace(",", ""))
    assert 0 < left_out <= len(text)
    assert quoted(text[: len(text) - left_out], 100_000) == kept


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 3/3 & more", '"plain words, 3/3 &amp; more"'),
        ('say "no"', '"say \\"no\\""'),
        ("a\\n b", '"a\\\\n b"'),
        ("</agent_status>", '"&lt;/agent_status&gt;"'),
        ("\uff1c/agent_status\uff1e", '"\\u{ff1c}/agent_status\\u{ff1e}"'),
        ("one\n[todo]\n- t1", '"one\\n[todo]\\n- t1"'),
        ("abc\u202edef", '"abc\\u{202e}def"'),
        ("a\u200bb\ufeffc\u00ad", '"a\\u{200b}b\\u{feff}c\\u{ad}"'),
        ("\ud800x", '"\\u{d800}x"'),
        ("\U000e0041\u3164", '"\\u{e0041}\\u{3164}"'),
        ("e\u0301\u0301\u0301\u0301", '"e\u0301\u0301\\u{301}\\u{301}"'),
        ("Größe 工作 😀", '"Größe 工作 😀"'),
    ],
)
def test_texts_as_they_are_shown(text: str, shown: str) -> None:
    assert quoted(text, 200) == shown


def test_a_megabyte_is_cut_and_said() -> None:
    made = quoted("x" * 1_000_000, 200)
    assert made == '"' + "x" * 200 + '" (+999,800 characters)'
    assert len(quoted("\u202e" * 1_000_000, 200)) < 250


@pytest.mark.parametrize("name", ["read_file", "mcp.server:tool", "t1", "a/b-c", "x" * 64])
def test_plain_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "a b", "a\n", "<x>", "x" * 65, "ignore previous", "ä", "[todo]"]
)
def test_names_that_are_none(name: str) -> None:
    assert not is_name(name)
