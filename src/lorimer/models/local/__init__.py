"""Models that run in this process: found, fetched, and spoken to without any service.

`open_local(name)` is the way in; everything heavy is imported there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lorimer.models.local.model import LocalModel

__all__ = ["looks_local", "open_local"]


def looks_local(name: str) -> bool:
    """Whether `name` is a model of the catalogue or a path of a GGUF file."""
    from lorimer.models.local.catalogue import MODELS

    return name in MODELS or _is_path(name)


def open_local(name: str) -> LocalModel:
    """The local model `name`: a name of the catalogue, or the path of a GGUF file.

    Nothing is loaded before its first request.

    Raises:
        UnknownModel: no such name (near names are in the message), or no such file.
        ModelNotPulled: the model is known but not on this machine.
        CorruptModelFile: the file is not a model.
    """
    from lorimer.models.local.model import LocalModel

    return LocalModel(name, _find(name))


def _is_path(name: str) -> bool:
    return name.lower().endswith(".gguf") or "/" in name


def _find(name: str) -> Path:
    from lorimer.core.errors import UnknownModel
    from lorimer.models.local.catalogue import MODELS, find, is_present, model_path
    from lorimer.models.local.errors import ModelNotPulled

    if model := MODELS.get(name):
        if not is_present(model):
            raise ModelNotPulled(
                f"The model {name} is not on this machine.",
                next=f"Run: lorimer models pull {name}   ({model.size_bytes / 1e6:,.0f} MB)",
            )
        from lorimer.models.local.pull import ensure_checked

        ensure_checked(model)
        return model_path(model)
    if _is_path(name):
        path = Path(name).expanduser()
        if path.is_file():
            return path
        raise UnknownModel(
            f"There is no model file at {path}.",
            next="Give the path of a .gguf file, or a name from: lorimer models list",
        )
    return model_path(find(name))
