"""Builds one prompt in a process of its own and writes it down, for `prompt_builds`.

The clock stands still (moved by `shift_s`): what then differs between two builds has another reason
than that time went on.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_FIXED_S = 1_800_000_000.25


def main() -> None:
    """Read a request from standard input, write one line of JSON to standard output."""
    request = json.load(sys.stdin)
    _stop_clock(_FIXED_S + float(request.get("shift_s", 0)))
    if request.get("host"):
        _rename_host(str(request["host"]))
    out = sys.stdout
    sys.stdout = sys.stderr  # what the builder prints is not ours
    built = _named(request) if request["from"] else _usual(request)
    out.write("\n" + json.dumps(built) + "\n")
    out.flush()


def _stop_clock(now_s: float) -> None:
    import datetime
    import time
    from datetime import datetime as real

    one_gm, one_local, one_form = time.gmtime, time.localtime, time.strftime

    class _Same(type):
        def __instancecheck__(cls, one: object) -> bool:
            return isinstance(one, real)

    class Stopped(real, metaclass=_Same):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return real.fromtimestamp(now_s, tz)

        @classmethod
        def utcnow(cls) -> Any:
            return real.fromtimestamp(now_s, datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return real.fromtimestamp(now_s)

    class Day(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return real.fromtimestamp(now_s).date()

    changed: dict[str, Any] = {
        "time": lambda: now_s,
        "time_ns": lambda: int(now_s * 1e9),
        "gmtime": lambda s=None: one_gm(now_s if s is None else s),
        "localtime": lambda s=None: one_local(now_s if s is None else s),
        "strftime": lambda form, t=None: one_form(form, one_local(now_s) if t is None else t),
        "ctime": lambda s=None: time.asctime(one_local(now_s if s is None else s)),
    }
    for name, function in changed.items():
        setattr(time, name, function)
    datetime.datetime = Stopped  # type: ignore[misc]
    datetime.date = Day  # type: ignore[misc]


def _rename_host(name: str) -> None:
    import platform
    import socket

    socket.gethostname = lambda: name
    socket.getfqdn = lambda name=name: name
    platform.node = lambda: name


def _usual(request: dict[str, Any]) -> dict[str, Any]:
    from pathlib import Path

    import anyio

    from lorimer.cli.prompt_sources import of_now
    from lorimer.store import open_store

    async def build() -> dict[str, Any]:
        store = open_store(":memory:")
        try:
            made = await of_now(
                store, model=request["model"] or None, tools=request["tools"] or None,
                system=request["system"] or None, folder=Path(request["folder"]),
                project_rules=request["project_rules"],
            )  # fmt: skip
        finally:
            store.close()
        return _written(made.prompt, made.tools)

    return anyio.run(build)


def _named(request: dict[str, Any]) -> dict[str, Any]:
    import asyncio
    import inspect
    import os

    from lorimer.context.prefix.parts import build, text_prompt
    from lorimer.core.errors import UsageFault
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.prompt import prompt_of

    found = _load(request["from"])

    async def call() -> dict[str, Any]:
        made = found() if callable(found) and not isinstance(found, Agent) else found
        made = await made if inspect.isawaitable(made) else made
        if isinstance(made, Agent):
            async with made:
                specs = [spec.to_json() for spec in made.registry.specs()]
                return _written(prompt_of(made), specs)
        if isinstance(made, str):
            return _written(build([text_prompt(made)]), [])
        if isinstance(made, list | tuple):
            return _written(build(made), [])
        raise UsageFault(
            f"{request['from']} gives {type(made).__name__}.",
            next="It must give an Agent, a text, or PromptParts.",
        )

    os.environ.setdefault("LORIMER_OTEL", "0")
    return asyncio.run(call())


def _load(name: str) -> Any:
    import importlib
    import importlib.util
    from pathlib import Path

    from lorimer.core.errors import UsageFault

    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise UsageFault(f"--from {name} names nothing.", next="Write FILE.py:NAME or module:NAME.")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None or not Path(where).is_file():
            raise UsageFault(f"There is no Python file {where}.")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(Path(where).stem, module)
        sys.path.insert(0, str(Path(where).parent))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(where)
    if not hasattr(module, attribute):
        raise UsageFault(f"{where} has no {attribute}.")
    return getattr(module, attribute)


def _written(prompt: Any, tools: Any) -> dict[str, Any]:
    """The pieces, in their order. Tools keep the order of their keys."""
    return {
        "parts": [[p.name, prompt.rendered(p)] for p in prompt.placed],
        "tools": [[str(t["name"]), json.dumps(t, ensure_ascii=False)] for t in tools],
    }
