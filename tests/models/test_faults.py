"""Bodies of errors, in every shape that servers use."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lorimer.core.errors import (
    AuthenticationFailed,
    ContextTooLong,
    ModelError,
    ProviderFailed,
    RateLimited,
    RequestRefused,
    UnknownModel,
)
from lorimer.models.faults import Peer, retry_after_s, scrub, status_fault, told_fault

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SECRET = "sk-abcdefghijklmnop0123"
PEER = Peer("somebody", "some-model", "api.example.org", "SOME_API_KEY", SECRET)


def fault(status: int, body: Any, headers: dict[str, str] | None = None) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status_fault(status, headers or {}, data, PEER, NOW)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, ContextTooLong),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds the available context size",
                }
            },
            ContextTooLong,
        ),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
            ContextTooLong,
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1200000) exceeds the maximum of 1048576.",
                    "status": "INVALID_ARGUMENT",
                }
            },
            ContextTooLong,
        ),
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "status": "INVALID_ARGUMENT",
                        "message": "API key not valid.",
                        "details": [{"reason": "API_KEY_INVALID"}],
                    }
                }
            ],
            AuthenticationFailed,
        ),
        (
            400,
            {"error": {"message": "Model Not Exist", "type": "invalid_request_error"}},
            UnknownModel,
        ),
        (404, {"error": "model 'qwen9' not found"}, UnknownModel),
        (404, {"error": {"message": "model 'q' not found", "type": "api_error"}}, UnknownModel),
        (
            404,
            {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-9"}},
            UnknownModel,
        ),
        (404, {"detail": "Not Found"}, RequestRefused),
        (402, {"error": {"message": "Insufficient Balance"}}, RequestRefused),
        (422, {"detail": [{"loc": ["body"], "msg": "extra"}]}, RequestRefused),
        (408, b"", ProviderFailed),
        (502, b"<html>Bad gateway</html>", ProviderFailed),
        (500, {"object": "error", "message": "boom"}, ProviderFailed),
        (429, "slow down", RateLimited),
        (418, b"\xff\xfe", RequestRefused),
        (500, None, ProviderFailed),
        (500, [], ProviderFailed),
        (500, {"error": None}, ProviderFailed),
    ],
)
def test_shapes_of_error_bodies(status: int, body: Any, expected: type[ModelError]) -> None:
    caught = fault(status, body)
    assert type(caught) is expected
    assert caught.next and "html" not in str(caught)


def test_exhausted_quota_is_not_asked_again() -> None:
    caught = fault(429, {"error": {"code": "insufficient_quota", "message": "no quota"}})
    assert isinstance(caught, RateLimited) and not caught.retryable
    assert RateLimited.retryable


def test_google_tells_the_pause_in_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    caught = fault(
        429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}
    )
    assert caught.retry_after_s == 34.5


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "12"}, 12),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {SECRET}.",
        "Incorrect API key provided: sk-ab***********0123",
        "key AIzaSyA-abcdefghijklmnopqrstuvwxyz failed",
        "Authorization: Bearer something-long-here",
    ],
)
def test_no_key_is_left_in_a_message(text: str) -> None:
    out = scrub(text, SECRET)
    assert "[key]" in out
    assert not any(part in out for part in (SECRET, "0123", "AIza", "something-long"))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_key_that_looks_like_a_word_is_not_shown_either(status: int) -> None:
    peer = Peer("somebody", "m", key_env="SOME_API_KEY", secret="plainwordkey77")
    body = json.dumps({"error": {"message": "bad key plainwordkey77, ends in ey77"}}).encode()
    shown = str(status_fault(status, {}, body, peer, NOW))
    assert "plainword" not in shown
    if status == 401:
        assert "ey77" not in shown  # A part of a key, quoted by the provider.


def test_messages_are_bounded_and_on_one_line() -> None:
    out = scrub("a\nb " * 1000, "")
    assert len(out) < 420 and "\n" not in out


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"error": {"type": "overloaded_error", "message": "x"}}, ProviderFailed),
        ({"error": {"type": "rate_limit_error", "message": "x"}}, RateLimited),
        ({"error": {"message": "x", "code": 429}}, RateLimited),
        ({"error": {"message": "x", "code": 503}}, ProviderFailed),
        ({"code": "context_length_exceeded", "message": "x", "type": "error"}, ContextTooLong),
        ({"error": {"type": "authentication_error", "message": "x"}}, AuthenticationFailed),
        ({"error": {"message": "mystery"}}, ProviderFailed),
        ({"error": "mystery"}, ProviderFailed),
    ],
)
def test_error_events(event: Any, expected: type[ModelError]) -> None:
    assert type(told_fault(event, PEER)) is expected
