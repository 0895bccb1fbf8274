"""How strict the injection guard is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from lorimer.core.decisions import Verdict
from lorimer.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class InjectionSettings:
    """How strict the injection guard is; every field is a key of the table that `read` takes.

    Attributes:
        trifecta: what is said when private data was read, outside content was read, and a call
            that leaves carries a value that the user did not choose: `ASK` or `DENY`.
        links: whether reading an address that the user did not name asks (after outside content);
            once private data was read it asks in any case.
        reversible: whether changes that can be undone are checked by the targets their tools
            declare.
        intent: whether the user's words must ask for the kind of action.
        words: further words by which people ask for an action, by verb or tool name; for other
            languages than English.
    """

    trifecta: Verdict = Verdict.ASK
    links: bool = True
    reversible: bool = True
    intent: bool = True
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def read(
        cls, table: Mapping[str, Any], where: str = "the injection settings"
    ) -> InjectionSettings:
        """Settings from a table of a configuration file.

        Args:
            where: what to call the table in an error.

        Raises:
            ConfigError: for a key that there is not, or a value that does not fit.
        """
        known = [one.name for one in fields(cls)]
        given: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(
                    f"{where}: there is no key {key!r}.", next=f"Keys are: {', '.join(known)}."
                )
            given[key] = _checked(where, key, value)
        return cls(**given)


def _checked(where: str, key: str, value: Any) -> Any:
    if key == "trifecta":
        if value not in ("ask", "deny"):
            raise ConfigError(f"{where}: {key} is {value!r}.", next='Use "ask" or "deny".')
        return Verdict(value)
    if key != "words":
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {key} is {value!r}.", next="Use true or false.")
        return value
    lists = value.values() if isinstance(value, Mapping) else [None]
    if not all(isinstance(one, list) and all(isinstance(w, str) for w in one) for one in lists):
        raise ConfigError(
            f"{where}: words is {value!r}.", next='Use lists of words: words.send = ["schicke"].'
        )
    return {verb: tuple(words) for verb, words in value.items()}
