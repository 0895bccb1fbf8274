# ruff: noqa: ASYNC110, ASYNC240 - tests look at the disk, and wait for it
import base64
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.calls import Outcome
from lorimer.core.messages import ImagePart, TextPart
from lorimer.safety.sandbox import choose
from lorimer.toolkits.execution import kernel
from lorimer.toolkits.execution.code_interpreter import make_code_interpreter
from lorimer.tools.belongings import Belongings
from lorimer.tools.tool import EffectMark, ToolContext, ToolError

pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
TOOL = make_code_interpreter()
FRESH = "[a new interpreter: nothing is defined yet]\n"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


class Cells:
    """Calls the tool as one session would."""

    def __init__(self, make: Callable[..., ToolContext], workspace: Path, scratch: Path) -> None:
        self._make, self._workspace, self._scratch = make, workspace, scratch
        self.belongings = Belongings()
        self.last = self.context()

    def context(self) -> ToolContext:
        self.last = self._make(self._workspace, self._scratch)
        self.last.belongings = self.belongings
        return self.last

    async def parts(self, code: str = "", **more: Any) -> list[Any]:
        return list(await TOOL.function(code=code, context=self.context(), **more))

    async def __call__(self, code: str = "", **more: Any) -> str:
        parts = await self.parts(code, **more)
        return "".join(part.text for part in parts if isinstance(part, TextPart))


@pytest.fixture
async def cell(
    make_context: Callable[..., ToolContext], workspace: Path, tmp_path: Path
) -> AsyncIterator[Cells]:
    scratch = tmp_path / ("a rather long folder name – ü " * 4).strip() / "scratch"
    scratch.mkdir(parents=True)
    cells = Cells(make_context, workspace, scratch)
    yield cells
    await cells.belongings.close()


async def test_variables_last_from_cell_to_cell(cell: Cells) -> None:
    assert await cell("x = 'ü'; x * 2") == f"{FRESH}'üü'"
    assert await cell("print(x)") == "ü"
    assert await cell("x = 3") == "[nothing was printed: use print(), or end with an expression]"
    assert cell.last.mark is EffectMark.COMPLETE


async def test_output_keeps_its_order(cell: Cells) -> None:
    await cell()
    said = await cell(
        "import sys\nfrom IPython.display import display\nprint('one', flush=True)\n"
        "sys.stderr.write('two\\n'); sys.stderr.flush()\ndisplay({'three': 3})\n"
        "print('four')\n'five'"
    )
    assert said == "one\n[stderr]\ntwo\n{'three': 3}\nfour\n'five'"


async def test_output_comes_while_it_runs(cell: Cells) -> None:
    context = cell.context()
    seen: list[str] = []
    context.on_output = seen.append
    await TOOL.function(code="print('one')", context=context)
    assert "".join(seen) == "one\n"


async def test_a_figure_is_an_image_and_a_file_that_can_be_read(cell: Cells) -> None:
    await cell()
    code = (
        "from IPython.display import Image, display\nimport base64\n"
        f"print('before')\ndisplay(Image(base64.b64decode('{PIXEL}')))\nprint('after')"
    )
    before, image, after = await cell.parts(code)
    assert isinstance(image, ImagePart) and image.media_type == "image/png"
    raw = base64.b64decode(image.data)
    assert raw == base64.b64decode(PIXEL)
    assert before.text.startswith("before\n[figure in ") and after.text == "\nafter"
    place = before.text.split("[figure in ")[1].rstrip("]")
    assert Path(place).read_bytes() == raw
    assert Path(place).parent == cell.last.scratch


async def test_other_forms_of_a_value_are_named_not_shown(cell: Cells) -> None:
    await cell()
    said = await cell("from IPython.display import HTML\nHTML('<b>x</b>')")
    assert "<b>" not in said and "[also as text/html]" in said


async def test_a_fault_shows_where_without_the_interpreter_s_own_lines(cell: Cells) -> None:
    await cell()
    said = await cell("def f(n):\n    return 1 / n\nf(0)")
    assert said.startswith("Traceback (most recent call last):\n")
    assert "line 2, in f" in said or "line 2" in said
    assert said.endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in said and "ipykernel" not in said


