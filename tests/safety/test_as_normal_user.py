"""The tests of sandbox, paths and tools once more as a normal user, when these run as root."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_NOBODY = "65534"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as a normal user already")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv and unshare (util-linux)")
def test_the_same_holds_for_a_normal_user(tmp_path: Path) -> None:
    """In a mount namespace of its own, where that user can reach the interpreter."""
    here = Path(__file__).parent
    steps = ["set -e"]
    for needed in {Path(sys.base_prefix).resolve(), Path(sys.prefix), here.parents[1]}:
        steps += _make_reachable(needed, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    steps.append(f"mount --bind {shlex.quote(str(scratch))} /var/tmp")
    command = [
        "setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups", "--no-new-privs",
        "env", "-i", f"PATH={os.environ['PATH']}", "HOME=/var/tmp", "TMPDIR=/var/tmp",
        "PYTHONDONTWRITEBYTECODE=1",
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
        "--basetemp=/var/tmp/t", "-c", str(here.parents[1] / "pyproject.toml"),
        f"--rootdir={here.parents[1]}",
        *(str(here.parent / name) for name in (
            "safety/test_sandbox.py", "safety/test_paths.py", "safety/test_known_faults.py",
            "safety/test_landlock.py", "safety/test_quotas.py", "toolkits/test_write_and_edit.py",
            "toolkits/test_search.py", "toolkits/test_run_python.py",
            "toolkits/test_shell_exec.py", "toolkits/test_code_interpreter.py",
            "toolkits/test_checks.py", "toolkits/test_run_script.py",
            "toolkits/test_visible.py", "safety/test_sandbox_session.py",
            "safety/network/test_egress.py", "safety/test_hidden.py",
            "toolkits/test_hidden_files.py", "toolkits/test_shell_read_only.py",
        )),
    ]  # fmt: skip
    steps.append("cd /var/tmp; exec " + shlex.join(command))
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(steps)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def _make_reachable(needed: Path, tmp_path: Path) -> list[str]:
    """Shell steps that let everybody reach `needed` below a folder that only root may enter."""
    closed = next((p for p in reversed(needed.parents) if not p.stat().st_mode & 0o001), None)
    if closed is None:
        return []
    kept = tmp_path / f"kept-{len(list(tmp_path.iterdir()))}"
    kept.mkdir()
    where, at = shlex.quote(str(kept)), shlex.quote(str(needed))
    return [
        f"mount --bind {at} {where}",
        f"mount -t tmpfs -o mode=755 none {shlex.quote(str(closed))}",
        f"mkdir -p {at}",
        f"mount --bind {where} {at}",
    ]
