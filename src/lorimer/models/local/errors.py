"""Faults of model files: fetching them, checking them, loading them."""

from __future__ import annotations

from lorimer.core.errors import LorimerError, ModelError


class ModelNotPulled(ModelError):
    """The model is known but its file is not on this machine."""

    exit_code = 2


class CorruptModelFile(ModelError):
    """The file is not a GGUF, or the engine cannot load it."""


class PullFailed(LorimerError):
    """A model could not be fetched. What was fetched is kept; pulling again goes on from there."""


class SourceUnreachable(PullFailed):
    """One source of a model does not answer, or does not have it."""


class WrongHash(PullFailed):
    """The bytes that came are not the model's. They were removed."""


class BadArchive(PullFailed):
    """An archive does not hold exactly what it must. Nothing was read from it."""


class NotEnoughDisk(PullFailed):
    """The disk has no room for the model."""
