"""Make `src/lorimer/context/tokens/o200k_base.xz` from OpenAI's own list of ranks.

    python scripts/vocabulary.py o200k_base.tiktoken

The list is the one that tiktoken loads (MIT); its SHA-256 is checked. Ours holds the same tokens in
order of rank, in a seventh of the size: a JSON line, one length byte a token, the tokens.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import sys
from pathlib import Path

SOURCE = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
TARGET = Path(__file__).parent.parent / "src/lorimer/context/tokens/o200k_base.xz"
WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
"""How o200k_base cuts text before it merges; part of the vocabulary."""


def main(source: Path) -> None:
    raw = source.read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise SystemExit(f"{source} is not o200k_base: its SHA-256 is another one.")
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in raw.splitlines())}
    tokens = sorted(ranks, key=ranks.__getitem__)
    if [ranks[token] for token in tokens] != list(range(len(tokens))):
        raise SystemExit("The ranks have holes.")
    head = {
        "name": "o200k_base", "tokens": len(tokens), "pattern": "|".join(WORDS),
        "source": SOURCE, "sha256": SHA256, "licence": "MIT",
    }  # fmt: skip
    plain = json.dumps(head).encode() + b"\n" + bytes(map(len, tokens)) + b"".join(tokens)
    TARGET.write_bytes(lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET}: {len(tokens):,} tokens, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
