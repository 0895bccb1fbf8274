"""The front matter of a `SKILL.md`, read as the specification's own reader does, or forgivingly.

`strict` reads what the reference validator reads: YAML without flow collections, tags, anchors and
doubled keys, in which every scalar is text. `lenient` reads what published skills contain, and says
what it forgave. Neither makes objects of what it reads: only texts, lists and maps of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lorimer.core.errors import LorimerError

MOST_CHARACTERS = 64 * 1024
"""Of front matter; more is refused, not read."""
MOST_CHARACTERS_STRICT = 256 * 1024
"""Where the reference reader has no limit: more would take seconds."""
_MOST_DEPTH = 40
NO_END = (
    "the front matter has no closing ---; it was taken to end at the first line that is no field"
)
"""What `lenient` says when it had to guess the end."""
_MARK = "---"
_FIELD = re.compile(r"([A-Za-z][\w .-]{0,63}?)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?")

Value = str | list[Any] | dict[str, Any]


class FrontMatterFault(LorimerError):
    """The front matter cannot be read. `code` names the kind of fault."""

    code = "front_matter"


class FrontMatterTooLarge(FrontMatterFault):
    """It has too many characters."""

    code = "front_matter_too_large"


class NestedTooDeeply(FrontMatterFault):
    """Lists and maps stand in each other more than `_MOST_DEPTH` deep."""

    code = "nested_too_deeply"

    def __init__(self) -> None:
        super().__init__(
            f"The front matter is nested too deeply: more than {_MOST_DEPTH} levels.",
            next="Use plain fields.",
        )


class AliasRefused(FrontMatterFault):
    """A YAML alias stands for a list or a map: a few of them can stand for billions of values."""

    code = "yaml_alias"


@dataclass(slots=True)
class FrontMatter:
    """What was read.

    Attributes:
        fields: by name; texts, lists and maps only.
        body: what follows, without blank lines around it.
        forgiven: what was not as the specification wants it, in words.
    """

    fields: dict[str, Value]
    body: str
    forgiven: list[str] = field(default_factory=list)


def strict(text: str) -> FrontMatter:
    """Read `text` (line ends as LF) as the reference reader does: the front matter goes from the
    `---` it begins with to the next `---`, wherever that stands.

    Raises:
        FrontMatterFault: when it is not there, not closed, or not YAML of the allowed kind.
    """
    if not text.startswith(_MARK):
        raise _no_beginning(text)
    parts = text.split(_MARK, 2)
    if len(parts) < 3:
        raise FrontMatterFault(
            "The front matter has no end: there is no second line ---.",
            next="Close it with a line --- before the instructions.",
        )
    if (not parts[2].startswith("\n") and parts[2].strip()) or not parts[1].endswith("\n"):
        hint = " (It ends at the first --- , also when that stands inside a value.)"
    else:
        hint = ""
    _not_too_large(parts[1], MOST_CHARACTERS_STRICT)
    try:
        fields = _fields(parts[1], strictly=True)
    except FrontMatterFault as fault:
        if hint:
            raise FrontMatterFault(fault.message + hint, next=fault.next) from None
        raise
    return FrontMatter(fields, parts[2].strip())


def lenient(text: str) -> FrontMatter:
    """Read `text` as well as can be; nothing is refused but what says nothing, or says far more
    than it holds.

    Raises:
        FrontMatterFault: when not even single lines `key: value` can be read in it, and for too
            many characters, levels, or aliases of whole lists and maps.
    """
    forgiven: list[str] = []
    front, body = _split(text, forgiven)
    if not front.strip():
        if front:
            forgiven.append("the front matter is empty")
        return FrontMatter({}, body, forgiven)
    _not_too_large(front, MOST_CHARACTERS)
    try:  # the newline stands for the line ---, so that lines are counted as in the file
        return FrontMatter(_fields("\n" + front, strictly=False, forgiven=forgiven), body, forgiven)
    except (AliasRefused, NestedTooDeeply):
        raise
    except FrontMatterFault as fault:
        fields = _by_lines(front)
        if not fields:
            raise
        forgiven.append(f"the front matter is not valid YAML, it was read line by line "
                        f"({fault.message})")  # fmt: skip
        return FrontMatter(fields, body, forgiven)


def _not_too_large(front: str, most: int) -> None:
    if len(front) > most:
        raise FrontMatterTooLarge(
            f"The front matter has {len(front):,} characters; at most {most:,} are read.",
            next="Move the text below the front matter.",
        )


def _no_beginning(text: str) -> FrontMatterFault:
    if not text.strip():
        return FrontMatterFault(
            "The file is empty.", next="Begin with front matter: ---, name, description, ---."
        )
    if text.startswith("\ufeff"):
        return FrontMatterFault(
            "The file begins with a byte order mark, so its first line is not ---.",
            next="Save it as UTF-8 without a byte order mark.",
        )
    return FrontMatterFault(
        "The file does not begin with front matter.",
        next="Make --- its first line, then name and description, then ---.",
    )


def _split(text: str, forgiven: list[str]) -> tuple[str, str]:
    """Front matter and body, line by line; the front matter is empty when there is none."""
    if text.startswith("\ufeff"):
        text = text[1:]
        forgiven.append("the file begins with a byte order mark")
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip()), None)
    if start is None or not re.fullmatch(r"-{3,}\s*", lines[start]):
        glued = start is not None and re.match(r"---\s*\w[\w-]*\s*:", lines[start])
        if not glued:
            forgiven.append("there is no front matter")
            return "", text.strip()
        assert start is not None
        lines.insert(start + 1, lines[start][3:])
    if start:
        forgiven.append("blank lines stand before the front matter")
    for end in range(start + 1, len(lines)):
        if re.fullmatch(r"(-{3,}|\.\.\.)\s*", lines[end]):
            front = "\n".join(lines[start + 1 : end]) + "\n"
            return front, "\n".join(lines[end + 1 :]).strip()
    end = _end_of_fields(lines, start + 1)
    forgiven.append(NO_END)
    return "\n".join(lines[start + 1 : end]) + "\n", "\n".join(lines[end:]).strip()


def _end_of_fields(lines: list[str], start: int) -> int:
    for number in range(start, len(lines)):
        line = lines[number]
        if not line.strip() or (line[0] not in " \t" and not _FIELD.fullmatch(line)):
            return number
    return len(lines)


_OLD_BREAKS = "\x85\u2028\u2029"
"""Line ends in YAML 1.1, which the parser here reads; plain characters in YAML 1.2."""


def _fields(
    front: str, *, strictly: bool, forgiven: list[str] | None = None
) -> dict[str, Value]:  # fmt: skip
    import yaml

    there = set(front)
    free = [chr(c) for c in range(0xE000, 0xF8FF) if chr(c) not in there][: len(_OLD_BREAKS)]
    back = {ord(stand): old for stand, old in zip(free, _OLD_BREAKS, strict=True)}
    front = front.translate({ord(old): stand for stand, old in zip(free, _OLD_BREAKS, strict=True)})
    try:
        aliased = _look_before_expanding(front, strictly=strictly)
        node = yaml.compose(front, Loader=yaml.SafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise FrontMatterFault(
                "The front matter is no list of fields.",
                next="Write one field a line, as `name: value`.",
            )
        if strictly:
            _look_for_forbidden(front)
        value = _plain(node, strictly, 0, back)
    except yaml.YAMLError as fault:
        raise FrontMatterFault(
            f"The front matter is not valid YAML: {_told(fault)}.", next=_advice(str(fault))
        ) from None
    except RecursionError:
        raise NestedTooDeeply from None
    if aliased and forgiven is not None:
        forgiven.append("it uses YAML anchors and aliases")
    assert isinstance(value, dict)
    return value


def _told(fault: Any) -> str:
    """The parser's words, with the line of the file."""
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or getattr(fault, "reason", None) or str(fault)
    where = "" if mark is None else f" in line {mark.line + 1}"
    return f"{' '.join(str(problem).split())[:200]}{where}"


