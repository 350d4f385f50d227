"""Registry: finds the provider of a model that is given by name, with the caller's access to it.

The names are those of `services.py`, and `script:PATH`. A wire's modules and httpx are imported
only for a model that needs them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypedDict, Unpack, cast
from urllib.parse import urlsplit

from ..errors import AuthenticationFailed, ConfigError, nearest
from ..media import Inline
from ..values import (
    AssistantMessage,
    MediaPart,
    ModelRequest,
    Settings,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    evolve,
)
from .base import ApiKey, Provider
from .services import SERVICES, loaded

if TYPE_CHECKING:  # These modules import httpx, which is slow.
    from .pace import Limits
    from .retries import Retries
    from .script import ScriptedModel
    from .timeouts import Timeouts

__all__ = [
    "Access",
    "accessed",
    "check_content",
    "check_settings",
    "check_tools",
    "connect",
    "keys_deferred",
    "lacking_keys",
    "resolve",
    "why_unfit",
]

FIRST_BYTES: Final = 1024
SCRIPT: Final = "script"
HELLO: Final = UserMessage("Hello")
"""The question of a request that is encoded for a check, and never sent."""
ALSO_CALLED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("gemini", "google-gla"), "google"),
    "claude": "anthropic",
    **dict.fromkeys(("gpt", "chatgpt"), "openai"),
}
"""What people call a service, and its name here; an error names it."""

_lacking: ContextVar[dict[str, ConfigError] | None] = ContextVar("lacking", default=None)
"""The open `with` block of `keys_deferred`; None outside of it."""


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
    `limits`: the most that all runs of the model together send.
    `query`: further fields of each request's URL, such as `{"api-version": "2024-10-21"}`.
    `stream`: False for a server without streaming, which sends each reply in one piece.
    """

    api_key: ApiKey | None
    base_url: str | None
    timeouts: Timeouts | None
    retries: Retries | None
    headers: Mapping[str, str] | None
    limits: Limits | None
    query: Mapping[str, str] | None
    stream: bool | None


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
    _refuse_unknown_options(access)
    if not isinstance(model, str):
        _refuse_idle_options(access, "a ready provider has its own")
        return model
    prefix, _, name = model.partition(":")
    if prefix == SCRIPT and name:
        _refuse_idle_options(access, "a script asks no server")
        return cast("type[ScriptedModel]", loaded(".script:ScriptedModel")).from_file(name)
    service = SERVICES.get(prefix)
    if service is None or not name:
        raise _unknown_service(model)
    given = access.get("base_url") or environ.get(service.url_variable)
    url = given or service.url(environ)
    key = access.get("api_key") or environ.get(service.key_variable) or ""
    is_theirs = not given or _host_of(given) == _host_of(service.base_url)
    if not key and service.needs_key and is_theirs:
        key = _refused_key(
            model,
            f"model {model!r}: expected an API key, found none. Fix: set {service.key_variable}, "
            f"or pass api_key=... (for a fallback model connect({model!r}, api_key=...)), or run "
            "without a key: model='script:replies.yaml' answers from a file, "
            "base_url='http://localhost:8080/...' asks a server of your own.",
        )
    headers, query = access.get("headers"), access.get("query")
    endpoint = loaded(".endpoint:Endpoint")(url, key, headers or {}, query or {})
    limits = {option: access.get(option) for option in ("timeouts", "retries", "limits")}
    wire = service.model(name, stream=access.get("stream") is not False)
    provider = loaded(".http:HttpProvider")(wire, endpoint, label=model, **limits)
    return cast("Provider", provider)


@contextmanager
def keys_deferred() -> Generator[None]:
    """Make models without their keys inside the `with` block.

    A program that only looks at an agent, such as `graphloop check`, needs no key. A request to
    such a model fails before anything is sent. `lacking_keys` returns the errors so far.
    """
    token = _lacking.set({})
    try:
        yield
    finally:
        _lacking.reset(token)


def lacking_keys() -> Mapping[str, ConfigError]:
    """Return the errors about missing keys inside the block of `keys_deferred`, by label."""
    return _lacking.get() or {}


def _refused_key(model: str, message: str) -> Callable[[], str]:
    """Return a function in place of a missing key, which raises the error when a request asks.

    Raises:
        ConfigError: the key is needed now.
    """
    lacking = _lacking.get()
    if lacking is None:
        raise ConfigError(message)
    lacking[model] = ConfigError(message)

    def key() -> str:
        raise AuthenticationFailed(message)

    return key


def accessed(provider: Provider, access: Mapping[str, object]) -> Provider:
    """Return a provider with other `timeouts` or `headers`, and the same connections.

    Raises:
        ConfigError: the provider sends no HTTP requests of graphloop, so both would have no effect.
    """
    changed = getattr(provider, "accessed", None)
    if changed is None:
        _refuse_idle_options(
            access, f"{provider.label!r} is no model of graphloop's own HTTP client"
        )
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


def check_settings(provider: Provider, settings: Settings) -> None:
    """Refuse settings that no request to a model can carry, before any request is sent.

    A provider of the caller's own is asked only if it has a method `check_content(request)`.

    Raises:
        ConfigError: the model's wire format has no field for a setting; the message names both.
    """
    if settings == Settings():
        return
    try:
        check_content(provider, ModelRequest((HELLO,), settings=settings))
    except ConfigError as error:
        raise ConfigError(f"model {provider.label!r}: {error}") from error


def why_unfit(provider: Provider, part: MediaPart) -> str:
    """Return why a model cannot take media of a tool; empty if it can.

    A provider of the caller's own is asked as in `check_settings`. Of media other than text, it is
    shown only the first bytes, since encoding all of them would take as long as the request does.
    """
    if isinstance(part.source, Inline) and not part.is_text:
        part = evolve(part, source=Inline(part.source.data[:FIRST_BYTES]))
    called = AssistantMessage((ToolCall("call", "tool", "{}"),))
    returned = ToolResult("c0.0", "call", "tool", (part,))
    try:
        check_content(provider, ModelRequest((HELLO, called, returned)))
    except ConfigError as error:
        return str(error)
    return ""


def check_content(provider: Provider, request: ModelRequest) -> None:
    """Refuse a request that no model of this provider can be sent.

    Raises:
        ConfigError: the wire format cannot carry the request.
    """
    check: Callable[[ModelRequest], None] | None = getattr(provider, "check_content", None)
    if check is not None:
        check(request)


def _host_of(url: str) -> str | None:
    return urlsplit(url).hostname


def _refuse_unknown_options(options: Iterable[str]) -> None:
    known = Access.__optional_keys__
    for name in options:
        if name not in known:
            raise ConfigError(
                f"`{name}`: expected an option of a model ({', '.join(sorted(known))}), found "
                f"another.{nearest(name, known)} Fix: name one of them."
            )


def _refuse_idle_options(options: Mapping[str, object], reason: str) -> None:
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise ConfigError(f"{' and '.join(names)} would have no effect: {reason}. Leave it out.")


def _unknown_service(model: str) -> ConfigError:
    prefix = model.partition(":")[0]
    prefixes, called = (*SERVICES, SCRIPT), ALSO_CALLED.get(prefix, prefix)
    found = (
        f"model: expected a provider, '{SCRIPT}:PATH', or 'SERVICE:NAME' with one of the services "
        f"{', '.join(SERVICES)}, found {model!r}."
    )
    hint = " The name is empty." if prefix in prefixes else nearest(called, prefixes)
    return ConfigError(
        f"{found}{hint} Fix: name one of them. Many other services speak chat completions: "
        "'openai:NAME' with base_url=... asks them."
    )
