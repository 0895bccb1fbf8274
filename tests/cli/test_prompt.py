"""`lorimer prompt`: the real command, on sessions that were really stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lorimer.context.prefix import PromptPart, Stability
from lorimer.models.scripted import ScriptedModel
from lorimer.runtime.agent import DEFAULT_SYSTEM, Agent
from lorimer.tools.function import tool

CLOCKED = """\
import datetime, os, random, time, uuid
from lorimer.context.prefix import PromptPart, Stability

def made():
    tags = {"red", "green", "blue", "black", "white"}
    return [
        PromptPart("calm", "app", Stability.GLOBAL, "Be brief."),
        PromptPart("clock", "app", Stability.SESSION, f"It is {datetime.datetime.now():%H:%M}."),
        PromptPart("stamp", "app", Stability.SESSION, f"At {int(time.time())}."),
        PromptPart("chance", "app", Stability.SESSION, f"Id {uuid.uuid4()}."),
        PromptPart("place", "app", Stability.SESSION, f"In {os.getcwd()}."),
        PromptPart("tags", "app", Stability.SESSION, f"Tags: {tags}."),
        PromptPart("who", "app", Stability.SESSION, f"For {os.environ.get('USER')}."),
    ]

def steady():
    return "Be brief."

def broken():
    raise ValueError("not today")
