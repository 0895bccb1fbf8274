"""Reads one text for values that will be others the next time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from lorimer.context.prefix import words
from lorimer.context.prefix.finding import Finding, Trouble

_EXCERPT = 80
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*(\w*)[^\n]*$", re.MULTILINE)
_SHOWN = re.compile(
    r"<(examples?|sample|format|template|schema)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$", re.MULTILINE)
_EXAMPLES = re.compile(r"\b(?:examples?|samples?|few[- ]shot|formats?|schemas?)\b", re.IGNORECASE)
_CODE = frozenset(
    [
        "python", "py", "js", "javascript", "ts", "typescript", "bash", "sh", "sql", "json",
        "yaml", "toml", "xml", "html", "css", "go", "rust", "java", "c", "cpp"
    ]
)  # fmt: skip
_TURN = re.compile(r"^[ \t>*-]*(?:\*\*)?(?:user|human|assistant|q|a|input|output)(?:\*\*)?:", re.I)
_CONTACT = re.compile(
    r"\b(?:contact|escalate|refer|reach|support|hotline|cc|address\s+for|questions\s+(?:\w+\s+){0,3}(?:go\s+)?to|"
    r"(?:send|mail|e-?mail|write|forward|report)\s+(?:\w+\s+){0,4}(?:to|at))\b",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(
    r"\b(?:user|customer|client|caller|patient|member|profile|his|her|their|personal|mobile|"
    r"call\s*back|contact\s+details|logged|signed|on\s+behalf|talking|speaking)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\b(?:preferences?|interests?|profile|history)\W*[:=]", re.IGNORECASE)
_SAID = re.compile(r"\b(?:asked|asks|wrote|writes|said|says|wants)\b", re.IGNORECASE)
_NO_VALUE = frozenset(
    [
        "a", "an", "the", "not", "no", "none", "null", "nil", "n/a", "string", "text", "number",
        "integer", "int", "bool", "boolean", "object", "array", "required", "optional", "unknown",
        "missing", "empty", "given", "in", "on", "from", "of", "to", "as", "at", "by", "for",
        "any", "each", "every", "one", "their", "his", "her", "its", "never", "always", "only",
        "also", "what", "when", "where", "which", "who", "how", "if", "is", "are", "be", "been",
        "being", "must", "may", "can", "should", "will", "ask", "use", "see", "read", "taken",
        "stored", "part", "shown", "told", "kept", "set", "known", "important", "sensitive",
        "private", "public", "personal", "confidential", "used", "needed", "here", "there",
        "below", "above", "first", "last", "anonymous", "true", "false", "and", "or", "with",
        "without", "data", "information", "different", "valid", "invalid", "correct", "wrong",
        "available", "that", "this", "these", "those"
    ]
)  # fmt: skip
_COMMON_HOMES = frozenset(
    [
        "user", "username", "name", "you", "yourname", "your-name", "me", "agent", "app",
        "runner", "somebody", "someone", "<user>", "$user", "{user}", "~"
    ]
)  # fmt: skip
_STATIC_NAME = re.compile(
    r"^(?:company|brand|product|bot|agent|assistant|app|application|org|organi[sz]ation|team|store|"
    r"shop|service|tool|function|class|variable|model|column|table|domain|language|persona|file)"
    r"(?:[_ .-]?(?:name|version|id|description|tone|url))*$",
    re.IGNORECASE,
)
_CHANGING_COMMAND = re.compile(r"\b(?:date|uuidgen|whoami|hostname|id|pwd|git|uptime|ls|env)\b")


@dataclass(frozen=True, slots=True)
class _Hit:
    trouble: Trouble
    start: int
    end: int
    detail: str = ""


def read(
    part: str, text: str, known: Mapping[str, str], *, template: bool = False
) -> list[Finding]:
    """The findings in one text. One place has one finding: the one that says most.

    Args:
        known: words of this machine or session, each with what it is.
        template: open places are filled in later.
    """
    shown = _shown(text)
    hits = [
        hit
        for hit in (*_times(text), *_counts(text), *_ids(text), *_people(text), *_others(text))
        if (template or hit.trouble is not Trouble.PLACEHOLDER)
        and not _inside(hit.start, shown)
        and not _is_example(text, hit.start)
    ]
    hits += _known(text, known)
    kept: list[_Hit] = []
    for hit in sorted(hits, key=lambda h: (_RANK[h.trouble], h.start)):
        if not any(hit.start < other.end and other.start < hit.end for other in kept):
            kept.append(hit)
    return [
        Finding(hit.trouble, part, text.count("\n", 0, hit.start) + 1, _excerpt(text, hit),
                hit.detail)
        for hit in sorted(kept, key=lambda h: h.start)
    ]  # fmt: skip


_RANK = {
    one: place
    for place, one in enumerate(
        (Trouble.CLOCK, Trouble.PLACEHOLDER, Trouble.USER_DATA, Trouble.RANDOM_ID, Trouble.COUNTER,
         Trouble.KEY_ORDER, Trouble.REQUEST, Trouble.VOLATILE)
    )
}  # fmt: skip


# --- times and counts ---


def _times(text: str) -> Iterator[_Hit]:
    for match in words.TIME.finditer(text):
        yield _hit(Trouble.CLOCK, match)
    for match in words.STAMP.finditer(text):
        if not words.STATIC.search(_before(text, match.start())):
            yield _hit(Trouble.CLOCK, match, "a date with a time of day")
    for match in words.EPOCH.finditer(text):
        yield _hit(Trouble.CLOCK, match, "seconds since 1970")
    for match in words.VOLATILE.finditer(text):
        yield _hit(Trouble.VOLATILE, match)


def _counts(text: str) -> Iterator[_Hit]:
    for match in words.COUNTER.finditer(text):
        yield _hit(Trouble.COUNTER, match)


# --- ids ---


def _ids(text: str) -> Iterator[_Hit]:
    for pattern, what in ((words.UUID, "a UUID"), (words.HEX, "a long hexadecimal number"),
                          (words.ULID, "a ULID"), (words.PREFIXED, "an id")):  # fmt: skip
        for match in pattern.finditer(text):
            if len(set(match[0].casefold())) > 4 and not _is_static(text, match):
                yield _hit(Trouble.RANDOM_ID, match, what)
    for match in words.ADDRESS.finditer(text):
        yield _hit(Trouble.RANDOM_ID, match, "an address in memory")
    for match in words.TEMPORARY.finditer(text):
        yield _hit(Trouble.RANDOM_ID, match, "a folder of one run")
    for match in words.NAMED_ID.finditer(text):
        if not _is_static(text, match):
            yield _hit(Trouble.RANDOM_ID, match, "an id")
    for match in words.NONCE.finditer(text):
        if any(c.isdigit() for c in match["value"]):
            yield _hit(Trouble.RANDOM_ID, match, "a random value")
    for match in words.MIXED.finditer(text):
        if _is_random(match[0]) and not _is_static(text, match):
            yield _hit(Trouble.RANDOM_ID, match, "letters and digits without a word in them")
    for match in words.UNORDERED.finditer(text):
        yield _hit(Trouble.KEY_ORDER, match, "a set, written as Python shows it")


def _is_random(token: str) -> bool:
    """Whether `token` looks drawn: upper case, lower case and digits that change often, and no
    word."""
    if not (any(c.isdigit() for c in token) and re.search("[a-z]", token)):
        return False
    if not re.search("[A-Z]", token):
        return bool(re.search(r"(?:[a-z]+\d+){4}", token)) and "-" not in token
    changes = sum(_sort(a) != _sort(b) for a, b in pairwise(token))
    return changes * 5 >= len(token) * 2 and not re.search(r"[A-Za-z][a-z]{4,}", token)


def _sort(character: str) -> int:
    return 0 if character.isdigit() else 1 if character.isupper() else 2


def _is_static(text: str, match: re.Match[str]) -> bool:
    return bool(words.STATIC.search(_before(text, match.start())))


# --- people and machines ---


def _people(text: str) -> Iterator[_Hit]:
    for match in words.EMAIL.finditer(text):
        line = _before(text, match.start())
        if not words.ROLE_MAILBOX.search(match[0]) and (
            _SOMEBODY.search(line) or not _CONTACT.search(line)
        ):
            yield _hit(Trouble.USER_DATA, match, "an e-mail address")
    for match in words.PHONE.finditer(text):
        digits = sum(c.isdigit() for c in match[0])
        around = _before(text, match.start(), lines=3)
        if (
            9 <= digits <= 15
            and _SOMEBODY.search(around)
            and not words.STATIC.search(_before(text, match.start()))
            and not re.search(
                words.STAMP.pattern + r"|\d{4}-\d{2}-\d{2}|(?:\d{1,3}\.){3}", match[0]
            )
        ):
            yield _hit(Trouble.USER_DATA, match, "a phone number")
    for match in words.PERSON.finditer(text):
        end = text.find("\n", match.end())
        rest = text[match.start("value") : len(text) if end < 0 else end]
        is_list = bool(_LISTED.search(match[0])) and "," in rest and not _speaks(rest)
        if is_list or _is_value(match["value"], told=":" in match[0] or "=" in match[0]):
            yield _hit(Trouble.USER_DATA, match, "something about one user")
    for match in words.CALLED.finditer(text):
        value = next(v for v in match.groups() if v is not None)
        if value.casefold() not in words.NOBODY and value.casefold() not in _NO_VALUE:
            yield _hit(Trouble.USER_DATA, match, "somebody's name")
    for match in words.FACT.finditer(text):
        value = match["value"] or match["more"]
        if value.split()[0].casefold() not in _NO_VALUE:
            yield _hit(Trouble.USER_DATA, match, "something about one user")
    for match in words.HOME.finditer(text):
        value = match["value"].casefold()
        if value not in _COMMON_HOMES and not value.startswith(("<", "$", "{", "*", "%", ".", "…")):
            yield _hit(Trouble.USER_DATA, match, "somebody's home folder")
    for pattern, what in ((words.HOST, "the name of a machine"),
                          (words.USER_LINE, "something of one machine")):  # fmt: skip
        for match in pattern.finditer(text):
            local = match["value"].startswith(
                ("127.", "0.", "10.", "192.0.2.", "/workspace", "/work")
            )
            if not local:
                yield _hit(Trouble.USER_DATA, match, what)


def _is_value(value: str, *, told: bool) -> bool:
    """Whether `value` is something about somebody, and not talk about it. `told`: it stands behind
    a colon."""
    tokens = value.split()
    first = tokens[0].strip("*_\"'")
    if not first or first.casefold() in _NO_VALUE or first.startswith(("<", "{", "[", "$", "%")):
        return False
    if first[0].isupper() or any(c.isdigit() for c in first) or "@" in first:
        return True
    return told and len(tokens) == 1


def _known(text: str, known: Mapping[str, str]) -> Iterator[_Hit]:
    for word, what in known.items():
        for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            yield _hit(Trouble.USER_DATA, match, what)


# --- of one request ---


def _others(text: str) -> Iterator[_Hit]:
    for match in words.REQUEST.finditer(text):
        value = match["value"] or match["now"] or match["quoted"] or match[0]
        if match["value"] is not None and (
            not _SAID.search(match[0][: match.start("value") - match.start()])
            and (value.split()[0].strip("*_`.,").casefold() in _NO_VALUE or _speaks(value))
        ):
            continue
        yield _hit(Trouble.REQUEST, match)
    for match in words.PLACEHOLDER.finditer(text):
        name = next(v for v in match.groups() if v is not None).strip()
        if text[max(0, match.start() - 1) : match.start()] == "`" or _STATIC_NAME.match(name):
            continue
        command = match["command"] is not None
        wanted = _CHANGING_COMMAND if command else words.CHANGING_NAME
        if wanted.search(name):
            yield _hit(Trouble.PLACEHOLDER, match)


def _speaks(value: str) -> bool:
    """Whether a text behind a colon is an instruction: it goes on about what to do."""
    return bool(
        re.search(
            r"\b(?:must|should|never|always|do not|don't|cite|use|answer|keep|check|read|show|list|"
            r"ask|summari[sz]e|ignore|treat|prefer|call|put|may|each|every|them|it)\b",
            value,
            re.IGNORECASE,
        )
    )


# --- where something stands ---


def _hit(trouble: Trouble, match: re.Match[str], detail: str = "") -> _Hit:
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    return _Hit(trouble, start, match.end(), detail)


def _before(text: str, at: int, *, lines: int = 1) -> str:
    """The line up to `at`, and `lines - 1` lines above it."""
    start = at
    for _ in range(lines):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    return text[start:at]


def _is_example(text: str, at: int) -> bool:
    """Whether the words before `at` say that what comes is an example or a pattern."""
    line_start = text.rfind("\n", 0, at) + 1
    line = text[line_start:at]
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)[-1]
    if words.EXAMPLE.search(sentence) or _TURN.match(text[line_start : at + 1]):
        return True
    end = text.find("\n", at)
    whole = text[line_start : len(text) if end < 0 else end]
    quoted = line.count('"') % 2 == 1 or line.count("“") > line.count("”")
    if (quoted or line.count("`") % 2 == 1) and re.search(r"→|->|=>|\bmeans?\b|\binto\b", whole):
        return True
    above = text[:line_start].rstrip().rpartition("\n")[2]
    return above.endswith(":") and bool(words.EXAMPLE.search(above))


def _shown(text: str) -> list[tuple[int, int]]:
    """The ranges that are examples or code: tags, sections with such a heading, fences."""
    out = [match.span() for match in _SHOWN.finditer(text)]
    headings = list(_HEADING.finditer(text))
    for place, heading in enumerate(headings):
        if _EXAMPLES.search(heading[2]):
            after = (h.start() for h in headings[place + 1 :] if len(h[1]) <= len(heading[1]))
            out.append((heading.end(), next(after, len(text))))
    fences = iter(_FENCE.finditer(text))
    for opening in fences:
        closing = next((f for f in fences if f[1].startswith(opening[1])), None)
        end = len(text) if closing is None else closing.end()
        lead = text[: opening.start()].rstrip().rpartition("\n")[2]
        if opening[2].casefold() in _CODE or words.EXAMPLE.search(lead):
            out.append((opening.start(), end))
    return out


def _inside(at: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in ranges)


def _excerpt(text: str, hit: _Hit) -> str:
    start = max(text.rfind("\n", 0, hit.start) + 1, hit.start - 30)
    end = text.find("\n", hit.end)
    end = min(len(text) if end < 0 else end, max(hit.end, start + _EXCERPT), start + 2 * _EXCERPT)
    cut = "…" if start and text[start - 1] != "\n" else ""
    return (
        f"{cut}{text[start:end].strip()}{'…' if end < len(text) and text[end] != chr(10) else ''}"
    )
