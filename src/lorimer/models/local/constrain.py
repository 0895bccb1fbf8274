"""The constraint on what a model writes: the offer as a JSON Schema, and that as a grammar.

The engine compiles JSON Schema itself (llguidance, or llama.cpp's own converter). It must never be
given a keyword it cannot compile: it would then write without any constraint and say nothing. So a
schema is first reduced to what it is known to take; what is left out makes the grammar looser, and
the dispatcher's own check of the full schema still holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lorimer.models.local.rules import COMPUTER, Offer

_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_DEPTH = 8
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength")
_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_UNSAFE_PATTERN = re.compile(r"\(\?(?!:)|\\[1-9bBAZzpPkG]|\\x|\\u|[*+?}][+]|\\c")
MAX_CALLS = 4
CODE_PATTERN = r"^([^:]|:[ -~]|:\n  )*$"
"""Python in which a line that ends in a colon is followed by an indented one: the mistake that the
0.5B model makes most often."""


def answer_schema(offer: Offer) -> dict[str, Any]:
    """The JSON Schema of everything that `offer` allows."""
    calls = [
        _object(
            {
                "name": {"const": tool.name},
                "arguments": arguments_schema(
                    offer.narrow.get(tool.name, tool.input_schema), tool.name
                ),
            }
        )
        for tool in offer.tools
    ]
    choices = list(calls)
    if offer.several and calls:
        choices.append(
            {
                "type": "array",
                "items": {"anyOf": calls},
                "minItems": 2,
                "maxItems": MAX_CALLS,
            }
        )
    if offer.say or not choices:
        choices.append(_object({"say": {"type": "string"}}))
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def llguidance_grammar(schema: Mapping[str, Any]) -> str:
    """The schema as a grammar for llguidance, with one fixed spacing."""
    body = json.dumps({"x-guidance": _SPACING, **schema}, ensure_ascii=True)
    return f"%llguidance {{}}\nstart: %json {body}\n"


def constraint_field(offer: Offer, *, llguidance: bool) -> dict[str, Any]:
    """The body field of a completion request that holds the model to `offer`."""
    schema = answer_schema(offer)
    if llguidance:
        return {"grammar": llguidance_grammar(schema)}
    return {"json_schema": schema}


def arguments_schema(schema: Mapping[str, Any], tool: str = "") -> dict[str, Any]:
    """A tool's input schema, reduced to what the engine can compile; always an object."""
    reduced = reduce_schema(schema)
    if reduced.get("type") != "object" and "anyOf" not in reduced:
        return {"type": "object"}
    code = reduced.get("properties", {}).get("code")
    if tool == COMPUTER and code == {"type": "string"}:
        reduced["properties"]["code"] = {"type": "string", "pattern": CODE_PATTERN}
    return reduced


def reduce_schema(schema: Any) -> dict[str, Any]:
    """`schema` with only the keywords that the engine is known to compile; `{}` is any value.

    Everything valid under `schema` stays valid, except for keys that an object does not list:
    those are not offered.
    """
    root = schema if isinstance(schema, Mapping) else {}
    return _reduce(schema, root, 0)


def _reduce(schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return {}
    if "$ref" in schema:
        return _reduce(_resolve(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return {"enum": list(schema["enum"])}
    for keyword in ("anyOf", "oneOf"):
        choices = schema.get(keyword)
        if isinstance(choices, list) and choices:
            reduced = [_reduce(_merged(schema, c), root, depth + 1) for c in choices]
            return {} if {} in reduced else {"anyOf": reduced}
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
        return _reduce(_merged(schema, parts[0]), root, depth + 1)
    return _by_type(schema, root, depth)


def _merged(outer: Mapping[str, Any], inner: Any) -> Any:
    """A choice inside a schema, with the keywords that stand beside the choice."""
    if not isinstance(inner, Mapping):
        return inner
    beside = {k: v for k, v in outer.items() if k in ("type", "properties", "required")}
    both = {**beside, **inner}
    if "properties" in beside and "properties" in inner:
        both["properties"] = {**beside["properties"], **inner["properties"]}
    if "required" in beside and "required" in inner:
        both["required"] = [*beside["required"], *inner["required"]]
    return both


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [k for k in kind if k in _TYPES]
        choices = [_by_type({**schema, "type": k}, root, depth) for k in kinds]
        return {"anyOf": choices} if len(choices) > 1 else (choices[0] if choices else {})
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else None
    if kind not in _TYPES:
        return {}
    if kind == "object":
        return _reduce_object(schema, root, depth)
    out: dict[str, Any] = {"type": kind}
    if kind == "array":
        out["items"] = _reduce(schema.get("items", {}), root, depth + 1)
    if kind in ("number", "integer"):
        out |= {k: schema[k] for k in _NUMBERS if _is_number(schema.get(k))}
        if not _range_holds(out):
            return {"type": kind}
    if kind in ("array", "string"):
        out |= {k: schema[k] for k in _COUNTS if k in schema and _fits(k, kind, schema[k])}
        if out.get("minItems", 0) > out.get("maxItems", 1 << 30):
            out.pop("maxItems")
    if kind == "string":
        _add_pattern(out, schema.get("pattern"))
    return out


def _reduce_object(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        values = schema.get("additionalProperties", True)
        if isinstance(values, Mapping) and values:
            return {"type": "object", "additionalProperties": _reduce(values, root, depth + 1)}
        return {"type": "object"} if values is not False else _object({})
    reduced = {
        str(name): _reduce(value, root, depth + 1)
        for name, value in properties.items()
        if value is not False
    }
    wanted = schema.get("required", ())
    required = [n for n in wanted if n in reduced] if isinstance(wanted, list | tuple) else []
    return {"type": "object", "properties": reduced, "required": required,
            "additionalProperties": False}  # fmt: skip


def _add_pattern(out: dict[str, Any], pattern: Any) -> None:
    # a pattern beside a length needs both at once, which costs the engine too much
    if not isinstance(pattern, str) or len(pattern) > 200 or _UNSAFE_PATTERN.search(pattern):
        return
    try:
        re.compile(pattern)
    except re.error:
        return
    out.pop("minLength", None)
    out.pop("maxLength", None)
    out["pattern"] = pattern


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range_holds(out: Mapping[str, Any]) -> bool:
    low = max(out.get("minimum", float("-inf")), out.get("exclusiveMinimum", float("-inf")))
    high = min(out.get("maximum", float("inf")), out.get("exclusiveMaximum", float("inf")))
    return bool(low < high or (low == high and "minimum" in out and "maximum" in out
                               and "exclusiveMinimum" not in out
                               and "exclusiveMaximum" not in out))  # fmt: skip


def _fits(keyword: str, kind: str, value: Any) -> bool:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2000:
        return False
    return keyword.endswith("Items") == (kind == "array")


def _resolve(reference: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    here: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or step not in here:
            return {}
        here = here[step]
    return here


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}  # fmt: skip
