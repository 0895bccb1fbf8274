"""Errors of lorimer: one class per kind of fault, each with what to do next.

An error message says what was wrong and with which value; `next` says what to do about it.
The command line prints both and ends with `exit_code`.
"""

from __future__ import annotations

from typing import Any


class LorimerError(Exception):
    """Base of every error that lorimer raises on purpose.

    Args:
        message: what was wrong, with which value.
        next: what the reader can do now; empty when nothing helps.
    """

    exit_code = 1

    def __init__(self, message: str, *, next: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next = next
        self.run: Any = None
        """What the run that it ended had done (`RunResult`), where it ended one."""

    def __str__(self) -> str:
        return f"{self.message} {self.next}".rstrip() if self.next else self.message


class UsageFault(LorimerError):
    """The caller asked for something that cannot be asked for (bad option, bad argument)."""

    exit_code = 2


class ConfigError(LorimerError):
    """A configuration file, environment variable or profile is wrong."""

    exit_code = 2


class MissingExtra(LorimerError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"For {what} the optional part '{extra}' is needed; it is not installed.",
            next=f"Install it with: pip install 'lorimer[{extra}]'",
        )
        self.extra = extra


class ToolDefinitionError(LorimerError):
    """A tool cannot be registered: its name, schema or declaration is wrong."""

    exit_code = 2


class StoreError(LorimerError):
    """The store cannot be opened, read or written."""

    exit_code = 5


class StoreReadOnly(StoreError):
    """The store, or the folder it lies in, cannot be written."""


class StoreFull(StoreError):
    """No space is left on the disk of the store."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of lorimer."""


class StoreCorrupt(StoreError):
    """The file is not a store, or its pages are damaged."""


class SessionBusy(StoreError):
    """Another process is running this session."""

    exit_code = 6


class SessionNotFound(StoreError):
    """No session has this id."""

    exit_code = 2


class ModelError(LorimerError):
    """A model could not answer. `retryable` says whether the same request may be sent again."""

    exit_code = 4
    retryable = False
    retry_after_s: float | None = None


class UnknownModel(ModelError):
    """No model has this name."""

    exit_code = 2


class AuthenticationFailed(ModelError):
    """The provider refused the key (401 or 403)."""


class ProviderUnreachable(ModelError):
    """No connection could be made, or it broke before the answer began."""

    retryable = True


class RateLimited(ModelError):
    """The provider answered 429."""

    retryable = True

    def __init__(self, message: str, *, next: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, next=next)
        self.retry_after_s = retry_after_s


class ProviderFailed(ModelError):
    """The provider answered 5xx, or reported an error of its own inside the stream."""

    retryable = True

    def __init__(self, message: str, *, next: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, next=next)
        self.retry_after_s = retry_after_s


class RequestRefused(ModelError):
    """The provider answered 4xx: this request will never be accepted as it is."""


class ContextTooLong(RequestRefused):
    """The request does not fit the model's context window."""


class StreamCut(ModelError):
    """The answer stopped before its end mark. Nothing of it may be run."""

    retryable = True


class BadAnswer(ModelError):
    """The provider sent something that is not its own protocol (bad JSON, bad UTF-8)."""

    retryable = True


class InvalidRequest(LorimerError):
    """A request that breaks a provider's message rules was about to be sent; it was not."""


class LimitReached(LorimerError):
    """A limit of the run (steps, cost, time) was reached."""

    exit_code = 7


class Cancelled(LorimerError):
    """The run was cancelled; the record is true and the session can go on."""

    exit_code = 130


class SandboxUnavailable(LorimerError):
    """The wanted sandbox level cannot be had here; nothing was run."""


class ApprovalError(LorimerError):
    """An approval request cannot be answered or used that way; nothing was changed."""

    exit_code = 8


class UnknownApproval(ApprovalError):
    """No approval request has this id."""

    exit_code = 2


class AlreadyAnswered(ApprovalError):
    """Somebody answered first, or it was closed: the first answer counts."""


class ApprovalExpired(ApprovalError):
    """The answer, or the use, comes after the deadline."""


class ApprovalSpent(ApprovalError):
    """It was used already, or somebody else used it at the same moment."""


class ApprovalVoid(ApprovalError):
    """What it was bound to is not what it is used for."""


class EditUnfit(ApprovalError):
    """The arguments that a person wrote do not fit the tool; the request is still open."""


class WrongPrincipal(ApprovalError):
    """Whoever answers may not: only the session's principal or an approver may."""
