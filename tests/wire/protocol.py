"""What a protocol must say of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wire.answers import Fail, Say


def sse(record: Any, event: str = "") -> bytes:
    data = record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data}\n\n".encode()


class Protocol:
    """One provider's wire."""

    name: str
    key_header: str
    key_prefix = ""

    def path(self, model: str) -> str:
        raise NotImplementedError

    def accepts(self, path: str) -> bool:
        raise NotImplementedError

    def authorised(self, headers: Mapping[str, str], key: str) -> bool:
        return headers.get(self.key_header) == self.key_prefix + key

    def error(self, fail: Fail) -> Any:
        raise NotImplementedError

    def error_event(self, code: str, message: str) -> bytes:
        """An error in the middle of a stream."""
        raise NotImplementedError

    def unknown_event(self) -> bytes:
        """An event of a kind, or with fields, that no client knows."""
        raise NotImplementedError

    def encode(self, say: Say, request: Mapping[str, Any]) -> bytes:
        """The whole event stream of an answer."""
        raise NotImplementedError
