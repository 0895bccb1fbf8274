"""A program that opens one session for each point, lets each call come to its point, and waits
there to be killed; in the session `second` it is the second call that waits, after the first ended.

`python -m harness.doomed STORE WORLDS KIND IDEMPOTENCY`
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from harness import acts
from lorimer import Agent
from lorimer.runtime.session import Session
from lorimer.testing import ScriptedModel, call


def calls(world: str, at: str, idempotency: str) -> list[dict[str, object]]:
    common = {"world": world, "marked": False, "once": idempotency == "keyed"}
    passing = call("act", at="nowhere", what="", **common)
    if at == "second":
        return [passing, call("act", at="before", what="hang", **common)]
    return [call("act", at=at, what="hang", **common), passing]


async def main(store: str, worlds: str, kind: str, idempotency: str) -> None:
    act = acts.acting(
        kind, idempotency, worlds, timeout_s=600.0, resources=lambda given: [given["world"]]
    )
    async with Agent(ScriptedModel([]), [act], store=store) as agent:
        sessions = {}
        for at in (*acts.POINTS, "second"):
            world = Path(worlds) / at
            world.mkdir()
            session = Session(agent, None, wait_s=0.0)
            session.model = ScriptedModel([calls(str(world), at, idempotency)])
            await session.open()
            sessions[at] = session
        print(json.dumps({at: session.id for at, session in sessions.items()}), flush=True)
        await asyncio.gather(*(session.send("act") for session in sessions.values()))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
