"""What went wrong behind the bridge, as one of the errors of `core.errors`.

pydantic-ai names the kind of most faults; the words and the statuses are read as on our own wires.
No message holds the key: what a provider says is scrubbed, and its exception is not chained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import (
    AuthenticationFailed,
    BadAnswer,
    ConfigError,
    InvalidRequest,
    LorimerError,
    ModelError,
    ProviderFailed,
    ProviderUnreachable,
    StreamCut,
    UnknownModel,
)
from lorimer.models.faults import Peer, make_fault, read_error, scrub

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

# Kind of fault in pydantic-ai -> the status that means the same, and a code that says so.
_KINDS: Mapping[str, tuple[int, str]] = {
    "ModelContextWindowExceededError": (400, "context_length_exceeded"),
    "ModelAuthenticationError": (401, ""),
    "ModelNotFoundError": (404, ""),
    "ModelQuotaExceededError": (429, "insufficient_quota"),
    "ModelRateLimitError": (429, ""),
    "ModelOverloadedError": (529, ""),
    "ModelUnavailableError": (503, ""),
    "ModelServerError": (500, ""),
    "ModelRequestRejectedError": (400, ""),
}


def fault_of(error: Exception, peer: Peer, *, begun: bool) -> LorimerError:
    """The error for what pydantic-ai, or the SDK below it, raised.

    Args:
        begun: whether a part of the answer had come.
    """
    from pydantic_ai import exceptions as pai

    says = scrub(str(error), peer.secret)
    match error:
        case LorimerError():
            return error
        case ExceptionGroup(exceptions=several) if isinstance(several[-1], Exception):
            return fault_of(several[-1], peer, begun=begun)  # a router: the last model it tried
        case pai.UserError():
            return InvalidRequest(f"pydantic-ai refuses this request for {peer.model}: {says}")
        case pai.ModelConnectionError() | pai.ModelRequestTimeout():
            return _broken(says, peer, begun=begun)
        case pai.ModelAPIError():
            return _api_fault(error, peer, begun=begun)
        case pai.UnexpectedModelBehavior():
            return BadAnswer(
                f"{peer.provider} answered with something that is no answer: {says}",
                next="Ask again.",
            )
    if _is_transport(error):
        return _broken(says or type(error).__name__, peer, begun=begun)
    return ModelError(
        f"The request to {peer.provider} failed inside its client ({type(error).__name__}): {says}",
        next="Check the settings that its client needs; lorimer asked only what stands above.",
    )


def _api_fault(error: ModelAPIError, peer: Peer, *, begun: bool) -> ModelError:
    kind = next((c.__name__ for c in type(error).__mro__ if c.__name__ in _KINDS), "")
    equivalent, code = _KINDS.get(kind, (0, ""))
    status = getattr(error, "status_code", equivalent)
    says = scrub(str(error), peer.secret)
    if not status:
        if isinstance(error.__cause__, ValueError):
            return BadAnswer(f"{peer.provider} sent what is not its protocol: {says}")
        if error.in_stream:
            return ProviderFailed(f"{peer.provider} failed: {says}", next="Ask again later.")
        return _broken(says, peer, begun=begun)
    told = read_error(error.body)
    words = (code, error.provider_error_code or "", error.provider_error_type or "", *told.codes)
    told = replace(told, codes=tuple(word for word in words if word))
    if code == "insufficient_quota":
        status = 429  # Some answer 402 or 400.
    if status in (401, 403) and not peer.secret:
        return AuthenticationFailed(
            f"{peer.provider} answered {status}: the credentials were refused.",
            next=f"Check the credentials of {peer.provider}.",
        )
    return make_fault(status, told, peer, error.retry_after)


def _broken(says: str, peer: Peer, *, begun: bool) -> ModelError:
    if begun:
        return StreamCut(
            f"The answer stopped before its end mark: {says}",
            next="Ask again; nothing of this answer was run.",
        )
    return ProviderUnreachable(
        f"{peer.provider} could not be asked: {says}", next="Check the address and the network."
    )


def _is_transport(error: Exception) -> bool:
    """An error of the HTTP client that an SDK let through. By name: whichever of them is used."""
    roots = {"httpx", "httpx2", "botocore", "urllib3", "grpc"}
    wanted = {"TransportError", "StreamError", "HTTPClientError", "HTTPError", "AioRpcError"}
    return any(
        c.__module__.partition(".")[0] in roots and c.__name__ in wanted
        for c in type(error).__mro__
    ) or isinstance(error, ConnectionError)


def opening_fault(error: Exception, name: str) -> LorimerError:
    """The error for a name that pydantic-ai could not make a model of."""
    says = scrub(str(error), "")
    if isinstance(error, ImportError):
        return ConfigError(
            f"bridge:{name} needs a package that is not installed: {says}",
            next="The extra 'bridge' brings the providers that speak OpenAI's wire.",
        )
    if says.startswith("Unknown"):
        return UnknownModel(
            f"pydantic-ai knows no model {name!r}: {says}",
            next="Write bridge:PROVIDER:MODEL, with a provider of pydantic-ai.",
        )
    if any(
        word in says.lower() for word in ("api_key", "api key", "environment variable", "token")
    ):
        return AuthenticationFailed(f"bridge:{name} needs a key, and there is none.", next=says)
    return ConfigError(f"pydantic-ai cannot make a model of {name!r}: {says}")


def peer_of(model: Any, name: str) -> Peer:
    """Who is asked, with the key as far as it can be found, so that it is kept out of messages."""
    provider = getattr(model, "provider", None)
    client = getattr(provider, "client", None)
    key = getattr(client, "api_key", None)
    system = getattr(provider, "name", None) or name
    return Peer(system, str(model.model_name), secret=key if isinstance(key, str) else "")
