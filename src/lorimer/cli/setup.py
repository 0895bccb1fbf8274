"""From command line options to an agent: which model, which tools, which store."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import ConfigError, LorimerError, UsageFault

if TYPE_CHECKING:
    from lorimer.models.protocol import Model
    from lorimer.tools.tool import Tool

MODEL_HELP = (
    "Model: a local name (`lorimer models list`), `openai:…`, `anthropic:…`, "
    "`gemini:…`, `ollama:…`, "
    "a GGUF file, or a URL. Default: a key in the environment, else Ollama, else the local default."
)
TOOLS_HELP = (
    "Tools, separated by commas: names (`lorimer tools list`), groups (`files`, `shell`, `code`, "
    "`agents`), `all`, `none`, a Python file with @tool functions, or `module:name`. Default: "
    "files, Python and shell; for local models files and Python."
)
MODE_HELP = (
    "`plan` only reads; `ask` asks before changes; `auto` changes inside the folder; `trusted` all."
)


def choose_model(name: str | None, *, yes: bool, say: Any) -> Model:
    """The model of `--model`, or the default one; a download is asked for once."""
    from lorimer.models.registry import default_model, resolve

    if name is None:
        choice = default_model()
        if choice.needs_download:
            _download(choice.name, yes=yes, why=choice.why)
        say(f"model: {choice.name} ({choice.why})")
        return resolve(choice.name)
    from lorimer.models.local.catalogue import MODELS, is_present

    if name in MODELS and not is_present(name):
        _download(name, yes=yes, why=f"{name} is not on this machine yet")
    return resolve(name)


@asynccontextmanager
async def checkers(
    sidecar: str | None, reviewer: str | None, *, yes: bool, say: Any
) -> AsyncIterator[dict[str, Any]]:
    """The options of `Agent` for `--sidecar` and `--reviewer`; their models are closed at the
    end."""
    from lorimer.safety.review.reviewer import ModelReviewer
    from lorimer.safety.review.sidecar import ModelSidecar

    made: dict[str, Any] = {}
    models: list[Model] = []
    try:
        for option, name, kind in (
            ("sidecar", sidecar, ModelSidecar), ("reviewer", reviewer, ModelReviewer),
        ):  # fmt: skip
            if name is not None:
                models.append(choose_model(name, yes=yes, say=say))
                made[option] = kind(models[-1])
        yield made
    finally:
        for model in models:
            await model.aclose()


def _download(name: str, *, yes: bool, why: str) -> None:
    from lorimer.cli.models import fetch
    from lorimer.models.local.catalogue import find

    model = find(name)
    size = f"{model.size_bytes / 1e6:,.0f} MB"
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfigError(
                f"{why}; the local model {name} ({size}) is only downloaded when you say so.",
                next=f"Run `lorimer models pull {name}`, add --yes, or choose another --model.",
            )
        print(f"{why}.", file=sys.stderr)
        question = f"Download the local model {name} ({size})? y = yes, anything else = no: "
        print(question, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UsageFault(
                "No model.", next="Set a key (OPENAI_API_KEY, …), or choose with --model."
            )
    fetch(model)


def choose_tools(text: str | None, *, allow_unsandboxed: bool) -> list[Tool]:
    """The tools of `--tools`; without it the usual ones (see `for_model`).

    Raises:
        LorimerError: when a name, file or module has no such tool.
    """
    from lorimer.toolkits import all_tools, toolset, usual_tools

    if text is None:
        return usual_tools(allow_unsandboxed=allow_unsandboxed)
    if text == "all":
        return all_tools(allow_unsandboxed=allow_unsandboxed)
    if text == "none":
        return []
    out: list[Tool] = []
    for piece in (p.strip() for p in text.split(",")):
        if not piece:
            continue
        if piece.endswith(".py"):
            out += _from_file(Path(piece))
        elif ":" in piece:
            out += _from_module(piece)
        elif (entry := _entry_point(piece)) is not None:
            out += entry
        else:
            out += toolset([piece], allow_unsandboxed=allow_unsandboxed)
    return out


def for_model(
    model: Model, tools: list[Tool], *, asked: str | None, allow_unsandboxed: bool
) -> list[Tool]:
    """`tools`, or fewer when nobody `asked` for some: a local model reads every word of a tool on
    this machine, and chooses better among few."""
    from lorimer.toolkits import default_tools

    if asked is None and model.profile.wire == "local":
        return default_tools(allow_unsandboxed=allow_unsandboxed)
    return tools


def _tools_in(found: Any, where: str) -> list[Tool]:
    from lorimer.tools.tool import Tool

    if isinstance(found, Tool):
        return [found]
    if isinstance(found, Sequence) and all(isinstance(one, Tool) for one in found):
        return list(found)
    if callable(found):
        return [Tool.from_function(found)]
    raise ConfigError(
        f"{where} is {type(found).__name__}, not a tool, a list of tools or a function."
    )


def _from_file(path: Path) -> list[Tool]:
    from lorimer.tools.tool import Tool

    if not path.is_file():
        raise UsageFault(f"There is no file {path}.")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageFault(f"{path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    sys.path.insert(0, str(path.absolute().parent))
    try:
        spec.loader.exec_module(module)
    except LorimerError:
        raise
    except Exception as fault:
        raise ConfigError(f"{path} cannot be loaded: {type(fault).__name__}: {fault}") from fault
    found = [one for one in vars(module).values() if isinstance(one, Tool)]
    if not found:
        raise ConfigError(
            f"{path} defines no tools.", next="Mark functions with @tool from lorimer."
        )
    return found


def _from_module(text: str) -> list[Tool]:
    module, _, name = text.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as fault:
        raise ConfigError(f"{text} cannot be loaded: {fault}") from fault
    return _tools_in(found, text)


def _entry_point(name: str) -> list[Tool] | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group="lorimer.tools", name=name):
        return _tools_in(entry.load(), f"entry point {name}")
    return None


def read_message(words: Sequence[str]) -> str:
    """The question of the command line. A last word `-`, or no words at all with a pipe, stands for
    standard input; words before it come first.

    Raises:
        UsageFault: when it is empty or not UTF-8.
    """
    piped = words[-1] == "-" if words else not sys.stdin.isatty()
    text = " ".join(words[:-1] if words and piped else words)
    if piped:
        data = sys.stdin.buffer.read()
        try:
            rest = data.decode("utf-8")
            text = f"{text}\n\n{rest}" if text else rest
        except UnicodeDecodeError as fault:
            raise UsageFault(
                f"Standard input is not UTF-8: byte {fault.start} is 0x{data[fault.start]:02x}.",
                next="Convert it first, e.g. with iconv.",
            ) from fault
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise UsageFault(
            f"The question is not UTF-8 at character {fault.start}.",
            next="Check the terminal's encoding.",
        ) from fault
    if not text.strip():
        raise UsageFault("There is no question.", next='Write one: lorimer run "…"')
    return text