def _advice(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "Put the value in quotes: it holds a colon and a space."
    if "cannot start any token" in problem:
        return "Put the value in quotes, and use spaces, not tabs, before it."
    return "Put values with special characters in quotes."


def _look_before_expanding(front: str, *, strictly: bool) -> bool:
    """Refuse what would become far larger than the text, before anything is made of it; whether
    there are aliases.

    Raises:
        NestedTooDeeply: for too many levels.
        AliasRefused: for an alias of a list or a map, or of texts that grow too large together.
    """
    import yaml

    depth, grown, aliased = 0, 0, False
    texts: dict[str, int] = {}
    for event in yaml.parse(front, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            texts.pop(event.anchor or "", None)
            if depth > _MOST_DEPTH:
                raise NestedTooDeeply
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and event.anchor is not None:
            texts[event.anchor] = len(event.value)
        elif isinstance(event, yaml.AliasEvent) and not strictly:
            aliased = True
            grown += texts.get(event.anchor, 0)
            if grown > MOST_CHARACTERS or (
                event.anchor not in texts and f"&{event.anchor}" in front
            ):
                raise AliasRefused(
                    f"Line {event.start_mark.line + 1} repeats a list, a map or a long text by "
                    f"the YAML alias *{event.anchor[:40]}, which is not expanded here.",
                    next="Write the values themselves; a text that begins with * needs quotes.",
                )
    return aliased


def _look_for_forbidden(front: str) -> None:
    """Refuse what the reference reader refuses although YAML allows it."""
    import yaml

    for token in yaml.scan(front, Loader=yaml.SafeLoader):
        line = token.start_mark.line + 1
        if isinstance(token, yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken):
            shown = "{" if isinstance(token, yaml.FlowMappingStartToken) else "["
            raise FrontMatterFault(
                f"A value in line {line} begins with {shown}: collections in "
                "one line are not read by the reference reader.",
                next="Write one item a line, or put the text in quotes.",
            )
        for kind, what in (
            (yaml.TagToken, "tag"), (yaml.AnchorToken, "anchor"), (yaml.AliasToken, "alias"),
        ):  # fmt: skip
            if isinstance(token, kind):
                raise FrontMatterFault(
                    f"Line {line} holds a YAML {what}, which is not allowed.",
                    next="Write the value itself, in quotes when it begins with ! & or *.",
                )


_ODD_SCALARS = ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")
"""What a plain `<<` and a plain `=` are: signs of YAML, no text."""


def _plain(node: Any, strictly: bool, depth: int, back: dict[int, str]) -> Value:
    import yaml

    if depth > _MOST_DEPTH:
        raise RecursionError
    if isinstance(node, yaml.ScalarNode):
        if strictly and node.tag in _ODD_SCALARS:
            raise FrontMatterFault(
                f"Line {node.start_mark.line + 1} holds a plain {node.value}, "
                "which is a sign of YAML.",
                next="Put it in quotes.",
            )
        return str(node.value).translate(back)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, strictly, depth + 1, back) for one in node.value]
    if strictly:
        _look_at_map(node)
    out: dict[str, Value] = {}
    for key_node, value_node in node.value:
        value = _plain(value_node, strictly, depth + 1, back)
        if strictly and _merges(key_node, value):
            continue  # the reference reader leaves out what is merged
        key = _plain(key_node, strictly, depth + 1, back)
        if not isinstance(key, str):
            if strictly:
                raise FrontMatterFault(
                    f"A key in line {key_node.start_mark.line + 1} is no text.",
                    next="Use plain words as keys.",
                )
            continue
        if key in out and strictly:
            raise FrontMatterFault(
                f"The front matter has the field {key!r} twice (line "
                f"{key_node.start_mark.line + 1}).",
                next="Keep one of them.",
            )
        out.setdefault(key, value)
    return out


