"""`@tool`: a tool from a typed Python function.

The signature and its `Annotated` types give the schema (by pydantic), the docstring the
description. Lines of the docstring that begin with `Use when:`, `Do not use when:`, `Cost:` and
`Returns:` become the labelled parts.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from lorimer.core.calls import Effects, Idempotency
from lorimer.core.errors import ToolDefinitionError
from lorimer.core.trust import Trust
from lorimer.tools.schema import first_line
from lorimer.tools.tool import (
    Budget,
    Category,
    Check,
    Description,
    FindOutcome,
    Isolation,
    Limit,
    Normaliser,
    Preview,
    Tool,
    ToolContext,
    Verify,
)

_LABELS = {
    "use when": "use_when",
    "use it when": "use_when",
    "do not use when": "not_when",
    "do not use it when": "not_when",
    "cost": "cost",
    "returns": "returns",
}
_OPTIONS = {f.name for f in dataclasses.fields(Tool) if f.init} - {
    "name", "description", "input_schema", "function", "context_parameter", "convert",
}  # fmt: skip
_PLAIN = (str, int, float, bool, dict, list, type(None), Any)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | Description | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    output_schema: Mapping[str, Any] | None = None,
    category: Category | str = Category.EXECUTION,
    effects: Effects | str = Effects.WRITE,
    idempotency: Idempotency | str | None = None,
    timeout_s: float | None = 120.0,
    budget: Budget | None = None,
    limits: Sequence[Limit] = (),
    resources: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
    checks: Sequence[Check] = (),
    normalisers: Sequence[Normaliser] = (),
    verify: Verify | None = None,
    find_outcome: FindOutcome | None = None,
    trust: Trust | str | None = None,
    isolation: Isolation | str = Isolation.AUTO,
    path_arguments: Sequence[str] | None = None,
    host_arguments: Sequence[str] = (),
    command_argument: str = "",
    sinks: Sequence[str] | None = None,
    outbound: bool = False,
    private: bool = False,
    memory: bool = False,
    confirm: bool = False,
    runs_code: bool = False,
    confined: bool = False,
    preview: Preview | None = None,
    secrets: Sequence[str] = (),
    targets: Sequence[str] = (),
    cwd_of: Callable[[ToolContext], str | None] | None = None,
    calls_tools: bool = False,
    delegates: bool = False,
    low_value: bool = False,
    max_attempts: int = 3,
    group: str = "",
    server: str = "",
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool from a function: `@tool`, or `@tool(effects="read", timeout_s=5)`.

    A parameter annotated `ToolContext` is filled by lorimer and is not in the schema. `effects` is
    `write` unless you say otherwise: an undeclared function may do anything. Sync functions with
    effects run in a worker process, so they do not change objects of the calling process; say
    `isolation="thread"` where they must, and know that such a call cannot be killed.

    Raises:
        ToolDefinitionError: when the function or an option cannot be used, and why.
    """
    if function is not None:
        return _make(function, {})
    return lambda f: _make(f, options)


def _enum(kind: type[Any], value: Any, option: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(repr(str(v)) for v in kind)
        raise ToolDefinitionError(
            f"{option}={value!r} is not known.", next=f"Use one of: {allowed}."
        ) from None


def _make(function: Callable[..., Any], options: dict[str, Any]) -> Tool:
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} is not a function.")
    own = getattr(function, "__name__", type(function).__name__)
    name = options.pop("name", None) or own
    schema, convert, context_parameter, documented = read_signature(function)
    description = options.pop("description", None) or documented
    if isinstance(description, str):
        description = Description(description)
    if not description.what.strip():
        raise ToolDefinitionError(
            f"Tool {name!r} has no description.",
            next="Write a docstring, or pass description=.",
        )
    for option, kind in (
        ("effects", Effects), ("category", Category), ("trust", Trust), ("isolation", Isolation),
    ):  # fmt: skip
        if option in options and (option != "trust" or options[option] is not None):
            options[option] = _enum(kind, options[option], option)
    if options.get("idempotency") is not None:
        options["idempotency"] = _enum(Idempotency, options["idempotency"], "idempotency")
    for option in ("examples", "limits", "checks", "normalisers", "path_arguments",
                   "host_arguments", "sinks", "secrets", "targets"):  # fmt: skip
        if options.get(option) is not None:
            options[option] = tuple(options[option])
    if options.get("budget", ...) is None:
        del options["budget"]
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise ToolDefinitionError(
            f"Tool {name!r}: there is no option {', '.join(sorted(unknown))}.",
            next=f"Use: {', '.join(sorted(_OPTIONS))}.",
        )
    return Tool(
        name, description, schema, function,
        context_parameter=context_parameter, convert=convert, **options,
    )  # fmt: skip


