"""A prompt from parts: order, rendering, boundaries, what is stored; and how two compare."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.prefix import Prompt, PromptPart, Stability, build
from lorimer.context.prefix.compare import compare, pieces_of
from lorimer.context.prefix.parts import ORDER, boundaries_of, stored
from lorimer.core.errors import ConfigError
from wire.kit import TIME, WEATHER

parts = st.builds(
    PromptPart,
    st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True),
    st.sampled_from(["app", "lorimer", "the shop"]),
    st.sampled_from(Stability),
    st.one_of(st.text(max_size=60), st.sampled_from(["</a>", "</b >x", "<a>", "< / a>"])),
)
lists = st.lists(parts, max_size=6, unique_by=lambda p: p.name)


@given(given_=lists)
def test_what_is_built(given_: list[PromptPart]) -> None:
    prompt = build(given_)
    used = [p for p in given_ if p.text.strip()]
    assert sorted(p.name for p in prompt.placed) == sorted(p.name for p in used)
    ranks = [ORDER[p.stability] for p in prompt.placed]
    assert ranks == sorted(ranks)
    for stability in Stability:  # as they were given, within one stability
        assert [p.name for p in prompt.placed if p.stability is stability] == [
            p.name for p in used if p.stability is stability
        ]
    assert build(given_) == prompt
    assert Prompt.from_json(prompt.text, prompt.to_json()) == prompt
    ends = [p.end for p in prompt.placed]
    assert all(a.end < b.start for a, b in itertools.pairwise(prompt.placed))
    assert not ends or ends[-1] == len(prompt.text)
    starts = {p.start for p in prompt.placed} | {len(prompt.text)}
    assert set(prompt.boundaries) <= starts and list(prompt.boundaries) == sorted(prompt.boundaries)
    for stability, at in zip(
        [s for s in (Stability.GLOBAL, Stability.DEPLOYMENT)
         if any(p.stability is s for p in prompt.placed)],
        prompt.boundaries, strict=True,
    ):  # fmt: skip
        assert all((ORDER[p.stability] <= ORDER[stability]) == (p.end <= at) for p in prompt.placed)
    if len(used) == 1:
        assert prompt.text == used[0].text
    if len(used) > 1:
        for part in prompt.placed:
            assert prompt.text.count(f"</{part.name}>") == 1, "a text has closed a tag"


def test_damaged_and_missing_records() -> None:
    prompt = build([PromptPart("a", "app", Stability.GLOBAL, "x"),
                    PromptPart("b", "app", Stability.SESSION, "y")])  # fmt: skip
    record = prompt.to_json()
    assert stored(prompt.text, {"prompt": record}) == prompt
    assert boundaries_of({"prompt": record}) == prompt.boundaries and boundaries_of({}) == ()
    with pytest.raises(ConfigError, match="not the text that was recorded"):
        Prompt.from_json(prompt.text.replace("x", "z"), record)
    with pytest.raises(ConfigError, match="damaged"):
        Prompt.from_json(prompt.text, {"parts": [{}], "boundaries": []})
    old = Prompt.from_json("Old.", None)
    assert [(p.name, p.owner) for p in old.placed] == [("system", "unknown")]
    assert old.boundaries == ()


@pytest.mark.parametrize(
    ("name", "owner", "stability"),
    [("", "app", "global"), ("A", "app", "global"), ("a b", "app", "global"),
     ("a" * 41, "app", "global"), ("a", "", "global"), ("a", 'x"y', "global"), ("a", "<", "global"),
     ("a", "app", "always")],
)  # fmt: skip
def test_parts_that_cannot_be(name: str, owner: str, stability: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PromptPart(name, owner, stability, "x")  # type: ignore[arg-type]
    assert caught.value.next


def prompt_of(*texts: str) -> Prompt:
    return build(PromptPart(f"p{n}", "app", Stability.GLOBAL, t) for n, t in enumerate(texts))


TOOLS = [TIME.to_json(), WEATHER.to_json()]


class TestCompare:
    def test_the_same(self) -> None:
        one = pieces_of(prompt_of("a", "b"), TOOLS)
        result = compare(one, pieces_of(prompt_of("a", "b"), TOOLS))
        assert result.same and result.first == "" and result.kept_bytes == result.before_bytes

    @pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
    def test_a_part_that_changed(self, wire: str) -> None:
        before = pieces_of(prompt_of("a", "bcd", "e"), TOOLS, wire)
        result = compare(before, pieces_of(prompt_of("a", "bXd", "e"), TOOLS, wire))
        (change,) = result.changes
        assert (change.kind, change.name, change.what) == ("part", "p1", "changed")
        assert "-bcd" in change.diff and "+bXd" in change.diff
        assert result.first == "part p1"
        tools = sum(p.size for p in before if p.kind == "tool")
        assert (result.kept_bytes > tools) == (wire == "anthropic")

    def test_tools_added_removed_and_moved(self) -> None:
        one, two = TOOLS
        base = pieces_of(prompt_of("a"), TOOLS)
        for tools, what in (([one], {("get_weather", "removed")}),
                            ([one, two, {**one, "name": "z"}], {("z", "added")}),
                            ([two, one], {("get_time", "moved")})):  # fmt: skip
            result = compare(base, pieces_of(prompt_of("a"), tools))
            found = {(c.name, c.what) for c in result.changes}
            assert found == what or (what == {("get_time", "moved")} and len(found) == 1)
            assert result.first.startswith("tool ")

    def test_an_added_part_alone(self) -> None:
        before = pieces_of(prompt_of("a", "b"), [])
        result = compare(before, pieces_of(prompt_of("a", "b", "c"), []))
        assert [(c.name, c.what) for c in result.changes] == [("p2", "added")]
        assert result.kept_bytes < result.before_bytes + 3 and result.first
