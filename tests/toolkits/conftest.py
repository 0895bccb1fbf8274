import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lorimer.toolkits import default_tools
from lorimer.tools.tool import Principal, ToolContext

TOOLS = {tool.name: tool for tool in default_tools()}
_numbers = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "a workspace – ünïcödé 工作"
    folder.mkdir()
    return folder


def new_context(workspace: Path, scratch: Path | None = None) -> ToolContext:
    number = next(_numbers)
    return ToolContext(
        session="s",
        call_id=f"c{number}",
        principal=Principal("tester"),
        operation_key=f"key-{number}",
        workspace=workspace,
        scratch=scratch,
    )


@pytest.fixture
def context(workspace: Path, tmp_path: Path) -> ToolContext:
    return new_context(workspace, tmp_path / "scratch")


Call = Callable[..., Any]


async def invoke(context: ToolContext, name: str, **arguments: Any) -> str:
    """The text a tool gives, its parts joined."""
    result = TOOLS[name].function(**arguments, context=context)
    if hasattr(result, "__await__"):
        result = await result
    if isinstance(result, str):
        return result
    return "".join(getattr(part, "text", "") for part in result)


@pytest.fixture
def call(context: ToolContext) -> Call:
    async def run(name: str, **arguments: Any) -> str:
        return await invoke(context, name, **arguments)

    return run


@pytest.fixture(scope="session")
def in_context() -> Call:
    return invoke


@pytest.fixture(scope="session")
def make_context() -> Callable[..., ToolContext]:
    return new_context
