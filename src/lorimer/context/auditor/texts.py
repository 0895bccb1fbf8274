"""Two texts of which one should be the other: what kind of words differ.

A clock, a counter, a random id, something about the user, or several turns in one text. Patterns,
not a model: they read the words around the place that differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from lorimer.context.auditor.finding import Cause

_EXCERPT = 60
_MOST_TOKENS = 3000
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_TIME = re.compile(
    rf"""
    \d{{4}}-\d{{2}}-\d{{2}}(?:[T\s]+\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:Z|[+-]\d{{2}}:?\d{{2}})?)?
    | \b\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?
    | \b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b
    | \b{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?\b
    | \b\d{{1,2}}\.?\s+{_MONTH}(?:\s+\d{{4}})?\b
    | \b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)day\b
    | \b1[5-9]\d{{8}}(?:\d{{3}}|\.\d+)?\b
    | \b\d+(?:\.\d+)?\s*(?:s|sec(?:ond)?s?|min(?:ute)?s?|h(?:our)?s?|days?)\s+ago\b
    | \b(?:uptime|elapsed|time|clock|now)\b\W{{0,4}}\d+(?:\.\d+)?(?![\d:])
      (?:\s*(?:s|ms|seconds?|minutes?))?\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RANDOM = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"
    r"|\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{16,}\b",
    re.IGNORECASE,
)
_COUNT = re.compile(r"[\d.,\s]*\d[\d.,\s]*")
_USER = re.compile(
    r"\b(?:user|customer|client|profile|account|member|person(?:al)?|preferen\w+|likes?|interests?|"
    r"memor(?:y|ies)|facts? about|first name|e-?mail|phone|address|birth\w*|balance|loyalty|"
    r"credits?|points|mood|location|language|last (?:topic|question|order|visit|seen)|"
    r"recent (?:topics?|orders?|questions?))\b",
    re.IGNORECASE,
)
_PROFILE = re.compile(r"\bprofile\b", re.IGNORECASE)
_ROLE = re.compile(
    r"^[^\w\n]{0,4}(user|human|assistant|ai|bot|system|tool|function|model|question|answer|q|a)"
    r"(?:[^\w\n]{0,3}:|\]|>|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_WORD = re.compile(r"\w{4,}")


class Words:
    """The longer words of some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.known = {word.lower() for text in texts for word in _WORD.findall(text)}

    def hold(self, text: str) -> bool:
        """Whether most longer words of `text` are among them (and there are some)."""
        words = [word.lower() for word in _WORD.findall(text)]
        return bool(words) and 2 * sum(word in self.known for word in words) >= len(words)


def common_start(one: bytes, other: bytes) -> int:
    """How many bytes the two have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def excerpts(was: bytes, now: bytes) -> tuple[str, str]:
    """What stands around the first byte that differs, in both."""
    at = max(0, common_start(was, now) - _EXCERPT // 3) if was and now else 0
    return _excerpt(was, at), _excerpt(now, at)


def _excerpt(data: bytes, at: int) -> str:
    piece = data[at : at + _EXCERPT].decode("utf-8", "ignore")
    return ("…" if at else "") + piece + ("…" if at + _EXCERPT < len(data) else "")


def is_flattened(before: Sequence[str], now: str) -> bool:
    """Whether `now` holds several turns: the texts that were messages of their own, or lines that
    begin with the names of roles, growing from what one message said before."""
    said = [text.strip() for text in before if text.strip()]
    if not said:
        return False
    if len(said) > 1:
        at = 0
        for text in said:
            at = now.find(text, at)
            if at < 0:
                break
            at += len(text)
        if at > 0:
            return True
    labels = list(_ROLE.finditer(now))
    if len({match[1].lower() for match in labels}) < 2:
        return False
    if said[0] in now:
        return True
    # The same first turns, more turns behind them, and the same closing words.
    end_of_first = now.find("\n", labels[0].end())
    start = common_start(said[0].encode("utf-8", "replace"), now.encode("utf-8", "replace"))
    return (
        len(labels) > len(_ROLE.findall(said[0]))
        and 0 < len(now[:end_of_first].encode("utf-8", "replace")) <= start
    )


def bare(text: str) -> str:
    """Without the marks of a rendered prompt around it."""
    return re.sub(r"<\|?\w+\|?>\w*\n?|<\|?/?\w+\|?>\s*$", "", text).strip()


def changed_words(was: str, now: str, said: Words | None) -> tuple[Cause | None, str]:
    """The cause that the differing words tell of, and those words; `None` when they tell of none.

    Args:
        said: the user's words: a prefix that repeats them holds user data.
    """
    causes: list[Cause | None] = []
    shown: list[str] = []
    for old_span, new_span in _hunks(was, now):
        cause = _kind(was, old_span, now, new_span, said)
        causes.append(cause)
        old, new = was[slice(*old_span)].strip(), now[slice(*new_span)].strip()
        shown.append(f"{old[:40]!r} became {new[:40]!r}")
    detail = "; ".join(shown[:3])
    if not causes or (None in causes and Cause.USER_DATA not in causes):
        return None, detail
    for cause in (Cause.USER_DATA, Cause.TIME, Cause.RANDOM_ID, Cause.COUNTER):
        if cause in causes:
            return cause, detail
    return None, detail


def _hunks(was: str, now: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Character ranges that differ, in whole tokens."""
    a, b = _TOKEN.findall(was), _TOKEN.findall(now)
    start = 0
    while start < len(a) and start < len(b) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if max(len(middle_a), len(middle_b)) > _MOST_TOKENS:
        blocks = [("replace", 0, len(middle_a), 0, len(middle_b))]
    else:
        matcher = SequenceMatcher(None, middle_a, middle_b, autojunk=False)
        blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    places_a, places_b = _places(a), _places(b)
    return [
        ((places_a[start + a0], places_a[start + a1]), (places_b[start + b0], places_b[start + b1]))
        for _, a0, a1, b0, b1 in blocks
    ]


def _places(tokens: Sequence[str]) -> list[int]:
    places = [0]
    for token in tokens:
        places.append(places[-1] + len(token))
    return places


def _kind(
    was: str, old: tuple[int, int], now: str, new: tuple[int, int], said: Words | None
) -> Cause | None:
    section = _section(now, new)
    if _touches(_TIME, was, old) and _touches(_TIME, now, new):
        return Cause.USER_DATA if _PROFILE.search(section) else Cause.TIME
    if _USER.search(section):
        return Cause.USER_DATA
    if _touches(_RANDOM, was, old) and _touches(_RANDOM, now, new):
        return Cause.RANDOM_ID
    old_text, new_text = was[slice(*old)], now[slice(*new)]
    if _COUNT.fullmatch(old_text) and _COUNT.fullmatch(new_text):
        return Cause.COUNTER
    if said is not None and said.hold(new_text):
        return Cause.USER_DATA
    return None


def _touches(pattern: re.Pattern[str], text: str, span: tuple[int, int]) -> bool:
    """Whether a match of `pattern` holds the start of `span` (or its end, when it is empty)."""
    low, high = _line(text, span)
    for match in pattern.finditer(text, low, high):
        if match.start() <= span[0] and span[1] <= match.end():
            return True
        if span[0] <= match.start() and match.end() <= span[1]:
            return True
    return False


def _line(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start = text.rfind("\n", 0, span[0]) + 1
    end = text.find("\n", span[1])
    return start, len(text) if end < 0 else end


def _section(text: str, span: tuple[int, int]) -> str:
    """The sentence around `span` up to its end, behind the nearest heading above it: a line that
    ends in a colon or a tag, or begins like a heading, in the same paragraph."""
    start, _ = _line(text, span)
    line = text[start : span[1]]
    sentence = max(line.rfind(". "), line.rfind("! "), line.rfind("? ")) + 1
    paragraph = text.rfind("\n\n", 0, start)
    above = text[paragraph + 2 if paragraph >= 0 else 0 : start].splitlines()
    heading = next((one for one in reversed(above) if _is_heading(one)), "")
    return f"{heading}\n{line[sentence:] or line}".replace("_", " ")


def _is_heading(line: str) -> bool:
    stripped = line.strip()
    return stripped.endswith((":", ">", ":**")) or stripped.startswith(("#", "<", "**"))
