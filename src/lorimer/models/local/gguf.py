"""Read the metadata of a GGUF file, bounded: what lorimer needs, and never more than it must.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little-endian).
Only the header is read; every count and length is checked before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from lorimer.models.local.errors import CorruptModelFile

_MAX_PAIRS = 4096
_MAX_STRING = 8 << 20
_MAX_ARRAY = 4 << 20
_FIXED = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?",
          10: "<Q", 11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
_CONTROL_TOKEN = 3
_KEPT_ARRAYS = {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type"}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a GGUF file says about itself.

    Attributes:
        fingerprint: SHA-256 of its size, first and last MiB: names this file for caches.
        parameters: number of weights, from its size label; estimated from the file size where it
            has none.
        control_tokens: texts that the tokenizer turns into control tokens, longest first.
    """

    path: Path
    fingerprint: str
    name: str
    architecture: str
    parameters: int
    context_length: int
    chat_template: str
    bos_token: str
    eos_token: str
    control_tokens: tuple[str, ...]


def read_facts(path: Path) -> ModelFacts:
    """The facts of the model file at `path`; read once for each version of a file.

    Raises:
        CorruptModelFile: it is not a GGUF, or its header is damaged.
        OSError: it cannot be read.
    """
    stat = path.stat()
    return _read_facts(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _read_facts(path: Path, size: int, _changed_ns: int) -> ModelFacts:
    with path.open("rb") as file:
        try:
            meta = _read_metadata(file)
        except (struct.error, UnicodeDecodeError, OverflowError, ValueError) as fault:
            raise CorruptModelFile(
                f"{path} is not a sound GGUF file: {fault}.",
                next="If lorimer pulled it: lorimer models verify, then remove and pull it again.",
            ) from fault
        fingerprint = _fingerprint(file, size)
    architecture = str(meta.get("general.architecture", ""))
    tokens: list[str] = meta.get("tokenizer.ggml.tokens", [])
    types: list[int] = meta.get("tokenizer.ggml.token_type", [])
    control = {t for t, kind in zip(tokens, types, strict=False) if kind == _CONTROL_TOKEN and t}
    return ModelFacts(
        path=path,
        fingerprint=fingerprint,
        name=str(meta.get("general.name", path.stem)),
        architecture=architecture,
        parameters=_parameters(meta, size),
        context_length=int(meta.get(f"{architecture}.context_length", 4096)),
        chat_template=str(meta.get("tokenizer.chat_template", "")),
        bos_token=_token(tokens, meta.get("tokenizer.ggml.bos_token_id")),
        eos_token=_token(tokens, meta.get("tokenizer.ggml.eos_token_id")),
        control_tokens=tuple(sorted(control, key=lambda t: (-len(t), t))),
    )


def _read_metadata(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, _tensors, pairs = struct.unpack("<IQQ", file.read(20))
    if version not in (2, 3):
        raise ValueError(f"GGUF version {version} is not known")
    if pairs > _MAX_PAIRS:
        raise ValueError(f"{pairs} metadata entries are too many")
    meta: dict[str, Any] = {}
    for _ in range(pairs):
        key = _read_string(file).decode("utf-8")
        (kind,) = struct.unpack("<I", file.read(4))
        meta[key] = _read_value(file, kind, keep=key in _KEPT_ARRAYS)
    return meta


def _read_value(file: BinaryIO, kind: int, keep: bool) -> Any:
    if kind == _STRING:
        return _read_string(file).decode("utf-8", "replace")
    if kind in _FIXED:
        form = _FIXED[kind]
        return struct.unpack(form, file.read(struct.calcsize(form)))[0]
    if kind != _ARRAY:
        raise ValueError(f"unknown value type {kind}")
    item, count = struct.unpack("<IQ", file.read(12))
    if count > _MAX_ARRAY:
        raise ValueError(f"an array of {count} items is too long")
    if item == _STRING:
        texts = [_read_string(file) for _ in range(count)]
        return [t.decode("utf-8", "replace") for t in texts] if keep else None
    if item not in _FIXED:
        raise ValueError(f"unknown array type {item}")
    form = _FIXED[item]
    data = file.read(struct.calcsize(form) * count)
    return list(struct.unpack(f"<{count}{form[1:]}", data)) if keep else None


def _read_string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _MAX_STRING:
        raise ValueError(f"a text of {length} bytes is too long")
    text = file.read(length)
    if len(text) != length:
        raise ValueError("it ends inside its header")
    return text


def _fingerprint(file: BinaryIO, size: int) -> str:
    mebibyte = 1 << 20
    state = hashlib.sha256(str(size).encode())
    file.seek(0)
    state.update(file.read(mebibyte))
    file.seek(max(0, size - mebibyte), os.SEEK_SET)
    state.update(file.read(mebibyte))
    return state.hexdigest()


def _parameters(meta: dict[str, Any], size: int) -> int:
    label = re.fullmatch(r"([0-9.]+)([MB])", str(meta.get("general.size_label", "")))
    if label:
        return int(float(label[1]) * (1_000_000 if label[2] == "M" else 1_000_000_000))
    return int(size * 1.6)  # about 5 bits a weight, as in Q4_K_M


def _token(tokens: list[str], index: Any) -> str:
    return tokens[index] if isinstance(index, int) and 0 <= index < len(tokens) else ""
