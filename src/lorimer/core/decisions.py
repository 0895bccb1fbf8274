"""Decisions about calls: the facts they rest on, what is answered, and who may be asked."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from lorimer.core.calls import Effects
from lorimer.core.effects import CallEffects


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """Higher is stricter."""
        return ("allow", "ask", "deny").index(self.value)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says, by which rule, and why. `next` tells the model what it can do
    instead. `review` (with `ask`): a reviewer's approval is enough; without a reviewer a person is
    asked."""

    verdict: Verdict
    rule: str
    reason: str
    next: str = ""
    review: bool = False


def strictest(decisions: Sequence[Decision]) -> Decision:
    """The strictest of at least one decision; the first of equals."""
    return max(decisions, key=lambda d: d.verdict.rank)


@dataclass(frozen=True, slots=True)
class Traits:
    """What the author of a tool declared about it, for decisions.

    Attributes:
        path_arguments: arguments that are paths.
        host_arguments: arguments that are URLs or host names it connects to.
        command_argument: the argument that is shell text; empty for none.
        sinks: arguments whose value decides where something goes (recipient, URL, account, amount):
            their values must come from the user's words or trusted data.
        outbound: what it is given leaves for other people or machines.
        private: its result holds data that is nobody else's business.
        external: its result holds content that a stranger could have written.
        memory: what it writes is read by later sessions as instructions (memory, skills).
        confirm: irreversible in two phases: the first call only shows and gives a token.
        server: the MCP server the tool comes from; empty for none.
        definition: digest of what the model was told of the tool.
        runs_code: it runs code that it is given (contained by the sandbox, but not known).
        confined: it opens its path arguments inside the session's roots only and refuses protected
            names itself (`lorimer.safety.paths`): asking about those would lead nowhere.
        secrets: names of the secrets that it may use, whatever the user's own list says.
        targets: arguments that say which thing is made or changed (id, title, file name); after
            outside content was read, their values must be what the user meant.
    """

    path_arguments: tuple[str, ...] = ()
    host_arguments: tuple[str, ...] = ()
    command_argument: str = ""
    sinks: tuple[str, ...] = ()
    outbound: bool = False
    private: bool = False
    external: bool = False
    memory: bool = False
    confirm: bool = False
    server: str = ""
    definition: str = ""
    runs_code: bool = False
    confined: bool = False
    secrets: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


class Conversation(Protocol):
    """What a session has seen, as far as decisions need it. Nothing of it is the model's prose."""

    @property
    def user_words(self) -> Sequence[str]:
        """The user's own messages, oldest first."""
        ...

    @property
    def trusted_texts(self) -> Sequence[str]:
        """Results whose content is trusted."""
        ...

    @property
    def tainted_by(self) -> Sequence[str]:
        """Sources of external content that the model has read, each once."""
        ...

    @property
    def private_from(self) -> Sequence[str]:
        """Tools whose private results the model has read, each once."""
        ...


@dataclass(frozen=True, slots=True)
class NoConversation:
    """A `Conversation` in which nothing was said."""

    user_words: Sequence[str] = ()
    trusted_texts: Sequence[str] = ()
    tainted_by: Sequence[str] = ()
    private_from: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a decision may rest on. Nothing here is the model's prose.

    `effects` is what the tool's author declared; `touches.level` what this very call comes to.
    `paths` are the path arguments as given; `cwd` is the folder they start from; `roots` are the
    folders the session may work in (`cwd` first).
    """

    tool: str
    effects: Effects
    category: str
    arguments: Mapping[str, Any]
    paths: Sequence[str]
    principal: str
    session: str
    cwd: str
    roots: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    traits: Traits = field(default_factory=Traits)
    touches: CallEffects | None = None
    conversation: Conversation = field(default_factory=NoConversation)
    group: str = ""

    @property
    def level(self) -> Effects:
        """What the call comes to, as a whole."""
        return self.effects if self.touches is None else self.touches.level


class Policy(Protocol):
    """What may run, must be asked, is refused."""

    @property
    def mode(self) -> str: ...

    def decide(self, facts: CallFacts) -> Decision: ...


class Assessor(Protocol):
    """Works out what a call would touch."""

    def assess(self, facts: CallFacts) -> CallEffects: ...


class Guard(Protocol):
    """One more voice beside the policy; the strictest voice counts."""

    def decide(self, facts: CallFacts) -> Decision | None:
        """`None`: nothing to say about this call."""
        ...


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked: the whole call, nothing cut.

    Attributes:
        id: of the stored request; empty when it is not stored.
        digest: of everything an answer is bound to (G5).
        preview: a diff or other picture of what would change, for people.
        files: content hash of each file the call names.
        news: what is new since the last approved call of this tool.
        remember_rule: the rule that "approve for this session" would make; empty when there is
            none.
        kind: `call`, or `breaker`: whether to go on at all after many rejections.
    """

    call_id: str
    facts: CallFacts
    reason: str
    id: str = ""
    digest: str = ""
    preview: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    news: str = ""
    remember_rule: str = ""
    expires_at: datetime | None = None
    kind: str = "call"


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer to exactly one request.

    Attributes:
        for_session: the person also approved the request's `remember_rule`, for this session.
        edited: arguments to use instead, as JSON; they are validated again.
    """

    approved: bool
    by: str
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    for_session: bool = False
    edited: Mapping[str, Any] | None = None


class Approver(Protocol):
    """Someone who can answer an approval request."""

    def ask(self, request: ApprovalRequest) -> Coroutine[Any, Any, Approval]:
        """Cancellation means: not approved, and nothing was run. Who raises
        `lorimer.core.errors.Cancelled` gives no answer and stops the run."""
        ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a sidecar or reviewer says of one call. `verdict` `None`: it came to none (time-out,
    outage, unreadable), and a person is asked."""

    verdict: Verdict | None
    by: str
    reason: str


class Sidecar(Protocol):
    """The light check of a call beside the stream; it sees the facts and the user's words only."""

    def judge(self, facts: CallFacts, decision: Decision) -> Coroutine[Any, Any, Opinion]: ...


class Reviewer(Protocol):
    """A second model that approves or rejects a call before it runs."""

    def review(
        self, facts: CallFacts, decision: Decision, preview: str
    ) -> Coroutine[Any, Any, Opinion]: ...
