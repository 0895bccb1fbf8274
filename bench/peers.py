"""The virtual environment of the peers, made on first use from `requirements.txt`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".bench-venv"
REQUIREMENTS = HERE / "requirements.txt"

QUIET = {
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
    "OTEL_SDK_DISABLED": "true",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "OPENAI_API_KEY": "none",
}
"""Environment of every measured process: no tracing, no telemetry, no network."""


@dataclass(frozen=True)
class Peers:
    """The interpreter of the environment, and for each distribution that is missing why."""

    python: str
    missing: dict[str, str]


def quiet_environment() -> dict[str, str]:
    return {**os.environ, **QUIET}


def prepare() -> Peers:
    """The environment with the pinned peers. When they do not install together, each is tried on
    its own, so that one that cannot be had does not take the others with it."""
    python = VENV / "bin" / "python"
    wanted = [
        line.strip()
        for line in REQUIREMENTS.read_text("utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    stamp = VENV / "requirements.sha256"
    digest = hashlib.sha256(f"{sys.version}\n{wanted}".encode()).hexdigest()
    if stamp.is_file() and stamp.read_text("ascii") == digest:
        return Peers(str(python), {})
    print(f"Installing the peers into {VENV.name} (once) …", file=sys.stderr, flush=True)
    made = _run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    if made is not None:
        return Peers(str(python), {one.split("==")[0]: made for one in wanted})
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if _run([*install, *wanted]) is None:
        stamp.write_text(digest, "ascii")
        return Peers(str(python), {})
    missing = {}
    for one in wanted:
        fault = _run([*install, one])
        if fault is not None:
            missing[one.split("==")[0]] = fault
    return Peers(str(python), missing)


def _run(command: list[str]) -> str | None:
    """`None`, or the last line of what went wrong."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {ended.returncode}"
