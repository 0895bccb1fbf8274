"""Templates in an answer: `{{call_id.field}}`, `{{tool_name.field}}`, filled from recorded results.

Values are put in as they are and are never read for templates again. What cannot be filled stays
as the model wrote it, and is flagged. Fenced code is left alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lorimer.context.answers.formats import Refused, formatted
from lorimer.context.answers.records import NOTHING, Filled, Flag, Source

LONGEST = 200
"""Characters of a template, without its braces; what is longer is no template."""
MOST_TEXT = 4_000
"""Characters that one template may put in."""

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]/|{}\s"]+) | /(?P<pointer>[^/|{}\[\]]*) | \[(?P<index>\d{1,9})\]
      | \["(?P<quoted>[^"\]]+)"\]""",
    re.X,
)
_UNSEEN = re.compile(
    # joiners between letters of other scripts and in emoji stay
    "\r(?!\n)|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])|"
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_NO_TEMPLATE = re.compile(r"[\n{}]")


class Recorded:
    """The results that templates may name, in the order in which they came."""

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self._calls: dict[str, Source] = {}
        self._tools: dict[str, Source] = {}
        for source in sources:
            self.add(source)

    def add(self, source: Source) -> None:
        if not source.call_id:
            return
        self._calls[source.call_id] = source
        if source.done or source.tool not in self._tools:
            self._tools[source.tool] = source

    def value(self, template: str) -> str:
        """What stands for `template`, the text between the braces.

        Raises:
            Refused: when it names no recorded value, or one that it cannot stand for.
        """
        written = template.strip()
        source, rest = self._named(written)
        if not source.done:
            raise Refused(f"the call of {source.tool} was not done; it has no result")
        steps, form = _parsed(rest)
        value, around = self._at(source, steps)
        text = formatted(form, value, around)
        if len(text) > MOST_TEXT:
            raise Refused(
                f"that is {len(text)} characters, more than {MOST_TEXT}; name one field of it"
            )
        return text

    def _named(self, written: str) -> tuple[Source, str]:
        """The result that the template begins with; the longest name that fits is meant."""
        for names in (self._calls, self._tools):
            fits = [n for n in names if written.startswith(n) and _ends(written[len(n) :])]
            if fits:
                name = max(fits, key=len)
                return names[name], written[len(name) :]
        first = re.split(r"[.\[/|]", written, maxsplit=1)[0].strip()
        near = difflib.get_close_matches(first, [*self._tools, *self._calls], 1, 0.6)
        hint = f"; did it mean {near[0]!r}?" if near else ""
        raise Refused(f"there is no result of a call or tool {first!r}{hint}")

    def _at(self, source: Source, steps: Sequence[str]) -> tuple[Any, Mapping[str, Any]]:
        if source.value is NOTHING:
            if not source.whole:
                raise Refused(f"only a part of the result of {source.tool} is here")
            if steps:
                raise Refused(f"the result of {source.tool} is text and has no fields")
            return source.text, {}
        value: Any = source.value
        around: Mapping[str, Any] = {}
        for at, step in enumerate(steps):
            place = ".".join(steps[: at + 1])
            if isinstance(value, Mapping):
                around = value
                if step not in value:
                    near = difflib.get_close_matches(step, list(value), 1, 0.6)
                    hint = f"; did it mean {near[0]!r}?" if near else ""
                    raise Refused(f"the result of {source.tool} has no field {place!r}{hint}")
                value = value[step]
            elif isinstance(value, list):
                if not step.isdecimal():
                    raise Refused(f"{place!r} is in a list of {len(value)}; give a number, from 0")
                if int(step) >= len(value):
                    raise Refused(f"{place!r} is beyond the list, which has {len(value)}")
                value = value[int(step)]
            else:
                raise Refused(f"there is nothing below {'.'.join(steps[:at])!r}")
        return value, around


def _ends(rest: str) -> bool:
    return not rest or rest[0] in ".[/| "


def _parsed(rest: str) -> tuple[list[str], str]:
    """The steps and the format behind the name of a result."""
    path, bar, form = rest.partition("|")
    path = path.strip()
    steps, at = [], 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise Refused(f"{path[at:]!r} is no path; write .field, [0] or /field/0")
        if found["pointer"] is not None:
            steps.append(found["pointer"].rstrip().replace("~1", "/").replace("~0", "~"))
        else:
            steps.append(found["name"] or found["index"] or found["quoted"])
        at = found.end()
    if bar and not form.strip():
        raise Refused("a format is missing behind the bar")
    return steps, form.strip()


class Filler:
    """Fills templates in a text that comes piece by piece; see `fill` for a whole one.

    `feed` gives what can be shown already: an open template is held back until it is closed, or
    is shown not to be one.
    """

    def __init__(self, recorded: Recorded) -> None:
        self.filled: list[Filled] = []
        self.flags: list[Flag] = []
        self._recorded = recorded
        self._held = ""
        self._length = 0
        self._line = ""  # the first characters of the line, while they may be a fence
        self._fence = ""

    def feed(self, text: str) -> str:
        """What can be shown of all that came so far, and was not given before."""
        self._held += text
        return self._work(last=False)

    def end(self) -> str:
        """The rest; what is still open is no template."""
        return self._work(last=True)

    def _work(self, *, last: bool) -> str:
        out: list[str] = []
        text, at = self._held, 0
        while at < len(text):
            brace = text.find("{", at)
            if brace < 0:
                out.append(self._pass(text[at:]))
                at = len(text)
                break
            out.append(self._pass(text[at:brace]))
            at = brace
            if len(text) - at == 1 and not last:
                break
            if self._fence or not text.startswith("{{", at) or text.startswith("{{{", at):
                out.append(self._pass("{"))
                at += 1
                continue
            if len(text) - at == 2 and not last:
                break
            end = text.find("}}", at + 2)
            inside = text[at + 2 : end if end >= 0 else at + 3 + LONGEST]
            if end < 0 and not last and len(inside) <= LONGEST and _may_close(inside):
                break
            if end < 0 or len(inside) > LONGEST or _NO_TEMPLATE.search(inside):
                out.append(self._pass("{{"))
                at += 2
                continue
            out.append(self._template(text[at : end + 2], inside))
            at = end + 2
        self._held = text[at:]
        return "".join(out)

    def _template(self, written: str, inside: str) -> str:
        try:
            value = self._recorded.value(inside)
        except Refused as why:
            span = (self._length, self._length + len(written))
            self.flags.append(Flag("template", written, span, f"Not filled: {why}."))
            return self._pass(written)
        start = self._length
        shown, unseen = visible(value)
        if unseen:
            words = f"Characters that cannot be seen are written out: {', '.join(unseen[:5])}."
            self.flags.append(Flag("template", shown, (start, start + len(shown)), words))
            value = shown
        self._length += len(value)
        self._line = "x"  # something stands in this line: no fence begins here
        self.filled.append(Filled(written, value, (start, self._length)))
        return value

    def _pass(self, text: str) -> str:
        """Text that is shown as it is; keeps track of fences and of the length."""
        self._length += len(text)
        first, *more = text.split("\n")
        self._grow(first)
        for line in more:
            self._line = ""
            self._grow(line)
        return text

    def _grow(self, text: str) -> None:
        if not text or len(self._line) >= 6:
            return
        before = self._line.lstrip(" ")[:3]
        self._line = (self._line + text)[:6]
        mark = self._line.lstrip(" ")[:3]
        if before == mark or mark not in ("```", "~~~"):
            return
        if not self._fence:
            self._fence = mark
        elif self._fence == mark:
            self._fence = ""


def visible(text: str) -> tuple[str, list[str]]:
    """`text` with control, direction and hidden characters written out (`<U+001B>`), and which
    those were. Line breaks and tabs stay."""
    found: dict[str, None] = {}

    def written_out(match: re.Match[str]) -> str:
        name = f"U+{ord(match[0]):04X}"
        found[name] = None
        return f"<{name}>"

    return _UNSEEN.sub(written_out, text), list(found)


def _may_close(inside: str) -> bool:
    """Whether an open template may still become one; a single brace at the end may be half of its
    closing."""
    return _NO_TEMPLATE.search(inside.removesuffix("}")) is None


def fill(text: str, recorded: Recorded) -> tuple[str, list[Filled], list[Flag]]:
    """`text` with its templates filled, what was filled, and what was not."""
    filler = Filler(recorded)
    made = filler.feed(text) + filler.end()
    return made, filler.filled, filler.flags
