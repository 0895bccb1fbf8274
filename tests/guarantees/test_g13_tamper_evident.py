"""G13. A changed, missing, added or re-ordered line of the store is found."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.approvals import ApprovalState
from lorimer.core.calls import Outcome
from lorimer.core.errors import StoreError
from lorimer.models.profiles import Profile
from lorimer.runtime.agent import Agent
from lorimer.store import open_store
from lorimer.store.protocol import CloseApproval, CorrectCall, PutBlob, Remark
from lorimer.store.verify import verify
from lorimer.testing import ManualClock, ScriptedModel, call
from lorimer.tools.function import tool

TABLES = ("sessions", "entries", "renderings", "calls", "blobs", "approvals", "audit")
LARGE = "large " * 20_000


@tool(effects="write")
async def change(n: int) -> str:
    """Change something."""
    return f"changed {n}"


@tool(effects="read")
async def look(what: str) -> str:
    """Look at something."""
    return LARGE if what == "large" else "middle " * 3000


@tool(effects="irreversible")
async def give(n: int) -> str:
    """Give something away."""
    return f"gave {n}"


async def approvals(store: Any) -> None:
    """Requests in every state: used, rejected, open, void."""
    answers = iter([True, False])
    agent = Agent(ScriptedModel([call("give", n=1), call("give", n=2), "ok"]), [give], store=store,
                  approver=lambda request: next(answers), clock=store.clock)  # fmt: skip
    await agent.run("give")
    alone = Agent(ScriptedModel([call("give", n=3), call("give", n=4), "ok"]), [give], store=store,
                  clock=store.clock)  # fmt: skip
    await alone.run("give")
    waiting = store.approvals(state=ApprovalState.OPEN)
    await store.commit(CloseApproval(waiting[0].id, ApprovalState.VOID, "changed"))


def fill(path: Path) -> None:
    """A store with rows of every kind: two sessions, calls in every state, corrections, blobs inside
    and outside, renderings for two wires."""

    async def run() -> None:
        store = open_store(path, clock=ManualClock())
        script = [[call("change", n=1), call("look", what="large")], call("look", what="middle"),
                  {"name": "change", "arguments": '{"n": 1.0}'}, call("nothing"), "done", "and done"]  # fmt: skip
        other = Profile(name="other", wire="scripted", id_pattern="^[a-z_0-9]+$")
        a = Agent(
            ScriptedModel(script), [change, look], store=store, mode="trusted", clock=store.clock
        )
        async with a.session() as session:
            await session.send("go")
            await session.send("go on")
            first = store.calls(session.id)[0]
            await store.commit(
                CorrectCall(
                    session.id, first.id, Outcome.UNKNOWN, {"text": "late"}, store.clock.now()
                ),
                Remark(session.id, "someone", "run.remarked", "because"),
            )
        b = Agent(
            ScriptedModel(["moved"], profile=other), [change, look], store=store, mode="trusted"
        )
        async with b.session(session.id) as again:
            await again.send("on another wire")
        async with Agent(ScriptedModel(["hello"]), store=store).session() as second:
            await second.send("second")
        await approvals(store)
        store.put_blob(b"\x00\xff small", "application/octet-stream")
        store.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    fill(folder / "store.db")
    with sqlite3.connect(folder / "store.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    for rest in folder.glob("store.db-*"):
        rest.unlink()
    return folder


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(original, folder)
    return folder / "store.db"


def dump(path: Path) -> Any:
    """All rows of all tables, as SQLite gives them."""
    db = sqlite3.connect(path)
    db.text_factory = bytes
    try:
        return [db.execute(f"SELECT * FROM {t} ORDER BY 1, 2, 3").fetchall() for t in TABLES]
    finally:
        db.close()


def findings(path: Path) -> list[str]:
    """What is found: the faults of `verify`, or the refusal to open."""
    try:
        store = open_store(path)
    except StoreError as fault:
        return [f"not opened: {fault}"]
    try:
        return list(verify(store).faults)
    finally:
        store.close()


def edit(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        sql, values = (statement, ()) if isinstance(statement, str) else statement
        db.execute(sql, values)
    db.close()


def test_the_honest_store_is_clean_and_has_every_kind_of_row(copy: Path) -> None:
    assert findings(copy) == []
    assert all(dump(copy)), "each table has rows"
    store = open_store(copy)
    report = verify(store)
    assert report.lines > 20 and report.rows > 15
    actions = {line.action for line in store.audit()}
    assert actions >= {
        "session.created", "entry.appended", "entry.rendered", "call.planned", "call.started",
        "call.finished", "call.corrected", "blob.stored", "run.remarked", "approval.opened",
        "approval.answered", "approval.spent", "approval.closed",
    }  # fmt: skip
    assert verify(store, expected_head=report.head).faults == ()
    assert verify(store, expected_head="0" * 63 + "1").faults
    store.close()


# --- every value of every row ----------------------------------------------------------------------


def changed(value: Any) -> list[Any]:
    """Other values that could stand in the place of `value`."""
    if value is None:
        return ["x"]
    if isinstance(value, int):
        return [value + 1, -value - 1]
    if isinstance(value, bytes):
        middle = len(value) // 2
        return [
            value[:-1],
            value + b"\0",
            value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :],
        ]
    middle = len(value) // 2
    other = "y" if value[middle : middle + 1] == "x" else "x"
    return (
        [value[:-1], value + "\0", value[:middle] + other + value[middle + 1 :]] if value else ["x"]
    )


def test_every_value_of_every_row_of_every_table_is_covered(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "work")
    path = tmp_path / "work" / "store.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA foreign_keys=OFF")
    store = open_store(path)
    tried = 0
    for table in TABLES:
        cursor = db.execute(f"SELECT * FROM {table}")
        columns = [d[0] for d in cursor.description]
        keys = {"renderings": 3, "entries": 2, "calls": 2}.get(table, 1)
        where = " AND ".join(f"{c} = ?" for c in columns[:keys])
        for row in cursor.fetchall():
            for at, column in enumerate(columns):
                for value in changed(row[at]):
                    key = [value if k == at else row[k] for k in range(keys)]
                    try:
                        done = db.execute(
                            f"UPDATE OR ABORT {table} SET {column} = ? WHERE {where}",
                            (value, *row[:keys]),
                        )
                    except sqlite3.IntegrityError:
                        continue  # the schema itself refuses it
                    assert done.rowcount == 1
                    tried += 1
                    assert verify(store).faults, f"{table}.{column}: {row[at]!r} -> {value!r}"
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (row[at], *key))
    assert verify(store).faults == ()
    store.close()
    db.close()
    assert tried > 500


def test_every_row_that_is_deleted_is_missed(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "work")
    path = tmp_path / "work" / "store.db"
    db = sqlite3.connect(path, isolation_level=None)
    store = open_store(path)
    for table in TABLES:
        for row in db.execute(f"SELECT * FROM {table}").fetchall():
            keys = {"renderings": 3, "entries": 2, "calls": 2}.get(table, 1)
            columns = [d[0] for d in db.execute(f"SELECT * FROM {table}").description]
            where = " AND ".join(f"{c} = ?" for c in columns[:keys])
            db.execute(f"DELETE FROM {table} WHERE {where}", row[:keys])
            assert verify(store).faults, f"{table}: {row[:3]}"
            db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
    assert verify(store).faults == ()
    store.close()
    db.close()


COPY_ENTRY = (
    "INSERT INTO entries SELECT session, seq + 100, kind, record FROM entries WHERE seq = 0"
)
TAMPERING: dict[str, list[str]] = {
    "two audit lines swapped": [
        "UPDATE audit SET n = -1 WHERE n = 3", "UPDATE audit SET n = 3 WHERE n = 4", "UPDATE audit SET n = 4 WHERE n = -1",
    ],
    "an audit line inserted at the end": [
        "INSERT INTO audit SELECT max(n) + 1, at, session, actor, action, target, why, digest, hash, hash FROM audit",
    ],
    "an audit line twice": [
        "INSERT INTO audit SELECT (SELECT max(n) + 1 FROM audit), at, session, actor, action, target, why, digest, previous, hash FROM audit WHERE n = 2",
    ],
    "the last audit line cut off": ["DELETE FROM audit WHERE n = (SELECT max(n) FROM audit)"],
    "the tail cut off": ["DELETE FROM audit WHERE n > 5"],
    "all audit lines gone": ["DELETE FROM audit"],
    "the beginning cut off": ["DELETE FROM audit WHERE n < 5"],
    "everything gone": [f"DELETE FROM {t}" for t in TABLES],
    "an entry added": [COPY_ENTRY],
    "a rendering added": ["INSERT INTO renderings SELECT session, seq, 'another', bytes FROM renderings WHERE wire = 'scripted'"],
    "a call added": ["INSERT INTO calls SELECT session, id || 'x', entry_seq, position, tool, raw, state, planned_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM calls"],
    "a session added": ["INSERT INTO sessions SELECT id || 'x', created_at, principal, model, wire, system, tools, prefix, meta FROM sessions"],
    "an approval added": ["INSERT INTO approvals SELECT id || 'x', session, root, kind, call, tool, principal, binding, digest, state, asked_at, expires_at, request, answered_at, answer, closed_at, closing FROM approvals"],
    "a rejection made an approval": ["UPDATE approvals SET state = 'approved', answer = replace(answer, 'false', 'true') WHERE state = 'rejected'"],
    "an approval given once more": ["UPDATE approvals SET state = 'approved', closed_at = NULL, closing = NULL WHERE state = 'spent'"],
    "two records swapped": [
        "UPDATE entries SET record = (SELECT e.record FROM entries e WHERE e.session = entries.session AND e.seq = 4 - entries.seq) WHERE seq IN (1, 3) AND session = (SELECT min(id) FROM sessions)",
    ],
    "two results swapped": [
        "UPDATE calls SET finished = (SELECT c.finished FROM calls c WHERE c.id = (SELECT max(id) FROM calls)) WHERE id = (SELECT min(id) FROM calls)",
    ],
    "a correction taken back": ["UPDATE calls SET late = NULL, outcome = 'done' WHERE late IS NOT NULL"],
}  # fmt: skip


@pytest.mark.parametrize("statements", TAMPERING.values(), ids=TAMPERING)
def test_tampering_is_found(statements: list[str], copy: Path) -> None:
    before = dump(copy)
    edit(copy, "PRAGMA foreign_keys=OFF", *statements)
    assert dump(copy) != before
    assert findings(copy)


@pytest.mark.parametrize("cut", [1, 3])
def test_a_tail_that_was_cut_off_stays_found_after_more_was_written(copy: Path, cut: int) -> None:
    edit(copy, f"DELETE FROM audit WHERE n > (SELECT max(n) FROM audit) - {cut}")
    store = open_store(copy)
    for _ in range(5):
        store.commit_now(Remark("", "someone", "x.y", "more"))
        assert any("lost lines" in fault for fault in verify(store).faults)
    store.close()


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_a_line_forged_with_a_hash_that_fits_it_is_found_by_the_next(copy: Path, n: int) -> None:
    from lorimer.store.transaction import line_hash

    db = sqlite3.connect(copy, isolation_level=None)
    row = db.execute("SELECT * FROM audit WHERE n = ?", (n,)).fetchone()
    forged = (*row[:6], "forged", *row[7:9])
    db.execute("UPDATE audit SET why = 'forged', hash = ? WHERE n = ?", (line_hash(forged), n))
    db.close()
    assert any("does not follow" in fault for fault in findings(copy))


def test_a_chain_rewritten_whole_is_found_by_the_head(copy: Path) -> None:
    """Whoever knows how the chain is made can make another one; not one that has the same head."""
    from lorimer.store.transaction import GENESIS, line_hash

    db = sqlite3.connect(copy, isolation_level=None)
    db.execute("UPDATE audit SET why = 'forged' WHERE action = 'run.remarked'")
    previous = GENESIS
    for row in db.execute("SELECT * FROM audit ORDER BY n").fetchall():
        values = (*row[:8], previous)
        previous = line_hash(values)
        db.execute(
            "UPDATE audit SET previous = ?, hash = ? WHERE n = ?", (values[8], previous, row[0])
        )
    db.close()
    assert any("lost lines" in fault for fault in findings(copy))


# --- beside the database ---------------------------------------------------------------------------


def large_blob(path: Path) -> Path:
    large = [f for f in (path.parent / "blobs").rglob("*") if f.is_file()]
    (found,) = [f for f in large if f.stat().st_size > 65_536]
    return found


@pytest.mark.parametrize("how", ["a byte", "shorter", "longer", "empty", "gone", "a folder"])
def test_a_large_blob_that_changed_on_disk_is_found(copy: Path, how: str) -> None:
    file = large_blob(copy)
    data = file.read_bytes()
    assert len(data) > 64 * 1024
    match how:
        case "a byte":
            file.write_bytes(data[:1000] + b"X" + data[1001:])
        case "shorter":
            file.write_bytes(data[:-1])
        case "longer":
            file.write_bytes(data + b"x")
        case "empty":
            file.write_bytes(b"")
        case _:
            file.unlink()
            if how == "a folder":
                file.mkdir()
    assert any("lob" in fault for fault in findings(copy))
    store = open_store(copy)
    reference = f"sha256:{file.parent.name}{file.name}"
    with pytest.raises(StoreError, match=r"gone|changed"):
        store.get_blob(reference)
    store.close()


def test_the_head_file_is_watched_at_every_byte(copy: Path) -> None:
    head = Path(f"{copy}.head")
    honest = head.read_bytes()
    for at in range(len(honest)):
        for other in (honest[at] ^ 1, 0, 0xFF, ord("9")):
            if other != honest[at]:
                head.write_bytes(honest[:at] + bytes([other]) + honest[at + 1 :])
                assert findings(copy), f"byte {at}"
    for text in (b"", b"\n", honest[:-1], honest + b"x", honest * 2, b"\xff" * 86):
        head.write_bytes(text)
        assert findings(copy), text
    head.unlink()
    assert any("head" in fault for fault in findings(copy))
    head.write_bytes(honest)
    assert findings(copy) == []


# --- any byte of the file --------------------------------------------------------------------------


def test_any_byte_of_the_database_file(original: Path, tmp_path: Path) -> None:
    """A flipped byte is reported, or the store does not open, or no row has changed by it."""
    rng = random.Random(20261130)
    honest = (original / "store.db").read_bytes()
    want = dump(original / "store.db")
    shutil.copytree(original, tmp_path / "work")
    path = tmp_path / "work" / "store.db"
    size = len(honest)
    places = [
        *range(112),
        *(rng.randrange(size) for _ in range(int(os.environ.get("LORIMER_G13_FLIPS", "500")))),
    ]
    reported = 0
    for at in places:
        data = bytearray(honest)
        data[at] ^= rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
        for rest in path.parent.glob("store.db-*"):
            rest.unlink()
        path.write_bytes(data)
        if findings(path):
            reported += 1
            continue
        assert dump(path) == want, f"byte {at} of {size} changed rows and was not found"
    assert reported > len(places) // 10


def test_a_damaged_schema_never_opens_with_anything_but_a_store_error(
    original: Path, tmp_path: Path
) -> None:
    """The names of tables and columns lie in the first page; what stands there may be no text."""
    honest = (original / "store.db").read_bytes()
    path = tmp_path / "store.db"
    refused = 0
    for at in range(100, 4096, 11):
        data = bytearray(honest)
        data[at] ^= 0x80
        for rest in tmp_path.glob("store.db*"):
            rest.unlink()
        path.write_bytes(data)
        try:
            open_store(path).close()
        except StoreError:
            refused += 1
    assert refused > 50


def test_a_file_with_its_end_cut_off(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "work")
    path = tmp_path / "work" / "store.db"
    honest, want = path.read_bytes(), dump(path)
    for keep in (
        0,
        1,
        99,
        100,
        512,
        4096,
        8192,
        len(honest) // 2,
        len(honest) - 4096,
        len(honest) - 1,
    ):
        for rest in path.parent.glob("store.db-*"):
            rest.unlink()
        path.write_bytes(honest[:keep])
        assert findings(path) or dump(path) == want, f"{keep} bytes kept"


# --- honest stores are clean -----------------------------------------------------------------------

WRITER = """
import asyncio, sys
from lorimer.runtime.agent import Agent
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, call
from lorimer.tools.function import tool

