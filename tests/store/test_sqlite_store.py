"""The SQLite store: what is committed is there, what cannot be done says why."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.calls import Effects, Idempotency, JournalState, Outcome
from lorimer.core.errors import (
    SessionBusy,
    SessionNotFound,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
)
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.store import open_store
from lorimer.store.protocol import (
    AppendEntry,
    CreateSession,
    FinishCall,
    PlanCall,
    Remark,
    SessionRecord,
    StartCall,
)
from lorimer.store.schema import MIGRATIONS
from lorimer.store.sqlite import SqliteStore
from lorimer.store.verify import verify

pytestmark = pytest.mark.anyio

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)


def record(name: str = "s_1") -> SessionRecord:
    return SessionRecord(
        name, AT, "anna", "m", "scripted", "sys", [{"name": "t"}], b'{"x":', {"k": [1]}
    )


def entry(seq: int, text: str = "hi", session: str = "s_1") -> AppendEntry:
    made = Entry(Kind.USER, (TextPart(text),), AT, seq)
    return AppendEntry(session, seq, made, "scripted", text.encode("utf-8", "replace"), "anna")


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = open_store(
        ":memory:" if request.param == "memory" else tmp_path / "deep" / "er" / "store.db"
    )
    yield made
    made.close()


# --- commits ----------------------------------------------------------------------------------------


async def test_what_was_committed_is_read_back_as_it_was(store: SqliteStore) -> None:
    text = 'a "b" \x00 ü 😀 \r\n e\u0301'
    await store.commit(CreateSession(record()), entry(0, text), entry(1))
    assert store.session("s_1") == record()
    entries = store.entries("s_1", "scripted")
    assert [e.text for e, _ in entries] == [text, "hi"] and entries[0][1] == text.encode()
    assert entries[0][0].at == AT
    assert store.entries("s_1", "other")[0][1] is None
    (summary,) = store.sessions()
    assert (summary.id, summary.entries, summary.principal) == ("s_1", 2, "anna")
    with pytest.raises(SessionNotFound, match="s_2"):
        store.session("s_2")


async def test_a_call_goes_through_its_states_once(store: SqliteStore) -> None:
    raw = '{"a": "\x00ü"}'
    await store.commit(CreateSession(record()), entry(0), PlanCall("s_1", "c1", 0, 0, "t", raw, AT))
    planned = store.call("s_1", "c1")
    assert planned is not None and planned.state is JournalState.PLANNED and planned.raw == raw
    start = StartCall("s_1", "c1", "key", 0, "d", {"a": 10**30}, [], Effects.WRITE,
                      Idempotency.NONE, {"reason": "because"}, AT)  # fmt: skip
    await store.commit(start)
    started = store.call("s_1", "c1")
    assert started is not None and started.value == {"a": 10**30} and started.operation_key == "key"
    finish = FinishCall("s_1", "c1", Outcome.DONE, "", {"type": "result"}, AT, 1.5, {"f": "h"})
    await store.commit(finish)
    for late in (start, finish):
        with pytest.raises(StoreError, match="already ended"):
            await store.commit(late)
    ended = store.call("s_1", "c1")
    assert ended is not None and ended.outcome is Outcome.DONE and ended.duration_s == 1.5
    assert store.call("s_1", "c2") is None
    assert verify(store).faults == ()


async def test_a_commit_is_all_or_nothing(store: SqliteStore) -> None:
    await store.commit(CreateSession(record()))
    with pytest.raises(StoreError, match="entry 1, not 5"):
        await store.commit(entry(0), entry(5))
    assert store.entries("s_1", "scripted") == []
    await store.commit(entry(0))
    assert verify(store).faults == ()


async def test_of_commits_that_wait_together_a_bad_one_fails_alone(store: SqliteStore) -> None:
    await store.commit(CreateSession(record()))
    answers = await asyncio.gather(
        *(store.commit(entry(0)) for _ in range(5)),
        *(store.commit(Remark("s_1", "a", "b.c", str(n))) for n in range(5)),
        return_exceptions=True,
    )
    assert sum(answer is None for answer in answers[:5]) == 1
    assert answers[5:] == [None] * 5
    assert verify(store).faults == ()


async def test_half_characters_do_not_stop_a_commit(store: SqliteStore) -> None:
    await store.commit(
        CreateSession(record()), Remark("s_1", "a", "b.c", "\ud800"), entry(0, "\udc80")
    )
    assert store.entries("s_1", "scripted")[0][0].text == "\udc80"
    assert verify(store).faults == ()


async def test_a_commit_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    """Another process sees it while the first still has the store open, and after kill -9."""
    program = (
        "import os, sys\nfrom lorimer.store import open_store\nfrom lorimer.store.protocol import Remark\n"
        "s = open_store(sys.argv[1])\nfor n in range(5): s.commit_now(Remark('', 'a', 'b.c', str(n)))\n"
        "s.put_blob(b'x' * 100_000, 'text/plain')\nos.kill(os.getpid(), 9)\n"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "store.db")], check=False)  # noqa: ASYNC221
    assert done.returncode == -9
    store = open_store(tmp_path / "store.db")
    assert [line.why for line in store.audit()][:5] == ["0", "1", "2", "3", "4"]
    assert len(store.get_blob(next(iter(store.raw("SELECT hash FROM blobs")))[0])) == 100_000
    assert verify(store).faults == ()
    store.close()


async def test_synchronous_is_full_for_the_writer(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    assert next(iter(store.raw("PRAGMA synchronous")))[0] == 2
    assert next(iter(store.raw("PRAGMA journal_mode")))[0] == "wal"
    store.close()


async def test_a_cancelled_commit_is_on_disk_all_the_same(store: SqliteStore) -> None:
    task = asyncio.ensure_future(store.commit(CreateSession(record()), entry(0)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(store.entries("s_1", "scripted")) == 1


async def test_a_cancelled_commit_that_failed_says_that_it_failed(store: SqliteStore) -> None:
    await store.commit(CreateSession(record()))
    task = asyncio.ensure_future(store.commit(entry(7)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(StoreError, match="not 7"):
        await task


async def test_reading_while_writing(store: SqliteStore) -> None:
    await store.commit(CreateSession(record()))

    async def write() -> None:
        for seq in range(60):
            await store.commit(entry(seq))

    task = asyncio.ensure_future(write())
    seen = 0
    while not task.done():
        seen = max(seen, len(await asyncio.to_thread(store.entries, "s_1", "scripted")))
        store.sessions()
    await task
    assert len(store.entries("s_1", "scripted")) == 60 and seen <= 60


async def test_a_closed_store_says_so(store: SqliteStore) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.commit(Remark("", "a", "b", "c"))


# --- opening ----------------------------------------------------------------------------------------


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path / "store.db").close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(StoreTooNew, match=f"version {len(MIGRATIONS) + 1}"):
        open_store(tmp_path / "store.db")


@pytest.mark.parametrize(
    "data",
    [b"hello", b"hello " * 5000, b"SQLite format 3\x00" + b"\xff" * 4000, b"\x00" * 8192],
    ids=["short", "text", "broken", "zeros"],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with pytest.raises(StoreError) as caught:
        open_store(path).close()
    assert str(path) in caught.value.message and caught.value.next
    assert path.read_bytes() == data
    assert [p.name for p in tmp_path.iterdir()] == ["store.db"]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="not a lorimer store"):
        open_store(path)
    assert path.read_bytes() == before and not Path(f"{path}.head").exists()


def test_a_store_whose_version_was_set_back_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path / "store.db").close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute("PRAGMA user_version=0")
    db.close()
    with pytest.raises(StoreCorrupt):
        open_store(tmp_path / "store.db")


def test_a_folder_in_the_place_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path / "store.db")
    assert caught.value.next


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreReadOnly, match="cannot be made"):
        open_store(tmp_path / "file" / "store.db")


def test_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    program = "import sys; from lorimer.store import open_store; s = open_store(sys.argv[1]); s.put_blob(b'x', 't'); s.close()"
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "store.db")])
        for _ in range(4)
    ]
    assert [process.wait() for process in started] == [0] * 4
    store = open_store(tmp_path / "store.db")
    assert verify(store).faults == () and verify(store).lines == 1
    store.close()


# --- disks ------------------------------------------------------------------------------------------

PRIVATE = (
    sys.platform == "linux"
    and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    if os.path.exists("/usr/bin/unshare")
    else False
)
needs_mounts = pytest.mark.skipif(not PRIVATE, reason="needs a private mount namespace")

FULL = """
import asyncio, json, sys
from lorimer.core.errors import StoreError
from lorimer.store import open_store
from lorimer.store.protocol import Remark
from lorimer.store.verify import verify

