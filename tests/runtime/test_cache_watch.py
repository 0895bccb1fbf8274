"""What a session keeps of its requests, and which breaks need no announcement by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lorimer import Agent
from lorimer.context.auditor import CacheBreak
from lorimer.core.usage import Usage
from lorimer.models.protocol import Prefix, Request, Settings
from lorimer.runtime.cache_watch import CacheWatch
from lorimer.testing import ScriptedModel, reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.anyio
async def test_an_empty_answer_leaves_its_usage_and_its_place_in_the_chain() -> None:
    used = [Usage(input_tokens=n, requests=1) for n in (100, 130, 160)]
    model = ScriptedModel(
        reply("", usage=used[0]), reply("Here.", usage=used[1]), reply("Yes.", usage=used[2])
    )
    async with Agent(model, store=":memory:") as agent, agent.session() as session:
        assert (await session.send("Where?")).answer == "Here."
        await session.send("Sure?")
        metas = [(str(e.kind), e.meta) for e in session.entries if "cache" in e.meta]
    assert [kind for kind, _ in metas] == ["note", "assistant", "assistant"]
    assert [m["usage"]["input_tokens"] for _, m in metas] == [100, 130, 160]
    assert [m["cache"]["expected"] for _, m in metas] == [0, 100, 130]
    counts = [m["cache"]["from"] + len(m["cache"]["segments"]) for _, m in metas]
    assert [m["cache"]["from"] for _, m in metas] == [0, *counts[:2]]


def watch(remarks: list[tuple[str, str]]) -> CacheWatch:
    return CacheWatch(
        ScriptedModel(["never"]), strict=True, redact=lambda text: text, tell=lambda _: None,
        remark=lambda action, why: remarks.append((action, why)),
    )  # fmt: skip


def send(cache: CacheWatch, kinds: list[str], *fragments: bytes) -> Any:
    entries: Any = [SimpleNamespace(kind=kind) for kind in kinds]
    asked = cache.watched(Request(Prefix("", (), b""), entries, fragments, Settings()))
    assert asked.tap is not None
    asked.tap(b"".join(fragments))
    return cache.answered(Usage(input_tokens=10, requests=1), NOW)


@pytest.mark.parametrize("kind", ["compaction", "rebase"])
def test_a_compaction_announces_its_own_break_once(kind: str) -> None:
    remarks: list[tuple[str, str]] = []
    cache = watch(remarks)
    send(cache, ["user"], b'{"k":1}')
    cache.expect_break(kind)
    made = send(cache, ["user"], b'{"k":2}')
    assert made["break"]["announced"] == kind
    assert [action for action, _ in remarks] == ["cache.rebased"]
    with pytest.raises(CacheBreak):
        send(cache, ["user"], b'{"k":3}')
    assert [action for action, _ in remarks] == ["cache.rebased", "cache.refused"]
