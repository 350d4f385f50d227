"""From a model's name to its provider, and every way not to get there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from graphloop.errors import ConfigError, ScriptError
from graphloop.providers.base import ServerEvent
from graphloop.providers.finish_words import FinishWord
from graphloop.providers.http import HttpProvider
from graphloop.providers.registry import connect, resolve
from graphloop.providers.retries import Retries
from graphloop.providers.script import ScriptedModel
from graphloop.providers.services import OPENAI_CHAT, SERVICES, Service, service_of, usual_model
from graphloop.providers.timeouts import Timeouts
from graphloop.values import FinishReason, ModelRequest, Reply, Settings, UserMessage
from tests.echo_wire import EchoWire
from tests.transcripts import heard
from tests.wire_server import Answer, WireServer, sse

LOCAL = "http://localhost:8080/v1"
CHAT = sse(
    '{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}',
    '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
    "[DONE]",
)


@pytest.mark.parametrize(
    ("model", "environ", "base_url"),
    [
        ("anthropic:m", {"ANTHROPIC_API_KEY": "key-1"}, "https://api.anthropic.com"),
        ("openai:m", {"OPENAI_API_KEY": "key-1"}, "https://api.openai.com/v1"),
        ("openai:a/m:free", {"OPENAI_BASE_URL": LOCAL}, LOCAL),
        ("anthropic:m", {"ANTHROPIC_BASE_URL": LOCAL}, LOCAL),
        ("ollama:m", {}, "http://localhost:11434/v1"),
        ("ollama:m", {"OLLAMA_BASE_URL": LOCAL}, LOCAL),
        (
            "azure:m",
            {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k"},
            "https://a.openai.azure.com/openai/v1",
        ),
    ],
)
def test_a_name_and_the_usual_environment_make_a_provider(
    model: str, environ: Mapping[str, str], base_url: str
) -> None:
    """A server of one's own needs no key."""
    provider = resolve(model, environ=environ)

    assert isinstance(provider, HttpProvider)
    assert provider.label == model
    assert provider.wire.model == model.partition(":")[2]
    assert f"base_url={base_url!r}" in repr(provider)


async def test_an_argument_wins_over_the_environment() -> None:
    """And key and URL reach the server."""
    async with WireServer([Answer(CHAT)]) as server:
        provider = resolve(
            "openai:m",
            api_key="mine",
            base_url=server.url,
            environ={"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "http://127.0.0.1:1"},
        )
        stream = provider.session().stream(ModelRequest((UserMessage("Hello"),)))
        reply = [part async for part in stream][-1]
        await provider.aclose()
        assert isinstance(reply, Reply)
        assert reply.message.text == "Hi"
        assert server.requests[0].path == "/chat/completions"
        assert server.requests[0].headers["authorization"] == "Bearer mine"


def test_limits_and_retries_reach_the_provider() -> None:
    """Both are the caller's to choose."""
    limits, once = Timeouts(total_s=7), Retries(attempts_max=1)

    provider = resolve("openai:m", base_url=LOCAL, timeouts=limits, retries=once, environ={})

    assert isinstance(provider, HttpProvider)
    assert (provider.timeouts, provider.retries) == (limits, once)


def test_a_row_makes_a_new_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address, its key and its quirks are all that a compatible server needs."""
    acme = Service(
        wire=OPENAI_CHAT,
        base_url="https://acme.test/v1",
        key_variable="ACME_KEY",
        quirks={
            "max_tokens_field": "max_tokens",
            "finish_words": {"fin": FinishWord(FinishReason.STOP, "Acme")},
        },
    )
    monkeypatch.setitem(SERVICES, "acme", acme)

    provider = resolve("acme:gpt-5", environ={"ACME_KEY": "key-1"})

    assert isinstance(provider, HttpProvider)
    assert "base_url='https://acme.test/v1'" in repr(provider)
    request = ModelRequest((UserMessage("Hi"),), settings=Settings(max_tokens=7))
    assert b'"max_tokens":7' in b"".join(provider.wire.encoder().encode(request))
    event = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "fin"}]}
    _, reply = heard(provider.wire, [ServerEvent("", json.dumps(event).encode())])
    assert reply.finish_reason is FinishReason.STOP
    assert service_of("acme:m") is acme
    assert acme.refused_output("{}", place="here") == ""
    refused = SERVICES["anthropic"].refused_output('{"type":"object"}', place="here")
    assert "which Anthropic's API does not take" in refused
    with pytest.raises(ConfigError, match="set ACME_KEY"):
        resolve("acme:m", environ={})


def test_a_class_and_a_row_make_a_new_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other file of the package names the wires that there are."""

    class PlainWire(EchoWire):
        def __init__(self, model: str) -> None:
            self.model = model

    module = ModuleType("graphloop.providers.plain")
    vars(module)["PlainWire"] = PlainWire
    monkeypatch.setitem(sys.modules, module.__name__, module)
    row = Service(wire=".plain:PlainWire", base_url="https://plain.test", key_variable="K")
    monkeypatch.setitem(SERVICES, "plain", row)

    provider = resolve("plain:m", api_key="k", environ={})

    assert isinstance(provider, HttpProvider)
    assert isinstance(provider.wire, PlainWire)
    assert provider.wire.model == "m"


@pytest.mark.parametrize(
    ("environ", "own_server", "label"),
    [
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, False, "anthropic:claude-opus-4-8"),
        ({"OPENAI_BASE_URL": LOCAL}, False, "openai:gpt-5"),
        ({"ANTHROPIC_API_KEY": "k"}, True, "openai:gpt-5"),
        ({}, False, ""),
    ],
)
def test_the_environment_names_the_usual_model(
    environ: Mapping[str, str], own_server: bool, label: str
) -> None:
    """The command line asks it where no model is named."""
    assert usual_model(environ, own_server=own_server) == label