async def main():
    store = open_store(sys.argv[1])
    kept, fault = 0, None
    while fault is None:
        try:
            await asyncio.wait_for(store.commit(Remark("", "a", "b.c", "x" * 20_000)), 20)
            kept += 1
        except StoreError as error:
            fault = error
    blob = None
    try:
        store.put_blob(b"y" * 200_000, "text/plain")
    except StoreError as error:
        blob = type(error).__name__
    again = None
    try:
        await asyncio.wait_for(store.commit(Remark("", "a", "b.c", "x" * 20_000)), 20)
    except StoreError as error:
        again = type(error).__name__
    store.close()
    store = open_store(sys.argv[1])
    print(json.dumps({
        "kept": kept, "fault": type(fault).__name__, "next": fault.next, "blob": blob, "again": again,
        "lines": sum(1 for line in store.audit() if line.action == "b.c"), "faults": verify(store).faults,
    }))
    store.close()

asyncio.run(main())
"""


def in_namespace(tmp_path: Path, mount: str, program: str, *arguments: str) -> Any:
    script = f'{mount} && exec {sys.executable} -c "$PROGRAM" {" ".join(arguments)}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env={**os.environ, "PROGRAM": program},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_mounts
def test_a_full_disk_loses_nothing_and_says_so(tmp_path: Path) -> None:
    told = in_namespace(
        tmp_path, f"mount -t tmpfs -o size=1500k tmpfs {tmp_path}", FULL, f"{tmp_path}/store.db"
    )
    assert (
        told["fault"] == "StoreFull"
        and told["again"] == "StoreFull"
        and told["blob"] == "StoreFull"
    )
    assert told["next"] and told["kept"] > 5
    assert told["lines"] == told["kept"] and told["faults"] == []


READ_ONLY = """
import asyncio, json, sys
from lorimer.core.errors import StoreError
from lorimer.store import open_store
from lorimer.store.protocol import Remark
try:
    store = open_store(sys.argv[1])
    store.commit_now(Remark("", "a", "b", "c"))
    print(json.dumps(["wrote", ""]))
