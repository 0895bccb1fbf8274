"""HTML in outside content: comments, and elements that a browser would not show.

A tolerant reader in one pass, not a browser: `style` attributes, plain rules of `<style>` blocks,
and the attributes and class names that hide. What it cannot know (scripts, outside style sheets) it
does not claim. The text is kept as it is; marks are put around what is hidden.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_MARKDOWN_COMMENT = re.compile(r"(?m)^ {0,3}\[[^\]\n]{0,100}\]:[ \t]*(?:#|<>)[ \t]*([\"'(][^\n]*)$")
_ATTRIBUTE = re.compile(
    r"([^\s=\"'<>/]{1,200})(?:\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>]+)))?"
)
_SIMPLE = re.compile(r"(?:[a-z][a-z0-9-]*)?[.#][\w-]+", re.I)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
     "track", "wbr"}
)  # fmt: skip
_RAW = frozenset({"script", "style", "textarea", "title"})
_CLASSES = frozenset({"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})
_LONGEST_TAG = 20_000
_LONGEST_VALUE = 8_000
_DEEPEST = 400
_ZERO = r"0*(?:\.0+)?0(?:px|pt|em|rem|%|vh|vw)?"
_LENGTH = re.compile(r"(-?\d{1,6}(?:\.\d{1,6})?)(px|pt|em|rem|%|vw|vh)?")


def mark_hidden(text: str, found: Counter[str]) -> str:
    """`text` with `⟦comment: …⟧` for comments and `⟦hidden (why): …⟧` around hidden elements;
    counts what it finds in `found`. Linear; raises nothing."""
    if "]:" in text:
        text = _MARKDOWN_COMMENT.sub(lambda m: _markdown(m, found), text)
    return _Reader(text, found).read() if "<" in text else text


def _markdown(match: re.Match[str], found: Counter[str]) -> str:
    found["Markdown comment"] += 1
    return f"⟦comment: {match.group()}⟧"


@dataclass
class _Reader:
    """One pass over one text."""

    text: str
    found: Counter[str]
    out: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)
    hidden_at: int | None = None
    no_end: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)

    def read(self) -> str:
        self._read_styles()
        text, at = self.text, 0
        while True:
            start = text.find("<", at)
            if start < 0:
                break
            self.out.append(text[at:start])
            if text.startswith("<!--", start):
                at = self._comment(start)
            else:
                at = self._tag(start)
        self.out.append(text[at:])
        if self.hidden_at is not None:
            self.out.append("⟧")
        return "".join(self.out)

    def _comment(self, start: int) -> int:
        end = self._find("-->", start + 4)
        stop = len(self.text) if end < 0 else end
        inner = self.text[start + 4 : stop].strip()
        if inner:
            self.found["HTML comment"] += 1
            self.out.append(f"⟦comment: {inner}⟧")
        return stop if end < 0 else end + 3

    def _find(self, what: str, start: int) -> int:
        """`str.find`, which does not look again for what is not there any more."""
        if what in self.no_end:
            return -1
        at = self.text.find(what, start)
        if at < 0:
            self.no_end.add(what)
        return at

    def _tag(self, start: int) -> int:
        end = _tag_end(self.text, start)
        if end is None:
            self.out.append("<")
            return start + 1
        tag = self.text[start:end]
        closing = tag[1] == "/"
        name = re.match(r"[a-z][\w:-]{0,60}", tag[2 if closing else 1 :], re.I)
        if name is None:
            self.out.append(tag)
        elif closing:
            self._close(name.group().casefold(), tag)
        else:
            return self._open(name.group().casefold(), tag, end)
        return end

    def _open(self, name: str, tag: str, end: int) -> int:
        attributes = _attributes(tag[1 + len(name) :])
        why = None if self.hidden_at is not None else self._why(name, attributes)
        if why is not None:
            self.found[f"element hidden by {why}"] += 1
            self.out.append(f"⟦hidden ({why}): ")
        self.out.append(tag)
        if name in _VOID or (tag.endswith("/>") and name not in _RAW):
            if why is not None:
                self.out.append("⟧")
            return end
        if why is not None:
            self.hidden_at = len(self.open)
        self.open.append(name)
        self.names[name] += 1
        if len(self.open) > _DEEPEST:
            self._drop(0)
        if name in _RAW:
            stop = self._raw_end(name, end)
            self.out.append(self.text[end:stop])
            return stop
        return end

    def _raw_end(self, name: str, start: int) -> int:
        key = f"</{name}"
        if key in self.no_end:
            return start
        match = re.compile(re.escape(key), re.I).search(self.text, start)
        if match is None:
            self.no_end.add(key)
            return start
        return match.start()

    def _close(self, name: str, tag: str) -> None:
        self.out.append(tag)
        if not self.names[name]:
            return
        last = ""
        while last != name:
            last = self.open.pop()
            self.names[last] -= 1
        if self.hidden_at is not None and self.hidden_at >= len(self.open):
            self.out.append("⟧")
            self.hidden_at = None

    def _drop(self, place: int) -> None:
        self.names[self.open.pop(place)] -= 1
        if self.hidden_at is not None:
            self.hidden_at = max(0, self.hidden_at - 1)

    def _why(self, name: str, attributes: dict[str, str]) -> str | None:
        if name == "template":
            return "template"
        if "hidden" in attributes and attributes["hidden"].casefold() != "until-found":
            return "hidden"
        if attributes.get("aria-hidden", "").casefold() == "true":
            return "aria-hidden"
        if name == "input" and attributes.get("type", "").casefold() == "hidden":
            return "type=hidden"
        if name == "font" and _white(attributes.get("color", "").casefold()):
            return "white text"
        why = hides(attributes.get("style", ""))
        if why is not None:
            return why
        keys = [f".{c}" for c in attributes.get("class", "").casefold().split()]
        if "id" in attributes:
            keys.append(f"#{attributes['id'].casefold()}")
        for key in keys:
            if key in self.rules:
                return self.rules[key]
            if key[1:] in _CLASSES:
                return f"class {key[1:]}"
        return None

    def _read_styles(self) -> None:
        if "<style" not in self.text.casefold():
            return
        for block in re.finditer(r"<style[^<>]{0,500}>([^<]*)", self.text, re.I):
            for rule in block.group(1).split("}"):
                selectors, opened, declared = rule.rpartition("{")
                why = hides(declared) if opened else None
                if why is None:
                    continue
                for selector in selectors.rpartition("{")[2].split(","):
                    plain = selector.strip().casefold()
                    if _SIMPLE.fullmatch(plain):
                        self.rules[re.sub(r"^[^.#]*", "", plain)] = why


def _tag_end(text: str, start: int) -> int | None:
    """Where the tag at `start` ends, after its `>`; `None` when there is no tag."""
    if start + 1 >= len(text) or not (text[start + 1].isalpha() or text[start + 1] in "/!?"):
        return None
    at, limit = start + 1, min(len(text), start + _LONGEST_TAG)
    stops = re.compile("[<>\"']")
    while True:
        match = stops.search(text, at, limit)
        if match is None or match.group() == "<":
            return None
        if match.group() == ">":
            return match.end()
        close = text.find(match.group(), match.end(), min(limit, match.end() + _LONGEST_VALUE))
        at = match.end() if close < 0 else close + 1


def _attributes(inside: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(inside):
        value = next((group for group in match.groups()[1:] if group is not None), "")
        out.setdefault(match.group(1).casefold(), value)
    return out


def hides(style: str) -> str | None:
    """Why a browser would not show what has this CSS, as a few words; `None` when it would."""
    if ":" not in style:
        return None
    is_: dict[str, str] = {}
    for declaration in re.sub(r"/\*[^*]*\*/", "", style[:_LONGEST_VALUE]).split(";"):
        key, _, value = declaration.partition(":")
        is_[key.strip().casefold()] = " ".join(value.casefold().replace("!important", "").split())
    if is_.get("display") == "none" or is_.get("mso-hide") == "all":
        return "display:none"
    if is_.get("visibility") in ("hidden", "collapse"):
        return f"visibility:{is_['visibility']}"
    if "opacity" in is_ and _number(is_["opacity"]) <= 0.05:
        return "opacity:0"
    if "font-size" in is_ and (_number(is_["font-size"]) <= 1 and _pixels(is_["font-size"])):
        return f"font-size:{is_['font-size'][:20]}"
    for key in ("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top"):
        if (
            key in is_
            and _number(is_[key]) <= -400
            and (
                "margin" in key
                or key == "text-indent"
                or is_.get("position") in ("absolute", "fixed")
            )
        ):
            return f"off-screen, {key}:{is_[key][:20]}"
    sides = [is_.get(key, "") for key in ("width", "height", "max-width", "max-height")]
    if is_.get("overflow") == "hidden" and any(re.fullmatch(rf"{_ZERO}|1px", s) for s in sides):
        return "no size"
    if re.fullmatch(r"inset\((?:50|100)%.*\)", is_.get("clip-path", "")) or re.fullmatch(
        r"rect\((?:[01](?:px)?,? ?){4}\)", is_.get("clip", "")
    ):
        return "clipped away"
    if re.search(r"scale(?:3d|x|y)?\( ?0[ ,)]", is_.get("transform", "")):
        return "scale(0)"
    return _colourless(is_)


def _colourless(is_: dict[str, str]) -> str | None:
    colour = is_.get("color", "")
    ground = is_.get("background-color", is_.get("background", ""))
    if not colour:
        return None
    if colour == "transparent" or re.fullmatch(r"rgba\(.*, ?0(?:\.0+)?\)", colour):
        return "color:transparent"
    if ground and _colour(colour) == _colour(ground):
        return "text in the colour of its background"
    return "white text" if not ground and _white(colour) else None


def _colour(value: str) -> str:
    names = {"white": "#ffffff", "black": "#000000"}
    value = names.get(value, value).replace(" ", "")
    if re.fullmatch(r"#[0-9a-f]{3}", value):
        return "#" + "".join(c * 2 for c in value[1:])
    parts = re.fullmatch(r"rgb\((\d{1,3}),(\d{1,3}),(\d{1,3})\)", value)
    if parts:
        return "#" + "".join(f"{min(int(p), 255):02x}" for p in parts.groups())
    return value


def _white(value: str) -> bool:
    return re.fullmatch(r"#f[c-f]f[c-f]f[c-f]", _colour(value)) is not None


def _number(value: str) -> float:
    match = _LENGTH.match(value)
    return float(match.group(1)) if match else 1e9


def _pixels(value: str) -> bool:
    """Whether a length is one in pixels or points, or nothing at all: 1em is not small."""
    match = _LENGTH.match(value)
    return match is not None and (float(match.group(1)) == 0 or match.group(2) in ("px", "pt"))
