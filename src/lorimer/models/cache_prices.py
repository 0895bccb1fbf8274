"""What the prompt cache costs and saves: prices of cached tokens, of a plain input token."""

from __future__ import annotations

from dataclasses import dataclass

from lorimer.models.profiles import Profile


@dataclass(frozen=True, slots=True)
class CachePrices:
    """Prices of a token by what the cache does with it; a plain input token is 1.

    Attributes:
        read_ratio: read from the cache; 0 where it costs nothing.
        write_ratio: written to the cache; 1 where that costs nothing on top.
        known: whether this was read somewhere. Where it was not, both are 1: nothing is known to
            be saved.
        as_of, source: when and where it was read.
    """

    read_ratio: float
    write_ratio: float
    known: bool
    as_of: str = ""
    source: str = ""


_UNKNOWN = CachePrices(1.0, 1.0, known=False)
_OWN_ENGINE = CachePrices(0.0, 1.0, known=True)


def cache_prices(profile: Profile) -> CachePrices:
    """By the price of the model where it has one for cached tokens, else by the ratios of its
    family."""
    if profile.wire == "local":
        return _OWN_ENGINE
    price = profile.price
    if price is not None and price.cached is not None and price.input > 0:
        written = price.input if price.cache_write is None else price.cache_write
        return CachePrices(
            float(price.cached / price.input), float(written / price.input),
            known=True, as_of=price.as_of, source=price.source,
        )  # fmt: skip
    ratios = profile.cache_ratios
    if not ratios:
        return _UNKNOWN
    return CachePrices(
        float(ratios["read"]), float(ratios["write"]),
        known=True, as_of=ratios.get("as_of", ""), source=ratios.get("source", ""),
    )  # fmt: skip
