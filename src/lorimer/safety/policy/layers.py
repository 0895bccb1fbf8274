"""The layers and the policy made of them.

built-in < organisation < user < project < session. What a lower layer adds can only make the policy
stricter, unless a layer above it has named it in `delegate`: then its rules that allow count too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Effects
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.decisions import Assessor, CallFacts, Decision
from lorimer.core.errors import ConfigError
from lorimer.safety.injection.settings import InjectionSettings
from lorimer.safety.policy.decide import Judgement, judge
from lorimer.safety.policy.modes import MODES, assessed, check_mode, mode_voices, of_voices
from lorimer.safety.policy.rules import Place, Rule

if TYPE_CHECKING:
    from lorimer.safety.policy.examples import KnownTool
    from lorimer.safety.policy.load import Layer

ORGANISATION_FILE = Path("/etc/lorimer/policy.toml")
ORGANISATION_VARIABLE = "LORIMER_ORG_POLICY"
PROJECT_FILE = "lorimer.toml"
USER_FILE = "policy.toml"
_LARGEST = 1 << 20
DELEGATED_AT_FIRST = ("organisation", "user", "session")
"""Layers whose allowing rules count when no layer says otherwise: all but the project, whose files
may be a stranger's."""


class LayeredPolicy:
    """The policy of a mode and of layers of rules: a `core.decisions.Policy`.

    Args:
        mode: `plan`, `ask`, `auto` or `trusted`.
        layers: from the top down; the built-in one is not among them.
        place: the workspace and the home folder, which relative patterns start from.

    Raises:
        ConfigError: when there is no such mode, or a layer does not let it be used.
    """

    def __init__(self, mode: str, layers: Sequence[Layer] = (), *, place: Place) -> None:
        self.mode = check_mode(mode)
        self.layers = tuple(layers)
        self.place = place
        self.allowing = _allowing(self.layers)
        for layer in self.layers:
            if layer.modes is not None and mode not in layer.modes:
                raise ConfigError(
                    f"Mode {mode} is not allowed by {_where(layer, 'modes')}.",
                    next=_left(self.layers),
                )
        self._session_rules: tuple[Rule, ...] = ()
        self._arrange()

    def _arrange(self) -> None:
        every = [r for layer in self.layers for r in layer.rules] + list(self._session_rules)
        self._restricting = tuple(r for r in every if r.decision.value != "allow")
        self._lifting = tuple(r for r in every if r.decision.lifts and r.layer in self.allowing)

    # --- deciding ---

    def decide(self, facts: CallFacts) -> Decision:
        """What may be done with the call; worked out first what it touches, when nobody did."""
        facts = assessed(facts)
        if not self._restricting and not self._lifting:
            return of_voices(self.mode, facts.level, mode_voices(self.mode, facts))
        return self.judge(facts).decision

    def judge(self, facts: CallFacts) -> Judgement:
        """The decision with all that went into it."""
        return judge(
            self.mode, assessed(facts), self._restricting, self._lifting, self.place
        )  # fmt: skip

    def explain(self, facts: CallFacts) -> list[str]:
        """The decision step by step, in lines for people."""
        from lorimer.safety.policy.explain import lines

        return lines(self, self.judge(facts))

    # --- about itself ---

    @property
    def lifting(self) -> tuple[Rule, ...]:
        """The rules that allow, of the layers that may."""
        return self._lifting

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule, from the top down, those of the session last."""
        return tuple(r for layer in self.layers for r in layer.rules) + self._session_rules

    @property
    def digest(self) -> str:
        """Of mode, layers and workspace: an approval given under another policy is void. Rules that
        a person adds while approving are not in it: they do not change what was asked."""
        facts = [self.mode, self.place.workspace, self.place.home]
        facts += [f"{layer.name}:{layer.digest}" for layer in self.layers]
        return digest(canonical_json(facts))

    @property
    def injection(self) -> InjectionSettings:
        """How strict the guard against injected text is: as the uppermost layer says that says
        anything."""
        said = (layer.injection for layer in self.layers if layer.injection is not None)
        return next(said, InjectionSettings())

    @property
    def notices(self) -> tuple[str, ...]:
        """Rules that have no effect as things are, and why."""
        return tuple(
            f"{rule.where}: rule {rule.id} allows, but no layer above has named "
            f"{rule.layer!r} in delegate: it has no effect."
            for rule in self.rules
            if rule.decision.value == "allow" and rule.layer not in self.allowing
        )

    # --- rules of the session ---

    def rule_for(self, facts: CallFacts) -> str:
        """The narrowest useful rule that would allow this call without a question, as TOML; empty
        when there is none (what cannot be known, more rights, what runs later, secrets)."""
        from lorimer.safety.policy.suggest import rule_for

        return rule_for(self, assessed(facts))

    def add_session_rule(self, text: str, *, session: str = "") -> Rule:
        """Add the rule of `text` (TOML, one `[[policy.rule]]`) to the session layer.

        Args:
            session: id of the only session it holds in; empty for all that use this policy.

        Raises:
            PolicyError: when it is not one rule, or allows something and the session may not.
        """
        rule = self._session_rule(text, session)
        self._session_rules = (*self._session_rules, rule)
        self._arrange()
        return rule

    def with_session_rule(self, text: str, *, session: str = "") -> LayeredPolicy:
        """A policy like this one with the rule of `text` as well; this one is left as it is.

        Raises what `add_session_rule` raises.
        """
        other = LayeredPolicy(self.mode, self.layers, place=self.place)
        other._session_rules = self._session_rules
        other.add_session_rule(text, session=session)
        return other

    def _session_rule(self, text: str, session: str) -> Rule:
        from lorimer.safety.policy.faults import PolicyError
        from lorimer.safety.policy.load import parse_layer

        layer = parse_layer(text, name="session", file="rule of the session")
        if len(layer.rules) != 1:
            raise PolicyError(
                layer.file, 0, f"this is {len(layer.rules)} rules, not one.",
                next="Give one [[policy.rule]].",
            )  # fmt: skip
        if layer.rules[0].decision.lifts and "session" not in self.allowing:
            raise PolicyError(
                layer.file, 1, "the policy does not let a session allow anything.",
                next="Approve each call by itself.",
            )  # fmt: skip
        number = len(self._session_rules) + 1
        return replace(layer.rules[0], id=f"approved-{number}", session=session)


def _allowing(layers: Iterable[Layer]) -> frozenset[str]:
    """The layers whose allowing rules count: each `delegate` sets it for the layers below its own,
    within what the layers above have left to decide."""
    allowed, fixed = set(DELEGATED_AT_FIRST), False
    for layer in layers:
        if layer.delegate is None:
            continue
        below = _below(layer.name)
        named = set(layer.delegate)
        if fixed:
            named &= allowed
        allowed = (allowed - below) | (named & below)
        fixed = True
    return frozenset(allowed)


def _below(name: str) -> set[str]:
    from lorimer.safety.policy.load import LAYERS

    return set(LAYERS[LAYERS.index(name) + 1 :])


def _left(layers: Sequence[Layer]) -> str:
    """Which modes every layer lets be used, as what to do next."""
    saying = [layer for layer in layers if layer.modes is not None]
    left = [m for m in MODES if all(m in (layer.modes or ()) for layer in saying)]
    if left:
        return f"Use one of: {', '.join(left)}."
    places = " and ".join(_where(layer, "modes") for layer in saying)
    return f"No mode is left by {places} together: change one of them."


def _where(layer: Layer, key: str) -> str:
    line = (layer.lines or {}).get(key, 0)
    return f"{layer.file}, line {line}" if line else layer.file or layer.name


def load_policy(
    mode: str = "ask",
    workspace: str | os.PathLike[str] = ".",
    *,
    home: str | os.PathLike[str] | None = None,
    extra: Sequence[str | os.PathLike[str]] = (),
    extra_layer: str = "session",
    known: Callable[[], Mapping[str, KnownTool]] | None = None,
    assessor: Assessor | None = None,
) -> LayeredPolicy:
    """The policy of `mode` and of the layers that are there.

    Read are `/etc/lorimer/policy.toml` (or the file that `LORIMER_ORG_POLICY` names), `policy.toml`
    in the home folder of lorimer, `[policy]` of the `lorimer.toml` in the workspace, then `extra`
    as the session's. Examples in rules are tried.

    Args:
        home: the home folder of lorimer; `lorimer.core.home.home()` by default.
        extra_layer: the layer that `extra` is; instead of the files that are usually that.
        known: gives what is known of the session's tools; called when there are examples to try.
        assessor: the session's own, for the examples.

    Raises:
        PolicyError: for anything wrong in a file, with its line.
        ConfigError: when there is no such mode, or it is not allowed.
    """
    place = _place(workspace)
    files = [(name, path) for name, path in _files(place.workspace, home)
             if not (extra and name == extra_layer)]  # fmt: skip
    files += [(extra_layer, Path(one)) for one in extra]
    if not files:
        return LayeredPolicy(mode, place=place)
    from lorimer.safety.policy.load import LAYERS

    files.sort(key=lambda one: LAYERS.index(one[0]))
    layers = [_read(name, path) for name, path in files]
    if any(rule.match or rule.not_match for layer in layers for rule in layer.rules):
        from lorimer.safety.policy.examples import check_examples

        tools = {} if known is None else known()
        for layer in layers:
            check_examples(layer, place, known=tools, assessor=assessor)
    return LayeredPolicy(mode, layers, place=place)


def _place(workspace: str | os.PathLike[str]) -> Place:
    return Place(os.path.realpath(workspace), os.path.realpath(os.path.expanduser("~")))


def _files(workspace: str, home: str | os.PathLike[str] | None) -> Iterable[tuple[str, Path]]:
    """Layer and file, from the top down; only files that are there, or must be."""
    named = os.environ.get(ORGANISATION_VARIABLE)
    organisation = Path(named) if named else ORGANISATION_FILE
    if named or _is_there(organisation):
        yield "organisation", organisation
    if home is None:
        from lorimer.core.home import home as own_home

        home = own_home()
    user = Path(home, USER_FILE)
    if _is_there(user):
        yield "user", user
    project = Path(workspace, PROJECT_FILE)
    if _is_there(project):
        yield "project", project


def _is_there(path: Path) -> bool:
    """Whether there is a file; one that cannot be looked at is there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _read(name: str, path: Path) -> Layer:
    from lorimer.safety.policy.faults import PolicyError
    from lorimer.safety.policy.load import parse_layer

    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise PolicyError(
                str(path), 0, "this is no policy: it is no file, or larger than 1 MiB.",
                next="Nothing runs with it: put it right, or take it away.",
            )  # fmt: skip
        text = path.read_bytes().decode("utf-8")
    except OSError as fault:
        raise PolicyError(
            str(path), 0, f"the policy cannot be read: {fault.strerror or fault}.",
            next="Nothing runs without it: put it right, or take it away.",
        ) from fault  # fmt: skip
    except UnicodeDecodeError as fault:
        raise PolicyError(
            str(path), fault.object[: fault.start].count(b"\n") + 1, "this is not UTF-8.",
            next="Save the file as UTF-8.",
        ) from fault  # fmt: skip
    return parse_layer(text, name=name, file=str(path), whole_file=path.name != PROJECT_FILE)


def mode_table() -> list[tuple[str, Mapping[str, Any]]]:
    """What each level and each concern comes to in each mode, for people."""
    from lorimer.safety.policy.modes import CONCERNS, LEVELS

    rows: list[tuple[str, Mapping[str, Any]]] = [(str(e), LEVELS[e]) for e in Effects]
    return rows + [(str(c), verdicts) for c, verdicts in CONCERNS.items()]
