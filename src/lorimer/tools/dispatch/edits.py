"""Arguments that a person writes for a stored request, checked where the answer is given.

Only the tool's schema is at hand there: what the policy, the limits and the types of the function
say of them is found out when the call is about to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lorimer.core.canonical import canonical_json, digest
from lorimer.tools.dispatch.evidence import changed_files, resolved
from lorimer.tools.dispatch.listing import files_in
from lorimer.tools.dispatch.shape import in_words
from lorimer.tools.schema import compile_schema, problems


def unfit(request: Mapping[str, Any], edited: Mapping[str, Any]) -> list[str]:
    """In words, why the arguments `edited` do not fit the tool of the stored `request`; empty when
    they do, or when the request does not say."""
    schema = request.get("schema")
    if not isinstance(schema, Mapping):
        return []
    if request.get("schema_digest") != digest(canonical_json(dict(schema))):
        return ["the stored schema of the tool is not what was stored"]
    tool = str(request.get("tool", ""))
    found = problems(schema, compile_schema(tool, dict(schema)), dict(edited))
    repaired = {f"/{name}" for name in request.get("repaired", ())}
    return [in_words(code, one) for code, one in found
            if code == "missing" or one.path not in repaired]  # fmt: skip


def changed_since(request: Mapping[str, Any], edited: Mapping[str, Any] | None) -> list[str]:
    """In words, what of the files that the stored `request` shows is not as it was when it was
    asked. Of an edited call only those count that it still names."""
    bound = request.get("bound", {})
    files: Mapping[str, str] = bound.get("files", {})
    if edited is not None:
        cwd = str(request.get("cwd", ""))
        named = {resolved(path, cwd) for path in files_in(edited, (cwd,))}
        files = {path: found for path, found in files.items() if path in named}
    return changed_files(files)