async def test_a_long_traceback_is_trimmed_and_that_is_said(cell: Cells) -> None:
    await cell()
    said = await cell("def f(n):\n    return g(n)\ndef g(n):\n    return f(n + 1)\nf(0)")
    assert "RecursionError" in said and len(said.splitlines()) < 60


async def test_input_is_refused_clearly(cell: Cells) -> None:
    said = await cell("input('name? ')")
    assert "StdinNotImplementedError" in said and "put the value into the code" in said


async def test_the_workspace_is_its_folder_and_can_be_written(cell: Cells, workspace: Path) -> None:
    (workspace / "own module.txt").write_text("x")
    (workspace / "own.py").write_text("y = 42\n")
    said = await cell(
        "import os, own; open('out.txt', 'w').write('z'); sorted(os.listdir()), own.y"
    )
    assert "'own module.txt'" in said and "42" in said
    assert (workspace / "out.txt").read_text() == "z"


async def test_there_is_no_network_and_no_secret(
    cell: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "topsecret")
    said = await cell(
        "import os, socket\nprint(os.environ, open('/proc/1/environ').read())\n"
        "socket.create_connection(('192.0.2.1', 80), timeout=2)"
    )
    assert "topsecret" not in said and "unreachable" in said


async def test_what_forked_processes_print_is_seen(cell: Cells) -> None:
    said = await cell(
        "import os, sys\nif os.fork() == 0:\n    print('from below'); sys.stdout.flush()\n"
        "    os._exit(0)\nos.wait()[1]"
    )
    assert "from below" in said and said.rstrip().endswith("0")


async def test_a_time_out_interrupts_and_keeps_the_variables(cell: Cells) -> None:
    await cell("x = 1")
    with pytest.raises(ToolError, match="took longer than 1 s") as caught:
        await cell("print('began', flush=True)\nwhile True: pass", timeout_s=1)
    assert caught.value.code == "timeout" and caught.value.outcome is Outcome.UNKNOWN
    assert caught.value.details["printed"] == "began"
    assert await cell("x") == "1"


async def test_the_cell_after_an_interrupt_is_not_aborted(cell: Cells) -> None:
    await cell()
    for n in range(3):
        with pytest.raises(ToolError):
            await cell("import time\ntime.sleep(600)", timeout_s=1)
        assert await cell(f"'after {n}'") == f"'after {n}'"


async def test_a_cell_that_does_not_react_ends_the_interpreter_and_says_so(
    cell: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_INTERRUPT_S", 0.5)
    await cell("x = 1")
    stubborn = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass"
    )
    with pytest.raises(ToolError, match="its variables are lost"):
        await cell(stubborn, timeout_s=1)
    said = await cell("'x' in globals()")
    assert said.endswith("False") and "because the cell before did not react" in said


async def test_reset_forgets_everything(cell: Cells) -> None:
    await cell("x = 1")
    said = await cell("'x' in globals()", reset=True)
    assert said == "[a new interpreter: nothing is defined yet, because it was reset]\nFalse"


