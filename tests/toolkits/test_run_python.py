# ruff: noqa: ASYNC110, ASYNC240 - tests look at the disk, and wait for it
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.calls import Outcome
from lorimer.safety.sandbox import choose
from lorimer.toolkits.execution.run_python import make_run_python
from lorimer.tools.tool import EffectMark, ToolContext, ToolError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('ü')", "ü"),
        ("1 + 1", "[value of the last expression] 2"),
        ("print(1)\n'a\\nb'", "1\n[value of the last expression] 'a\\nb'"),
        ("x = 1", "[exit code 0; nothing was printed: use print(), or end with an expression]"),
        ("None", "[exit code 0; nothing was printed: use print(), or end with an expression]"),
        ("import sys; sys.exit(3)", "[exit code 3]"),
        ("", "[exit code 0; nothing was printed: use print(), or end with an expression]"),
        ("if __name__ == '__main__': print('main')", "main"),
        ("class A:\n  def __repr__(self): return 'two\\nlines'\nA()",
         "[value of the last expression] \ntwo\nlines"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "[exit code 139 (SIGSEGV)]"),
        ("print('‘curly’ \\r\\n', end='')", "‘curly’ \r"),
    ],
)  # fmt: skip
async def test_what_code_says(call: Call, code: str, said: str) -> None:
    assert await call("run_python", code=code) == said


async def test_a_fault_shows_the_line_and_what_was_printed(call: Call) -> None:
    said = await call("run_python", code="print('before')\ndef f():\n    return 1 / 0\nf()")
    assert said.startswith("before\n[stderr]\nTraceback")
    assert 'File "<code>", line 3, in f\n    return 1 / 0' in said
    assert "harness" not in said
    assert said.endswith("ZeroDivisionError: division by zero\n[exit code 1]")


async def test_a_syntax_error_shows_the_line(call: Call) -> None:
    said = await call("run_python", code="x = (\n")
    assert 'File "<code>", line 1' in said and "SyntaxError" in said and "harness" not in said


async def test_the_workspace_is_the_folder_and_can_be_written(call: Call, workspace: Path) -> None:
    (workspace / "in.csv").write_text("a,b\n1,2\n")
    (workspace / "own.py").write_text("x = 42\n")
    (workspace / "csv.py").write_text("raise RuntimeError('shadowed')\n")
    code = (
        "import csv, own\nrows = list(csv.DictReader(open('in.csv')))\n"
        "open('out.txt', 'w').write('done')\nrows, own.x"
    )
    said = await call("run_python", code=code)
    assert said == "[value of the last expression] ([{'a': '1', 'b': '2'}], 42)"
    assert (workspace / "out.txt").read_text() == "done"
    assert sorted(p.name for p in workspace.iterdir()) == ["csv.py", "in.csv", "out.txt", "own.py"]


async def test_nothing_else_is_in_the_folder_while_code_runs(call: Call) -> None:
    assert "[]" in await call("run_python", code="import os; os.listdir('.')")


async def test_installed_packages_can_be_imported(call: Call) -> None:
    assert "exit code" not in await call("run_python", code="import pydantic; pydantic.VERSION")


async def test_a_time_out_tells_what_was_printed(call: Call) -> None:
    with pytest.raises(ToolError, match="took longer than 1 s") as caught:
        await call("run_python", timeout_s=1, code="print('began')\nwhile True: pass")
    assert caught.value.code == "timeout" and caught.value.outcome is Outcome.UNKNOWN
    assert caught.value.details["printed"] == "began"
    assert caught.value.details["stopped_in_s"] >= 0


async def test_much_that_was_printed_before_a_time_out_is_cut_and_that_is_said(call: Call) -> None:
    code = "for n in range(2000): print(n)\nwhile True: pass"
    with pytest.raises(ToolError) as caught:
        await call("run_python", timeout_s=2, code=code)
    assert caught.value.details["printed"].endswith("1999")
    assert "characters before this" in caught.value.details["left_out"]


async def test_input_is_at_its_end(call: Call) -> None:
    assert "EOFError" in await call("run_python", code="input()")


async def test_scratch_can_be_read_not_written(call: Call, context: ToolContext) -> None:
    assert context.scratch is not None
    context.scratch.mkdir()
    (context.scratch / "x").write_text("from scratch")
    place = str(context.scratch)
    code = f"print(open({place!r} + '/x').read())\nopen({place!r} + '/y', 'w')"
    said = await call("run_python", code=code)
    assert "from scratch" in said and "Read-only file system" in said


async def test_much_output_is_capped_and_stored(call: Call, context: ToolContext) -> None:
    said = await call("run_python", code="for n in range(400_000): print('line', n)")
    where = re.search(r"\[([\d,]+) bytes left out here, whole output in (.+)\]", said)
    assert where is not None
    assert Path(where[2]).read_text().endswith("line 399999\n")
    assert said.endswith("line 399999")


async def test_output_comes_while_it_runs(call: Call, context: ToolContext) -> None:
    seen: list[str] = []
    context.on_output = seen.append
    await call("run_python", code="print('one')")
    assert "".join(seen) == "one\n"


async def test_there_is_no_network_and_no_secret(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "topsecret")
    code = (
        "import os, socket\nprint(os.environ, open('/proc/1/environ').read())\n"
        "socket.create_connection(('192.0.2.1', 80), timeout=2)"
    )
    said = await call("run_python", code=code)
    assert "topsecret" not in said and "unreachable" in said


async def test_a_protected_name_is_told(call: Call, workspace: Path) -> None:
    with pytest.raises(ToolError, match="no tool may make") as caught:
        await call("run_python", code="open('.mcp.json', 'w').write('{}')")
    (renamed,) = caught.value.details["renamed, because no tool may write it"]
    assert renamed.startswith(".mcp.json (now quarantined-")
    assert not (workspace / ".mcp.json").exists()


async def test_the_mark_says_whether_code_ran(call: Call, context: ToolContext) -> None:
    await call("run_python", code="1")
    assert context.mark is EffectMark.COMPLETE


async def test_cancelled_code_is_dead_and_its_mark_stays_begun(
    call: Call, context: ToolContext, workspace: Path
) -> None:
    began = anyio.Event()
    context.on_output = lambda _: began.set()
    code = "print('x')\nwhile True: open('beat', 'a').write('x')"
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: call("run_python", code=code))
        await began.wait()
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    size = (workspace / "beat").stat().st_size
    with anyio.move_on_after(0.2):
        while (workspace / "beat").stat().st_size == size:
            await anyio.sleep(0.01)
    assert (workspace / "beat").stat().st_size == size
    assert context.mark is EffectMark.BEGUN


async def test_without_a_sandbox_it_is_refused_with_the_reason(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ToolError, match="bubblewrap") as caught:
        await call("run_python", code="open('x', 'w')")
    assert caught.value.code == "no_sandbox"
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT
    assert not caught.value.retryable
    assert list(workspace.iterdir()) == []


async def test_without_a_sandbox_it_runs_where_that_is_allowed_and_says_so(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    choose.available(again=True)
    try:
        tool = make_run_python(allow_unsandboxed=True)
        said = await tool.function(code="40 + 2", context=context)
    finally:
        monkeypatch.undo()
        choose.available(again=True)
    assert said.startswith("[value of the last expression] 42\nnote: this ran WITHOUT a sandbox")


async def test_allowing_no_sandbox_changes_nothing_where_there_is_one(
    context: ToolContext,
) -> None:
    tool = make_run_python(allow_unsandboxed=True)
    said = await tool.function(code="import os; os.listdir('/home')", context=context)
    assert said == "[value of the last expression] ['user']"
