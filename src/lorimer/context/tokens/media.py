"""What images and files cost in tokens: by each provider's own rule, never by the length of their
base64. The rules are data, with date and source: `media.toml`."""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass
from functools import lru_cache

from lorimer.context.tokens.image_size import size_of_base64
from lorimer.context.tokens.pdf_pages import pages_of_base64
from lorimer.core.messages import FilePart, ImagePart

_PAGE_BYTES = 50_000
_UNKNOWN_FILE = 1000


@dataclass(frozen=True, slots=True)
class MediaRule:
    """One rule of `media.toml`; see there for what the fields say. `most` 0: no bound."""

    models: str
    rule: str
    unknown: int
    page: int
    as_of: str
    source: str
    page_source: str = ""
    patch: int = 0
    edge: int = 0
    most: int = 0
    whole: bool = False
    multiplier: float = 1.0
    base: int = 0
    tile: int = 0
    side: int = 0
    small: int = 0
    extra: int = 0

    def image(self, width: int, height: int) -> int:
        """Tokens of an image of `width` × `height` pixels."""
        match self.rule:
            case "patches":
                return math.ceil(self._patches(width, height) * self.multiplier)
            case "tiles":
                scale = min(1.0, 2048 / max(width, height))
                scale = min(scale, 768 / min(width, height))
                return self.base + self.tile * _squares(width * scale, height * scale, 512)
            case "grid":
                if max(width, height) <= self.small:
                    return self.tile
                tokens = self.tile * _squares(width, height, self.side) + self.extra
                return min(tokens, self.most) if self.most else tokens
            case _:
                return self.tile

    def _patches(self, width: int, height: int) -> int:
        scale = min(1.0, self.edge / max(width, height)) if self.edge else 1.0
        patches = _squares(width * scale, height * scale, self.patch)
        if not self.most or patches <= self.most:
            return patches
        if self.whole:
            scale = math.sqrt(self.most * self.patch**2 / (width * height))
            across, down = width * scale / self.patch, height * scale / self.patch
            scale *= min(1.0, *(max(1, math.floor(n)) / n for n in (across, down)))
            return min(self.most, _squares(width * scale, height * scale, self.patch))
        low, high = 0.0, scale
        for _ in range(40):
            middle = (low + high) / 2
            fits = _squares(width * middle, height * middle, self.patch) <= self.most
            low, high = (middle, high) if fits else (low, middle)
        return _squares(width * low, height * low, self.patch)


@lru_cache(maxsize=1)
def media_rules() -> tuple[MediaRule, ...]:
    """All rules, in the order in which they are tried; the last fits every model."""
    import tomllib
    from importlib.resources import files

    text = files("lorimer.context.tokens").joinpath("media.toml").read_text("utf-8")
    return tuple(MediaRule(**record) for record in tomllib.loads(text)["image"])


@lru_cache(maxsize=64)
def rule_for(model: str) -> MediaRule:
    """The rule for the model called `model` (`anthropic:claude-…`)."""
    return next(rule for rule in media_rules() if re.search(rule.models, model))


@dataclass(frozen=True, slots=True)
class MediaCount:
    """Tokens of one image or file. `text`: it is sent as text, which is still to be counted.
    `guess` says in words what was guessed; empty when nothing was."""

    tokens: int
    text: str = ""
    guess: str = ""


def media_count(part: ImagePart | FilePart, model: str) -> MediaCount:
    """What `part` costs the model called `model`."""
    rule = rule_for(model)
    return _image(part, rule, model) if isinstance(part, ImagePart) else _file(part, rule)


def _image(part: ImagePart, rule: MediaRule, model: str) -> MediaCount:
    if not part.data and not part.url:
        return MediaCount(0, text=f"[{part.source or 'image'}]")
    size = size_of_base64(part.data) if part.data else None
    if size is None:
        why = "its size cannot be read" if part.data else "it is given by its address"
        return MediaCount(rule.unknown, guess=f"An image counts {rule.unknown:,} tokens: {why}.")
    tokens = rule.image(*size)
    if rule.source:
        return MediaCount(tokens)
    return MediaCount(
        tokens, guess=f"An image counts {tokens:,} tokens: no rule of {model} is known."
    )


def _file(part: FilePart, rule: MediaRule) -> MediaCount:
    if part.media_type == "application/pdf":
        pages = pages_of_base64(part.data)
        if pages is not None and rule.page_source:
            return MediaCount(pages * rule.page)
        known = pages or max(1, math.ceil(len(part.data) * 3 / 4 / _PAGE_BYTES))
        what = f"{known} pages" if pages else f"about {known} pages by its size"
        return MediaCount(
            known * rule.page,
            guess=f"{part.name} counts {known * rule.page:,} tokens: {what}, {rule.page:,} each.",
        )
    if part.media_type.startswith("text/"):
        try:
            return MediaCount(0, text=base64.b64decode(part.data, validate=True).decode("utf-8"))
        except (binascii.Error, UnicodeDecodeError):
            pass
    return MediaCount(
        _UNKNOWN_FILE,
        guess=f"{part.name} ({part.media_type}) counts {_UNKNOWN_FILE:,} tokens: no rule is known.",
    )


def _squares(width: float, height: float, side: int) -> int:
    """Squares of `side` pixels that cover the image."""
    return max(1, math.ceil(round(width, 6) / side)) * max(1, math.ceil(round(height, 6) / side))
