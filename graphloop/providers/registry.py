"""The table of model services by name, each with its wire format.

A new service needs a row in `SERVICES`; a new wire format also needs its own package. A wire's
modules and httpx are imported only for a model that needs them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast, final
from urllib.parse import urlsplit

from ..errors import ConfigError, nearest
from ..values import ToolSpec
from .base import ApiKey, Provider, Wire

if TYPE_CHECKING:  # These modules import httpx, which is slow.
    from .retries import Retries
    from .script import ScriptedModel
    from .timeouts import Timeouts

__all__ = [
    "SERVICES",
    "Access",
    "Service",
    "accessed",
    "check_tools",
    "connect",
    "resolve",
    "service_of",
    "usual_model",
]

ANTHROPIC: Final = ".anthropic.wire:AnthropicMessages"
OPENAI_CHAT: Final = ".openai_chat.wire:OpenAIChat"


@final
@dataclass(frozen=True, slots=True)
class Service:
    """A model service that a label such as `"openai:NAME"` selects, and its settings.

    Args:
        wire: the class of the service's wire format, as `module:class`.
        base_url: the default URL of the server.
        key_variable: the environment variable that holds the API key.
        url_variable: the environment variable that overrides `base_url`.
        quirks: keyword arguments for the wire class, such as `finish_words` for finish reasons
            that only this server sends.
        keeps_output: whether the server enforces the output schema of a request.
        usual_model: the default model of the command line; empty for none.
        output_limits: `module:function` that describes the part of an output schema that the server
            refuses; empty for a server that accepts every schema.
    """

    wire: str
    base_url: str
    key_variable: str
    url_variable: str = ""
    quirks: Mapping[str, object] = field(default_factory=dict[str, object])
    keeps_output: bool = True
    usual_model: str = ""
    output_limits: str = ""

    def model(self, name: str) -> Wire:
        """Return the service's wire format for the model `name`."""
        return cast("Wire", _load(self.wire)(name, **self.quirks))

    def refused_output(self, schema: str, *, place: str) -> str:
        """Describe the part of `schema` that the server refuses; empty if it accepts the schema.

        Raises:
            ConfigError: `schema` is not a JSON object; the message names `place`.
        """
        if not self.output_limits:
            return ""
        return cast("str", _load(self.output_limits)(schema, place=place))


SERVICES: Final[dict[str, Service]] = {
    "anthropic": Service(
        wire=ANTHROPIC,
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        usual_model="claude-opus-4-8",
        output_limits=".anthropic.output_schema:refused_part",
    ),
    "openai": Service(
        wire=OPENAI_CHAT,
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        usual_model="gpt-5",
    ),
}
"""The services by name, which is the part of the label `"service:model"` before the colon."""

SPEAK_CHAT: Final[Mapping[str, str]] = {
    "deepseek": "https://api.deepseek.com/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "lmstudio": "http://localhost:1234/v1",
    "mistral": "https://api.mistral.ai/v1",
    "ollama": "http://localhost:11434/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "together": "https://api.together.xyz/v1",
    "vllm": "http://localhost:8000/v1",
    "xai": "https://api.x.ai/v1",
}
"""Services without a row of their own that speak chat completions, with the URL to ask them at.

The URLs are those that each service's own page on its OpenAI-compatible API names.
"""

SCRIPT: Final = "script"


def service_of(label: str) -> Service | None:
    """Return the service of a model label such as `"openai:NAME"`, or None if it is unknown."""
    return SERVICES.get(label.partition(":")[0])


def usual_model(environ: Mapping[str, str], *, own_server: bool = False) -> str:
    """Return the label of a default model for which `environ` has an API key or a URL.

    The label is empty if there is none. With `own_server`, the model is the default model of the
    most common wire format, whatever `environ` holds.
    """
    for name, service in SERVICES.items():
        named = environ.get(service.key_variable) or environ.get(service.url_variable)
        if service.usual_model and (service.wire == OPENAI_CHAT if own_server else named):
            return f"{name}:{service.usual_model}"
    return ""


class Access(TypedDict, total=False):
    """Access to a model that is given by name; None for the default.

    `api_key`: the API key, or a function that returns it; takes precedence over the key in the
    environment. A function, also an asynchronous one, is called before each attempt at a model
    call, and again after the server's first refusal of a key (401).
    `base_url`: the server's URL; takes precedence over the URL in the environment. A server other
    than the service's own needs no key, but gets the environment's key if there is one.
    `timeouts`: the time limits of a model call; `Timeouts()` by default.
    `retries`: the retry rules of a model call; `Retries()` by default.
    `headers`: further HTTP headers of each request, which are never shown.
    `query`: further fields of each request's URL, such as `{"api-version": "2024-10-21"}`.
    """

    api_key: ApiKey | None
    base_url: str | None
    timeouts: Timeouts | None
    retries: Retries | None
    headers: Mapping[str, str] | None
    query: Mapping[str, str] | None


