"""Content codings undone piece by piece, so that a small body cannot become a huge one."""

from __future__ import annotations

import functools
import importlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from lorimer.safety.network.refused import NetworkRefused, Why

_PIECE = 1 << 16
_MOST_LAYERS = 2


class _Layer(Protocol):
    """Undoes one coding; no piece it yields is longer than some 64 KiB."""

    def feed(self, piece: bytes) -> Iterator[bytes]: ...

    def whole(self) -> bool:
        """Whether the coded content has come to its own end."""
        ...


class Decoder:
    """Undoes the codings of one response body.

    Args:
        codings: of `Content-Encoding`, in the order they were applied.
        limit_bytes: how many bytes may come out of each layer.
        host: for messages.

    Raises:
        NetworkRefused: a coding that is not known here, or too many.
    """

    def __init__(self, codings: Sequence[str], limit_bytes: int, host: str) -> None:
        self._host = host
        self._limit = limit_bytes
        wanted = [c for c in codings if c not in ("", "identity")]
        if len(wanted) > _MOST_LAYERS:
            raise self._bad(f"is coded {len(wanted)} times over ({', '.join(wanted)[:80]})")
        self._layers: list[_Layer] = [self._layer(c) for c in reversed(wanted)]
        self._totals = [0] * len(self._layers)
        self._names = list(reversed(wanted))

    def _layer(self, coding: str) -> _Layer:
        make = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _br, "zstd": _zstd}
        layer = make[coding]() if coding in make else None
        if layer is None:
            raise self._bad(f"has the coding {coding!r}, which was not asked for")
        return layer

    def feed(self, piece: bytes, layer: int = 0) -> Iterator[bytes]:
        """What comes out for one piece of the body, in pieces."""
        if layer == len(self._layers):
            if piece:
                yield piece
            return
        try:
            for out in self._layers[layer].feed(piece):
                self._totals[layer] += len(out)
                if self._totals[layer] > self._limit:
                    raise NetworkRefused(
                        f"The answer of {self._host} unpacks to more than {self._limit:,} bytes.",
                        why=Why.SIZE, host=self._host, sent=True,
                        next="Ask for a smaller part of it, or raise the limit.",
                    )  # fmt: skip
                yield from self.feed(out, layer + 1)
        except NetworkRefused:
            raise
        except Exception as fault:  # each codec has an error of its own
            raise self._bad(f"is not valid {self._names[layer]}: {fault}") from fault

    def finish(self) -> None:
        """Call it at the end of the body.

        Raises:
            NetworkRefused: a coded content has not come to its end: something is missing.
        """
        for layer, name, total in zip(self._layers, self._names, self._totals, strict=True):
            if not layer.whole():
                raise self._bad(f"is cut off inside its {name} coding, after {total:,} bytes")

    def _bad(self, what: str) -> NetworkRefused:
        return NetworkRefused(
            f"The body of the answer of {self._host} {what}.",
            why=Why.ENCODING, host=self._host, sent=True,
            next="Ask again, or use another source.",
        )  # fmt: skip


def accepted() -> str:
    """The `Accept-Encoding` of requests: what can be undone here."""
    more = [name for name, make in (("br", _br), ("zstd", _zstd)) if make() is not None]
    return ", ".join(["gzip", "deflate", *more])


class _Zlib:
    """gzip (also several members in a row), and deflate with or without its wrapper."""

    def __init__(self, window: int, *, members: bool, raw_too: bool) -> None:
        self._window = window
        self._members = members
        self._raw_too = raw_too
        self._codec = zlib.decompressobj(window)
        self._begun = False
        self._empty = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            self._empty = False
            if self._codec.eof:
                if not self._members:
                    raise ValueError("more bytes follow its end")
                self._codec = zlib.decompressobj(self._window)
            try:
                out = self._codec.decompress(piece, _PIECE)
            except zlib.error:
                if not self._raw_too or self._begun:
                    raise
                self._raw_too, self._codec = False, zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._begun = True
            piece = self._codec.unconsumed_tail or self._codec.unused_data
            if out:
                yield out
            while not piece and len(out) == _PIECE:  # held back inside the codec
                out = self._codec.decompress(b"", _PIECE)
                if out:
                    yield out

    def whole(self) -> bool:
        return self._empty or self._codec.eof


class _Module:
    """A codec of an installed module whose output can be limited per call."""

    def __init__(self, codec: Any, take: str, limit: str) -> None:
        self._take = getattr(codec, take)
        self._limit = {limit: _PIECE}
        self._codec = codec
        self._empty = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._empty = self._empty and not piece
        while True:
            out = self._take(piece, **self._limit)
            if out:
                yield out
            piece = b""
            if self.whole():
                if getattr(self._codec, "unused_data", b""):
                    raise ValueError("more bytes follow its end")
                return
            if not self._holds_more(out):
                return

    def _holds_more(self, out: bytes) -> bool:
        for name, means in (("can_accept_more_data", False), ("needs_input", False)):
            value = getattr(self._codec, name, None)
            if value is not None:
                return bool((value() if callable(value) else value) is means)
        return bool(out)

    def whole(self) -> bool:
        if self._empty:
            return True
        finished = getattr(self._codec, "is_finished", None)
        return bool(finished() if finished is not None else self._codec.eof)


def _gzip() -> _Layer:
    return _Zlib(16 + zlib.MAX_WBITS, members=True, raw_too=False)


def _deflate() -> _Layer:
    return _Zlib(zlib.MAX_WBITS, members=False, raw_too=True)


def _br() -> _Layer | None:
    """Needs a `brotli` module that can limit its output (1.2 and newer)."""
    module = _installed("brotli", "brotlicffi")
    codec = getattr(module, "Decompressor", None)
    if codec is None or not hasattr(codec, "can_accept_more_data"):
        return None
    return _Module(codec(), "process", "output_buffer_limit")


def _zstd() -> _Layer | None:
    module = _installed("compression.zstd", "backports.zstd")
    codec = getattr(module, "ZstdDecompressor", None)
    return None if codec is None else _Module(codec(), "decompress", "max_length")


@functools.cache
def _installed(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
