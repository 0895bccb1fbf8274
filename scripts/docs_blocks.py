"""Keep generated blocks in the docs up to date.

A block stands between `<!-- block: COMMAND -->` and `<!-- end -->`; COMMAND is a `lorimer` command
line whose output fills it.    python scripts/docs_blocks.py [--check]
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- block: (?P<command>[^\n]+?) -->\n.*?<!-- end -->", re.S)


def output(command: str) -> str:
    """What `lorimer …` prints on a plain terminal of 90 columns."""
    words = shlex.split(command)
    assert words[0] == "lorimer", command
    with tempfile.TemporaryDirectory() as home:
        env = {
            **os.environ, "COLUMNS": "90", "TERMINAL_WIDTH": "90", "NO_COLOR": "1", "TERM": "dumb",
            "LORIMER_HOME": home, "_TYPER_FORCE_DISABLE_TERMINAL": "1",
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-c", "from lorimer.cli.main import main; main()", *words[1:]],
            capture_output=True, text=True, env=env, check=False, cwd=ROOT,
        )  # fmt: skip
    if ended.returncode != 0:
        sys.exit(f"{command} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    text = ended.stdout.replace("python -c", "lorimer").replace(home, "$LORIMER_HOME")
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def filled(text: str) -> str:
    """`text` with every block filled anew."""

    def fill(match: re.Match[str]) -> str:
        command = match["command"]
        return f"<!-- block: {command} -->\n```text\n{output(command)}\n```\n<!-- end -->"

    return BLOCK.sub(fill, text)


def main() -> int:
    stale = []
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = file.read_text("utf-8")
        new = filled(text)
        if new != text:
            stale.append(file)
            if "--check" not in sys.argv[1:]:
                file.write_text(new, "utf-8")
    if stale and "--check" in sys.argv[1:]:
        names = ", ".join(str(file.relative_to(ROOT)) for file in stale)
        print(f"Generated blocks are out of date in {names}: run scripts/fix.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
