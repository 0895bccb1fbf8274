"""JSON Schemas of tools: made strict, compiled once, and their faults put into words.

Full JSON Schema 2020-12 by `jsonschema-rs`; a `$ref` that leaves the schema is refused, never
fetched. Booleans are not numbers, `1.0` is an integer, numbers in strings are not numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from lorimer.core.calls import Diff, Problem
from lorimer.core.errors import ToolDefinitionError

_OPEN = ("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "allOf",
         "anyOf", "oneOf", "if", "$dynamicRef")  # fmt: skip
_SHOWN_OPTIONS = 20
_NUMBER_OR_TRUTH = re.compile(r"[-+]?[0-9][0-9_,.]*(e[-+]?[0-9]+)?|true|false", re.IGNORECASE)
_SHOWN_TEXT = 200
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


def closed_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` as that of a closed object: unknown keys are refused unless it says otherwise.

    Raises:
        ToolDefinitionError: when it is not an object schema.
    """
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(
            f"Tool {tool!r}: its input schema is {type(schema).__name__}, not a JSON object.",
            next='Use {"type": "object", "properties": {…}, "required": […]}.',
        )
    out = dict(schema)
    if out.get("type", "object") != "object":
        raise ToolDefinitionError(
            f"Tool {tool!r}: its input schema is of type {out['type']!r}.",
            next='Arguments are always an object: use "type": "object".',
        )
    out["type"] = "object"
    if not any(key in out for key in _OPEN):
        out["additionalProperties"] = False
    return out


def _no_fetch(uri: str) -> Any:
    raise ValueError(f"schemas are not fetched from elsewhere: {uri}")


def compile_schema(tool: str, schema: Mapping[str, Any], *, what: str = "input schema") -> Any:
    """The validator of `schema`.

    Raises:
        ToolDefinitionError: when the schema itself is wrong, with the reason.
    """
    import jsonschema_rs

    try:
        for fault in jsonschema_rs.Draft202012Validator(
            {"$ref": "https://json-schema.org/draft/2020-12/schema"}
        ).iter_errors(schema):
            _, problem = next(iter(_translate({}, fault)))
            raise ToolDefinitionError(
                f"Tool {tool!r}: its {what} is not valid JSON Schema 2020-12 at "
                f"{problem.path or 'its top'}: {problem.given!r} stands there.",
                next=f"Expected there: {problem.expected}.",
            )
        return jsonschema_rs.Draft202012Validator(dict(schema), retriever=_no_fetch)
    except ToolDefinitionError:
        raise
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as fault:
        raise ToolDefinitionError(
            f"Tool {tool!r}: its {what} cannot be used: {first_line(fault)}",
            next="Keep every $ref inside the schema (`#/$defs/…`) and every value JSON.",
        ) from fault


def first_line(fault: Exception) -> str:
    """The first line of a message that goes on for many."""
    return str(fault).partition("\n")[0]


def pointer(path: Iterable[Any]) -> str:
    """A JSON pointer (RFC 6901) from path steps."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def kind_of(value: Any) -> str:
    """The JSON type of `value`, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def shown(value: Any) -> Any:
    """`value` as it can be quoted: long ones are named by their size."""
    if isinstance(value, str) and len(value) > _SHOWN_TEXT:
        return f"{value[:_SHOWN_TEXT]}… ({len(value)} characters)"
    if isinstance(value, list | dict) and len(str(value)) > _SHOWN_TEXT:
        return f"{kind_of(value)} with {len(value)} items"
    return value


def _options(options: list[Any]) -> str:
    shown = ", ".join(repr(o) if isinstance(o, str) else str(o) for o in options[:_SHOWN_OPTIONS])
    more = len(options) - _SHOWN_OPTIONS
    return f"one of: {shown}" + (f" (and {more} more)" if more > 0 else "")


def problems(
    tool_schema: Mapping[str, Any], validator: Any, value: Any
) -> list[tuple[str, Problem]]:
    """All faults of `value`, each with its refusal code: `missing`, `extra`, `type` or `value`."""
    found: list[tuple[str, Problem]] = []
    for error in validator.iter_errors(value):
        found.extend(_translate(tool_schema, error))
    return found


def _translate(schema: Mapping[str, Any], error: Any) -> Iterable[tuple[str, Problem]]:
    kind = error.kind.name
    facts = error.kind.as_dict()
    at = pointer(error.instance_path)
    given = error.instance
    if kind == "required":
        name = facts["property"]
        yield "missing", Problem(f"{at}/{name}", None, _describe(schema, error, name))
    elif kind in ("additionalProperties", "unevaluatedProperties"):
        known = sorted(_properties(schema, error))[:_SHOWN_OPTIONS]
        for name in facts["unexpected"]:
            value = given.get(name) if isinstance(given, Mapping) else None
            yield "extra", Problem(f"{at}/{name}", shown(value), "no such argument; known: "
                                   + (", ".join(known) or "none"))  # fmt: skip
    elif kind == "type":
        wanted = " or ".join(facts["types"])
        hint = _unquote(given, facts["types"])
        yield "type", Problem(at, shown(given), f"{wanted}{hint}, not {kind_of(given)}")
    elif kind == "enum":
        yield "value", Problem(at, shown(given), _options(list(facts["options"])))
    elif kind in ("anyOf", "oneOf"):
        code, text = _forms(facts.get("context", []))
        yield code, Problem(at, shown(given), text or _limit(error))
    else:
        yield "value", Problem(at, shown(given), _limit(error))


