"""What validation says beyond the verdict: it must fit what loading does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lorimer.context.skills.load import load
from lorimer.context.skills.record import NotLoaded, Place, Source
from lorimer.context.skills.remarks import remarked
from lorimer.context.skills.sources import skill_folders
from lorimer.context.skills.validate import Verdict, validate

GOOD = "---\nname: table\ndescription: x\n---\n"


def checked(tmp_path: Path, text: str = GOOD + "Do it.\n", change: object = None) -> Verdict:
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    if callable(change):
        change(folder)
    return remarked(validate(folder))


def _deep(folder: Path) -> None:
    (folder / "/".join("abcdefghijklmno")).mkdir(parents=True)
    (folder / "/".join("abcdefghijklmno") / "x").write_text("x")


REFUSED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "too_large": (GOOD + "x" * (30 << 20), lambda folder: None),
    "link_outside": (GOOD, lambda folder: (folder / "secret").symlink_to("/etc/passwd")),
    "link_loop": (GOOD, lambda folder: (folder / "loop").symlink_to(".")),
    "special_file": (GOOD, lambda folder: os.mkfifo(folder / "pipe")),
    "too_deep": (GOOD, _deep),
    "front_matter_too_large": (GOOD[:-4] + "metadata:\n" + "  # x\n" * 15_000 + "---\n",
                               lambda folder: None),
}  # fmt: skip


@pytest.mark.parametrize("code", REFUSED)
def test_a_valid_folder_that_loading_refuses_is_valid_and_says_so(
    tmp_path: Path, code: str
) -> None:
    text, change = REFUSED[code]
    found = checked(tmp_path, text, change)
    assert found.valid
    (remark,) = [one for one in found.remarks if one.field == "loading"]
    assert f"({code})" in remark.message
    assert remark.next
    refused = load(tmp_path / "table", Place(Source.PATH, tmp_path / "table"))
    assert isinstance(refused, NotLoaded) and refused.code == code


def test_links_to_nothing_and_files_that_are_not_there(tmp_path: Path) -> None:
    text = GOOD + (
        "[a](references/a.md) [b](B.md#part) [c](https://example.org/c.md) [d](#d)\n"
        "`python <skill folder>/scripts/run.py x`, `scripts/there.py`, my/scripts/other.py\n"
        "[e](with%20space.md) `references/<name>.md` `scripts/*.py`\n"
        "```\n[f](made-up.md)\n```\n[g](../outside.md) [h](scripts/../scripts/there.py)\n"
    )

    def change(folder: Path) -> None:
        (folder / "scripts").mkdir()
        (folder / "scripts/there.py").write_text("")
        (folder.parent / "outside.md").write_text("")
        (folder / "with space.md").write_text("")
        (folder / "dangling").symlink_to("gone")

    found = checked(tmp_path, text, change)
    assert found.valid
    assert [one.message for one in found.remarks] == [
        "It is a link to gone, which is not there.",
        "They name 'references/a.md', which is not in the folder.",
        "They name 'B.md#part', which is not in the folder.",
        "They name '../outside.md', which leads out of the folder.",
        "They name 'scripts/run.py', which is not in the folder.",
    ]


def test_characters_that_nobody_sees_are_said_with_their_line(tmp_path: Path) -> None:
    found = checked(tmp_path, GOOD + "Do\u200b it.\n\nAnd\u202e this.\n")
    assert [one.field for one in found.remarks] == ["SKILL.md:5", "SKILL.md:7"]
    assert "U+200B" in found.remarks[0].message


def test_many_remarks_have_an_end(tmp_path: Path) -> None:
    found = checked(tmp_path, GOOD + "".join(f"scripts/s{n}.py\n" for n in range(50)))
    assert len(found.remarks) == 11
    assert "40 more" in found.remarks[-1].message


def test_an_unusable_folder_is_not_described_twice(tmp_path: Path) -> None:
    assert remarked(validate(tmp_path / "gone")).remarks == ()
    assert checked(tmp_path, "no front matter").remarks == ()


def test_the_bundled_skills_and_a_new_one_have_none(tmp_path: Path) -> None:
    import lorimer
    from lorimer.context.skills.scaffold import scaffold

    scaffold("my-skill", tmp_path)
    bundled = Place(Source.BUNDLED, Path(lorimer.__file__).parent / "skills")
    for folder in (tmp_path / "my-skill", *skill_folders(bundled)[0]):
        found = remarked(validate(folder))
        assert (found.valid, found.remarks) == (True, ()), found
