"""Known values are found however they are encoded and wherever they are cut."""

from __future__ import annotations

import base64
import html
import itertools
import json
import logging
import random
import re
import sys
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.safety.secrets.logs import RedactingFilter
from lorimer.safety.secrets.redactor import Redactor

VALUE = 'p4s$w/rd+"ü\\ <&>=?'
MARK = "[secret:db]"
KEY = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN4"

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json utf-8": lambda v: json.dumps({"a": v}, ensure_ascii=False),
    "repr": repr,
    "url": lambda v: quote(v, safe=""),
    "url path": quote,
    "url form": quote_plus,
    "url small": lambda v: quote(v, safe="").lower() if v.islower() else quote(v),
    "query": lambda v: urlencode({"q": v}),
    "html": html.escape,
    "hex": lambda v: v.encode().hex(),
    "HEX": lambda v: v.encode().hex().upper(),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64url": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
}


def redactor(**values: str) -> Redactor:
    return Redactor({value: f"[secret:{name}]" for name, value in values.items()})


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize(
    "value", [VALUE, "tok-12345678", "correct horse battery", "密码密码密码密码"]
)
def test_a_value_is_found_in_every_encoding(encode: Callable[[str], str], value: str) -> None:
    clean = redactor(db=value).redact(f"before {encode(value)} after")
    assert MARK in clean and clean.startswith("before ") and clean.endswith(" after")
    assert value not in clean and encode(value) not in clean


@given(
    before=st.binary(max_size=9),
    after=st.binary(max_size=9),
    value=st.text(min_size=8, max_size=40),
)
def test_base64_of_something_longer_is_found_at_each_alignment(
    before: bytes, after: bytes, value: str
) -> None:
    try:
        whole = before + value.encode() + after
    except UnicodeEncodeError:
        return
    if not value.strip() or len(value.strip()) < 8:
        return
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert MARK in redactor(db=value).redact(encode(whole).decode())


def test_the_longest_value_gives_the_name() -> None:
    both = redactor(short="abcdefgh", long="abcdefgh-and-more")
    assert both.redact("x abcdefgh-and-more y abcdefgh z") == "x [secret:long] y [secret:short] z"


def test_overlapping_values_leave_nothing_behind() -> None:
    both = redactor(one="12345678abcd", two="abcd12345678")
    assert both.redact("<12345678abcd12345678>") == "<[secret:one]>"
    assert redactor(a="aaaaaaaa").redact("a" * 20) == "[secret:a][secret:a]aaaa"


def test_a_key_inside_a_known_value_and_around_it() -> None:
    assert redactor(gh=KEY).redact(f"a {KEY} b") == "a [secret:gh] b"
    inside = KEY[10:30]
    assert redactor(part=inside).redact(f"a {KEY} b") == "a [secret:part] b", "nothing of it stays"


def test_short_values_are_not_looked_for() -> None:
    text = "1234567 and 12345678"
    assert redactor(short="1234567").redact(text) is text
    assert redactor(long="12345678").redact(text) == "1234567 and [secret:long]"


def test_long_lines_of_a_value_are_found_by_themselves() -> None:
    value = "-----BEGIN X-----\nMIIBVgIBADANBgkqhkiG9w\nshort\n-----END X-----\n"
    clean = redactor(key=value).redact("12: MIIBVgIBADANBgkqhkiG9w\n-----END X-----\nshort")
    assert clean == "12: [secret:key]\n-----END X-----\nshort"
    assert redactor(key=value).redact(value.strip()) == "[secret:key]"


def test_bytes_that_are_no_text_are_kept() -> None:
    assert redactor(db=VALUE).redact(b"\xff\x00" + VALUE.encode() + b"\xfe") == (
        b"\xff\x00[secret:db]\xfe"
    )
    plain = b"\xff nothing here"
    assert redactor(db=VALUE).redact(plain) is plain


def test_json_values_and_keys() -> None:
    clean = redactor(db=VALUE).redact_json({VALUE: [1, None, {"a": f"x{VALUE}"}], "b": 2.5})
    assert clean == {MARK: [1, None, {"a": f"x{MARK}"}], "b": 2.5}


def test_redacting_twice_changes_nothing_more() -> None:
    once = redactor(db=VALUE).redact(f"{VALUE} {KEY} {json.dumps(VALUE)}")
    assert redactor(db=VALUE).redact(once) is once


# --- streams -------------------------------------------------------------------------------------


PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + ("A1b2C3d4" * 8 + "\n") * 6 + "Zz9=\n" + (
    "-----END RSA PRIVATE KEY-----"
)  # fmt: skip
STREAMED = (
    f"start {VALUE} a {json.dumps(VALUE)}\n{KEY}\nprogress 10 %\r20 %\n{PEM}\n"
    f"aws_secret_access_key = {'wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzQWERTYUI'}\n"
    f"url https://u:{KEY[:9]}@host/ {base64.b64encode(VALUE.encode() * 2).decode()} end"
)


