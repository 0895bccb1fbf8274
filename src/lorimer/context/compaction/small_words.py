"""Words that carry no fact but turn one: by them a language is told apart, and a sentence is not
cut behind or beside them. English and German."""

from __future__ import annotations

from typing import Final

_TURNING: Final = {
    "en": """
        not no never none nobody nothing nowhere neither nor without cannot can't won't isn't
        aren't wasn't weren't doesn't didn't don't hasn't haven't hadn't shouldn't mustn't may
        might must shall will would can could should ought need needn't have has had is are was
        were be been being do does did if unless when whenever while until till before after since
        because although though except only but instead rather provided whether all each every any
        some many much more most less least few fewer several both either half almost nearly about
        at over under above below up down between within outside against said says according
        allegedly reportedly claims claimed denied believed thought false wrong refused failed
        planned following these those same other first last next hardly barely
    """,
    "de": """
        nicht kein keine keinen keiner keinem keines nie niemals nichts niemand ohne weder noch
        darf dürfen durfte kann können konnte könnte muss müssen musste müsste soll sollen sollte
        will wollen wollte wird werden wurde wurden worden würde hat haben hatte hätte ist sind war
        waren wäre sei wenn falls sofern soweit solange bis bevor nachdem seit während weil obwohl
        außer nur aber sondern statt alle jeder jede jedes einige manche viele mehr meist weniger
        wenig höchstens mindestens maximal fast etwa kaum über unter vor nach innerhalb außerhalb
        zwischen gegen laut angeblich falsch folgende diese dieser dieses erste letzte
    """,
}
TURNING: Final = {language: frozenset(words.split()) for language, words in _TURNING.items()}
"""Negation, modality, tense, condition, exception, quantity, comparison, direction, and who says
it."""
_USUAL: Final = {
    "en": "the a an of to in and or is are was were it its that this with from for on by as at",
    "de": "der die das den dem des ein eine und oder ist sind war in im zu zum zur mit von vom für "
    "auf bei am an nicht",
}
USUAL: Final = {language: frozenset(words.split()) for language, words in _USUAL.items()}
FREE: Final = {
    "en": frozenset(["the", "also", "moreover", "furthermore", "additionally"]),
    "de": frozenset(["zudem", "außerdem", "überdies"]),
}
"""What may be missing in an extract: it changes neither who does what, nor how much, nor when. The
German articles are not among them, for they say who does it."""
EVERY_TURNING: Final = TURNING["en"] | TURNING["de"]
EVERY_FREE: Final = FREE["en"] | FREE["de"]
_REVERSING: Final = """
    not no never none neither nor without unless if except but only however although though until
    false wrong nicht kein keine nie weder noch ohne außer wenn falls sofern aber jedoch allerdings
    sondern nur obwohl bis falsch
"""
REVERSING: Final = frozenset(_REVERSING.split())
"""Of a clause that follows: it may take back, or bound, what was said before it."""


def language_of(words: tuple[str, ...]) -> str:
    """`en`, `de`, or empty where that is not sure."""
    counts = {name: sum(word in usual for word in words) for name, usual in USUAL.items()}
    best = max(counts, key=lambda name: counts[name])
    other = max(count for name, count in counts.items() if name != best)
    return best if counts[best] > other else ""
