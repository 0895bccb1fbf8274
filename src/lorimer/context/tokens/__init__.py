"""How many tokens a request has, before it is sent. See `counter` for how it works."""

from lorimer.context.tokens.counter import TAIL_TOKENS, Anchor, TokenCounter, TokenEstimate
from lorimer.context.tokens.ratios import Ratio, Ratios
from lorimer.context.tokens.text_count import CHARACTER_COUNT, has_vocabulary, vocabulary

__all__ = [
    "CHARACTER_COUNT",
    "TAIL_TOKENS",
    "Anchor",
    "Ratio",
    "Ratios",
    "TokenCounter",
    "TokenEstimate",
    "has_vocabulary",
    "vocabulary",
]
