"""Every provider that pydantic-ai speaks to, as a `Model` (extra `bridge`).

    lorimer run --model bridge:bedrock:MODEL "…"
    Agent(model=BridgeModel(any_pydantic_ai_model))

pydantic-ai sends the request and reads the answer, nothing else: its agent loop is not used, and
lorimer decides and runs the calls. What our own wires promise and this one cannot
(`docs/decisions/0009-bridge.md`):

- The bytes on the wire are pydantic-ai's. What is frozen here is the record they are made from.
- Arguments are recorded as pydantic-ai has them: text as it is; where its provider class has
  parsed them already, as canonical JSON of what it parsed. They are handed back as it writes them.
- The end of an answer is known where the provider's reason is; see `bridge_events.end_of`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from anyio.lowlevel import EventLoopToken, current_token

from lorimer.core.errors import ConfigError, InvalidRequest, MissingExtra
from lorimer.core.messages import Entry
from lorimer.core.specs import ToolSpec
from lorimer.models.bridge_events import EventReader, end_of, usage_of
from lorimer.models.bridge_faults import fault_of, opening_fault, peer_of
from lorimer.models.bridge_messages import (
    WIRE,
    History,
    Reading,
    prefix_of,
    render_entry,
    render_prefix,
)
from lorimer.models.profiles import Profile
from lorimer.models.protocol import ModelEvent, Request, Settings, UsageReport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai.messages import ModelResponse, ThinkingPart
    from pydantic_ai.models import Model as PydanticAIModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

_HISTORIES = 8


class BridgeModel:
    """A pydantic-ai model behind the model protocol.

    Args:
        model: any model object of pydantic-ai. Its own `settings` hold, below those of the request.
        name: the name that selects it here; by default `bridge:` and pydantic-ai's id.
        end_without_reason: take a stream that ends without a reason for a whole answer. Only for
            servers that never give one: with it, a cut that looks like a clean end is not seen.
    """

    def __init__(
        self, model: PydanticAIModel, *, name: str = "", end_without_reason: bool = False
    ) -> None:
        self.model = model
        self._name = name or f"bridge:{model.model_id}"
        self._trust_end = end_without_reason
        self._peer = peer_of(model, self._name)
        self._loop: EventLoopToken | None = None
        self._histories: OrderedDict[int, tuple[Sequence[bytes], History]] = OrderedDict()
        self._prefix: tuple[bytes, str, ModelRequestParameters] | None = None
        try:
            theirs: Any = model.profile
        except NotImplementedError:
            theirs = None  # A router: each model behind it has its own.
        known = theirs or {}
        length = known.get("tool_call_id_length")
        self._profile = Profile(
            name=WIRE,
            wire=WIRE,
            context_window=known.get("context_window"),
        )
        if length:
            self._profile = replace(self._profile, id_pattern=f"^[a-zA-Z0-9]{{{length}}}$")
        self._reading = Reading(
            images=known.get("supports_image_input", True),
            documents=known.get("supports_document_input", True),
            hand_back=self._hand_back if theirs is not None else lambda *_: True,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return self._profile

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        return render_prefix(system, tools)

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        return render_entry(entry, self._profile.id_pattern)

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        """See `lorimer.models.protocol.Model.stream`.

        Raises:
            InvalidRequest: for settings that this model of pydantic-ai ignores or refuses.
        """
        from pydantic_ai.direct import model_request_stream

        system, parameters = self._parameters(request)
        settings = self._settings(request.settings, request.prefix.tools)
        messages = self._history(request).messages(system, request.fragments)
        start = monotonic()
        first_s: float | None = None
        begun = False
        try:
            await self._enter()
            async with model_request_stream(
                self.model,
                messages,
                model_settings=settings,
                model_request_parameters=parameters,
            ) as stream:
                begun = True
                reader = EventReader(stream)
                # An async generator in every class; its type promises less.
                events = cast("AsyncGenerator[Any]", aiter(stream))
                async with aclosing(events):
                    async for event in events:
                        first_s = first_s if first_s is not None else monotonic() - start
                        for out in reader.feed(event):
                            yield out
                response = stream.get()
                stop = end_of(stream, response, trust=self._trust_end)
        except Exception as error:  # noqa: BLE001 - any client may raise anything
            # Not chained: a client's exception may quote a header, and with that the key.
            raise fault_of(error, self._peer, begun=begun) from None
        for out in reader.finish(stop):
            yield out
        yield UsageReport(usage_of(response, first_s))
        yield stop

    async def aclose(self) -> None:
        """Close the connections that pydantic-ai opened; a client handed to it stays open."""
        loop, self._loop = self._loop, None
        if loop is not None and loop == current_token():
            await self.model.__aexit__(None, None, None)

    async def _enter(self) -> None:
        """Connections belong to the event loop that opened them; entered again on another one, the
        model gets new ones."""
        before, self._loop = self._loop, current_token()
        if before == self._loop:
            return
        if before is not None:
            with suppress(RuntimeError):  # The loop of the old connections has ended.
                await self.model.__aexit__(None, None, None)
        await self.model.__aenter__()

    def _parameters(self, request: Request) -> tuple[str, ModelRequestParameters]:
        from pydantic_ai.models import ModelRequestParameters

        rendered = request.prefix.rendered
        if self._prefix is None or self._prefix[0] is not rendered:
            system, tools = prefix_of(rendered)
            self._prefix = (rendered, system, ModelRequestParameters(function_tools=tools))
        return self._prefix[1:]

    def _history(self, request: Request) -> History:
        """The messages made so far for this list of fragments: a session's list only grows."""
        key = id(request.fragments)
        if key not in self._histories:
            self._histories[key] = (request.fragments, History(self._reading))
            if len(self._histories) > _HISTORIES:
                self._histories.popitem(last=False)
        self._histories.move_to_end(key)
        return self._histories[key][1]

    def _settings(self, wanted: Settings, tools: Sequence[ToolSpec]) -> ModelSettings:
        choice = wanted.tool_choice
        named = choice not in ("auto", "required", "none")
        missing = choice == "required" and not tools
        if missing or (named and all(tool.name != choice for tool in tools)):
            raise InvalidRequest(f"tool_choice is {choice!r}, and the session has no such tool.")
        asked = {
            "tool_choice": [choice] if named else None if choice == "auto" else choice,
            "parallel_tool_calls": wanted.parallel_calls if tools else None,
            "max_tokens": wanted.max_output_tokens,
            "temperature": wanted.temperature,
            "seed": wanted.seed,
            "extra_body": dict(wanted.extra) if wanted.extra else None,
        }
        settings = {key: value for key, value in asked.items() if value is not None}
        unsupported: frozenset[str] = getattr(self.model, "unsupported_settings", frozenset())
        ignored = unsupported & settings.keys()
        if ignored:
            raise InvalidRequest(
                f"{self._name} would ignore {', '.join(sorted(ignored))}.",
                next="Leave it out of the settings.",
            )
        if "max_retries" not in unsupported:
            settings["max_retries"] = 0  # What is asked again is lorimer's decision.
        return cast("ModelSettings", settings)

    def _hand_back(self, response: ModelResponse, part: ThinkingPart) -> bool:
        """Reasoning goes back to the service it came from, and to no other."""
        own = part.provider_name in (None, self.model.system)
        return own or self.model.accepts_stateless_artifacts(response, part)


def open_bridge(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Any:
    """The model that pydantic-ai calls `name`, e.g. `mistral:mistral-large-latest`.

    Keys and addresses come from the environment variables that pydantic-ai reads, where they are
    not given. Nothing is sent yet.

    Raises:
        MissingExtra: when pydantic-ai is not installed.
        UnknownModel, AuthenticationFailed, ConfigError: when it cannot make such a model.
    """
    try:
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider, infer_provider_class
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "pydantic_ai":
            raise MissingExtra("the bridge", "bridge") from None
        raise
    given = {k: v for k, v in (("base_url", base_url), ("api_key", api_key)) if v}

    def provider(kind: str) -> Any:
        if not given:
            return infer_provider(kind)
        cls: Any = infer_provider_class(kind)
        try:
            return cls(**given)
        except TypeError:
            raise ConfigError(
                f"The provider {kind!r} of pydantic-ai takes no {' and no '.join(given)}.",
                next="Make the model in Python and hand it over: BridgeModel(model).",
            ) from None

    try:
        model = infer_model(name, provider)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - each provider class has its own
        raise opening_fault(error, name) from None
    return BridgeModel(model, name=f"bridge:{name}")
