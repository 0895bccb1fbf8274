"""What is called safe, held against bash itself: a marker that no table knows must never run.

Random texts are put together from builtins, quotes, operators and the marker. Each one that is
judged safe is given to a real bash, with no programs to be found, in an empty folder, without
rights: then the marker must not have run, and no file may have been written. No command of the
lists is ever run here.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell_cases import look

from lorimer.safety.shell import verdict

PIECES = [
    "MARK", "MARK", "MARK", "echo a", "echo", "printf x", "true", " ", " ", " ", "\n", "\n", ";",
    "&&", "||", "|", "&", "|&", "(", ")", "{ ", "; }", "$(", "$(MARK)", "`MARK`", "`", '"', '"',
    "'", "'", "\\", "\\\n", "$", "${x", "${x:-", "}", "<<EOF", "\nEOF\n", "\nEOF \n", "<<'EOF'",
    "<<-EOF\n\t", "<<<", ">/dev/null", ">", ">f", ">>", ">&", "<", "</dev/null", "2>&1", "&>",
    ">(", "<(", "[[ ", " ]]", "if ", "; then ", "; fi", "for i in ", "; do ", "; done",
    "case a in ", "a) ", ";; esac", "x=", "x='", "a[", "]", "((", "))", "$((", "$[", "#", " #",
    "!", "~", "*", "$'\\x4dARK'", "$'", "eval ", "f()", "function f ", "\t", "$x", "$#", "$@",
    "$?", "[ ", "test -v ", "-v", "-eq", "0", "1", "'a[$(MARK)]'", "M", "ARK", "\\MARK", "''MARK",
    "time ", "{a,b}", "=", "+=", "export ", "declare ", "let ", "read ", "unset ", "printf -v ",
    "command ", "exec ", "trap ", "\\`", "\\$", '\\"', "@P}", "^",
]  # fmt: skip
TEXTS = 12_000


def _without_rights() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (60, 60))
    resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))


def _marker_ran(text: str, folder: Path) -> bool:
    """Run `text` with a marker that writes into a pipe."""
    reader, writer = os.pipe()
    script = f'exec 9>&{writer} {writer}>&-; MARK() {{ echo ran >&9; }}; cd "$2" && eval "$1"'
    bash = shutil.which("bash")
    assert bash is not None
    try:
        subprocess.run(
            [bash, "--norc", "--noprofile", "-c", script, "_", text, str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[writer],
            preexec_fn=_without_rights,
            env={"PATH": "/nonexistent"},
            timeout=20,
            check=False,
        )
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as end:
        return bool(end.read())


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that also a user without rights may write."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("seed", range(4))
def test_bash_never_runs_a_marker_in_a_text_called_safe(seed: int, folder: Path) -> None:
    choose = random.Random(seed)
    tried = 0
    assert _marker_ran("MARK", folder)
    for _ in range(TEXTS):
        text = "".join(choose.choice(PIECES) for _ in range(choose.randint(2, 12)))
        if not ("ARK" in text or ">" in text) or verdict(look(text)) != "safe":
            continue
        tried += 1
        assert not _marker_ran(text, folder), text
        assert not list(folder.iterdir()), text
    assert tried >= 20
    assert _marker_ran("MARK", folder)
