"""Sentences that bind: what the user asks to be kept to, and what a summary must not reword."""

from __future__ import annotations

import re

from lorimer.context.compaction.sentences import sentences_of

_BINDING = re.compile(
    r"\b(must|shall|never|always|only|at (?:most|least)|no (?:more|later|fewer|less|earlier) than"
    r"|not (?:more|later|fewer|less|earlier) than|(?:do|does|did|should|may|can|must|shall|will)"
    r"(?: not|n[’']t)|cannot|dont|have to|has to|needs? to|requir(?:e|es|ed|ement)|forbidden"
    r"|prohibited|(?:not )?allowed|under no circumstances|make sure|be sure|ensure|avoid|refrain"
    r"|without|unless|except|exclud(?:e|es|ed|ing)|limit(?:ed|s)?|maximum|minimum|exactly|deadline"
    r"|budget|until|keep|leave|stay|stop|stick to|instead of|rather than|prefer|insist|whatever you"
    r"|no matter|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|before \w+day|up to|capped?"
    r"|hands off|off limits|in any case|nothing (?:but|over|above|under|below|older|newer))\b"
    r"|\b(muss|müssen|darf|dürfen|nie|niemals|immer|nur|höchstens|mindestens|keinesfalls|nicht)\b",
    re.I,
)
_STRICT = re.compile(
    r"\b(must|shall|never|always|at (?:most|least)|no (?:more|later|fewer|less) than"
    r"|(?:do|should|may|must|shall) ?(?:not|n[’']t)|cannot|have to|has to|needs? to|required"
    r"|forbidden|prohibited|(?:not )?allowed|under no circumstances|make sure|ensure|avoid|only"
    r"|ought to|supposed to|mandatory|obligatory|not to)\b"
    r"|\b(muss|müssen|darf|dürfen|nie|niemals|immer|nur|höchstens|mindestens|keinesfalls|verboten"
    r"|untersagt|pflicht|vorgeschrieben)\b",
    re.I,
)


def constraints_in(text: str) -> list[str]:
    """The sentences of a user's message that look as if they bind, word for word, in order. Rather
    one too many: they are quoted, never acted on."""
    return [one for one in sentences_of(text) if _BINDING.search(one)]


def binds(line: str) -> bool:
    """Whether a line of a summary states a rule: it may then stand only word for word."""
    return _STRICT.search(line) is not None