def _merges(key_node: Any, value: Value) -> bool:
    if key_node.tag != _ODD_SCALARS[0]:
        return False
    maps = value if isinstance(value, list) else [value]
    return all(isinstance(one, dict) for one in maps)


def _look_at_map(node: Any) -> None:
    """Refuse maps side by side that are indented by different amounts, as the reference does."""
    import yaml

    columns = {
        value.start_mark.column for _, value in node.value if isinstance(value, yaml.MappingNode)
    }
    if len(columns) > 1:
        raise FrontMatterFault(
            f"The maps below line {node.start_mark.line + 1} are indented unevenly.",
            next="Indent all of them by the same number of spaces.",
        )


def _by_lines(front: str) -> dict[str, Value]:
    """Fields of broken YAML: `key: rest of the line`, with the indented lines below it."""
    out: dict[str, Value] = {}
    found: list[tuple[str, str, list[str]]] = []
    for line in front.split("\n"):
        match = _FIELD.fullmatch(line.rstrip())
        if match and line[:1] not in (" ", "\t"):
            found.append((match[1].strip(), (match[2] or "").strip(), []))
        elif found and line.strip():
            found[-1][2].append(line.strip())
    for key, first, more in found:
        if _BLOCK.fullmatch(first):
            first = ""
        items = [line[2:].strip() for line in more if line.startswith("- ")]
        if not first and items and len(items) == len(more):
            out.setdefault(key, [_unquoted(item) for item in items])
        else:
            out.setdefault(key, _unquoted(" ".join([first, *more]).strip()))
    return out


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
