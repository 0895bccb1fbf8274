"""The real command in a process of its own, against a provider on 127.0.0.1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wire.answers import Say, SayCall
from wire.server import KEY, WireServer

COMMAND = [sys.executable, "-c", "from lorimer.cli.main import main; main()"]


def call(name: str, *, id: str = "c1", **arguments: Any) -> SayCall:
    return SayCall(id, name, json.dumps(arguments, ensure_ascii=False))


@dataclass
class Cli:
    """Runs `lorimer …` with its own home, in a folder with spaces and non-ASCII in its name."""

    home: Path
    folder: Path
    environ: dict[str, str]

    def run(
        self, *words: str, stdin: bytes = b"", timeout_s: float = 120, **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *words], input=stdin, capture_output=True, cwd=self.folder,
            env={**self.environ, **environ}, check=False, timeout=timeout_s,
        )  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=self.folder, env=self.environ,
        )  # fmt: skip

    def json(self, *words: str, **environ: str) -> Any:
        ended = self.run(*words, **environ)
        assert ended.stdout.count(b"\n") == 1, ended
        return json.loads(ended.stdout)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    home, folder = tmp_path / "home", tmp_path / "my files – ünïcödé"
    folder.mkdir()
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environ |= {"LORIMER_HOME": str(home), "LORIMER_API_KEY": KEY, "NO_COLOR": "1"}
    environ["HOME"] = str(home)  # no skills and agents but those of the test
    environ |= {"OLLAMA_HOST": "http://127.0.0.1:9", "COLUMNS": "80"}
    return Cli(home, folder, environ)


class Served:
    """A provider and the `--model` that names it."""

    def __init__(self, script: Sequence[Any]) -> None:
        self.server = WireServer("openai_chat", script)

    @property
    def model(self) -> str:
        return f"{self.server.base_url}#a-model"


@pytest.fixture
def serve() -> Iterator[Any]:
    """`serve(answer, …)`: a provider that answers with these, in order."""
    open_servers: list[WireServer] = []

    def make(*script: Any) -> Served:
        made = Served([Say(one) if isinstance(one, str) else one for one in script])
        made.server.__enter__()
        open_servers.append(made.server)
        return made

    yield make
    for server in open_servers:
        server.__exit__(None, None, None)
        assert server.faults == []
