"""Voices against injected instructions: what a call may do once outside content has been read.

The model is taken to be in the attacker's hands from then on. So nothing here reads what it says;
only what the call would do, where its values come from, and what the user's own words ask for.
`InjectionGuard` is the one that a session uses; the others are its parts, each usable alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Decision, Verdict
from lorimer.core.effects import Concern
from lorimer.safety.injection.actions import asked_for, verb_of
from lorimer.safety.injection.forms import prepared
from lorimer.safety.injection.provenance import CHOSEN, Origin, Source, trace
from lorimer.safety.injection.settings import InjectionSettings

_GRAVE = (
    Concern.NETWORK, Concern.DESTRUCTIVE, Concern.PRIVILEGE, Concern.PERSISTENCE, Concern.SECRETS,
    Concern.OUTSIDE, Concern.UNKNOWN, Concern.FORBIDDEN,
)  # fmt: skip
_KNOWN = frozenset(Source)
_SHOWN = 3
_SHOWN_CHARACTERS = 120


class Reach(StrEnum):
    """How far a call goes. `NONE`: it only looks at what is here. `LOOKUP`: it reads, and what it
    is given leaves. `OWN`: it changes the user's own things and can be undone. `ACT`: it cannot be
    undone, or tells or gives something to others."""

    NONE = "none"
    LOOKUP = "lookup"
    OWN = "own"
    ACT = "act"


def reach(facts: CallFacts) -> Reach:
    """How far this call goes, from what its tool declares and what the call itself would touch.

    An argument for other people that is left empty (an event without participants) takes the call
    out of `ACT`: it then stays with the user, unless the tool itself is outbound or irreversible.
    """
    traits, touches = facts.traits, facts.touches
    leaves = traits.outbound or any(_given(facts, n) for n in traits.host_arguments)
    grave = touches is not None and (bool(touches.hosts) or touches.has(*_GRAVE))
    if facts.level is Effects.READ:
        return Reach.LOOKUP if leaves or grave else Reach.NONE
    if facts.level is Effects.IRREVERSIBLE or leaves or grave:
        return Reach.ACT
    return Reach.ACT if any(_given(facts, name) for name in traits.sinks) else Reach.OWN


class InjectionGuard:
    """The policy of a session against injected instructions.

    Says nothing until outside content has been read. From then on a call runs without a question
    only when the user chose all that matters in it:

    - writes to memory or skills ask, always;
    - a call that cannot be undone or that reaches others: every value must be in the user's words,
      fill a pattern in them, or stand in the one trusted record they name; and they must ask for
      such an action;
    - a change of the user's own things that can be undone: the same of its targets (id, title, file
      name); its text is free, since it goes nowhere;
    - a read that leaves: the same of its addresses; of all its values once private data was read.
    """

    def __init__(self, settings: InjectionSettings | None = None) -> None:
        self.settings = settings or InjectionSettings()

    def decide(self, facts: CallFacts) -> Decision | None:
        if not facts.conversation.tainted_by:
            return None
        if facts.traits.memory and facts.level is not Effects.READ:
            return _memory(facts)
        far = reach(facts)
        if far is Reach.NONE:
            return None
        if far is Reach.LOOKUP:
            return self._lookup(facts)
        if far is Reach.OWN:
            return self._own(facts)
        return self._act(facts)

    def _act(self, facts: CallFacts) -> Decision | None:
        missing = trace(facts.arguments, facts.conversation).missing(CHOSEN)
        if missing:
            return self._unchosen(facts, missing, leaves=_leaves(facts))
        return self._unasked(facts)

    def _own(self, facts: CallFacts) -> Decision | None:
        targets = facts.traits.targets
        if not self.settings.reversible or not targets:
            return None
        found = trace(facts.arguments, facts.conversation, only=targets, loosely=True)
        missing = found.missing(CHOSEN)
        return self._unchosen(facts, missing) if missing else self._unasked(facts)

    def _lookup(self, facts: CallFacts) -> Decision | None:
        traits = facts.traits
        if not self.settings.links and not facts.conversation.private_from:
            return None
        only: tuple[str, ...] | None = (*traits.sinks, *traits.host_arguments)
        if facts.conversation.private_from or (facts.touches is not None and facts.touches.hosts):
            only = None
        missing = trace(facts.arguments, facts.conversation, only=only).missing(CHOSEN)
        return self._unchosen(facts, missing, leaves=True) if missing else None

    def _unchosen(
        self, facts: CallFacts, missing: Sequence[Origin], *, leaves: bool = False
    ) -> Decision:
        if leaves and facts.conversation.private_from:
            return _trifecta(facts, missing, self.settings.trifecta)
        return Decision(
            Verdict.ASK, "taint.provenance", f"{_read(facts)}, and {_values(missing)}.", _NEXT
        )

    def _unasked(self, facts: CallFacts) -> Decision | None:
        user = tuple(prepared(words) for words in facts.conversation.user_words)
        if not self.settings.intent or asked_for(facts.tool, user, self.settings.words):
            return None
        verb = verb_of(facts.tool)
        what = f"to {verb} anything" if verb else f"for what {facts.tool} does"
        return Decision(
            Verdict.ASK, "taint.intent",
            f"{_read(facts)}, and the user's words do not ask {what}.", _NEXT,
        )  # fmt: skip


class TaintGuard:
    """Calls that cannot be undone, and calls that leave, ask once outside content was read."""

    def decide(self, facts: CallFacts) -> Decision | None:
        if not facts.conversation.tainted_by or reach(facts) not in (Reach.ACT, Reach.LOOKUP):
            return None
        why = "cannot be undone" if facts.level is Effects.IRREVERSIBLE else "reaches others"
        return Decision(Verdict.ASK, "taint.act", f"{_read(facts)}, and this call {why}.", _NEXT)


class RuleOfTwo:
    """Every call that changes something, and every read that leaves, asks once outside content was
    read."""

    def decide(self, facts: CallFacts) -> Decision | None:
        if not facts.conversation.tainted_by or reach(facts) is Reach.NONE:
            return None
        return Decision(
            Verdict.ASK, "taint.rule_of_two",
            f"{_read(facts)}, and this call is not only a look at what is here.", _NEXT,
        )  # fmt: skip


class ProvenanceGuard:
    """Sinks (recipient, address, account, amount) must hold values from the user's words or from
    trusted data; with or without outside content."""

    def decide(self, facts: CallFacts) -> Decision | None:
        names = (*facts.traits.sinks, *facts.traits.host_arguments)
        missing = trace(facts.arguments, facts.conversation, only=names).missing(_KNOWN)
        if not missing:
            return None
        return Decision(Verdict.ASK, "provenance.sink", f"{_values(missing)}.", _NEXT)


class TrifectaGuard:
    """Private data, outside content, and a way out, all in one session: refused, or asked."""

    def __init__(self, verdict: Verdict = Verdict.ASK) -> None:
        self.verdict = verdict

    def decide(self, facts: CallFacts) -> Decision | None:
        said = facts.conversation
        if not said.tainted_by or not said.private_from or not _leaves(facts):
            return None
        missing = trace(facts.arguments, said).missing(CHOSEN)
        return _trifecta(facts, missing, self.verdict) if missing else None


class MemoryGuard:
    """What later sessions will read as instructions is not written by strangers: writes to memory
    and skills ask once outside content was read."""

    def decide(self, facts: CallFacts) -> Decision | None:
        writes = facts.traits.memory and facts.level is not Effects.READ
        return _memory(facts) if writes and facts.conversation.tainted_by else None


_NEXT = (
    "Ask the user to confirm it, or to give the value in their own words; go on with what needs no "
    "such call."
)


def _memory(facts: CallFacts) -> Decision:
    return Decision(
        Verdict.ASK, "taint.memory",
        f"{_read(facts)}, and this call writes what later sessions will take as instructions.",
        "Ask the user whether this may be remembered.",
    )  # fmt: skip


def _trifecta(facts: CallFacts, missing: Sequence[Origin], verdict: Verdict) -> Decision:
    private = _listed(facts.conversation.private_from)
    return Decision(
        verdict, "taint.trifecta",
        f"{_read(facts)}, private data was read ({private}), this call would carry data out, and "
        f"{_values(missing)}.",
        _NEXT if verdict is Verdict.ASK else
        "This is refused by the setting `trifecta`. Tell the user what you wanted to send, and "
        "where.",
    )  # fmt: skip


def _leaves(facts: CallFacts) -> bool:
    traits = facts.traits
    if traits.outbound or any(_given(facts, n) for n in (*traits.host_arguments, *traits.sinks)):
        return True
    touches = facts.touches
    return touches is not None and (bool(touches.hosts) or touches.has(Concern.NETWORK))


def _given(facts: CallFacts, argument: str) -> bool:
    return facts.arguments.get(argument) not in (None, "", [], {}, ())


def _read(facts: CallFacts) -> str:
    return f"content from outside was read ({_listed(facts.conversation.tainted_by)})"


def _listed(sources: Sequence[str]) -> str:
    shown = ", ".join(_short(source) for source in sources[:_SHOWN])
    rest = len(sources) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _values(missing: Sequence[Origin]) -> str:
    """The values, and what is wrong with them, as the end of a sentence."""
    told = [f"{o.where} {_short(repr(o.value))}" for o in missing[:_SHOWN]]
    if len(missing) > _SHOWN:
        told.append(f"{len(missing) - _SHOWN} more")
    one = len(missing) == 1
    if all(origin.source is Source.TRUSTED for origin in missing):
        what = "is" if one else "are"
        return f"{', '.join(told)} {what} in trusted data, but the user did not choose that"
    verb = "does" if one else "do"
    return f"{', '.join(told)} {verb} not come from the user's words or a record they name"


def _short(text: str) -> str:
    one = " ".join(text.split())
    if len(one) <= _SHOWN_CHARACTERS:
        return one
    return f"{one[:_SHOWN_CHARACTERS]}… ({len(one)} characters)"
