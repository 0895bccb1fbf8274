"""Decisions about calls: what a policy answers, what an approver is asked, and their protocols."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from lorimer.core.calls import Effects


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says, by which rule, and why. `next` tells the model what it can do
    instead."""

    verdict: Verdict
    rule: str
    reason: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a decision may rest on. Nothing here is the model's prose.

    `paths` are the path arguments as given; `cwd` is the folder they start from.
    """

    tool: str
    effects: Effects
    category: str
    arguments: Mapping[str, Any]
    paths: Sequence[str]
    principal: str
    session: str
    cwd: str


class Policy(Protocol):
    """What may run, must be asked, is refused."""

    @property
    def mode(self) -> str: ...

    def decide(self, facts: CallFacts) -> Decision: ...


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked: the whole call, nothing cut."""

    call_id: str
    facts: CallFacts
    reason: str


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer to exactly one request."""

    approved: bool
    by: str
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Approver(Protocol):
    """Someone who can answer an approval request."""

    def ask(self, request: ApprovalRequest) -> Coroutine[Any, Any, Approval]:
        """Cancellation means: not approved, and nothing was run."""
        ...
