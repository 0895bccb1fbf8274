"""The tables of programs: what they hold, and that a mistake in them stops the load."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from shell_cases import look

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options, places, table, verdict
from lorimer.safety.shell.judges import JUDGES
from lorimer.safety.shell.words import literal


def test_hundreds_of_programs_are_known() -> None:
    assert len(table.table()) > 600


def test_every_judge_that_an_entry_names_is_there() -> None:
    named = {p.judge for p in table.table().values()} - {""}
    assert named <= set(JUDGES)
    assert set(JUDGES) <= named


def test_every_program_answers_to_nothing_and_to_help() -> None:
    for name in table.table():
        for text in (name, f"{name} --help", f"{name} -x --y=z w"):
            assert verdict(look(text)) in ("safe", "needs-approval", "deny")


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('names = ["x"]\nopperands = "read"', "opperands"),
        ('names = ["x"]\noperands = "eat"', "eat"),
        ('names = ["x"]\nalways = "harmless"', "harmless"),
        ('names = ["x"]\nalways = "network"', "no sentence"),
        ('names = ["x"]\nasks = { "-x" = "unknwon: y" }', "unknwon"),
        ('names = ["x", "x"]', "twice"),
    ],
)
def test_a_mistake_in_a_table_stops_the_load(
    entry: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in table.FILES:
        (tmp_path / f"{name}.toml").write_text("program = []\n")
    (tmp_path / "files.toml").write_text(f"[[program]]\n{entry}\n")
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    table.table.cache_clear()
    try:
        with pytest.raises(table.BadTable, match=fault):
            table.table()
    finally:
        table.table.cache_clear()


def test_a_tag_is_concerns_a_level_and_a_sentence() -> None:
    found = table.tags("network irreversible: sends mail")
    assert found == table.Tags((Concern.NETWORK,), Effects.IRREVERSIBLE, "sends mail")
    assert table.tags("write").level is Effects.WRITE
    assert table.tags("read").concerns == ()


@pytest.mark.parametrize(
    ("words", "options_found", "operands"),
    [
        ("-nr f", ["-n", "-r"], ["f"]),
        ("-k2 f", ["-k"], ["f"]),
        ("-nk 2 f", ["-n", "-k"], ["f"]),
        ("--key=2 f", ["--key"], ["f"]),
        ("--key 2 f", ["--key"], ["f"]),
        ("--rev f", ["--reverse"], ["f"]),
        ("f -n", ["-n"], ["f"]),
        ("-- -n", [], ["-n"]),
        ("-", [], ["-"]),
        ("--compress-prog=x", ["--compress-program"], []),
        ("--comp x f", ["--compress-program"], ["f"]),
        ("-of g", ["-o"], ["g"]),
    ],
)
def test_options_are_read_as_gnu_programs_read_them(
    words: str, options_found: list[str], operands: list[str]
) -> None:
    program = table.find("sort")
    assert program is not None
    parsed = options.parse(program, [literal(w) for w in words.split()])
    assert [name for name, _, _ in parsed.options] == options_found
    assert [w.text for w in parsed.operands] == operands


def test_an_option_where_a_value_should_stand_counts_as_both() -> None:
    program = table.find("sort")
    assert program is not None
    parsed = options.parse(program, [literal("-k"), literal("--compress-program=x")])
    assert parsed.has("--compress-program")


def test_versions_of_interpreters_are_the_interpreter() -> None:
    assert table.find("python3.12") is table.find("python")
    assert table.find("pip3.11") is table.find("pip")
    assert table.find("ls3") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/.ssh/id_ed25519", "forbidden"),
        ("/home/other/.ssh/id_rsa", "forbidden"),
        ("/etc/shadow", "forbidden"),
        ("/etc/shadow-", "forbidden"),
        ("/proc/17/environ", "forbidden"),
        ("/proc/*/environ", "forbidden"),
        ("/home/me/.ss?/id_*", "forbidden"),
        ("/e??/sh*w", "forbidden"),
        ("/w/.env", "ask"),
        ("/w/.ENV.production", "ask"),
        ("/w/.en*", "ask"),
        ("/w/.*", "ask"),
        ("/w/*.pem", "ask"),
        ("/w/.aws/config", "ask"),
        ("/w/.env.example", None),
        ("/w/*", None),
        ("/w/*.py", None),
        ("/w/environment.py", None),
        ("/w/id_rsa.pub", None),
        ("/etc/passwd", None),
    ],
)
def test_secrets_are_told_from_the_rest(path: str, kind: str | None) -> None:
    assert places.secret(path, "/home/me") == kind


def test_a_pattern_is_public_only_below_a_public_folder() -> None:
    assert places.public("/usr/*/x")
    assert not places.public("/*/x")
    assert not places.public("/h*/x")


def test_threads_judge_side_by_side() -> None:
    found: list[str] = []

    def work() -> None:
        found.extend(verdict(look(text)) for text in ["ls", "rm x", "rm -rf /"] * 20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count("safe") == found.count("deny") == found.count("needs-approval") == 80
