"""From a model's name to a model.

openai:gpt-5.6-terra        a provider and its model
ollama:qwen3                a local server at its usual address
llamacpp:http://host:8080   a server by address; `#model` behind it where it serves several
https://host/v1#model       any server that speaks the chat wire
bridge:mistral:NAME         a provider and its model as pydantic-ai names them (extra `bridge`)
qwen2.5-coder-1.5b          a local model (`lorimer models list`), or the path of a GGUF file
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from lorimer.core.errors import AuthenticationFailed, ConfigError, UnknownModel
from lorimer.models.profiles import families, known_models, profile_for

if TYPE_CHECKING:
    from lorimer.models.http import Tap
    from lorimer.models.protocol import Model
    from lorimer.models.wire_model import WireModel

LOCAL_DEFAULT = "qwen2.5-coder-1.5b"
KEY_ORDER = ("openai", "anthropic", "gemini", "deepseek", "xai", "moonshot", "mistral")
"""Whose key is looked for first when no model is named. Groq and OpenRouter have no default model:
what they serve changes too often."""

_ALIASES = {"google": "gemini", "llama.cpp": "llamacpp", "kimi": "moonshot", "grok": "xai",
            "chatgpt": "openai", "claude": "anthropic"}  # fmt: skip
_KEY_ALIASES = {"gemini": ("GOOGLE_API_KEY",)}
_KEYLESS = frozenset({"ollama", "vllm", "llamacpp", "compatible"})
_WIRES = {
    "openai_chat": ("lorimer.models.openai_chat", "OpenAIChat"),
    "openai_responses": ("lorimer.models.openai_responses", "OpenAIResponses"),
    "anthropic": ("lorimer.models.anthropic", "Anthropic"),
    "gemini": ("lorimer.models.gemini", "Gemini"),
}


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """What is used when no model is named: its name, why it was chosen, and whether its file must
    be downloaded first."""

    name: str
    why: str
    needs_download: bool = False


def resolve(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tap: Tap | None = None,
    environ: Mapping[str, str] | None = None,
) -> Model:
    """The model called `name`, see the top of this module. Nothing is sent yet.

    Args:
        base_url: instead of the provider's own address.
        api_key: instead of the one in the environment.
        tap: called with the exact body of each request before it is sent.
        environ: where keys are looked for; the process environment by default.

    Raises:
        UnknownModel: for a provider or local model that does not exist, with near names.
        AuthenticationFailed: when the provider needs a key and there is none.
        ConfigError: when the base URL is none; for a tap on the bridge, whose bytes are not ours.
        MissingExtra: for `bridge:…` without pydantic-ai.
    """
    env = os.environ if environ is None else environ
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        return _open("compatible", model or "default", name, url, api_key, tap, env)
    family, colon, model = name.partition(":")
    if not colon:
        return _open_local(name)
    if family == "bridge":
        return _open_bridge(model, base_url, api_key, tap)
    family = _ALIASES.get(family, family)
    if family not in families() or family == "compatible":
        raise _unknown(f"{name!r} names no provider that is known.", name, family)
    if model.startswith(("http://", "https://")):
        address, _, model = model.partition("#")
        base_url = base_url or _with_version(address)
    model = model or profile_for(family).default_model or _only_model(family)
    if not model:
        raise UnknownModel(
            f"{name!r} says no model.", next=f"Write {family}:MODEL, with a model it serves."
        )
    return _open(family, model, f"{family}:{model}", base_url or "", api_key, tap, env)


def key_variables(family: str) -> tuple[str, ...]:
    """The environment variables in which a key for `family` is looked for, in order."""
    own = profile_for(family).key_env
    return ((own,) if own else ()) + _KEY_ALIASES.get(family, ())


def default_model(
    *,
    environ: Mapping[str, str] | None = None,
    ollama_url: str | None = None,
    local_file_present: Callable[[str], bool] | None = None,
) -> DefaultModel:
    """What to use when no model is named: a key in the environment, else a running Ollama, else the
    local default.

    Args:
        ollama_url: where Ollama is looked for; by default `OLLAMA_HOST`, else 127.0.0.1:11434.
        local_file_present: whether the file of a local model is there.
    """
    env = os.environ if environ is None else environ
    for family in KEY_ORDER:
        for variable in key_variables(family):
            if env.get(variable):
                model = profile_for(family).default_model
                return DefaultModel(f"{family}:{model}", f"{variable} is set")
    url = ollama_url or _ollama_url(env.get("OLLAMA_HOST", ""))
    first = _first_ollama_model(url)
    if first:
        return DefaultModel(f"ollama:{first}", f"Ollama is running at {url}")
    present = (local_file_present or _local_file_present)(LOCAL_DEFAULT)
    why = "no key is set and no Ollama is running"
    return DefaultModel(LOCAL_DEFAULT, why, needs_download=not present)


def _open(
    family: str,
    model: str,
    name: str,
    base_url: str,
    api_key: str | None,
    tap: Tap | None,
    env: Mapping[str, str],
) -> Model:
    profile = profile_for(family, model)
    variables = key_variables(family)
    key = api_key or next((env[v] for v in variables if env.get(v)), "")
    if not key and family not in _KEYLESS:
        raise AuthenticationFailed(
            f"{name} needs a key, and there is none.",
            next=f"Set the environment variable {' or '.join(variables)}.",
        )
    module, cls = _WIRES[profile.wire]
    adapter = cast("type[WireModel]", getattr(import_module(module), cls))
    return adapter(model, profile, name=name, base_url=base_url, api_key=key, tap=tap)


def _open_bridge(name: str, base_url: str | None, api_key: str | None, tap: Tap | None) -> Model:
    if tap is not None:
        raise ConfigError(
            "The bytes of a request over the bridge are pydantic-ai's: they cannot be tapped.",
            next="Use a provider that lorimer speaks to itself.",
        )
    bridge = import_module("lorimer.models.bridge")
    return cast("Model", bridge.open_bridge(name, base_url=base_url, api_key=api_key))


def _with_version(address: str) -> str:
    """A bare server address with the path under which all of these servers serve the chat wire."""
    address = address.rstrip("/")
    return address if address.count("/") > 2 else address + "/v1"


def _only_model(family: str) -> str:
    # llama.cpp serves what it was started with, whatever the request says.
    return "default" if family == "llamacpp" else ""


def _open_local(name: str) -> Model:
    local = _local_module("lorimer.models.local")
    if local is None or not local.looks_local(name):
        raise _unknown(f"There is no model {name!r}.", name, name)
    return cast("Model", local.open_local(name))


def _local_module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return None  # This build has no local models.
        raise


def _local_names() -> tuple[str, ...]:
    catalogue = _local_module("lorimer.models.local.catalogue")
    return () if catalogue is None else tuple(catalogue.names())


def _local_file_present(name: str) -> bool:
    catalogue = _local_module("lorimer.models.local.catalogue")
    return catalogue is not None and bool(catalogue.is_present(catalogue.MODELS[name]))


def _unknown(message: str, name: str, family: str) -> UnknownModel:
    known = [f"{f}:{m}" for f in families() for m in known_models(f)]
    providers = [f"{f}:" for f in families() if f != "compatible"] + [f"{a}:" for a in _ALIASES]
    near = [full for full in known if full.partition(":")[2] == name]  # The provider was left out.
    near += get_close_matches(name, [*known, *_local_names()], n=3, cutoff=0.6)
    near += get_close_matches(f"{family}:", providers, n=3, cutoff=0.6)
    near = list(dict.fromkeys(near))[:3]
    hint = (
        f"Did you mean {', '.join(near)}?"
        if near
        else "Name a model as PROVIDER:MODEL, a local one by `lorimer models list`, or a server by "
        "its URL."
    )
    return UnknownModel(message, next=hint)


def _ollama_url(host: str) -> str:
    host = host.strip() or "127.0.0.1:11434"
    url = host if "://" in host else f"http://{host}"
    # A server that listens everywhere is reached on this machine.
    return url.replace("//0.0.0.0", "//127.0.0.1").rstrip("/")


def _first_ollama_model(url: str) -> str:
    """The first model that a running Ollama lists (GET /api/tags); empty when none is running."""
    import httpx2

    try:
        with httpx2.Client(timeout=0.5, trust_env=False) as client:
            answer = client.get(f"{url}/api/tags")
            models = answer.json()["models"] if answer.status_code == 200 else []
            return str(models[0]["name"]) if models else ""
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError):
        return ""