def read_signature(
    function: Callable[..., Any],
) -> tuple[
    dict[str, Any], Callable[[Mapping[str, Any]], dict[str, Any]] | None, str | None, Description
]:
    """Schema, converter, context parameter and description of `function`."""
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError
    from pydantic.fields import FieldInfo

    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(_annotated(function), include_extras=True)
    except (NameError, TypeError, ValueError) as fault:
        raise ToolDefinitionError(
            f"The signature of {function!r} cannot be read: {fault}",
            next="Annotate parameters with types that are defined where the function is.",
        ) from fault
    described, parameters_text = _docstring(function)
    fields: dict[str, Any] = {}
    context_parameter = None
    plain = True
    filled: set[str] = set()
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, Any)
        if hint is ToolContext or ToolContext in typing.get_args(hint):
            context_parameter = parameter.name
            continue
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise ToolDefinitionError(
                f"{function!r}: parameter {parameter.name!r} cannot be given by name.",
                next="Use ordinary named parameters, or Tool.from_schema.",
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        if isinstance(default, FieldInfo):
            info = default
            if not info.is_required():
                filled.add(parameter.name)  # the function's own default is the Field itself
        else:
            info = Field(default)
        text = parameters_text.get(parameter.name)
        if text and not any(
            isinstance(m, FieldInfo) and m.description for m in typing.get_args(hint)[1:]
        ) and info.description is None:  # fmt: skip
            hint = typing.Annotated[hint, Field(description=text)]
        fields[parameter.name] = (hint, info)
        plain = plain and _is_plain(hint) and not _renamed(hint, info)
    try:
        with warnings.catch_warnings():
            # Of names that pydantic has too (`json`, `copy`) and of defaults that JSON cannot hold;
            # neither matters here.
            warnings.simplefilter("ignore")
            model = create_model(
                "Arguments",
                __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
                **fields,
            )
            schema = model.model_json_schema()
    except (PydanticUserError, TypeError, NameError, ValueError) as fault:
        raise ToolDefinitionError(
            f"{function!r}: no JSON Schema can be made of its parameters: {first_line(fault)}",
            next="Use JSON types, dataclasses or pydantic models, or Tool.from_schema.",
        ) from fault
    _strip(schema)

    def convert(arguments: Mapping[str, Any]) -> dict[str, Any]:
        made = model.model_validate(dict(arguments))
        given = made.model_fields_set | filled
        return {key: getattr(made, key) for key in fields if key in given}

    plain = plain and not filled
    return schema, (None if plain else convert), context_parameter, described


def _renamed(hint: Any, info: Any) -> bool:
    """Whether the schema gives the parameter another name, or a validator changes its value."""
    return any(
        getattr(m, "alias", None)
        or getattr(m, "validation_alias", None)
        or "Validator" in type(m).__name__
        for m in (info, *typing.get_args(hint)[1:])
    )


def _annotated(function: Callable[..., Any]) -> Any:
    """Where the annotations of `function` stand: it may be a partial, or have a `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def _is_plain(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return True
    if (
        origin in (list, dict)
        or origin is typing.Union
        or getattr(origin, "__name__", "") == "UnionType"
    ):
        return all(_is_plain(a) for a in typing.get_args(hint))
    return hint in _PLAIN


def _strip(schema: Any, names: bool = False) -> None:
    """Remove the `title` noise that pydantic adds (160 against 138 tokens for one tool)."""
    if isinstance(schema, dict):
        if not names and isinstance(schema.get("title"), str):
            del schema["title"]
        for key, value in schema.items():
            if key not in ("default", "const", "enum", "examples"):
                _strip(value, names=key in ("properties", "$defs"))
    elif isinstance(schema, list):
        for value in schema:
            _strip(value)


def _docstring(function: Callable[..., Any]) -> tuple[Description, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    if not text:
        return Description(""), {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    parts: dict[str, str] = {}
    what: list[str] = []
    open_key = ""
    for line in (parsed.description or "").splitlines():
        label, colon, rest = line.partition(":")
        key = _LABELS.get(label.strip().lower())
        if colon and key:
            parts[key], open_key = rest.strip(), key
        elif open_key and line.strip():  # a label goes on to the next empty line
            parts[open_key] = f"{parts[open_key]} {line.strip()}".strip()
        else:
            open_key = ""
            what.append(line)
    if parsed.returns is not None and parsed.returns.description and "returns" not in parts:
        parts["returns"] = " ".join(parsed.returns.description.split())
    parameters = {
        p.arg_name: " ".join(p.description.split()) for p in parsed.params if p.description
    }
    return Description("\n".join(what).strip(), **parts), parameters
