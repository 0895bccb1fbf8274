"""`set` and `shopt`: most options of a shell only report; some change what later text means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lorimer.core.effects import Concern
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Word

SILENT = Output("")

_LETTERS = frozenset("abefhmnuvxCEPT")
_NAMES = frozenset(
    {
        "allexport", "emacs", "errexit", "errtrace", "functrace", "hashall", "monitor", "noclobber",
        "noexec", "noglob", "notify", "nounset", "physical", "pipefail", "verbose", "vi", "xtrace",
    }
)  # fmt: skip
"""Options that leave the meaning of later text as it is. Not `keyword` (every `a=b` becomes a
variable of the program), `posix`, `braceexpand`, `history`, `histexpand`, `privileged`,
`onecmd`."""

_SHOPT = frozenset(
    {"nullglob", "failglob", "globstar", "nocaseglob", "nocasematch", "inherit_errexit"}
)
"""Options of `shopt` that at most change which files a pattern finds. Not `dotglob`: with it
a pattern finds hidden files as well, and the rules for patterns no longer hold."""


def _set(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = list(call.arguments)
    if not words:
        analysis.ask(Concern.SECRETS, "`set` alone prints all variables", call.source)
        return Output()
    while words:
        word = words.pop(0)
        text = word.text
        if text is None and word.may_be_option:
            analysis.unknown(f"{word.source} may become an option of set", call.source)
        if text is None or text in ("--", "-") or not text.startswith(("-", "+")):
            _parameters(analysis)
            break
        on = text.startswith("-")
        for letter in text[1:]:
            if letter == "o":
                if words:
                    _named(analysis, call, words.pop(0), on)
            elif letter == "a":
                analysis.state.all_exported = on or analysis.state.all_exported
            elif letter not in _LETTERS and not (on and letter == "B"):
                _changes(analysis, call, f"set {text[0]}{letter}")
    return SILENT


def _parameters(analysis: Analysis) -> None:
    analysis.state.arguments = None
    for number in range(10):
        analysis.state.assign(str(number), None)


def _named(analysis: Analysis, call: Invocation, word: Word, on: bool) -> None:
    """An option by its name, as `set -o` and `shopt -o` take it."""
    text = word.text
    if text == "allexport":
        analysis.state.all_exported = on or analysis.state.all_exported
    elif text not in _NAMES and not (on and text == "braceexpand"):
        _changes(analysis, call, f"set -o {word}")


def _changes(analysis: Analysis, call: Invocation, what: str) -> None:
    analysis.unknown(f"`{what}` may change how later text is read", call.source)


def _shopt(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    letters, names = _split(call.arguments)
    if any(w.text is None and w.may_be_option for w in call.arguments):
        _changes(analysis, call, call.source)
    if set(letters) - set("supqo"):
        _changes(analysis, call, f"shopt -{letters}")
    if not set(letters) & set("su"):
        return SILENT  # it only prints
    for word in names:
        if "o" in letters:
            _named(analysis, call, word, "s" in letters)
        elif word.text not in _SHOPT:
            _changes(analysis, call, f"shopt {word}")
    return SILENT


def _split(words: Sequence[Word]) -> tuple[str, list[Word]]:
    """(letters of the options, names)."""
    letters = ""
    for place, word in enumerate(words):
        if word.text == "--":
            return letters, list(words[place + 1 :])
        if word.text is None or not re.match("-.", word.text):
            return letters, list(words[place:])
        letters += word.text[1:]
    return letters, []


def _ulimit(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """Limits are printed, or set for whatever this shell starts."""
    for word in call.arguments:
        if word.text is None or not re.fullmatch("-[a-zA-Z]+|unlimited", word.text):
            analysis.unknown(f"`ulimit {word}` changes what later commands can do", call.source)
    return Output()


JUDGES = {"set": _set, "shopt": _shopt, "ulimit": _ulimit}
