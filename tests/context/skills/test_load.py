# ruff: noqa: E501 - tables of examples
"""What published collections contain is loaded, and what was forgiven is said; what cannot be used
has its own outcome."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lorimer.context.skills.load import MOST_BYTES, MOST_DESCRIPTION, allowed_tools, load
from lorimer.context.skills.record import NotLoaded, Place, Skill, Source

MakeSkill = Callable[..., Path]


def loaded(folder: Path, **more: object) -> Skill:
    found = load(folder, Place(Source.USER, folder.parent, folder.parent))
    assert isinstance(found, Skill), found
    return found


def refused(folder: Path) -> NotLoaded:
    found = load(folder, Place(Source.USER, folder.parent, folder.parent))
    assert isinstance(found, NotLoaded), found
    assert found.message
    assert found.next
    return found


def write(tmp_path: Path, data: bytes | str, folder: str = "table", file: str = "SKILL.md") -> Path:
    where = tmp_path / folder
    where.mkdir(parents=True, exist_ok=True)
    (where / file).write_bytes(data.encode() if isinstance(data, str) else data)
    return where


def test_a_good_skill_needs_no_forgiveness(tmp_path: Path, make_skill: MakeSkill) -> None:
    folder = make_skill(tmp_path, "count-lines", {"scripts/a.py": "1", "references/b.md": "x"})
    found = loaded(folder)
    assert (found.name, found.forgiven) == ("count-lines", ())
    assert found.description.startswith("Counts lines.")
    assert found.body == "# Count\n\nRun the script."
    assert found.files == ("references/b.md", "scripts/a.py")


FORGIVEN = {
    "long description": (f"name: table\ndescription: {'word ' * 300}\n", "1,024"),
    "very long description": (f"name: table\ndescription: {'word ' * 900}\n", "2,048"),
    "unknown fields": ("name: table\ndescription: x\nversion: 1\nauthor: y\n", "version, author"),
    "another name": ("name: chart\ndescription: x\n", "not that of the folder"),
    "capitals and spaces": ("name: My Table\ndescription: x\n", "capital letters"),
    "no name": ("description: x\n", "the name is missing"),
    "colon": ("name: table\ndescription: Use this when: a table comes\n", "line by line"),
    "hash and quotes": ("name: table\ndescription: 'Use\" it #1\nlicense: MIT\n", "line by line"),
    "at sign": ("name: table\ndescription: @table reads\n", "line by line"),
    "list": ("name: table\ndescription:\n  - reads\n  - writes\n", "description is a list"),
    "flow list": ("name: table\ndescription: x\nallowed-tools: [Read, Write]\n", "allowed-tools"),
    "block list": ("name: table\ndescription: x\nallowed-tools:\n- Read\n", "allowed-tools"),
    "nested metadata": ("name: table\ndescription: x\nmetadata:\n  a:\n    b: c\n", "metadata"),
    "metadata text": ("name: table\ndescription: x\nmetadata: y\n", "metadata is no map"),
    "doubled": ("name: table\ndescription: x\nname: other\n", None),
    "anchors": ("name: table\ndescription: &d x\nlicense: *d\n", None),
    "tab": ("name: table\ndescription:\tx\n", "line by line"),
    "license list": ("name: table\ndescription: x\nlicense: [MIT]\n", "license is no text"),
    "long compatibility": (
        f"name: table\ndescription: x\ncompatibility: {'y' * 600}\n",
        "compatibility has 600",
    ),
}


@pytest.mark.parametrize("what", FORGIVEN)
def test_published_oddities_are_loaded_and_said(tmp_path: Path, what: str) -> None:
    front, said = FORGIVEN[what]
    found = loaded(write(tmp_path, f"---\n{front}---\n\nDo it.\n"))
    assert found.body == "Do it."
    assert found.description
    if said is not None:
        assert any(said in one for one in found.forgiven), found.forgiven
    assert "\n" not in found.description
    assert len(found.description) <= MOST_DESCRIPTION + 1


def test_broken_yaml_keeps_its_whole_description(tmp_path: Path) -> None:
    front = (
        "name: table\ndescription: Use this when: a table comes. Also: sums\n  and more: lines\n"
        "license: MIT\n"
    )
    found = loaded(write(tmp_path, f"---\n{front}---\nDo it.\n"))
    assert found.description == "Use this when: a table comes. Also: sums and more: lines"
    assert found.fields["license"] == "MIT"


FILES = {
    "byte order mark": (b"\xef\xbb\xbf---\nname: table\ndescription: x\n---\nDo it.\n", "order mark"),
    "CRLF": (b"---\r\nname: table\r\ndescription: x\r\n---\r\nDo it.\r\n", None),
    "no closing mark": (b"---\nname: table\ndescription: x\n\nDo it.\n", "no closing ---"),
    "no front matter": (b"# Table\n\nReads tables.\n\nDo it.\n", "no front matter"),
    "blank lines before": (b"\n\n---\nname: table\ndescription: x\n---\nDo it.\n", "blank lines"),
    "dots": (b"---\nname: table\ndescription: x\n...\nDo it.\n", None),
    "name on the first line": (b"---name: table\ndescription: x\n---\nDo it.\n", None),
    "no description": (b"---\nname: table\n---\n# Title\n\nReads tables.\n\nDo it.\n", "first par"),
    "empty front matter": (b"---\n---\nReads tables.\n\nDo it.\n", "front matter is empty"),
    "rule in a value": (b"---\nname: table\ndescription: a --- b\n---\nDo it.\n", None),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_odd_files_are_loaded_and_said(tmp_path: Path, what: str) -> None:
    data, said = FILES[what]
    found = loaded(write(tmp_path, data))
    assert found.name == "table"
    assert found.body.endswith("Do it.")
    if said is not None:
        assert any(said in one for one in found.forgiven), found.forgiven


@pytest.mark.parametrize("file", ["skill.md", "Skill.md", "SKILL.MD"])
def test_the_case_of_the_file_is_forgiven(tmp_path: Path, file: str) -> None:
    found = loaded(write(tmp_path, "---\nname: table\ndescription: x\n---\nDo it.\n", file=file))
    assert found.files == ()


def test_published_shapes_all_load(tmp_path: Path) -> None:
    """Each combination of the ways in which collections write their fields."""
    names = ["name: s", "name: S", "name: 's'", 'name: "s"', "name:   s  ", ""]
    descriptions = [
        "description: Reads it.", "description: >\n  Reads\n  it.", "description: |\n  Reads\n  it.",
        "description: 'Reads it.'", "description: Reads it: always.", "description: Reads - it #2.",
        f"description: {'Reads it. ' * 150}", "description: |-\n  Use when:\n  - it is read",
        "description: \"Reads \\\"it\\\".\"", "description: Reads “it” — «всё» 表.",
    ]  # fmt: skip
    others = [
        "", "license: Complete terms in LICENSE.txt", "allowed-tools: Read, Grep, Bash(git:*)",
        "allowed-tools:\n  - Read\n  - Grep", "allowed-tools: [Read, \"Bash(git log:*)\"]",
        "version: 1.0.0\ntags: [a, b]", "metadata:\n  author: me\n  version: \"1.0\"",
        'metadata: {"bot": {"emoji": "x", "requires": {"bins": ["a"]}}}', "model: inherit",
        "disable-model-invocation: true\nargument-hint: [file]", "dependencies: python>=3.8, pandas",
        "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command",
        "triggers:\n- \"read: it\"\n- it",
    ]  # fmt: skip
    count = 0
    for name in names:
        for description in descriptions:
            for other in others:
                count += 1
                front = "\n".join(line for line in (name, description, other) if line)
                folder = write(tmp_path, f"---\n{front}\n---\n\n# S\n\nDo it.\n", f"f{count}/s")
                found = loaded(folder)
                assert found.body == "# S\n\nDo it.", front
                assert found.name.lower() == "s", front
                assert found.description[:3] in ("Rea", "Use"), (front, found.description)
    assert count == 780


# --- what cannot be used ---


def test_each_unusable_folder_has_its_own_outcome(tmp_path: Path) -> None:
    good = "---\nname: table\ndescription: x\n---\n"
    codes = {}
    (tmp_path / "empty").mkdir()
    codes["no_skill_file"] = refused(tmp_path / "empty")
    assert "is empty" in codes["no_skill_file"].message
    codes["too_large"] = refused(write(tmp_path, good + "x" * (2 << 20), "large"))
    assert "2,097," in codes["too_large"].message
    codes["not_utf8"] = refused(write(tmp_path, good.encode() + b"\xff\xfe", "latin"))
    codes["front_matter"] = refused(write(tmp_path, "---\n{ ] :\n---\nDo it.\n", "broken"))
    codes["no_description"] = refused(write(tmp_path, "---\nname: table\n---\n", "silent"))
    outside = write(tmp_path, good, "linked")
    (outside / "notes").symlink_to("/etc/hostname")
    codes["link_outside"] = refused(outside)
    assert "'notes'" in codes["link_outside"].message
    pipe = write(tmp_path, good, "pipe")
    os.mkfifo(pipe / "fifo")
    codes["special_file"] = refused(pipe)
    codes["no_folder"] = refused(tmp_path / "gone")
    assert {code: one.code for code, one in codes.items()} == {code: code for code in codes}


_SIX = "".join(
    f"  {b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "aliases": (f"m:\n  a: &a [x, x]\n{_SIX}", "yaml_alias"),
    "an alias in itself": ("m: &a [*a, *a]\n", "yaml_alias"),
    "an alias of a map": ("m: &a {x: y}\nn: *a\n", "yaml_alias"),
    "merged maps": ("m: &a {x: y}\nn:\n  <<: *a\n", "yaml_alias"),
    "a long text many times": (f"m: &a {'x' * 9000}\nn: [{'*a , ' * 999}]\n", "yaml_alias"),
    "an anchor set anew": ("k: &a x\nm: &a [x]\nn: [*a, *a]\n", "yaml_alias"),
    "lists in a line": (f"m: {'[' * 10_000}\n", "nested_too_deeply"),
    "maps in a line": (f"m: {'{a: ' * 10_000}\n", "nested_too_deeply"),
    "lists": (f"m:\n{'- ' * 10_000}x\n", "nested_too_deeply"),
    "keys": (f"{'? ' * 10_000}x\n", "nested_too_deeply"),
    "maps below maps": (
        "m:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 300)),
        "nested_too_deeply",
    ),
    "a long line": (f"m: {'x' * 200_000}\n", "front_matter_too_large"),
}


@pytest.mark.parametrize("what", BOMBS)
def test_front_matter_that_grows_is_refused_by_every_reader(tmp_path: Path, what: str) -> None:
    from lorimer.context.agents import AgentDefinitionFault, parse
    from lorimer.context.skills.validate import validate

    front, code = BOMBS[what]
    text = f"---\nname: table\ndescription: x\n{front}---\nDo it.\n"
    folder = write(tmp_path, text)
    found = refused(folder)
    assert (found.code, bool(found.next)) == (code, True)
    assert len(found.message) < 500
    with pytest.raises(AgentDefinitionFault):
        parse(text, file_name="table", source="table.md")
    assert not validate(folder).valid or code == "front_matter_too_large"


def test_a_line_of_a_megabyte_and_huge_numbers(tmp_path: Path) -> None:
    from lorimer.context.agents import parse

    good = "---\nname: table\ndescription: x\n"
    assert refused(write(tmp_path, f"{good}m: {'x' * 10**6}\n---\n")).code == "too_large"
    number = "9" * 6000
    text = f"{good}version: {number}\nmaxTurns: {number}\n---\nDo it.\n"
    assert loaded(write(tmp_path, text, "numbers/table")).fields["version"] == number
    agent = parse(text, file_name="table", source="table.md")
    assert agent.max_steps is None
    assert max(map(len, agent.notices)) < 200


def test_a_repeated_short_text_is_read_and_said(tmp_path: Path) -> None:
    found = loaded(
        write(tmp_path, "---\nname: table\ndescription: &d x\nlicense: *d\n---\nDo it.\n")
    )
    assert found.fields["license"] == "x"
    assert "it uses YAML anchors and aliases" in found.forgiven


@pytest.mark.parametrize("leads", [".", "../table", "scripts/.."])
def test_a_link_to_the_folder_itself_is_called_that(tmp_path: Path, leads: str) -> None:
    folder = write(tmp_path, "---\nname: table\ndescription: x\n---\nDo it.\n")
    (folder / "scripts").mkdir()
    (folder / "loop").symlink_to(leads)
    found = refused(folder)
    assert found.code == "link_loop"
    assert "itself" in found.message
    assert "outside" not in found.message


def test_links_that_lead_out(tmp_path: Path) -> None:
    good = "---\nname: table\ndescription: x\n---\nDo it.\n"
    for number, (link, target) in enumerate(
        [
            ("SKILL.md", "/etc/hostname"), ("a", ".."), ("a", "../table2"), ("a", "/"),
            ("deep/a", "../../other"), ("a", "/proc/self/environ"), ("a", "../gone"),
        ]
    ):  # fmt: skip
        folder = write(tmp_path, good, f"t{number}/table")
        path = folder / link
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        assert refused(folder).code == "link_outside", (link, target)
    inside = write(tmp_path, good, "inside/table")
    (inside / "b.txt").write_text("x")
    (inside / "a.txt").symlink_to("b.txt")
    assert loaded(inside).files == ("a.txt", "b.txt")


def test_a_skill_that_is_itself_a_link(tmp_path: Path) -> None:
    """Installers link `.claude/skills/x` to `.agents/skills/x`: followed inside the place, refused
    where it leads out of it."""
    home = tmp_path / "home"
    good = "---\nname: table\ndescription: x\n---\nDo it.\n"
    real = write(home, good, ".agents/skills/table")
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/table").symlink_to("../../.agents/skills/table")
    place = Place(Source.USER, home / ".claude/skills", home)
    found = load(home / ".claude/skills/table", place)
    assert isinstance(found, Skill)
    assert found.folder == real
    away = write(tmp_path, good, "elsewhere/table")
    (home / ".claude/skills/away").symlink_to(away)
    out = load(home / ".claude/skills/away", place)
    assert isinstance(out, NotLoaded)
    assert out.code == "link_outside"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_for_a_person(tmp_path: Path, make_skill: MakeSkill) -> None:
    folder = make_skill(tmp_path, "table")
    (folder / "SKILL.md").chmod(0)
    assert refused(folder).code == "unreadable"
    (folder / "SKILL.md").chmod(0o644)
    folder.chmod(0o000)
    try:
        assert refused(folder).code == "unreadable"
    finally:
        folder.chmod(0o755)


def test_a_folder_that_cannot_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, "---\nname: table\ndescription: x\n---\nDo it.\n")
    real = os.listdir

    def fails(path: object) -> list[bytes]:
        if os.fsencode(path) == os.fsencode(folder):  # type: ignore[call-overload]
            raise PermissionError(13, "Permission denied")
        return real(path)  # type: ignore[no-any-return,call-overload]

    monkeypatch.setattr(os, "listdir", fails)
    found = refused(folder)
    assert found.code == "unreadable"
    assert "Permission denied" in found.message


def test_too_many_and_too_deep(tmp_path: Path) -> None:
    many = write(tmp_path, "---\nname: many\ndescription: x\n---\nDo it.\n", "many")
    for number in range(2001):
        (many / f"{number}.txt").touch()
    assert refused(many).code == "too_many_files"
    deep = write(tmp_path, "---\nname: deep\ndescription: x\n---\nDo it.\n", "deep")
    (deep / "/".join("d" * 14)).mkdir(parents=True)
    assert refused(deep).code == "too_deep"


def test_limits_hold_to_the_byte(tmp_path: Path) -> None:
    head = "---\nname: table\ndescription: x\n---\n"
    loaded(write(tmp_path, head + "x" * (MOST_BYTES - len(head)), "a"))
    assert refused(write(tmp_path, head + "x" * (MOST_BYTES + 1 - len(head)), "b")).code == (
        "too_large"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse the name")
def test_file_names_that_are_not_utf8(tmp_path: Path, make_skill: MakeSkill) -> None:
    from lorimer.context.skills.files import digests, survey

    folder = make_skill(tmp_path, "table")
    with open(os.fsencode(folder) + b"/a\xff.txt", "wb") as file:
        file.write(b"x")
    found = loaded(folder)
    assert found.files == ("a\\xff.txt",)
    assert digests(survey(folder))["a\\xff.txt"].startswith("sha256:2d711642")


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("Read Write Bash(git log:*)", ("Read", "Write", "Bash(git log:*)")),
        ("Read, Write,Bash(a, b)", ("Read", "Write", "Bash(a, b)")),
        (["Read ", "", "Bash(x)"], ("Read", "Bash(x)")),
        ("", ()),
        ({"a": "b"}, ()),
    ],
)
def test_allowed_tools_however_written(given: object, tools: tuple[str, ...]) -> None:
    assert allowed_tools({"allowed-tools": given}) == tools
