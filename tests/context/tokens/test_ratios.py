"""Learned ratios: robust, kept, shared by processes, and never in the way."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.context.tokens.families import family_of, tokenizer_families
from lorimer.context.tokens.ratios import PLAUSIBLE, SMALLEST_SAMPLE, Ratios

CLAUDE = "anthropic:claude-opus-5-5"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens" / "ratios.json"


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("anthropic:claude-opus-5-5", "claude-2026"),
        ("anthropic:claude-fable-5-1", "claude-2026"),
        ("openrouter:anthropic/claude-opus-4-7", "claude-2026"),
        ("bridge:bedrock:eu.anthropic.claude-sonnet-5-20260901-v1:0", "claude-2026"),
        ("anthropic:claude-sonnet-4-6", "claude"),
        ("anthropic:claude-haiku-4-5", "claude"),
        ("openai:gpt-5.6-terra", "gpt"),
        ("openai-responses:o3", "gpt"),
        ("gemini:gemini-3.8-flash", "gemini"),
        ("qwen2.5-coder-1.5b", "qwen"),
        ("http://127.0.0.1:8080/v1#Some-Model", "v1#some-model"),
        ("ollama:granite4", "ollama:granite4"),
    ],
)
def test_models_with_one_tokenizer_are_one_family(model: str, family: str) -> None:
    assert family_of(model).name == family


def test_first_values_have_a_source_or_are_that_of_o200k_itself() -> None:
    for family in tokenizer_families():
        assert (family.source and family.as_of) or family.ratio == 1.0


def test_before_anything_was_measured_the_first_value_holds(file: Path) -> None:
    ratios = Ratios(file)
    assert (ratios.of(CLAUDE).value, ratios.of(CLAUDE).samples) == (1.6, 0)
    assert ratios.of("ollama:new").value == 1.0
    assert not file.parent.exists()  # reading makes nothing


def test_measurements_replace_it_and_are_there_in_the_next_process(file: Path) -> None:
    ratios = Ratios(file)
    for _ in range(3):
        assert ratios.learn(CLAUDE, 1300, 1000)
    assert ratios.save()
    again = Ratios(file).of("openrouter:anthropic/claude-sonnet-5")  # of the same family
    assert (again.value, again.samples) == (1.3, 3)
    assert Ratios(file).of("openai:gpt-5").samples == 0


def test_one_wild_measurement_moves_nothing(file: Path) -> None:
    ratios = Ratios(file)
    for _ in range(5):
        ratios.learn(CLAUDE, 1500, 1000)
    ratios.learn(CLAUDE, 3900, 1000)
    assert ratios.of(CLAUDE).value == 1.5


def test_what_no_tokenizer_does_and_what_is_too_small_is_not_taken(file: Path) -> None:
    ratios = Ratios(file)
    assert not ratios.learn(CLAUDE, 9000, 1000)
    assert not ratios.learn(CLAUDE, 10, 1000)
    assert not ratios.learn(CLAUDE, SMALLEST_SAMPLE, SMALLEST_SAMPLE - 1)
    assert ratios.of(CLAUDE).samples == 0


def test_counts_by_characters_are_learned_apart(file: Path) -> None:
    ratios = Ratios(file)
    for _ in range(9):
        ratios.learn("ollama:x", 2000, 1000, "characters")
    assert ratios.of("ollama:x", "characters").value == 2.0
    assert ratios.of("ollama:x").value == 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 50_000)), max_size=60))
def test_a_ratio_is_always_plausible(samples: list[tuple[int, int]]) -> None:
    ratios = Ratios(Path("/nonexistent/of/this/test"))  # nothing can be written there
    ratios._known = {}
    ratios.tell = lambda words: None
    for tokens, counted in samples:
        ratios.learn(CLAUDE, tokens, counted)
    found = ratios.of(CLAUDE)
    assert PLAUSIBLE[0] <= found.value <= PLAUSIBLE[1]
    assert found.samples <= 32


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"version": 7, "families": {}}',
        b'{"version": 1, "families": {"claude": {"samples": [[1, 0]]}}}',
        b'{"version": 1, "families": {"claude": {"samples": ["x"]}}}',
        b'{"version": 1, "families": {"claude": 3}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_told_of_put_aside_and_begun_anew(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    told: list[str] = []
    ratios = Ratios(file, tell=told.append)
    assert ratios.of(CLAUDE).value == 1.6
    (words,) = told
    assert str(file) in words and "ratios.json.broken" in words
    assert file.with_name("ratios.json.broken").read_bytes() == content
    assert ratios.learn(CLAUDE, 1300, 1000)
    assert json.loads(file.read_bytes())["families"] == {"claude-2026": {"samples": [[1300, 1000]]}}
    assert len(told) == 1


def test_a_file_that_cannot_be_written_is_told_of_once_and_counting_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("a file where the folder should be")
    told: list[str] = []
    ratios = Ratios(tmp_path / "tokens" / "ratios.json", tell=told.append)
    for _ in range(20):
        assert ratios.learn(CLAUDE, 1200, 1000)
    assert not ratios.save()
    assert ratios.of(CLAUDE).value == 1.2
    assert len(told) == 1
    assert "Counting goes on" in told[0] or "first values" in told[0]


def _learn(file: str, model: str, tokens: int, times: int) -> None:
    ratios = Ratios(Path(file))
    for _ in range(times):
        ratios.learn(model, tokens, 1000)
    assert ratios.save()


def test_two_processes_at_once_lose_nothing(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    jobs = [
        context.Process(target=_learn, args=(str(file), f"ollama:m{n}", 1000 + n, 12))
        for n in range(3)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
        assert job.exitcode == 0
    found = Ratios(file)
    for n in range(3):
        ratio = found.of(f"ollama:m{n}")
        assert (ratio.samples, ratio.value) == (12, (1000 + n) / 1000)
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".ratios")] == []


def test_a_lock_that_another_holds_never_keeps_a_request_waiting(file: Path) -> None:
    import fcntl

    ratios = Ratios(file)
    file.parent.mkdir()
    with (file.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert ratios.learn(CLAUDE, 1300, 1000)
        assert not file.exists()
        assert not ratios.save(wait=False)
    assert ratios.save()
    assert Ratios(file).of(CLAUDE).samples == 1
