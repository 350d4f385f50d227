"""The registry: services by name, each with its wire.

A new wire is a folder, and a row for its first service; a new service of a known wire is a row. A
wire, and httpx, are imported only for a model that needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast, final
from urllib.parse import urlsplit

from ..errors import ConfigError, nearest
from .base import Provider, Wire

if TYPE_CHECKING:  # These load httpx.
    from .retries import Retries
    from .script import ScriptedModel
    from .timeouts import Timeouts

__all__ = ["SERVICES", "Service", "resolve", "service_of", "usual_model"]

ANTHROPIC: Final = ".anthropic.wire:AnthropicMessages"
OPENAI_CHAT: Final = ".openai_chat.wire:OpenAIChat"


@final
@dataclass(frozen=True, slots=True)
class Service:
    """A server that a name leads to, and its differences.

    Args:
        wire: the class of the wire that it speaks, as `module:class`.
        base_url: the URL of the server.
        key_variable: the environment variable of the key.
        url_variable: the environment variable of another server's URL.
        quirks: keyword arguments of the wire's class, such as `finish_words` for words that only
            this server sends.
        keeps_output: whether the server keeps an answer to the form that a request names.
        usual_model: the model that a command line asks where none is named; empty for none.
        output_limits: `module:function` that names the part of a JSON Schema which the server
            refuses as that form; empty for a server that takes every schema.
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
        """Return the wire, bound to the model of this name."""
        return cast("Wire", _load(self.wire)(name, **self.quirks))

    def refused_output(self, schema: str, *, place: str) -> str:
        """Return the part of `schema` that the server refuses, or nothing.

        Raises:
            ConfigError: `schema` is no JSON object; the message names `place`.
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
"""The services by the name that stands before the colon of `"service:model"`."""

SCRIPT: Final = "script"


def service_of(label: str) -> Service | None:
    """Return the service that a model's label names, or None."""
    return SERVICES.get(label.partition(":")[0])


def usual_model(environ: Mapping[str, str], *, own_server: bool = False) -> str:
    """Return the label of the model that the environment has a key or a URL for.

    Empty if there is none. An `own_server` is asked on the wire that most servers speak.
    """
    for name, service in SERVICES.items():
        named = environ.get(service.key_variable) or environ.get(service.url_variable)
        if service.usual_model and (service.wire == OPENAI_CHAT if own_server else named):
            return f"{name}:{service.usual_model}"
    return ""


def resolve(
    model: str | Provider,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
    environ: Mapping[str, str],
) -> Provider:
    """Return the provider that `model` names or is.

    Args:
        model: `"anthropic:NAME"`, `"openai:NAME"`, `"script:PATH"`, or a provider.
        api_key: wins over the environment's.
        base_url: wins over the environment's. A server other than the service's own needs no key,
            but gets the key of the environment if there is one.
        timeouts: the limits of one model call; `Timeouts()` by default.
        retries: how often one model call may be sent; `Retries()` by default.
        environ: usually `os.environ`.

    Raises:
        ConfigError: the name is unknown, the key is missing, or an option would have no effect.
        ScriptError: the script cannot be read.
    """
    options = {"api_key": api_key, "base_url": base_url, "timeouts": timeouts, "retries": retries}
    if not isinstance(model, str):
        _refuse(options, "a ready provider has its own")
        return model
    prefix, _, name = model.partition(":")
    if prefix == SCRIPT and name:
        _refuse(options, "a script asks no server")
        return cast("type[ScriptedModel]", _load(".script:ScriptedModel")).from_file(name)
    service = SERVICES.get(prefix)
    if service is None or not name:
        raise _unknown(model)
    url = base_url or environ.get(service.url_variable) or service.base_url
    key = api_key or environ.get(service.key_variable) or ""
    if not key and urlsplit(url).hostname == urlsplit(service.base_url).hostname:
        raise ConfigError(
            f"model {model!r}: expected an API key, found none. Fix: set {service.key_variable}, "
            "or pass api_key=..., or run without a key: model='script:replies.yaml' answers from a "
            "file, base_url='http://localhost:8080/...' asks a server of your own."
        )
    endpoint = _load(".http:Endpoint")(url, key)
    provider = _load(".http:HttpProvider")(
        service.model(name), endpoint, label=model, timeouts=timeouts, retries=retries
    )
    return cast("Provider", provider)


def _load(place: str) -> Callable[..., Any]:
    """Return the class or function at `module:name` of this room."""
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
    hint = " The name is empty." if prefix in prefixes else nearest(prefix, prefixes)
    return ConfigError(
        f"model: expected a provider or one of {forms}, found {model!r}.{hint} Fix: name one of "
        "them. Many other services speak chat completions: 'openai:NAME' with base_url=... asks "
        "them."
    )