def test_a_script_is_a_model(tmp_path: Path) -> None:
    """The way to run without a key."""
    path = tmp_path / "replies.yaml"
    path.write_text("- one\n", encoding="utf-8")

    model = resolve(f"script:{path}", environ={})

    assert isinstance(model, ScriptedModel)
    assert model.label == f"script:{path}"
    with pytest.raises(ScriptError):
        resolve(f"script:{tmp_path}/none.yaml", environ={})


def test_a_provider_is_taken_as_it_is() -> None:
    """Whoever brings their own needs no name for it."""
    model = ScriptedModel(["one"])

    assert resolve(model, environ={}) is model


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("antropic:m", r"'script:PATH', .*anthropic, openai, .*mean 'anthropic'\?"),
        ("claude-opus", r"expected a provider, .*, found 'claude-opus'\. Fix"),
        ("openai", r"found 'openai'\. The name is empty"),
        ("openai:", r"found 'openai:'\. The name is empty"),
        ("script:", r"found 'script:'\. The name is empty"),
        ("", r"found ''\. Fix"),
        ("gemini:gemini-3-flash", r"found 'gemini:.*mean 'google'\?"),
        ("google:m", r"GEMINI_API_KEY.*api_key=.*script:"),
        ("anthropic:m", r"ANTHROPIC_API_KEY.*api_key=.*script:"),
        ("openai:m", r"OPENAI_API_KEY.*api_key=.*script:"),
        ("groq:m", r"GROQ_API_KEY.*api_key=.*script:"),
        ("azure:m", r"environment variable AZURE_OPENAI_ENDPOINT .*base_url="),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_with_a_way_out(model: str, says: str) -> None:
    """Before anything is sent, and with what to write instead."""
    with pytest.raises(ConfigError, match=says):
        resolve(model, environ={"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""})


def test_options_without_effect_are_refused() -> None:
    """An option takes effect or complains."""
    with pytest.raises(ConfigError, match="api_key would have no effect"):
        resolve(ScriptedModel([]), api_key="key", environ={})
    with pytest.raises(ConfigError, match="timeouts and retries would"):
        resolve(ScriptedModel([]), timeouts=Timeouts(), retries=Retries(), environ={})
    with pytest.raises(ConfigError, match="api_key and base_url would have no effect: a script"):
        resolve("script:replies.yaml", api_key="key", base_url=LOCAL, environ={})


def test_the_registry_imports_no_wire_and_no_httpx() -> None:
    """Only who asks a server pays for asking servers."""
    program = (
        "import sys; from graphloop.providers import registry; "
        "print([name for name in sys.modules if name in ('httpx', 'yaml') "
        "or name.startswith('graphloop.providers.')])"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert told.stdout.decode().strip() == str(
        ["graphloop.providers.base", "graphloop.providers.services", "graphloop.providers.registry"]
    )


def test_an_option_that_no_model_has_is_refused() -> None:
    """A misspelt address would send the conversation and the key to the service's own server."""
    misspelt = {"base_ur": "http://localhost:1", "api_key": "k"}
    with pytest.raises(ConfigError, match=r"`base_ur`.*Did you mean 'base_url'"):
        connect("openai:m", **misspelt)  # type: ignore[arg-type]
