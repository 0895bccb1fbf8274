"""A local model as a `Model`: renders with its own template, writes under a constraint.

Environment: `LORIMER_LOCAL_CONSTRAIN=0` lets it write freely (its text is then read leniently),
`LORIMER_LOCAL_CONTEXT` and `LORIMER_LOCAL_THREADS` set the engine's context and threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from lorimer.core.errors import ModelError
from lorimer.core.messages import Entry, FilePart, ImagePart, Kind, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.core.usage import Usage
from lorimer.models.local import engine as engines
from lorimer.models.local import prompt as prompts
from lorimer.models.local.constrain import constraint_field
from lorimer.models.local.gguf import read_facts
from lorimer.models.local.parse_text import parse_text
from lorimer.models.local.rules import Offer, offer
from lorimer.models.local.template import wrapper_of
from lorimer.models.local.wire import Phase, WireReader, call_text, say_text
from lorimer.models.profiles import Profile
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    ModelEvent,
    Progress,
    Request,
    Settings,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)

MAX_OUTPUT_TOKENS = 1024
SEED = 7
RETRY_TEMPERATURE = 0.7
READING = "reading the prompt"


class LocalModel:
    """A model file on this machine.

    Attributes:
        on_token: called with the id and text of each token as it is written; the text is empty for
            a token that ends inside a character.
        phase: what the token that `on_token` was just told of is part of.
        last_offer: what the last request was allowed to write, and by which rule.
    """

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._facts = read_facts(path)
        self._wrapper = wrapper_of(self._facts)
        self._engine = engines.acquire(path)
        self._closed = False
        self._profile = Profile(
            name=name,
            wire="local",
            parallel_switch=True,
            reasoning="drop",
            template=self._wrapper.form,
            context_window=self._engine.context_tokens,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )
        self.on_token: Callable[[int, str], None] | None = None
        self.phase = Phase.CALL
        self.last_offer: Offer | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return self._profile

    def default_system(self, tools: Sequence[ToolSpec]) -> str:
        """The short system text that this model does best with, for these tools."""
        return prompts.default_system(tools)

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        """The first message: system text, tools, form. See `template` for the marks in it."""
        text = self._wrapper.wrap("system", prompts.system_message(system, tools))
        return text.encode("utf-8", "surrogatepass")

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        """One entry as one message of the model's template."""
        match entry.kind:
            case Kind.USER:
                text = self._wrapper.wrap("user", _readable(entry))
            case Kind.NOTE:
                text = self._wrapper.wrap("user", f"[note] {_readable(entry)}")
            case Kind.ASSISTANT:
                text = self._wrapper.wrap("assistant", _as_written(entry))
            case Kind.TOOL_RESULT:
                text = self._wrapper.wrap("user", _results(entry))
            case _:
                text = self._wrapper.wrap("user", _readable(entry))
        return text.encode("utf-8", "surrogatepass")

    async def tokenize(self, text: str) -> tuple[int, ...]:
        """The token ids of rendered text (as `render_prefix` and `render_entry` give it)."""
        return await self._engine.tokenize(text)

    async def token_pieces(self, text: str) -> list[tuple[int, str]]:
        """Token ids and the text of each, for showing what the model reads (T-10)."""
        return await self._engine.token_pieces(text)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Answer `request`. See `Model.stream`; closing it stops the engine within one token."""
        if self._closed:
            raise ModelError(f"{self.name} was closed.")
        began = time.monotonic()
        engine = self._engine
        if request.tap is not None:
            start = self._wrapper.start.encode("utf-8", "surrogatepass")
            request.tap(b"".join((request.prefix.rendered, *request.fragments, start)))
        await engine.start()
        prefix = await engine.tokenize(_text(request.prefix.rendered))
        tokens = list(prefix)
        for fragment in request.fragments:
            tokens += await engine.tokenize(_text(fragment))
        tokens += await engine.tokenize(self._wrapper.start)
        self.last_offer = offer(
            request.entries, request.prefix.tools, self._facts.parameters,
            request.settings.tool_choice, request.settings.parallel_calls,
        )  # fmt: skip
        options = self._options(request.settings, request.entries, self.last_offer)
        async with engine.turn():
            read = 0
            async with aclosing(engine.prepare(prefix, len(tokens))) as preparing:
                async for read, total in preparing:
                    yield Progress(READING, read, total)
            async with aclosing(self._answer(tokens, options, began)) as answering:
                async for event in answering:
                    yield event

    async def _answer(
        self, tokens: Sequence[int], options: dict[str, Any], began: float
    ) -> AsyncGenerator[ModelEvent, None]:
        reader = WireReader()
        ttft: float | None = None
        final: dict[str, Any] = {}
        reading: dict[str, Any] = {}
        looping = False
        count = 0
        async with aclosing(self._engine.complete(tokens, options)) as events:
            async for event in events:
                if progress := event.get("prompt_progress"):
                    reading = progress
                    yield Progress(READING, progress["processed"], progress["total"])
                    continue
                if event.get("stop"):
                    final = event
                count += len(event.get("tokens") or ())
                if count and ttft is None:
                    ttft = time.monotonic() - began
                for seen in reader.feed(event.get("content", "")):
                    yield seen
                self._show(event, reader.phase)
                if looping := is_looping(reader.written):
                    break
        for seen in finish(reader):
            yield seen
        final.setdefault("timings", _counted(reading))
        yield UsageReport(_usage(final, len(tokens), count, ttft))
        yield _stop(reader, "repetition" if looping else str(final.get("stop_type", "")))

    def _show(self, event: dict[str, Any], phase: Phase) -> None:
        self.phase = phase
        if self.on_token is None:
            return
        ids = event.get("tokens") or []
        for place, token in enumerate(ids):
            last = place == len(ids) - 1
            self.on_token(token, event.get("content", "") if last else "")

    def _options(
        self, settings: Settings, entries: Sequence[Entry], given: Offer
    ) -> dict[str, Any]:
        options: dict[str, Any] = {
            "n_predict": settings.max_output_tokens or MAX_OUTPUT_TOKENS,
            "return_progress": True,
            "temperature": settings.temperature or 0.0,
            "seed": settings.seed if settings.seed is not None else SEED,
        }
        if settings.temperature is None and given.rule == "failed: again":
            # greedy, it writes the same fault again; the seed keeps it repeatable
            options["temperature"] = RETRY_TEMPERATURE
            options["seed"] += len(entries)
        if os.environ.get("LORIMER_LOCAL_CONSTRAIN", "1") != "0":
            options |= constraint_field(given, llguidance=self._engine.llguidance)
        return {**options, **(settings.extra or {})}

    async def aclose(self) -> None:
        """Give the engine back; the last user of a model file unloads it."""
        if not self._closed:
            self._closed = True
            engines.release(self._engine)


def finish(reader: WireReader) -> list[TextDelta | CallStarted | CallDelta | CallComplete]:
    """What is still to be told once the model has stopped: text outside the form."""
    if reader.calls or reader.said or reader.open or not reader.written.strip():
        return []
    text, calls = parse_text(reader.written)
    out: list[TextDelta | CallStarted | CallDelta | CallComplete] = []
    if text:
        out.append(TextDelta(text))
    for index, call in enumerate(calls):
        out += [CallStarted(index, call.name), CallDelta(index, call.raw),
                CallComplete(index, call)]  # fmt: skip
    reader.calls = len(calls)
    return out


def is_looping(written: str) -> bool:
    """Whether the end of `written` is one piece of 16 to 120 characters, six times over."""
    if len(written) < 96 or len(written) % 8:
        return False
    for size in range(16, 121):
        unit = written[-size:]
        if written.endswith(unit * 6) and len(set(unit)) > 2:
            return True
    return False


def _stop(reader: WireReader, raw: str) -> Stop:
    if raw in ("limit", "repetition"):
        return Stop(StopReason.LENGTH, raw)
    if reader.open:
        return Stop(StopReason.OTHER, raw or "unfinished")
    return Stop(StopReason.CALLS if reader.calls else StopReason.END, raw)


def _counted(reading: dict[str, Any]) -> dict[str, int]:
    """The engine's own counters from its progress, for an answer that was broken off before the
    last event, which has them."""
    if "cache" not in reading:
        return {}
    cached = int(reading["cache"])
    return {"cache_n": cached, "prompt_n": int(reading["total"]) - cached}


def _usage(final: dict[str, Any], prompt_tokens: int, written: int, ttft: float | None) -> Usage:
    timings = final.get("timings", {})
    cached = int(timings.get("cache_n", 0))
    return Usage(
        input_tokens=cached + int(timings.get("prompt_n", prompt_tokens - cached)),
        cached_tokens=cached,
        output_tokens=int(timings.get("predicted_n", written)),
        requests=1,
        ttft_s=ttft,
        raw=timings,
    )


def _readable(entry: Entry) -> str:
    out = []
    for part in entry.parts:
        match part:
            case TextPart(text):
                out.append(text)
            case ImagePart():
                out.append("[an image: this model reads text only]")
            case FilePart(name=name):
                out.append(f"[the file {name}: this model reads text only]")
            case _:
                pass
    return "".join(out)


def _as_written(entry: Entry) -> str:
    lines = []
    if entry.text or not entry.calls:
        lines.append(say_text(entry.text))
    calls = [call_text(call) for call in entry.calls]
    if calls:
        lines.append(calls[0] if len(calls) == 1 else "[" + ", ".join(calls) + "]")
    return "\n".join(lines)


def _results(entry: Entry) -> str:
    blocks = []
    for result in entry.results:
        text = "".join(
            part.text if isinstance(part, TextPart) else "[an image: this model reads text only]"
            for part in result.content
        )
        blocks.append(f"<tool_response>\n{text}\n</tool_response>")
    return "\n".join(blocks)


def _text(rendered: bytes) -> str:
    return rendered.decode("utf-8", "surrogatepass")