def pieces(text: str, cuts: list[int]) -> list[str]:
    at = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(at)]


PUBLIC = [w[:n] for w in ("ghp_", "-----BEGIN ", "://") for n in range(1, len(w) + 1)]
BEGINNINGS = f"(?:.{{1,2}}|{'|'.join(PUBLIC)})?"


def check_stream(text: str, cut: list[str]) -> None:
    """`cut` in a stream gives what the whole gives, but for a beginning that gives nothing away."""
    known = redactor(db=VALUE)
    stream = known.stream()
    out = "".join(map(stream.feed, cut)) + stream.end()
    whole = re.split(r"(\[(?:secret|redacted): ?[\w ]+\])", known.redact(text))
    expected = "".join(
        BEGINNINGS + re.escape(part) if at % 2 else re.escape(part) for at, part in enumerate(whole)
    )
    assert re.fullmatch(expected, out, re.DOTALL), out


@given(cuts=st.lists(st.integers(0, 10_000), max_size=30))
def test_a_stream_gives_what_the_whole_text_gives(cuts: list[int]) -> None:
    check_stream(STREAMED, pieces(STREAMED, cuts))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_stream_of_small_pieces(size: int) -> None:
    check_stream(STREAMED, [STREAMED[a : a + size] for a in range(0, len(STREAMED), size)])


@given(st.data())
def test_a_key_cut_anywhere_leaves_its_beginning_at_most(data: st.DataObject) -> None:
    secret = data.draw(st.sampled_from([VALUE, KEY, PEM, json.dumps(VALUE)[1:-1]]))
    at = data.draw(st.integers(1, len(secret) - 1))
    stream = redactor(db=VALUE).stream()
    out = stream.feed(f"a {secret[:at]}") + stream.feed(f"{secret[at:]} b\n") + stream.end()
    assert re.fullmatch(rf"a {BEGINNINGS}\[[^]]+\] b\n", out), out


def test_pieces_without_secrets_are_let_through_as_they_are() -> None:
    stream = redactor(db=VALUE).stream()
    for piece in (
        "one",
        "{'two': 2}",
        "line\n",
        "50 %",
        "\r60 %",
        "p",
        "http://host/a",
        "---",
        "e",
    ):
        assert stream.feed(piece) == piece
    assert stream.end() == ""
    assert stream.feed("x p4s") == "x ", "it may be a value"
    assert stream.feed("t ") == "p4st ", "it was not"


def test_what_is_held_back_is_bounded() -> None:
    stream = redactor(db=VALUE).stream()
    text = "x" * 100_000
    out = "".join(stream.feed(text[at : at + 1000]) for at in range(0, len(text), 1000))
    assert len(out) > 80_000 and out + stream.end() == text
    endless = redactor(db=VALUE).stream()
    out = endless.feed(PEM[:96]) + "".join(endless.feed("A1b2C3d4" * 8 + "\n") for _ in range(2000))
    assert out.startswith("[redacted: private key]") and len(out) > 60_000, "that is no key"


# --- cost ----------------------------------------------------------------------------------------


def steps(work: Callable[[], object]) -> int:
    """Calls and lines of Python that `work` takes: the same on every machine."""
    count = 0

    def trace(*_: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return count


HARD = [
    "-----BEGIN PRIVATE KEY-----\n",
    "eyJ",
    "eyJhbGciOiJI.eyJ",
    "://a:",
    "sk-proj-",
    "ghp_aaaa ",
    "Authorization: Bearer ",
    "secret_access_key = ",
    "AKIA",
]


@pytest.mark.parametrize("piece", HARD)
def test_work_grows_with_the_text_only(piece: str) -> None:
    known = redactor(db=VALUE)
    known.redact(piece * 100)  # shapes are made once
    small, large = (steps(lambda n=n: known.redact(piece * n)) for n in (500, 2000))
    assert large < 4.5 * small


# --- logs ----------------------------------------------------------------------------------------


def test_log_records_are_redacted_with_arguments_and_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("a.library")
    logger.addFilter(redacting := RedactingFilter(redactor(db=VALUE).redact))
    try:
        logger.warning("token %s of %d", VALUE, 3)
        logger.warning("bad %d", "no number")
        try:
            raise ValueError(f"refused: {VALUE}")
        except ValueError:
            logger.exception("failed")
    finally:
        logger.removeFilter(redacting)
    assert "token [secret:db] of 3" in caplog.text and "refused: [secret:db]" in caplog.text
    assert "do not fit" in caplog.text and VALUE not in caplog.text


def test_a_large_text_keeps_every_other_character() -> None:
    source = random.Random(7)
    words = ["".join(source.choices("abcdefghij ", k=30)) for _ in range(2000)]
    text = VALUE.join(words)
    assert redactor(db=VALUE).redact(text) == MARK.join(words)
