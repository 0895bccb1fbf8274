"""Alerts: what happens too often is said once, with the numbers, and is in the audit."""

from __future__ import annotations

from typing import Any

import pytest

from lorimer import Agent, Limits, tool
from lorimer.core.calls import Outcome
from lorimer.core.watch import Alert, CallEnded, RequestEnded, RunEnded
from lorimer.runtime.alerts import Alerts, Thresholds
from lorimer.store.verify import verify
from lorimer.testing import ManualClock, ScriptedModel, call

pytestmark = pytest.mark.anyio


class Bench:
    def __init__(self, **thresholds: Any) -> None:
        self.told: list[Alert] = []
        self.clock = ManualClock()
        self.alerts = Alerts(self.told.append, Thresholds(**thresholds), self.clock)

    def call(self, code: str, tool: str = "t", outcome: Outcome = Outcome.NOT_STARTED) -> None:
        self.alerts(CallEnded("c", tool, outcome, code, "", None))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("tool_error", "failures"), ("crashed", "failures"), ("schema", "failures"),
        ("timeout", "timeouts"), ("approval_timeout", "timeouts"), ("limit", "quota"),
        ("denied", "refusals"), ("rejected", "refusals"), ("secret", "refusals"),
    ],
)  # fmt: skip
def test_each_kind_is_told_at_its_limit(code: str, kind: str) -> None:
    bench = Bench(window_s=60, failures=3, timeouts=3, quota=3, refusals=3)
    for _ in range(2):
        bench.call(code)
    assert bench.told == []
    bench.call(code)
    (alert,) = bench.told
    assert (alert.kind, alert.count, alert.limit, alert.window_s) == (kind, 3, 3, 60)
    assert "3 " in alert.message and "t 3×" in alert.message and alert.tool == "t"


@pytest.mark.parametrize("code", ["skipped", "cancelled", "interrupted"])
def test_what_follows_from_something_else_is_not_counted(code: str) -> None:
    bench = Bench(failures=1, timeouts=1, quota=1, refusals=1)
    bench.call(code)
    bench.call("", outcome=Outcome.DONE)
    assert bench.told == []


def test_what_is_spread_over_longer_than_the_window_is_no_burst() -> None:
    bench = Bench(window_s=60, failures=3)
    for _ in range(20):
        bench.call("tool_error")
        bench.clock.advance(31)
    assert bench.told == []


def test_the_same_is_not_told_again_within_the_window_and_then_with_all_since() -> None:
    bench = Bench(window_s=60, failures=3)
    for _ in range(100):
        bench.call("tool_error")
        bench.clock.advance(0.5)
    bench.clock.advance(9)
    bench.call("tool_error", tool="other")
    assert [a.count for a in bench.told] == [3], "50 s have passed: the same burst"
    bench.clock.advance(2)
    for _ in range(3):
        bench.call("tool_error", tool="other")
    assert [a.count for a in bench.told] == [3, 99]
    assert "t 97×" in bench.told[1].message


def test_kinds_do_not_hide_each_other() -> None:
    bench = Bench(failures=2, timeouts=2)
    for code in ("tool_error", "timeout", "tool_error", "timeout"):
        bench.call(code)
    assert [a.kind for a in bench.told] == ["failures", "timeouts"]


def test_requests_and_runs_count_too() -> None:
    bench = Bench(requests=3, quota=2)
    bench.alerts(RequestEnded("m", 1, "end", attempts=3))
    assert bench.told == []
    bench.alerts(RequestEnded("m", 2, error="RateLimited"))
    assert bench.told[0].kind == "requests"
    bench.alerts(RequestEnded("m", 2, error="cancelled"))
    for stop in ("answered", "max_steps", "max_cost"):
        bench.alerts(RunEnded("s", stop))
    assert bench.told[-1].kind == "quota"


def test_zero_means_never_and_what_is_kept_is_bounded() -> None:
    bench = Bench(failures=0, refusals=5)
    for n in range(10_000):
        bench.call("tool_error")
        bench.call("denied", tool=f"made_up_{n}")
    assert [a.kind for a in bench.told] == ["refusals"]
    (count,) = bench.alerts._counts.values()
    assert len(count.times) == 5 and len(count.tools) <= 50


@tool(effects="read")
async def broken(n: int) -> int:
    """Fail."""
    raise RuntimeError("no")


async def test_an_alert_is_told_and_written_into_the_audit() -> None:
    told: list[Any] = []
    script = [call("broken", n=n) for n in range(4)]
    async with Agent(
        ScriptedModel([*script, "x"]), [broken], store=":memory:", watch=told.append,
        alerts=Thresholds(failures=2), limits=Limits(max_failures=50),
    ) as agent:  # fmt: skip
        result = await agent.run("go")
        lines = [one for one in agent.store.audit(result.session) if one.action == "alert.failures"]
        assert verify(agent.store).faults == ()
    (alert,) = (e for e in told if isinstance(e, Alert))
    assert [line.why for line in lines] == [alert.message] and "broken 2×" in alert.message


async def test_an_alert_at_the_end_of_the_last_run_is_written_too() -> None:
    async with Agent(
        ScriptedModel([call("broken", n=1), "x"]), [broken], store=":memory:",
        alerts=Thresholds(quota=1), limits=Limits(max_steps=1),
    ) as agent:  # fmt: skip
        result = await agent.run("go")
        assert result.stop == "max_steps"
        assert [a.action for a in agent.store.audit(result.session) if "alert" in a.action] == [
            "alert.quota"
        ]


def test_the_terminal_shows_an_alert_as_a_warning_line(capsys: pytest.CaptureFixture[str]) -> None:
    from lorimer.cli.terminal import Screen

    Screen()(Alert("failures", "6 calls failed\x1b[2J.", 6, 6, 300.0))
    assert capsys.readouterr().err == "! alert: 6 calls failed\\x1b[2J.\n"