def _limit(error: Any) -> str:
    """What a keyword with a limit allows, in words; else what the validator says."""
    kind, facts = error.kind.name, error.kind.as_dict()
    if kind in _LIMITS:
        return _LIMITS[kind].format(facts.get("limit", facts.get("multiple_of")))
    if kind == "pattern":
        return f"text that matches {facts.get('pattern')}"
    if kind == "format":
        return f"text of the format {facts.get('format')}"
    if kind == "const":
        return f"exactly {facts.get('expected_value')!r}"
    if kind == "uniqueItems":
        return "no item twice"
    return str(shown(error.message))


def _forms(branches: Sequence[Sequence[Any]]) -> tuple[str, str]:
    """Code and words for a value that fits none of several forms, or too many."""
    kinds = {e.kind.name for branch in branches for e in branch}
    if not kinds or not all(branches):
        return "value", "exactly one of the forms that the schema lists"
    if kinds == {"type"}:
        names = [t for branch in branches for e in branch for t in e.kind.as_dict()["types"]]
        given = branches[0][0].instance
        return "type", (
            f"{' or '.join(dict.fromkeys(names))}{_unquote(given, names)}, not {kind_of(given)}"
        )
    said = dict.fromkeys(_branch(e) for branch in branches for e in branch if e.kind.name != "type")
    return "value", "; or ".join([*said][:4])


def _branch(error: Any) -> str:
    if error.kind.name == "enum":
        return _options(list(error.kind.as_dict()["options"]))
    if error.kind.name == "required":
        return f"an object with {error.kind.as_dict()['property']}"
    return _limit(error)


def _unquote(given: Any, wanted: Sequence[str]) -> str:
    if not isinstance(given, str) or not {"integer", "number", "boolean"}.intersection(wanted):
        return ""
    quoted = _NUMBER_OR_TRUTH.fullmatch(given.strip())
    return ", written without quotes" if quoted else ""


def _properties(schema: Mapping[str, Any], error: Any) -> Mapping[str, Any]:
    node: Any = schema
    for step in list(error.schema_path)[:-1]:
        if isinstance(node, Mapping):
            node = _at(schema, node["$ref"]) if step == "$ref" else node.get(step, {})
        elif isinstance(node, list) and isinstance(step, int):
            node = node[step]
        else:
            node = {}
    found = node.get("properties", {}) if isinstance(node, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _describe(schema: Mapping[str, Any], error: Any, name: str) -> str:
    entry = _properties(schema, error).get(name, {})
    kind = entry.get("type", "a value") if isinstance(entry, Mapping) else "a value"
    text = entry.get("description", "") if isinstance(entry, Mapping) else ""
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return f"required, {kind}" + (f": {text}" if text else "")


def integral(schema: Mapping[str, Any], value: Any) -> tuple[Any, list[Diff]]:
    """`value`, valid by `schema`, with floats such as `1.0` read as integers where the schema asks
    for an integer and for no other number (JSON Schema 2020-12, validation 6.1.1, calls them the
    same); each such reading is a `Diff`."""
    return _integral([schema], schema, value, "")


def _integral(
    schemas: Sequence[Any], root: Mapping[str, Any], value: Any, path: str
) -> tuple[Any, list[Diff]]:
    if isinstance(value, float):
        types = {t for s in _applied(schemas, root) for t in _types(s)}
        if "integer" in types and "number" not in types and value.is_integer():
            whole = int(Decimal(repr(value)))
            return whole, [Diff(path, value, whole, "integer written with a fraction of 0")]
        return value, []
    if not isinstance(value, dict | list) or not _has_float(value):
        return value, []
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    applied = list(_applied(schemas, root))
    out, diffs = value.copy(), []
    for key, item in parts:
        if isinstance(item, float | dict | list):
            inner = [s for a in applied for s in _inner(a, key, len(value))]
            out[key], more = _integral(inner, root, item, path + pointer([key]))
            diffs += more
    return (out if diffs else value), diffs


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else types


def _applied(schemas: Sequence[Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every subschema that may say something about the same value."""
    waiting, seen = list(schemas), set()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        for key in ("anyOf", "oneOf", "allOf"):
            waiting += schema.get(key, ())
        waiting += [schema.get(key) for key in ("then", "else")]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            waiting.append(_at(root, reference))


def _at(root: Any, reference: str) -> Any:
    node = root
    for step in reference.removeprefix("#").split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(step)
        elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def _inner(schema: Mapping[str, Any], key: str | int, length: int) -> Iterator[Any]:
    """The subschemas of `schema` for the item `key` of a value."""
    if isinstance(key, int):
        first = schema.get("prefixItems", ())
        yield first[key] if key < len(first) else schema.get("items")
        return
    known = schema.get("properties", {})
    if key in known:
        yield known[key]
        return
    patterns = [s for p, s in schema.get("patternProperties", {}).items() if re.search(p, key)]
    yield from patterns or [schema.get("additionalProperties")]