except StoreError as fault:
    print(json.dumps([type(fault).__name__, fault.next]))
"""


@needs_mounts
@pytest.mark.parametrize("new", [False, True], ids=["existing", "new"])
def test_a_read_only_folder_is_named_as_that(tmp_path: Path, new: bool) -> None:
    if not new:
        open_store(tmp_path / "store.db").close()
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    kind, step = in_namespace(tmp_path, mount, READ_ONLY, f"{tmp_path}/store.db")
    assert kind in ("StoreReadOnly", "StoreError") and step
    if not new:
        assert kind == "StoreReadOnly"


LIMITED = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n"


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED + FULL, str(tmp_path / "store.db")],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kept"] > 5 and told["lines"] == told["kept"] and told["faults"] == []


# --- blobs, locks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 1_000_000])
def test_a_blob_is_kept_once_small_inside_large_beside(tmp_path: Path, size: int) -> None:
    store = open_store(tmp_path / "store.db")
    data = bytes(n % 251 for n in range(size))
    reference = store.put_blob(data, "application/octet-stream")
    assert store.put_blob(data, "text/plain") == reference
    assert store.get_blob(reference) == data
    path = store.blob_path(reference)
    assert (path is not None) is (size > 64 * 1024)
    assert not list((tmp_path).rglob(".new-*"))
    assert verify(store).faults == () and verify(store).rows == 1
    store.close()


@pytest.mark.parametrize("reference", ["", "x", "sha256:../../etc/passwd", "sha256:" + "0" * 64])
def test_a_reference_that_names_no_blob(tmp_path: Path, reference: str) -> None:
    store = open_store(tmp_path / "store.db")
    with pytest.raises(StoreError, match="No blob"):
        store.get_blob(reference)
    store.close()


async def test_a_session_belongs_to_one_process_at_a_time(store: SqliteStore) -> None:
    lock = await store.lock_session("s_1")
    with pytest.raises(SessionBusy, match=str(os.getpid())):
        await store.lock_session("s_1")
    other = await store.lock_session("s_2")
    waiting = asyncio.ensure_future(store.lock_session("s_1", wait_s=None))
    await asyncio.sleep(0)
    lock.release()
    (await waiting).release()
    other.release()
    (await store.lock_session("s_1")).release()


@pytest.mark.anyio
async def test_values_that_are_more_than_text_are_the_same_rows_when_read_back(
    tmp_path: Path,
) -> None:
    from enum import StrEnum

    class Who(StrEnum):
        ME = "me"

    store = open_store(tmp_path / "s.db")
    record = SessionRecord("s1", AT, Who.ME, Who.ME, Who.ME, Who.ME, [], b"p")
    await store.commit(
        CreateSession(record),
        AppendEntry("s1", 0, Entry(Kind.USER, (TextPart(Who.ME),), AT), Who.ME, b"x", Who.ME),
    )
    assert verify(store).faults == ()
    store.close()


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_when_the_writer_has_died_every_commit_is_told_and_none_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lorimer.store.transaction import Transaction

    def die(self: Transaction, change: object) -> None:
        raise SystemExit("a fault that is no Exception")

    store = open_store(tmp_path / "s.db")
    monkeypatch.setattr(Transaction, "apply", die)
    with pytest.raises(StoreError, match="no Exception"):
        await store.commit(Remark("", "me", "a", "b"))
    monkeypatch.undo()
    with pytest.raises(StoreError, match="cannot write any more"):
        await store.commit(Remark("", "me", "a", "b"))
    store.close()
    again = open_store(tmp_path / "s.db")
    await again.commit(Remark("", "me", "a", "b"))
    assert verify(again).faults == ()
    again.close()


def test_a_head_file_of_an_older_store_says_what_it_is_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    for lines in (1, 32):  # the second time, the head file of the first is still there
        store = open_store(path)
        for _ in range(lines):
            store.commit_now(Remark("", "someone", "x.y", f"{lines}"))
        store.close()
        if lines == 1:
            for file in tmp_path.glob("store.db*"):
                if file.suffix != ".head":
                    file.unlink()
    store = open_store(path)
    (fault,) = verify(store).faults
    assert "is that of an older store: it stands at line" in fault and "ends at 3" in fault
    assert "lost lines" in fault, "a chain that was cut off and went on looks the same"
    step = fault.partition("write this line into it: ")[2].partition(". If not")[0]
    (tmp_path / "store.db.head").write_text(step + "\n")
    assert verify(store).faults == ()
    store.close()


def test_a_longer_head_file_is_a_chain_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path)
    for _ in range(9):
        store.commit_now(Remark("", "someone", "x.y", "z"))
    store.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DELETE FROM audit WHERE n > 5")
    db.close()
    store = open_store(path)
    assert any("the audit chain has lost lines: the head file stands" in f
               for f in verify(store).faults)  # fmt: skip
    store.close()
