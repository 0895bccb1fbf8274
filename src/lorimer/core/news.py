"""What is new in a call since the last approved one of the same tool, for whoever is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def news(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """In lines of text, how the request `now` differs from `before`, both as JSON (`arguments`,
    `paths`, `effects`). `None`: nothing was approved before."""
    if before is None:
        return "the first request of this tool in this session"
    out: list[str] = []
    old, new = before.get("arguments", {}), now.get("arguments", {})
    for name in sorted({*old, *new}):
        if name not in old:
            out.append(f"new argument {name}")
        elif name not in new:
            out.append(f"{name} is left out now")
        elif old[name] != new[name]:
            out.append(f"{name}: {_change(old[name], new[name])}")
    out += _added("path", before.get("paths", ()), now.get("paths", ()))
    earlier, later = before.get("effects", {}), now.get("effects", {})
    out += _added("host", earlier.get("hosts", ()), later.get("hosts", ()))
    if earlier.get("level") != later.get("level"):
        out.append(f"it is {later.get('level')} now, {earlier.get('level')} before")
    known = {one.get("concern") for one in earlier.get("reasons", ())}
    out += [
        f"new concern: {one['text']}"
        for one in later.get("reasons", ())
        if one.get("concern") not in known
    ]
    return "\n".join(out) or "nothing: the same as the last one"


def _change(old: Any, new: Any) -> str:
    short = all(isinstance(v, str) and len(v) <= 200 and "\n" not in v for v in (old, new))
    if short or not isinstance(new, str):
        return f"{_text(old)} before, {_text(new)} now"
    return f"another text ({len(str(old)):,} characters before, {len(new):,} now)"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _added(what: str, before: Any, now: Any) -> list[str]:
    return [f"new {what}: {one}" for one in now if one not in before]
