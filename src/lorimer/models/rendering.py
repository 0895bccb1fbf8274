"""What all wires render alike: notes, fillers, arguments, ids, names, schemas. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from lorimer.core.canonical import canonical_json
from lorimer.core.messages import Entry, FilePart, ImagePart, Kind, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.models.rawjson import is_object

NO_REPLY: Final = "[no reply was recorded]"
"""Stands where a wire needs an assistant message and there is none with visible content."""

NO_MESSAGE: Final = "[no message was recorded]"
"""Stands where a wire needs a user message, or needs text in one, and there is none."""

INVALID_ARGUMENTS: Final = "_invalid_arguments"
"""The only key of the object that is handed back for arguments that were no JSON object."""

_CLOSING_NOTE = re.compile(r"<(?=\s*/\s*note)", re.IGNORECASE)
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def note_text(text: str) -> str:
    """A note of the harness, marked as one; `text` cannot close the mark."""
    return f"<note>{_CLOSING_NOTE.sub('&lt;', text)}</note>"


def told_text(entry: Entry) -> str:
    """What the harness tells the model by an entry that is no message of anybody: a note is marked
    here, the other kinds bring their own tags."""
    text = joined_text(entry.parts)
    return note_text(text) if entry.kind is Kind.NOTE else text


def arguments_json(raw: str) -> str:
    """The arguments to hand back for a call written as `raw`: `raw` itself where it is a JSON
    object, `{}` where nothing was written, else an object that quotes it. Servers refuse a history
    with arguments that are no JSON object; what the model wrote stays in the record."""
    whole = encodable(raw)
    if whole == raw and is_object(raw):
        return raw
    if not raw.strip():
        return "{}"
    return canonical_json({INVALID_ARGUMENTS: whole}).decode()


def encodable(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair that stands alone: UTF-8 has no bytes
    for it, so no request can carry it. The record keeps it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def wire_id(call_id: str, pattern: str) -> str:
    """`call_id` if it matches `pattern`, else a stand-in made from it, the same each time (an id
    that another provider gave, in a session that changed models). Nine letters and digits fit every
    pattern known (Mistral demands exactly that)."""
    if _compiled(pattern).fullmatch(call_id):
        return call_id
    return "c" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def wire_name(name: str) -> str:
    """A tool name as it may stand in a history: servers refuse names with other characters, and a
    model may write any name. The record keeps the name as written."""
    return _BAD_NAME.sub("_", name)[:64] or "_"


def joined_text(parts: Iterable[object], separator: str = "\n\n") -> str:
    """The texts among `parts`; parts from different sources stay apart."""
    return separator.join(p.text for p in parts if isinstance(p, TextPart))


def has_media(parts: Iterable[object]) -> bool:
    return any(isinstance(p, ImagePart | FilePart) for p in parts)


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def not_shown(part: ImagePart | FilePart) -> str:
    """What stands for a file or image that this wire cannot carry."""
    name = part.name if isinstance(part, FilePart) else part.source or "image"
    return f"[{name} ({part.media_type}) cannot be shown to this model]"


def described(spec: ToolSpec) -> str:
    """Description with the examples, for wires without an example field of their own."""
    if not spec.examples:
        return spec.description
    lines = [canonical_json(example).decode() for example in spec.examples]
    return "\n".join([spec.description, "Examples of arguments:", *lines])


_NOT_STRICT = frozenset(
    {
        "allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames",
        "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
        "contains", "prefixItems", "default",
    }
)  # fmt: skip


def allows_strict(schema: Mapping[str, Any]) -> bool:
    """Whether `schema` is in the subset that strict mode takes: each object closed, each property
    required, no keyword outside the subset
    (https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas)."""
    return schema.get("type") == "object" and "anyOf" not in schema and _strict(schema)


def _strict(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or not _NOT_STRICT.isdisjoint(schema):
        return False
    if "type" not in schema and not {"anyOf", "$ref", "enum", "const"}.intersection(schema):
        return False
    properties = schema.get("properties", {})
    types = schema.get("type")
    if (types == "object" or (isinstance(types, list) and "object" in types)) and (
        schema.get("additionalProperties") is not False
        or set(schema.get("required", ())) != set(properties)
    ):
        return False
    inner = [*properties.values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    if "items" in schema:
        inner.append(schema["items"])
    return all(_strict(sub) for sub in inner)
