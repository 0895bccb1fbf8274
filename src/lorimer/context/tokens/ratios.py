"""What a tokenizer's tokens are worth, learned from real requests and kept in a small file.

A sample is (tokens that the provider reported, tokens that we counted) of the same text. The ratio
of a family is the median of its samples' ratios, each weighted by its size; the first value of
`families.toml` counts as one small sample. Samples of fewer than 300 counted tokens, or with a
ratio that no tokenizer has, are not taken.

The file is `tokens/ratios.json` under the home folder: read when it is first needed, written under
a lock, whole or not at all. A file that cannot be read is told of, put aside and begun anew; one
that cannot be written is told of once, and what was learned then lives as long as the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lorimer.context.tokens.families import family_of
from lorimer.context.tokens.text_count import O200K
from lorimer.core.home import home

SMALLEST_SAMPLE: Final = 300
"""Counted tokens below which a sample says too little."""
PLAUSIBLE: Final = (0.4, 4.0)
"""A ratio outside is a mistake of somebody's, not a tokenizer."""
_KEPT: Final = 32
_HEAVIEST: Final = 20_000
_FIRST_WEIGHT: Final = 1_000
_AT_ONCE: Final = 8
_LOCK_WAIT_S: Final = 1.0
_POLL_S: Final = 0.01

Sample = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Tokens for one counted token. `samples`: how many measurements it rests on; 0: the first
    value, as it was read somewhere."""

    value: float
    samples: int


class Ratios:
    """The learned ratios of all families. Safe to use from several threads and processes.

    Args:
        file: where they are kept; `None`: in the home folder.
        tell: is told, in words, of a file that cannot be used.
    """

    def __init__(
        self, file: Path | None = None, *, tell: Callable[[str], None] | None = None
    ) -> None:
        self._file = file
        self.tell = tell
        self._known: dict[str, list[Sample]] | None = None
        self._fresh: dict[str, list[Sample]] = {}
        self._lock = threading.RLock()
        self._mute = False

    @property
    def file(self) -> Path:
        return self._file or home() / "tokens" / "ratios.json"

    def of(self, model: str, basis: str = O200K) -> Ratio:
        """The ratio for the model called `model`, where texts are counted by `basis`."""
        family = family_of(model)
        with self._lock:
            samples = self._samples().get(_key(family.name, basis), [])
            return Ratio(_median(samples, family.ratio), len(samples))

    def learn(self, model: str, tokens: int, counted: int, basis: str = O200K) -> bool:
        """Take a sample: `tokens` reported for what we count as `counted`. Whether it was taken.

        The file is written with every eighth sample, and the first ones of a family at once.
        """
        if counted < SMALLEST_SAMPLE or not PLAUSIBLE[0] <= tokens / counted <= PLAUSIBLE[1]:
            return False
        key = _key(family_of(model).name, basis)
        with self._lock:
            known = self._samples().setdefault(key, [])
            known.append((tokens, counted))
            del known[:-_KEPT]
            fresh = self._fresh.setdefault(key, [])
            fresh.append((tokens, counted))
            del fresh[:-_KEPT]
            if len(known) <= _AT_ONCE or sum(map(len, self._fresh.values())) >= _AT_ONCE:
                self.save(wait=False)
        return True

    def save(self, *, wait: bool = True) -> bool:
        """Write what is new. Whether nothing is left to write: `False` when another process has the
        file just now (without `wait`, or for longer than a second), or it cannot be written."""
        with self._lock:
            if not self._fresh:
                return True
            try:
                with self._locked(_LOCK_WAIT_S if wait else 0.0) as held:
                    if not held:
                        return False
                    self._known = self._merged(self._read())
                    self._write(self._known)
            except OSError as fault:
                self._say(
                    f"What was learned of token counts cannot be kept in {self.file}: "
                    f"{fault.strerror or fault}. Counting goes on without."
                )
                return False
            self._fresh.clear()
            return True

    def _samples(self) -> dict[str, list[Sample]]:
        if self._known is None:
            self._known = {}
            try:
                self._known = self._merged(self._read())
            except OSError as fault:
                self._say(
                    f"{self.file} cannot be read: {fault.strerror or fault}. Token counts begin "
                    "with their first values."
                )
        return self._known

    def _merged(self, stored: dict[str, list[Sample]]) -> dict[str, list[Sample]]:
        for key, fresh in self._fresh.items():
            stored[key] = (stored.get(key, []) + fresh)[-_KEPT:]
        return stored

    def _read(self) -> dict[str, list[Sample]]:
        try:
            text = self.file.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            return _checked(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            aside = self.file.with_name(f"{self.file.name}.broken")
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                os.replace(self.file, aside)
            self._say(
                f"{self.file} is damaged. It now is {aside.name}, and token counts begin with "
                "their first values; nothing else is lost."
            )
            return {}

    def _write(self, samples: dict[str, list[Sample]]) -> None:
        record = {"version": 1, "families": {k: {"samples": v} for k, v in samples.items()}}
        descriptor, temporary = tempfile.mkstemp(dir=self.file.parent, prefix=".ratios-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(record, out, indent=1, sort_keys=True)
            os.replace(temporary, self.file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _locked(self, wait_s: float) -> Iterator[bool]:
        """Whether the file is ours alone meanwhile."""
        folder = self.file.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(
            folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            yield _take(lock, time.monotonic() + wait_s)
        finally:
            os.close(lock)

    def _say(self, words: str) -> None:
        if self.tell is not None and not self._mute:
            self._mute = True
            self.tell(words)


def _take(lock: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        else:
            return True


def _key(family: str, basis: str) -> str:
    return family if basis == O200K else f"{family} by {basis}"


def _checked(record: Any) -> dict[str, list[Sample]]:
    if record["version"] != 1:
        raise ValueError(record["version"])
    out: dict[str, list[Sample]] = {}
    for name, family in record["families"].items():
        samples = [(int(tokens), int(counted)) for tokens, counted in family["samples"]]
        if any(counted < 1 or tokens < 0 for tokens, counted in samples):
            raise ValueError(name)
        out[str(name)] = samples[-_KEPT:]
    return out


def _median(samples: Sequence[Sample], first: float) -> float:
    """The weighted median; halfway between two where the weight is split evenly."""
    weighted = [(tokens / counted, min(counted, _HEAVIEST)) for tokens, counted in samples]
    weighted = sorted([*weighted, (first, _FIRST_WEIGHT)])
    half = sum(weight for _, weight in weighted) / 2
    passed = 0
    for at, (ratio, weight) in enumerate(weighted):
        passed += weight
        if passed > half:
            return ratio
        if passed == half:
            return (ratio + weighted[at + 1][0]) / 2
    raise AssertionError("the weights are positive")
