"""What went wrong with a request, as one of the errors of `core.errors`.

Pure: a status, headers and a body in, an exception out. No message ever contains the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lorimer.core.errors import (
    AuthenticationFailed,
    ContextTooLong,
    ModelError,
    ProviderFailed,
    RateLimited,
    RequestRefused,
    UnknownModel,
)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is asked: for messages, and so that `secret` is kept out of them."""

    provider: str
    model: str
    host: str = ""
    key_env: str = ""
    secret: str = field(default="", repr=False)


# Words that providers use in errors -> the HTTP status that means the same.
# https://platform.claude.com/docs/en/api/errors
# https://developers.openai.com/api/docs/guides/error-codes
# https://ai.google.dev/gemini-api/docs/troubleshooting
_STATUS_OF = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "UNAUTHENTICATED": 401,
    "API_KEY_INVALID": 401,
    "permission_error": 403,
    "PERMISSION_DENIED": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "NOT_FOUND": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "RESOURCE_EXHAUSTED": 429,
    "overloaded_error": 529,
    "overloaded": 529,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "timeout_error": 504,
    "DEADLINE_EXCEEDED": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
}
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG = re.compile(
    r"context.{0,12}(length|window|size)|maximum context|prompt is too long"
    r"|too many (input )?tokens|input token count.{0,40}exceed|exceeds the (available )?context",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"\bmodels?\b", re.IGNORECASE)
_NO_SUCH_MODEL = re.compile(
    r"model.{0,80}(not (exist|found|supported)|does not exist|unknown)|(unknown|invalid) model",
    re.IGNORECASE,
)
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|key|AIza)[-_A-Za-z0-9*.]{8,}|Bearer\s+\S+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Told:
    """What an error body says: the provider's words for the kind of fault, and its message."""

    codes: tuple[str, ...]
    message: str
    retry_after_s: float | None = None


def read_error(value: Any) -> Told:
    """What the parsed error body (or error event) `value` says, whatever its shape."""
    if isinstance(value, list):
        value = value[0] if value else {}
    if not isinstance(value, dict):
        return Told((), str(value) if value else "")
    inner = value.get("error", value)
    if not isinstance(inner, dict):
        return Told(_words(value), str(inner))
    message = inner.get("message") or inner.get("detail") or value.get("message") or ""
    return Told(
        _words(inner) or _words(value),
        message if isinstance(message, str) else json.dumps(message),
        _retry_info(inner.get("details")),
    )


def _words(record: Mapping[str, Any]) -> tuple[str, ...]:
    words = [record.get(key) for key in ("code", "type", "status")]
    details = record.get("details")
    if isinstance(details, list):
        words += [d.get("reason") for d in details if isinstance(d, dict)]
    return tuple(str(w) for w in words if isinstance(w, str | int) and not isinstance(w, bool))


def _retry_info(details: Any) -> float | None:
    """Google's `RetryInfo`: `{"retryDelay": "34s"}`."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from `Retry-After` as seconds or as an HTTP date (RFC 9110 section 10.2.3),
    or from `retry-after-ms`. `headers` must have lower-case names."""
    milliseconds = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d+(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def status_fault(
    status: int, headers: Mapping[str, str], body: bytes, peer: Peer, now: datetime
) -> ModelError:
    """The error for an HTTP answer that is not 200."""
    text = body.decode("utf-8", "replace")
    try:
        told = read_error(json.loads(text))
    except ValueError:
        told = Told((), "" if text.lstrip().startswith("<") else text)
    wait = retry_after_s(headers, now)
    return make_fault(status, told, peer, wait if wait is not None else told.retry_after_s)


def told_fault(value: Any, peer: Peer) -> ModelError:
    """The error for an error event inside a stream."""
    told = read_error(value)
    status = next((_STATUS_OF[w] for w in told.codes if w in _STATUS_OF), None)
    if status is None:
        numbers = [int(w) for w in told.codes if w.isdigit() and 400 <= int(w) < 600]
        status = numbers[0] if numbers else 500
    return make_fault(status, told, peer, told.retry_after_s)


def make_fault(status: int, told: Told, peer: Peer, wait_s: float | None) -> ModelError:
    """The error for a fault with HTTP status `status`, real or equivalent."""
    says = scrub(told.message, peer.secret)
    who = peer.provider or peer.host
    tail = f": {says}" if says else "."
    implied = {_STATUS_OF[w] for w in told.codes if w in _STATUS_OF}
    if status in (401, 403) or 401 in implied:
        return _no_access(status, says, peer)
    says_long = status in (400, 413, 422) and (_TOO_LONG.search(told.message) or status == 413)
    if says_long or _TOO_LONG_CODES.intersection(told.codes):
        return ContextTooLong(
            f"The request does not fit {peer.model} ({who} answered {status}){tail}",
            next="Compact the session, or use a model with a larger context window.",
        )
    if _is_unknown_model(status, told):
        return UnknownModel(
            f"{who} does not know the model {peer.model!r}{tail}",
            next="Check the name against the provider's list of models.",
        )
    if status == 429:
        limited = RateLimited(
            f"{who} refused the request for now (429){tail}",
            next=f"Wait {wait_s:g} s."
            if wait_s is not None
            else "Wait, or ask for a higher limit.",
            retry_after_s=wait_s,
        )
        if "insufficient_quota" in told.codes:
            limited.retryable = False
            limited.next = "The account has no quota left: top it up, or use another key."
        return limited
    if status >= 500 or status == 408:
        return ProviderFailed(
            f"{who} failed ({status}){tail}",
            next="Ask again later; nothing is wrong with the request.",
            retry_after_s=wait_s,
        )
    if 300 <= status < 400:
        return RequestRefused(
            f"{who} answered {status}, a redirect; requests with a key are not redirected.",
            next="Set the base URL to the address it redirects to.",
        )
    return RequestRefused(
        f"{who} refused the request ({status}){tail}",
        next="The same request will be refused again; change what the message names.",
    )


def _no_access(status: int, says: str, peer: Peer) -> AuthenticationFailed:
    where = f"the environment variable {peer.key_env}" if peer.key_env else "the key of this model"
    who = peer.provider or peer.host
    # A 401 says nothing beyond "wrong key", and some providers quote a part of the key in it.
    tail = f": {says}" if says and status == 403 else "."
    state = "was refused" if peer.secret else "is missing"
    return AuthenticationFailed(
        f"{who} answered {status}: the key {state}{tail}", next=f"Check {where}."
    )


def _is_unknown_model(status: int, told: Told) -> bool:
    if "model_not_found" in told.codes:
        return True
    if status == 404:
        return bool(_NO_MODEL.search(told.message))
    return status in (400, 422) and bool(_NO_SUCH_MODEL.search(told.message))


def scrub(text: str, secret: str, limit: int = 400) -> str:
    """`text` without `secret` and without anything that looks like a key, at most `limit` long."""
    if secret:
        text = text.replace(secret, "[key]")
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    return text if len(text) <= limit else text[:limit] + " […]"
