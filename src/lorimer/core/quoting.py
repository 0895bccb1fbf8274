"""Text from outside in tags that it cannot close."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(?=\s*/?\s*external_content)", re.IGNORECASE)
_WRAPPED = re.compile(r"<external_content source=\"[^\"\n]*\" id=\"[^\"\n]*\">\n(.*)\n"
                      r"</external_content>\s*\Z", re.DOTALL)  # fmt: skip


def wrap_external(text: str, source: str, call_id: str) -> str:
    """Outside content in tags that it cannot close."""
    inside = _TAG.sub("&lt;", text)
    name = _TAG.sub("&lt;", source).replace('"', "'").replace("\n", " ")
    return f'<external_content source="{name}" id="{call_id}">\n{inside}\n</external_content>'


def unwrapped(text: str) -> str:
    """What `wrap_external` wrapped, or `text` where it is not wrapped."""
    found = _WRAPPED.match(text)
    return found.group(1) if found else text