"""


@tool(effects="read")
async def look(word: str = "") -> str:
    """Look something up."""
    return word


async def stored(path: Path, folder: Path, **more: Any) -> str:
    more.setdefault("system", None)
    model = ScriptedModel(["a"], name="openai:gpt-5")
    agent = Agent(model, [look], store=path, workspace=folder, mode="trusted", **more)
    async with agent, agent.session() as session:
        await session.send("go")
        return session.id


@pytest.fixture
def path(cli: Any) -> Path:
    cli.home.mkdir()
    return cli.home / "s.db"


class TestShow:
    def test_a_new_session_with_the_rules_of_a_trusted_folder(self, cli: Any) -> None:
        (cli.folder / "AGENTS.md").write_text("Use tabs.")
        words = ("prompt", "show", "--model", "anthropic:claude-sonnet-5-5", "--tools", "files")
        found = cli.json(*words, "--json")
        assert [p["name"] for p in found["parts"]] == ["instructions"]
        assert "AGENTS.md not used" in found["notices"][0] and found["breakpoints"] == 1
        assert cli.run("trust", "--yes").returncode == 0
        found = cli.json(*words, "--json", "--text")
        keys = ("name", "owner", "stability", "boundary_after")
        assert [tuple(part[key] for key in keys) for part in found["parts"]] == [
            ("instructions", "lorimer", "global", True),
            ("project_rules", "project", "deployment", True),
        ]  # fmt: skip
        assert found["breakpoints"] == 2 and "Use tabs." in found["text"]
        assert [t["name"] for t in found["tools"]] == sorted(t["name"] for t in found["tools"])
        assert all(row["tokens"] > 0 for row in found["parts"] + found["tools"])
        off = cli.json(*words, "--json", "--no-project-rules")
        assert len(off["parts"]) == 1
        shown = cli.run(*words)
        text = shown.stdout.decode()
        assert shown.returncode == 0 and "── cache boundary" in text and "project_rules" in text
        assert max(map(len, text.splitlines())) <= 120 and "tool read_file" in text

    @pytest.mark.anyio
    async def test_a_stored_session(self, cli: Any, path: Path) -> None:
        made = await stored(path, cli.folder)
        found = cli.json("prompt", "show", made, "--store", str(path), "--json")
        assert found["stored"] == {"rebases": 0, "prefix_bytes": found["bytes"]}
        assert [t["name"] for t in found["tools"]] == ["look"]
        text = cli.run("prompt", "show", made, "--store", str(path), "--text").stdout.decode()
        assert "Stored with the session" in text and DEFAULT_SYSTEM.splitlines()[0] in text

    def test_what_is_not_there(self, cli: Any) -> None:
        ended = cli.run("prompt", "show", "s_nothing")
        assert ended.returncode == 2 and b"s_nothing" in ended.stderr
        ended = cli.run("prompt", "show", "--tools", "no_such_tool", "--model", "openai:gpt-5")
        assert ended.returncode != 0 and b"no_such_tool" in ended.stderr


@pytest.mark.anyio
class TestDiff:
    async def test_the_same_prompt_is_the_same(self, cli: Any, path: Path) -> None:
        one, two = await stored(path, cli.folder), await stored(path, cli.folder)
        found = cli.json("prompt", "diff", one, two, "--store", str(path), "--json")
        assert found["same"] and found["changes"] == [] and found["cached_tokens_lost"] == 0
        assert found["kept_bytes"] == found["before_bytes"]

    async def test_against_what_would_be_built_now(self, cli: Any, path: Path) -> None:
        tools = cli.folder / "own.py"
        tools.write_text(
            "from lorimer import tool\n\n@tool(effects='read')\nasync def look(word: str = '') -> "
            'str:\n    """Look something up."""\n    return word\n'
        )
        meta = {"tools": str(tools)}
        old = "You are an agent that works with tools.\n- Of an older version."
        part = PromptPart("instructions", "lorimer", Stability.GLOBAL, old)
        made = await stored(path, cli.folder, system=[part], meta=meta)
        same = await stored(path, cli.folder, meta=meta)
        own = await stored(path, cli.folder, system="I was written by hand.", meta=meta)
        for session in (same, own):
            found = cli.json("prompt", "diff", session, "--store", str(path), "--json")
            assert found["same"], found
        ended = cli.run("prompt", "diff", made, "--store", str(path), "--json")
        found = json.loads(ended.stdout)
        assert ended.returncode == 1 and found["first"] == "part instructions"
        (change,) = found["changes"]
        assert (change["kind"], change["name"], change["what"]) == (
            "part", "instructions", "changed",
        )  # fmt: skip
        assert "- Of an older version." in change["diff"] and found["cached_tokens_lost"] > 0
        tools.write_text(tools.read_text().replace("something up", "things up"))
        found = json.loads(cli.run("prompt", "diff", same, "--store", str(path), "--json").stdout)
        assert [c["name"] for c in found["changes"]] == ["look"] and found["first"] == "tool look"
        text = cli.run("prompt", "diff", made, "--store", str(path)).stdout.decode()
        assert "goes on with its stored bytes" in text and "The cache would end at" in text

    async def test_a_session_from_before_there_were_parts(self, cli: Any, path: Path) -> None:
        from lorimer.store import open_store
        from lorimer.store.protocol import CreateSession, SessionRecord

        store = open_store(path)
        old = SessionRecord(
            "s_old", datetime(2026, 1, 1, tzinfo=UTC), "user", "openai:gpt-5", "openai_chat",
            DEFAULT_SYSTEM, [], b"{}", {"workspace": str(cli.folder), "tools": "none"},
        )  # fmt: skip
        await store.commit(CreateSession(old))
        store.close()
        found = cli.json("prompt", "show", "s_old", "--store", str(path), "--json")
        assert [(p["name"], p["owner"]) for p in found["parts"]] == [("system", "unknown")]
        found = json.loads(
            cli.run("prompt", "diff", "s_old", "--store", str(path), "--json").stdout
        )
        assert {c["name"] for c in found["changes"]} <= {"system", "instructions", "recall"}


class TestLint:
    def test_texts_files_and_standard_input(self, cli: Any) -> None:
        (cli.folder / "good.md").write_text("Be brief.")
        (cli.folder / "bad.md").write_text("Be brief.\nToday is Monday, 30 November 2026.\n")
        assert cli.run("prompt", "lint", "good.md").returncode == 0
        ended = cli.run("prompt", "lint", "good.md", "bad.md")
        text = ended.stdout.decode()
        assert ended.returncode == 1 and "bad.md: system, line 2: clock" in text
        assert "Why: " in text and "  → " in text and "1 finding." in text
        ended = cli.run("prompt", "lint", "-", "--json", stdin=b"Request #12 of this user")
        assert [f["trouble"] for f in json.loads(ended.stdout)["findings"]] == ["counter"]
        ended = cli.run("prompt", "lint", "--system", "You help {{ user.name }}.")
        assert ended.returncode == 1 and b"placeholder" in ended.stdout

    def test_json_with_parts_tools_and_bodies(self, cli: Any) -> None:
        cases: list[tuple[Any, list[str]]] = [
            ({"parts": [
                {"name": "a", "stability": "session", "text": "For one."},
                {"name": "b", "stability": "global", "text": "For all."}]}, ["stability_order"]),
            ([{"name": "b"}, {"name": "a"}], ["unsorted_tools"]),
            ({"system": [{"type": "text", "text": "It is now 10:30."}], "messages": []}, ["clock"]),
            ({"messages": [{"role": "system", "content": "Request id: 5f3a9c2e"},
                           {"role": "user", "content": "It is now 10:30."}]}, ["random_id"]),
            ({"instructions": "User e-mail: ana@web.de", "input": "x"}, ["user_data"]),
            ({"systemInstruction": {"parts": [{"text": "Turn: 5"}]},
              "tools": [{"functionDeclarations": [{"name": "z"}, {"name": "y"}]}]},
             ["counter", "unsorted_tools"]),
        ]  # fmt: skip
        for value, expected in cases:
            (cli.folder / "x.json").write_text(json.dumps(value))
            ended = cli.run("prompt", "lint", "x.json", "--json")
            assert [f["trouble"] for f in json.loads(ended.stdout)["findings"]] == expected, value
        for bad in ("{", "{}", '{"parts": [{"name": "a"}]}'):
            (cli.folder / "x.json").write_text(bad)
            ended = cli.run("prompt", "lint", "x.json", "--json")
            assert ended.returncode == 2 and "error" in json.loads(ended.stdout)

    @pytest.mark.anyio
    async def test_a_session_and_a_new_one(self, cli: Any, path: Path) -> None:
        at = ("--store", str(path))
        fine = await stored(path, cli.folder)
        assert cli.run("prompt", "lint", fine, *at).returncode == 0
        bad = await stored(path, cli.folder, system=f"The files are in {cli.folder}/in.")
        ended = cli.run("prompt", "lint", bad, *at, "--json")
        (found,) = json.loads(ended.stdout)["findings"]
        assert found["trouble"] == "user_data" and found["detail"] == "the folder of this session"
        assert found["source"] == bad and ended.returncode == 1
        assert cli.run("prompt", "lint", "--model", "openai:gpt-5").returncode == 0

    def test_builds_that_differ_are_named_with_their_cause(self, cli: Any) -> None:
        (cli.folder / "own.py").write_text(CLOCKED)
        ended = cli.run("prompt", "lint", "--build", "--from", "own.py:made", "--json", USER="ana")
        found = json.loads(ended.stdout)
        assert ended.returncode == 1 and found["builds"] == [
            "again", "clock", "folder", "hash seed", "user",
        ]  # fmt: skip
        causes = {one["piece"]: one["cause"] for one in found["differences"]}
        assert causes == {
            "part chance": "again", "part clock": "clock", "part stamp": "clock",
            "part place": "folder", "part tags": "hash seed", "part who": "user",
        }  # fmt: skip
        assert all(one["was"] != one["now"] and one["advice"] for one in found["differences"])
        text = cli.run("prompt", "lint", "--build", "--from", "own.py:made").stdout.decode()
        assert "part clock differs: it depends on the time" in text and "6 differences" in text

    def test_builds_that_do_not_differ(self, cli: Any) -> None:
        (cli.folder / "own.py").write_text(CLOCKED)
        ended = cli.run("prompt", "lint", "--build", "--from", "own.py:steady")
        assert ended.returncode == 0 and b"the same bytes each time" in ended.stdout
        ended = cli.run("prompt", "lint", "--build", "--model", "openai:gpt-5", "--tools", "all")
        assert ended.returncode == 0, ended.stdout
        for name, words in (("broken", b"not today"), ("missing", b"has no missing")):
            ended = cli.run("prompt", "lint", "--build", "--from", f"own.py:{name}")
            assert ended.returncode not in (0, 1) and words in ended.stderr


def test_what_run_has_sent_is_what_a_new_session_would_send(cli: Any, serve: Any) -> None:
    model = serve("Hello.").model
    assert cli.run("run", "-m", model, "hello").returncode == 0
    listed = cli.run("sessions", "list", "--json").stdout.splitlines()
    session = json.loads(listed[0])
    session = session[0] if isinstance(session, list) else session
    new = cli.json("prompt", "show", "--model", model, "--json")
    assert new["sha256"] == cli.json("prompt", "show", session["id"], "--json")["sha256"]
    assert "skill" in [one["name"] for one in new["tools"]]
    ended = cli.run("prompt", "diff", session["id"])
    assert ended.returncode == 0, ended.stdout.decode()
