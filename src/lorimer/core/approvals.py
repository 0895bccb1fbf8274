"""Approvals as records: what was asked, what it is bound to, who answered, what it was used for.

An approval is a capability (G5): it allows one call with these arguments, over these files, under
this policy, in this session, once, until it expires. What it is bound to is `binding`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lorimer.core.canonical import canonical_json, digest


class ApprovalKind(StrEnum):
    """What is decided: one `CALL`; going on after many rejections (`BREAKER`); the second phase of
    a tool that confirms (`CONFIRMATION`); or what a `SIDECAR` or `REVIEWER` said, kept as it is."""

    CALL = "call"
    BREAKER = "breaker"
    CONFIRMATION = "confirmation"
    SIDECAR = "sidecar"
    REVIEWER = "reviewer"


class ApprovalState(StrEnum):
    """`OPEN` waits for an answer. `APPROVED` waits for its one use, `SPENT` has had it. `VOID`:
    what it was bound to changed. `WITHDRAWN`: whoever asked does not want it any more.
    `NO_VERDICT`: the sidecar or reviewer came to none; `REFERRED`: it wants a person to look."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    SPENT = "spent"
    VOID = "void"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    NO_VERDICT = "no_verdict"
    REFERRED = "referred"


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """One request and what became of it.

    Attributes:
        root: the session at the top of the lineage: of a sub-agent, the one that started it all.
        call: id of the call that asked; another call with the same binding may use the answer.
        binding: digest of what the approval is bound to, without the deadline: how it is found.
        digest: of the binding and the deadline: what the person saw.
        request: all that was shown, as JSON (`request_json`).
        answer: who answered, when it was, why; `for_session`, `edited` where the person said so.
        closing: why it was closed, or the call that used it.
    """

    id: str
    session: str
    root: str
    kind: ApprovalKind
    call: str
    tool: str
    principal: str
    binding: str
    digest: str
    state: ApprovalState
    asked_at: datetime
    expires_at: datetime | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    answered_at: datetime | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)
    closed_at: datetime | None = None
    closing: Mapping[str, Any] = field(default_factory=dict)

    def state_at(self, now: datetime) -> ApprovalState:
        """The state, with the deadline looked at."""
        live = self.state in (ApprovalState.OPEN, ApprovalState.APPROVED)
        if live and self.expires_at is not None and now >= self.expires_at:
            return ApprovalState.EXPIRED
        return self.state

    @property
    def by(self) -> str:
        return str(self.answer.get("by", ""))

    @property
    def reason(self) -> str:
        return str(self.answer.get("reason", ""))

    @property
    def edited(self) -> Mapping[str, Any] | None:
        found = self.answer.get("edited")
        return found if isinstance(found, Mapping) else None


@dataclass(frozen=True, slots=True)
class Bound:
    """Everything an approval of a call is bound to, but for its deadline.

    Attributes:
        definition: digest of what the model was told of the tool.
        files: content hash of each file that the call names, by resolved path; of a pattern, or of
            a folder that is deleted (with `/` at its end), the names that it stands for (`listed`).
        paths: the resolved paths, with how each is used, e.g. `write /home/a/notes.md`.
        effects: what the call was judged to do (`CallEffects.to_json`).
        policy: mode and digest of the policy.
        sandbox: the level that commands run in.
    """

    tool: str
    definition: str
    arguments: Mapping[str, Any]
    files: Mapping[str, str]
    paths: Sequence[str]
    effects: Mapping[str, Any]
    policy: str
    sandbox: str
    session: str
    principal: str

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool, "definition": self.definition, "arguments": dict(self.arguments),
            "files": dict(self.files), "paths": list(self.paths), "effects": dict(self.effects),
            "policy": self.policy, "sandbox": self.sandbox, "session": self.session,
            "principal": self.principal,
        }  # fmt: skip

    @property
    def binding(self) -> str:
        return digest(canonical_json(self.to_json()))


def full_digest(binding: str, expires_at: str) -> str:
    """The digest that stands in a request: of the binding and the deadline (RFC 3339)."""
    return digest(canonical_json([binding, expires_at]))


_CHANGES = {
    "tool": "another tool is called",
    "definition": "the definition of the tool changed",
    "arguments": "the arguments changed",
    "effects": "what the call would do changed",
    "policy": "the policy changed",
    "sandbox": "the sandbox changed",
    "session": "it is another session",
    "principal": "it is another principal",
}


def what_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """In words, what differs between two `Bound.to_json()`; files by their names first."""
    out: list[str] = []
    old, new = before.get("files", {}), after.get("files", {})
    for path in sorted({*old, *new}):
        if old.get(path) != new.get(path):
            out.append(f"{path} {_file_change(old.get(path), new.get(path))}")
    gone = [p for p in before.get("paths", ()) if p not in after.get("paths", ())]
    if gone and not out:
        out.append(f"{gone[0]} does not lead where it did")
    for key, words in _CHANGES.items():
        if before.get(key) != after.get(key) and not (key == "effects" and out):
            out.append(words)
    return out


def _file_change(before: str | None, after: str | None) -> str:
    old, new = names_in(before), names_in(after)
    if old is not None and new is not None:
        changes = [f"has {name} now" for name in new if name not in old]
        changes += [f"has {name} no more" for name in old if name not in new]
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        return ", ".join(changes[:5]) + more or "has other files now"
    if before in (None, ABSENT) and after not in (None, ABSENT):
        return "was made"
    if after in (None, ABSENT):
        return "was removed"
    return "changed"


ABSENT = "absent"
"""Stands for the content hash of a file that does not exist."""

_LISTED = re.compile(r"(\d+) names?(?: \([0-9a-f]+\))?: (\[.*\])", re.DOTALL)


def listed(names: Sequence[str], count: int, mark: str = "") -> str:
    """Stands for a content hash where names count: `count` of them, of which `names` are the first;
    `mark` is the digest of all, in hex."""
    shown = json.dumps(list(names), ensure_ascii=False)
    return f"{count} name{'' if count == 1 else 's'}{f' ({mark})' if mark else ''}: {shown}"


def names_in(value: str | None) -> list[str] | None:
    """The names in a `listed` value; `None` when it is none."""
    found = None if value is None else _LISTED.fullmatch(value)
    return None if found is None else [str(name) for name in json.loads(found[2])]


def names_count(value: str) -> int:
    """How many names a `listed` value stands for."""
    found = _LISTED.fullmatch(value)
    return 0 if found is None else int(found[1])
