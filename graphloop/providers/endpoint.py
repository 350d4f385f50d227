"""Endpoint: the address of a model server, and the secrets that give access to it.

A key may be a function, for services whose keys expire. No repr, error or journal has a key or a
header: servers quote keys in errors, and journals store errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from inspect import isawaitable
from pathlib import PurePath
from traceback import extract_tb
from typing import Final, cast, final

import httpx

from ..errors import AuthenticationFailed, ConfigError, ProviderError
from .base import ApiKey

__all__ = ["Endpoint"]

OWN_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "content-length", "content-type", "host", "transfer-encoding"}
)
"""The headers that only the transport sets."""

CLAUDE_HOSTS: Final = ("api.anthropic.com", ".amazonaws.com", ".api.aws", ".googleapis.com")
"""The ends of the hosts that serve Claude and take each other's signatures of its reasoning."""

_fits_header: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ -~]*").fullmatch

KEY_PART_MIN: Final = 8
"""The shortest beginning of a key to hide in texts; a shorter key is hidden as a whole word."""


@final
@dataclass(frozen=True, slots=True)
class Endpoint:
    """The base URL of a server, with its API key and further headers, which are never shown.

    `query` has further fields of each request's URL, such as `{"api-version": "2024-10-21"}`. They
    are no place for a key: proxies and logs keep URLs.

    A function as `api_key` is called before each attempt at a model call, and again after the
    server's first refusal of a key. It returns the key, or an awaitable of it.
    """

    base_url: str
    api_key: ApiKey = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    query: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise ConfigError(f"base_url {self.base_url!r} is not a URL: {error}.") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise ConfigError(
                f"base_url: expected 'https://host/path' or 'http://…', found {self.base_url!r}."
            )
        if url.userinfo or url.query or url.fragment:
            raise ConfigError(
                f"base_url: expected only scheme, host and path, found more at {url.host!r}. "
                "Fix: give a key by api_key, and fields of the URL by query={…}."
            )
        if isinstance(self.api_key, str):
            _check_key(self.api_key)
        elif not callable(self.api_key):  # pyright: ignore[reportUnnecessaryComparison] - JSON
            raise ConfigError(
                "api_key: expected a text, or a function that returns it, found "
                f"{type(self.api_key).__name__}. Fix: give one of them."
            )
        # Copies, because the caller may change its own mappings later.
        object.__setattr__(self, "headers", _checked("headers", self.headers))
        object.__setattr__(self, "query", _checked("query", self.query))
        for name, value in self.headers.items():
            if name.lower() in OWN_HEADERS or not _fits_header(f"{name}:{value}"):
                raise ConfigError(
                    f"headers: expected names and values of printable ASCII, and none of "
                    f"{', '.join(sorted(OWN_HEADERS))}, found another at {name!r:.80}. Fix: leave "
                    "it out, or correct it."
                )

    def url(self, path: str) -> httpx.URL:
        """Return the URL of requests to `path`, a path relative to the base URL."""
        return httpx.URL(self.base_url.rstrip("/") + path).copy_merge_params(self.query)

    def service(self, wire: str) -> str:
        """Return the name of the service and the account that read what they have encrypted.

        Only an OpenAI account can decrypt its reasoning, also if two accounts share an address. The
        name then ends with eight digits of a hash of the key, from which no key can be told.
        Claude's signatures are valid at each of the services in `CLAUDE_HOSTS`.

        Args:
            wire: the name of the wire format.
        """
        url = httpx.URL(self.base_url)
        host = url.netloc.decode()
        if wire == "anthropic" and url.host.endswith(CLAUDE_HOSTS):
            return "claude"
        if wire != "openai-responses" or self.is_renewable:
            return host
        headers = httpx.Headers(self.headers)
        account = f"{self.api_key} {headers.get('openai-organization', '')}"
        return f"{host}#{sha256(f'{host} {account}'.encode()).hexdigest()[:8]}"

    @property
    def is_renewable(self) -> bool:
        """Whether a function gives the key, so that another key may follow a refused one."""
        return not isinstance(self.api_key, str)

    async def ask_key(self) -> str:
        """Return the key of the next attempt.

        Raises:
            AuthenticationFailed: the function for the key raised an error, whose class and place
                are in the message. Its own words are left out, since they may quote a secret.
            ConfigError: the function returned no text that can be a key.
            ProviderError: the function raised this error.
        """
        ask = self.api_key
        if isinstance(ask, str):
            return ask
        try:
            answer = ask()
            key: object = await answer if isawaitable(answer) else answer
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001 - the function is the caller's
            # A journal keeps the traceback of an error, with the words of its causes.
            raise AuthenticationFailed(
                f"api_key: expected a key from the function, found {type(error).__name__}. Fix: "
                f"have it return a key; it failed in {_raised_at(error)}."
            ) from None
        _check_key(key)
        if not key:
            raise _no_key("an empty text")
        return str(key)

    def hide_secrets(self, error: ProviderError, keys: Iterable[str] = ()) -> None:
        """Remove the keys and the values of headers from `error` and its causes.

        Args:
            error: the error of a model call.
            keys: the keys that a function returned for the call.
        """
        own = (self.api_key,) if isinstance(self.api_key, str) else ()
        # The longest first: a key may begin with another one.
        secrets = sorted({*own, *keys, *self.headers.values()} - {""}, key=len, reverse=True)
        link: BaseException | None = error
        while link is not None:
            for secret in secrets:
                link.args = tuple(
                    _hide_key(secret, arg) if isinstance(arg, str) else arg for arg in link.args
                )
            link = link.__cause__


def _checked(place: str, given: object) -> Mapping[str, str]:
    """Return a copy of further headers, or fields of the URL, if it maps names to texts."""
    found = "" if isinstance(given, Mapping) else f"{type(given).__name__}"
    fields = cast("Mapping[object, object]", given if isinstance(given, Mapping) else {})
    for name, value in fields.items():
        if not (isinstance(name, str) and name and isinstance(value, str)):
            found = f"{name!r:.80} with {type(value).__name__}"
    if found:
        raise ConfigError(
            f"{place}: expected a mapping of names to texts, found {found}. Fix: write each name "
            "and each value as text, as in {'x-tenant': '7'}."
        )
    return {str(name): str(value) for name, value in fields.items()}


def _raised_at(error: BaseException) -> str:
    """Return the line and the function in which an error was raised."""
    last = extract_tb(error.__traceback__)[-1]
    return f"line {last.lineno} of {PurePath(last.filename).name}, {last.name}"


def _check_key(key: object) -> None:
    # Checked here, because httpx would quote the whole header, with the key, in its error.
    if not isinstance(key, str):
        raise _no_key(type(key).__name__)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise _no_key("a space, a line break or another character that cannot stand in a header")


def _no_key(found: str) -> ConfigError:
    return ConfigError(
        f"api_key: expected printable ASCII without spaces, found {found}. Fix: strip it where it "
        "is read."
    )


def _hide_key(key: str, text: str) -> str:
    """Return `text` with `***` in place of `key`, even where a quotation cut the key short."""
    if len(key) < KEY_PART_MIN:
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "***", text)
    for form in (key, repr(key)[1:-1]):
        for end in range(len(form), KEY_PART_MIN - 1, -1):
            text = text.replace(form[:end], "***")
    return text