def connect(model: str, **access: Unpack[Access]) -> Provider:
    """Return a model with access of its own, which several agents can share.

        azure = connect("openai:gpt-5", base_url=url, api_key=token, query={"api-version": "v1"})
        agent = Agent(azure, fallback_models=["anthropic:claude-opus-4-8"])

    Keys and URLs that are not given come from the environment. Call `aclose` of the result, or
    `Agent.aclose`, when the model is no longer needed.

    Args:
        model: `"service:NAME"`, such as `"openai:gpt-5"`.
        access: see `Access`.

    Raises:
        ConfigError: the label is unknown, the key is missing, or an option would have no effect.
    """
    return resolve(model, environ=os.environ, **access)


def resolve(
    model: str | Provider, *, environ: Mapping[str, str], **access: Unpack[Access]
) -> Provider:
    """Return the provider for a model label, or `model` itself if it is a provider.

    Args:
        model: `"anthropic:NAME"`, `"openai:NAME"`, `"script:PATH"`, or a provider.
        environ: the environment variables, usually `os.environ`.
        access: see `Access`.

    Raises:
        ConfigError: the label is unknown, the key is missing, or an option would have no effect.
        ScriptError: the script file cannot be read, or is not a valid script.
    """
    if not isinstance(model, str):
        _refuse(access, "a ready provider has its own")
        return model
    prefix, _, name = model.partition(":")
    if prefix == SCRIPT and name:
        _refuse(access, "a script asks no server")
        return cast("type[ScriptedModel]", _load(".script:ScriptedModel")).from_file(name)
    service = SERVICES.get(prefix)
    if service is None or not name:
        raise _unknown(model)
    url = access.get("base_url") or environ.get(service.url_variable) or service.base_url
    key = access.get("api_key") or environ.get(service.key_variable) or ""
    if not key and urlsplit(url).hostname == urlsplit(service.base_url).hostname:
        raise ConfigError(
            f"model {model!r}: expected an API key, found none. Fix: set {service.key_variable}, "
            "or pass api_key=..., or run without a key: model='script:replies.yaml' answers from a "
            "file, base_url='http://localhost:8080/...' asks a server of your own."
        )
    headers, query = access.get("headers"), access.get("query")
    endpoint = _load(".endpoint:Endpoint")(url, key, {**(headers or {})}, {**(query or {})})
    limits = {option: access.get(option) for option in ("timeouts", "retries")}
    provider = _load(".http:HttpProvider")(service.model(name), endpoint, label=model, **limits)
    return cast("Provider", provider)


def accessed(provider: Provider, access: Mapping[str, object]) -> Provider:
    """Return a provider with other `timeouts` or `headers`, and the same connections.

    Raises:
        ConfigError: the provider sends no HTTP requests of graphloop, so both would have no effect.
    """
    changed = getattr(provider, "accessed", None)
    if changed is None:
        _refuse(access, f"{provider.label!r} is no model of graphloop's own HTTP client")
    return cast("Callable[..., Provider]", changed)(
        timeouts=access.get("timeouts"), headers=access.get("headers")
    )


def check_tools(provider: Provider, tools: Iterable[ToolSpec]) -> None:
    """Refuse the tools that no request to a model can carry, before any request is sent.

    A provider of the caller's own is asked only if it has a method `check_tool(spec)`.

    Raises:
        ConfigError: a tool belongs to another wire format than the model's; the message names both.
    """
    check: Callable[[ToolSpec], None] | None = getattr(provider, "check_tool", None)
    if check is not None:
        for tool in tools:
            check(tool)


def _load(place: str) -> Callable[..., Any]:
    """Import the class or function at `module:name`, relative to this package."""
    module, _, name = place.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module, __package__), name))


def _refuse(options: Mapping[str, object], reason: str) -> None:
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise ConfigError(f"{' and '.join(names)} would have no effect: {reason}. Leave it out.")


def _unknown(model: str) -> ConfigError:
    prefix = model.partition(":")[0]
    prefixes = (*SERVICES, SCRIPT)
    forms = ", ".join([*[f"'{name}:NAME'" for name in SERVICES], f"'{SCRIPT}:PATH'"])
    found = f"model: expected a provider or one of {forms}, found {model!r}."
    if (url := SPEAK_CHAT.get(prefix)) is not None:
        name = model.partition(":")[2] or "NAME"
        return ConfigError(
            f"{found} {prefix!r} speaks chat completions. Fix: model='openai:{name}', "
            f"base_url='{url}', and api_key=... if the server needs a key."
        )
    hint = " The name is empty." if prefix in prefixes else nearest(prefix, prefixes)
    return ConfigError(
        f"{found}{hint} Fix: name one of them. Many other services speak chat completions: "
        "'openai:NAME' with base_url=... asks them."
    )