@tool(effects="write")
async def change(n: int) -> str:
    "Change something."
    return f"changed {n} " + "x" * 70_000 * (n % 2)

async def main():
    count = int(sys.argv[2])
    store = open_store(sys.argv[1])
    script = [call("change", n=n) for n in range(count)]
    agent = Agent(ScriptedModel([*script, "done"]), [change], store=store, mode="trusted")
    print("ready", flush=True)
    async with agent.session() as session:
        await session.send("go")
    print("done", flush=True)
    store.close()

asyncio.run(main())
"""


def writer(path: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(count)], stdout=subprocess.PIPE, text=True
    )


def test_processes_that_write_at_once_leave_a_clean_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    writers = [writer(path, 12) for _ in range(3)]
    ended = [process.communicate()[0] for process in writers]
    assert ended == ["ready\ndone\n"] * 3
    store = open_store(path)
    report = verify(store)
    assert report.faults == ()
    assert len(store.sessions()) == 3 and sum(s.calls for s in store.sessions()) == 36
    assert store.read_head() == (report.lines, report.head)
    store.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_process_killed_in_the_middle_leaves_a_clean_store(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    process = writer(path, 10_000)
    assert process.stdout is not None
    process.stdout.readline()
    watching = open_store(path)
    wanted = seed * 7
    while True:  # until it has written so much
        lines = next(iter(watching.raw("SELECT count(*) FROM audit")))[0]
        if lines >= wanted:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert verify(watching).faults == ()
    watching.close()
    assert findings(path) == []


def test_the_store_can_be_verified_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    process = writer(path, 25)
    assert process.stdout is not None
    process.stdout.readline()
    store = open_store(path)
    while process.poll() is None:
        assert verify(store).faults == ()
    process.communicate()
    assert verify(store).faults == ()
    store.close()


def test_memory_stores_are_verified_too() -> None:
    store = open_store(":memory:")
    store.put_blob(b"x", "text/plain")
    assert verify(store).faults == () and verify(store).lines == 1
    store.close()


def test_a_new_store_is_clean_before_anything_is_written(tmp_path: Path) -> None:
    open_store(tmp_path / "store.db").close()
    assert findings(tmp_path / "store.db") == []


def test_a_commit_of_nothing_writes_no_line(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    store.commit_now()
    store.commit_now(PutBlob("sha256:" + "0" * 64, 0, "x", b""))
    store.commit_now()
    assert next(iter(store.raw("SELECT count(*) FROM audit")))[0] == 1
    store.close()
