"""The vendored vocabulary: the very list that tiktoken loads, and what is done without tiktoken."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.context.tokens import text_count as module
from lorimer.context.tokens.text_count import (
    CHARACTERS,
    O200K,
    Characters,
    TextCount,
    Vocabulary,
    read_ranks,
    vocabulary,
)

UPSTREAM_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Which tiktoken itself checks: tiktoken_ext/openai_public.py, `o200k_base`."""

KNOWN = {
    # https://github.com/openai/tiktoken, README and tests: o200k_base
    "hello world": 2,
    "antidisestablishmentarianism": 6,
    "2 + 2 = 4": 7,
    "お誕生日おめでとう": 8,
    "": 0,
}
TEXTS = [
    "def f(x: int) -> int:\n    return x ** 2  # squared\n" * 20,
    json.dumps({"rows": [{"id": n, "ok": n % 2 == 0, "π": n / 7} for n in range(50)]}),
    "今天天气很好，我们去公园散步吧。" * 10,
    "😀👩‍👩‍👧‍👦🇨🇦 emoji and ﷽ marks\u200d\u200b",
    "Ünïcödé — “quotes”, ellipsis… Straße, naïveté",
    "\t\t\n\n   \r\n" * 50 + "x",
    "<|endoftext|><|im_start|>",
    "a" * 5000 + " " * 5000 + "0123456789" * 500,
    "\ud800 half a pair",
]


@pytest.fixture(scope="module")
def o200k() -> TextCount:
    count = vocabulary()
    assert isinstance(count, Vocabulary)
    return count


def test_the_ranks_are_the_ones_that_tiktoken_loads() -> None:
    _, ranks = read_ranks()
    lines = b"".join(base64.b64encode(t) + b" %d\n" % r for t, r in ranks.items())
    assert hashlib.sha256(lines).hexdigest() == UPSTREAM_SHA256


def test_the_pattern_is_the_one_that_tiktoken_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken_ext.openai_public as public

    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *a, **k: {})
    assert read_ranks()[0] == public.o200k_base()["pat_str"]


@pytest.mark.parametrize(("text", "tokens"), KNOWN.items())
def test_known_counts(o200k: TextCount, text: str, tokens: int) -> None:
    assert o200k.count(text) == tokens


@pytest.mark.parametrize("text", TEXTS)
def test_counts_are_those_of_tiktoken(
    o200k: TextCount, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiktoken
    import tiktoken_ext.openai_public as public

    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *a, **k: read_ranks()[1])
    theirs = tiktoken.Encoding(**public.o200k_base())
    assert o200k.count(text) == len(theirs.encode(text, disallowed_special=()))


def test_a_huge_text_is_counted_in_pieces(o200k: TextCount) -> None:
    line = "The quick brown fox jumps over the lazy dog.\n"
    whole = line * 20_000
    assert abs(o200k.count(whole) - 20_000 * o200k.count(line)) <= len(whole) // 100_000 * 2


def test_without_tiktoken_it_is_counted_by_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    module._vocabulary.cache_clear()
    module.has_vocabulary.cache_clear()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    try:
        count = vocabulary()
        assert count.basis == CHARACTERS
        assert count.count("four" * 10) == 10
    finally:
        module._vocabulary.cache_clear()
        module.has_vocabulary.cache_clear()


def test_importing_lorimer_loads_neither_tiktoken_nor_the_ranks() -> None:
    code = (
        "import sys, lorimer, lorimer.context.tokens as t\n"
        "t.TokenCounter; assert t.has_vocabulary()\n"
        "print([m for m in ('tiktoken', 'regex') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@settings(deadline=None)
@given(st.text(max_size=400))
def test_characters_are_never_far_below_the_vocabulary(text: str) -> None:
    """A request that is counted by characters must not be taken for a quarter of what it is."""
    exact = vocabulary()
    assert exact.basis == O200K
    assert exact.count(text) <= 4 * Characters().count(text) + 4