async def test_a_kernel_that_dies_is_told_and_replaced(cell: Cells) -> None:
    await cell("x = 1")
    with pytest.raises(ToolError, match="SIGKILL") as caught:
        await cell("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert caught.value.outcome is Outcome.UNKNOWN
    assert "because it ended in the cell before" in await cell("1")


async def test_a_kernel_that_died_between_two_cells_is_told(cell: Cells) -> None:
    await cell("import os, threading\nthreading.Timer(0.2, lambda: os._exit(3)).start()")
    from lorimer.toolkits.execution.code_interpreter import Interpreter

    one = cell.belongings.get("interpreter", Interpreter)
    assert one is not None and one.kernel.live is not None
    assert await one.kernel.live.wait(30)
    assert "because it ended by itself since the call before" in await cell("1")


async def test_a_protected_name_ends_it_and_is_renamed(cell: Cells, workspace: Path) -> None:
    with pytest.raises(ToolError, match=r"no tool may make \(.mcp.json"):
        await cell("open('.mcp.json', 'w').write('{}')\nimport time; time.sleep(60)")
    assert not (workspace / ".mcp.json").exists()


async def test_much_output_is_cut_and_that_is_said(cell: Cells) -> None:
    said = await cell("for n in range(100_000): print('line', n)")
    assert "characters left out here" in said and len(said) < 12_000
    assert said.endswith("line 99999")


async def test_a_flood_is_interrupted(cell: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_MOST_TEXT", 1 << 20)
    with pytest.raises(ToolError, match="printed too much") as caught:
        await cell("while True: print('x' * 10_000)")
    assert caught.value.code == "stopped"
    assert (await cell("'still here'")).endswith("'still here'")


async def test_cancelling_ends_everything_it_started(cell: Cells, workspace: Path) -> None:
    await cell("x = 1")
    async with anyio.create_task_group() as group:
        group.start_soon(
            cell, "import os\nos.system('(setsid sh -c \"while :; do echo x >> beat; done\" &)')\n"
            "while True: pass"
        )  # fmt: skip
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    size = (workspace / "beat").stat().st_size
    with anyio.move_on_after(0.2):
        while (workspace / "beat").stat().st_size == size:
            await anyio.sleep(0.01)
    assert (workspace / "beat").stat().st_size == size
    assert "because the call before was stopped" in await cell("1")


async def test_two_cells_at_once_run_one_after_another(cell: Cells) -> None:
    await cell("log = []")

    async def one(name: str) -> None:
        await cell(f"log.append('{name}+')\nimport time; time.sleep(0.1)\nlog.append('{name}-')")

    async with anyio.create_task_group() as group:
        group.start_soon(one, "a")
        group.start_soon(one, "b")
    assert await cell("log") in ("['a+', 'a-', 'b+', 'b-']", "['b+', 'b-', 'a+', 'a-']")


async def test_nothing_is_left_of_its_private_folder(
    cell: Cells, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary – ü"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    await cell("1")
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    await cell.belongings.close()
    assert list(temporary.iterdir()) == []


async def test_without_the_extra_it_is_refused_with_how_to_install(
    cell: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    with pytest.raises(ToolError, match="interpreter") as caught:
        await cell("1")
    assert caught.value.code == "missing_extra"
    assert "lorimer[interpreter]" in caught.value.next
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT


async def test_without_a_sandbox_it_is_refused_or_says_so(
    cell: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    unusable = choose.Availability("os", usable=False, reason="no bubblewrap", next="Install it.")
    monkeypatch.setattr(choose, "available", lambda **_: (unusable,))
    with pytest.raises(ToolError, match="no bubblewrap") as caught:
        await cell("1")
    assert caught.value.code == "no_sandbox"
    bare = make_code_interpreter(allow_unsandboxed=True)
    parts = await bare.function(code="40 + 2", context=cell.context())
    assert "WITHOUT a sandbox" in parts[0].text and parts[0].text.endswith("42")


async def test_code_cannot_lead_us_to_other_sockets_of_this_machine(
    cell: Cells, tmp_path: Path
) -> None:
    """It may put a link in place of its own socket; whoever follows that is not us."""
    outside = socket.socket(socket.AF_UNIX)
    folder = tempfile.mkdtemp()
    outside.bind(f"{folder}/x")
    outside.listen()
    outside.setblocking(False)
    await cell("import os")
    with pytest.raises(ToolError, match="ended in the middle"):
        await cell(
            "for n in range(1, 6):\n    os.unlink(f'/kernel/s-{n}')\n"
            f"    os.symlink('{folder}/x', f'/kernel/s-{{n}}')\nos._exit(1)"
        )
    assert (await cell("1")).endswith("1")
    with pytest.raises(BlockingIOError):
        outside.accept()
    outside.close()
    shutil.rmtree(folder)
