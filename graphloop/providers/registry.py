"""From a `"provider:model"` string to the provider it names.

Holds the table of names, hosts and environment variables. Imports a wire, and httpx, only for a
model that needs them: a caller with a provider of its own loads neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from ..errors import ConfigError, nearest
from .base import Provider, Wire

if TYPE_CHECKING:  # A caller with a provider of its own loads neither.
    from .retries import Retries
    from .timeouts import Timeouts

__all__ = ["WireEntry", "resolve", "wire_of"]


@dataclass(frozen=True, slots=True)
class WireEntry:
    """A wire's class, its server's URL and variables, and what that server does.

    Args:
        module: where the wire's class is.
        name: the class.
        base_url: the URL of the provider's own server.
        key_variable: the environment variable of the key.
        url_variable: the environment variable of another server's URL.
        takes_output: whether a request says the form of the answer, and the server keeps to it.
        strict_server: the server, where it refuses parts of JSON Schema as that form.
        is_priced: whether a known table prices the provider's models.
    """

    module: str
    name: str
    base_url: str
    key_variable: str
    url_variable: str
    takes_output: bool
    strict_server: str = ""
    is_priced: bool = True


_WIRES: Mapping[str, WireEntry] = {
    "anthropic": WireEntry(
        module=".anthropic.wire",
        name="AnthropicMessages",
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        takes_output=True,
        strict_server="Anthropic's API",
    ),
    "openai": WireEntry(
        module=".openai_chat.wire",
        name="OpenAIChat",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        takes_output=True,
    ),
}

_PLANNED = ("openai-responses", "google")
_SCRIPT = "script"


def wire_of(label: str) -> WireEntry | None:
    """Return the wire that a model's label names; None for a provider without one."""
    return _WIRES.get(label.partition(":")[0])


def resolve(
    model: str | Provider,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
    environ: Mapping[str, str],
) -> Provider:
    """Return the provider that `model` names, or `model` itself if it is one.

    Args:
        model: `"anthropic:NAME"`, `"openai:NAME"`, `"script:PATH"`, or a provider.
        api_key: wins over the environment's.
        base_url: wins over the environment's. A server other than the provider's own needs no key,
            but gets the one in the environment if there is one.
        timeouts: the limits of one model call; `Timeouts()` by default.
        retries: how often one model call may be sent; `Retries()` by default.
        environ: usually `os.environ`.

    Raises:
        ConfigError: the name is unknown, the key is missing, or an option would have no effect.
        ScriptError: the script cannot be read.
    """
    options = {
        "api_key": api_key,
        "base_url": base_url,
        "timeouts": timeouts,
        "retries": retries,
    }
    if not isinstance(model, str):
        _refuse(options, "a ready provider has its own")
        return model
    prefix, colon, name = model.partition(":")
    if prefix == _SCRIPT and name:
        _refuse(options, "a script asks no server")
        return _scripted(name)
    entry = _WIRES.get(prefix)
    if entry is None or not name:
        raise _unknown(model, prefix if colon else "")
    url = base_url or environ.get(entry.url_variable) or entry.base_url
    key = api_key or environ.get(entry.key_variable) or ""
    if not key and urlsplit(url).hostname == urlsplit(entry.base_url).hostname:
        raise ConfigError(
            f"model {model!r}: expected an API key, found none. Set {entry.key_variable}, or pass "
            "api_key=..., or run without a key: model='script:replies.yaml' answers from a file, "
            "base_url='http://localhost:8080/...' asks a server of your own."
        )
    module = import_module(".http", __package__)
    endpoint = module.Endpoint(url, key)
    provider: Provider = module.HttpProvider(
        _wire(entry, name), endpoint, label=model, timeouts=timeouts, retries=retries
    )
    return provider


def _scripted(path: str) -> Provider:
    module = import_module(".script", __package__)
    read = cast("Callable[[str], Provider]", module.ScriptedModel.from_file)
    return read(path)


def _wire(entry: WireEntry, name: str) -> Wire:
    module = import_module(entry.module, __package__)
    make = cast("Callable[[str], Wire]", getattr(module, entry.name))
    return make(name)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise ConfigError(f"{' and '.join(names)} would have no effect: {reason}. Leave it out.")


def _unknown(model: str, prefix: str) -> ConfigError:
    if prefix in _PLANNED:
        return ConfigError(
            f"model {model!r}: the wire {prefix!r} is not built yet. Many such models also speak "
            "chat completions: try 'openai:NAME' with base_url=... of that service."
        )
    prefixes = (*_WIRES, _SCRIPT)
    expected = ", ".join(f"'{one}:{'PATH' if one == _SCRIPT else 'NAME'}'" for one in prefixes)
    return ConfigError(
        f"model: expected a provider or one of {expected}, found {model!r}."
        f"{nearest(prefix, prefixes) if prefix not in prefixes else ' The name is empty.'}"
    )
