"""From names to models."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lorimer.core.errors import AuthenticationFailed, ConfigError, UnknownModel
from lorimer.models.profiles import families, profile_for
from lorimer.models.registry import KEY_ORDER, LOCAL_DEFAULT, default_model, key_variables, resolve

NO_OLLAMA = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("name", "wire", "url", "model"),
    [
        ("openai:gpt-5", "openai_chat", "https://api.openai.com/v1", "gpt-5"),
        ("openai-responses:gpt-5", "openai_responses", "https://api.openai.com/v1", "gpt-5"),
        ("anthropic:claude-opus-5", "anthropic", "https://api.anthropic.com/v1", "claude-opus-5"),
        (
            "gemini:gemini-3.8-flash",
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            "gemini-3.8-flash",
        ),
        ("google:x", "gemini", "https://generativelanguage.googleapis.com/v1beta", "x"),
        ("deepseek:deepseek-flash", "openai_chat", "https://api.deepseek.com", "deepseek-flash"),
        ("xai:grok-4.7", "openai_chat", "https://api.x.ai/v1", "grok-4.7"),
        ("moonshot:kimi-k3", "openai_chat", "https://api.moonshot.ai/v1", "kimi-k3"),
        ("openrouter:a/b:free", "openai_chat", "https://openrouter.ai/api/v1", "a/b:free"),
        ("anthropic:", "anthropic", "https://api.anthropic.com/v1", "claude-sonnet-5-5"),
    ],
)
def test_provider_names(name: str, wire: str, url: str, model: str) -> None:
    made = resolve(name, api_key="k")
    assert made.profile.wire == wire
    assert made._http.base_url == url  # type: ignore[attr-defined]
    assert made.model == model  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "url", "model"),
    [
        ("ollama:qwen3:8b", "http://127.0.0.1:11434/v1", "qwen3:8b"),
        ("llamacpp:", "http://127.0.0.1:8080/v1", "default"),
        ("llamacpp:http://10.0.0.5:8080", "http://10.0.0.5:8080/v1", "default"),
        ("vllm:http://gpu:8000/v1/#Qwen/Qwen3", "http://gpu:8000/v1", "Qwen/Qwen3"),
        ("http://127.0.0.1:1234/v1#phi", "http://127.0.0.1:1234/v1", "phi"),
        ("https://example.org/api/v1#m", "https://example.org/api/v1", "m"),
    ],
)
def test_local_servers_and_urls_need_no_key(name: str, url: str, model: str) -> None:
    made = resolve(name, environ={"OPENAI_API_KEY": "sk-secret-secret"})
    assert made._http.base_url == url  # type: ignore[attr-defined]
    assert made.model == model  # type: ignore[attr-defined]
    # The key of a vendor is never sent to another server.
    assert "sk-secret" not in str(made._http._headers)  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", list(KEY_ORDER))
def test_a_missing_key_names_its_variable(family: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        resolve(f"{family}:m", environ={})
    for variable in key_variables(family):
        assert variable in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("antropic:claude-opus-5", "anthropic:claude-opus-5"),
        ("opnai:gpt-5.6-terra", "openai:gpt-5.6-terra"),
        ("gpt-5.6-terra", "openai:gpt-5.6-terra"),
        ("olama:qwen3", "ollama:"),
        ("qwen2.5-coder-15b", "qwen2.5-coder-1.5b"),
    ],
)
def test_an_unknown_name_offers_near_ones(name: str, near: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        resolve(name, environ={})
    assert near in str(caught.value)


def test_a_name_like_nothing_says_how_names_look() -> None:
    with pytest.raises(UnknownModel, match="PROVIDER:MODEL"):
        resolve("zzzzzzzzzz:zzz", environ={})


@pytest.mark.parametrize("url", ["ftp://x/v1", "nonsense", "http://", "http://x:99999"])
def test_a_wrong_base_url_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError):
        resolve("openai:gpt-5", api_key="k", base_url=url)


@pytest.mark.parametrize("family", KEY_ORDER)
def test_a_key_in_the_environment_chooses_its_provider(family: str) -> None:
    for variable in key_variables(family):
        found = default_model(environ={variable: "k"}, ollama_url=NO_OLLAMA)
        assert found.name == f"{family}:{profile_for(family).default_model}"
        assert variable in found.why and not found.needs_download
        assert resolve(found.name, environ={variable: "k"}).profile.name == family


@pytest.mark.parametrize("there", [True, False])
def test_without_key_and_ollama_the_local_default(there: bool) -> None:
    found = default_model(environ={}, ollama_url=NO_OLLAMA, local_file_present=lambda _: there)
    assert (found.name, found.needs_download) == (LOCAL_DEFAULT, not there)


@pytest.fixture
def ollama() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/api/tags"
            body = json.dumps({"models": [{"name": "qwen3:8b"}, {"name": "other"}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_running_ollama_is_found(ollama: str) -> None:
    found = default_model(environ={"OLLAMA_HOST": ollama})
    assert found.name == "ollama:qwen3:8b"
    assert "Ollama" in found.why


def test_every_family_is_complete() -> None:
    wires = {"openai_chat", "openai_responses", "anthropic", "gemini"}
    for family in families():
        profile = profile_for(family)
        assert profile.wire in wires
        assert {"input_tokens", "output_tokens"} <= set(profile.usage_fields)
        assert profile.base_url or family == "compatible"
        assert profile.reasoning in ("keep", "turn", "drop")
        assert profile.sources or family == "compatible"
