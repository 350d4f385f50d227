"""An endpoint is checked before a request, asks for its key, and hides it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import httpx
import pytest

from graphloop.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    ProviderError,
    ProviderTimeout,
)
from graphloop.providers import connect
from graphloop.providers.endpoint import Endpoint
from graphloop.providers.http import HttpProvider, Retries, Timeouts
from tests.echo_wire import ASK, HI, EchoWire, Talk, spoken
from tests.wire_server import Answer, WireServer, json_answer


@pytest.mark.parametrize(
    ("key", "said", "told"),
    [
        ("secret-0123456789", "bad secret-0123456789!", "bad ***!"),
        ("secret-0123456789", "bad secret-01234…", "bad ***…"),
        ("secret-0123456789", "no secret", "no secret"),
        ("secret\\0123456789", repr("secret\\0123456789"), "'***'"),
        ("m", "model m is gone", "model *** is gone"),
        ("", "model m is gone", "model m is gone"),
    ],
)
def test_the_key_is_taken_out_of_an_error_and_its_causes(key: str, said: str, told: str) -> None:
    """Whole, cut by a quotation, or escaped; a word of one letter is left in other words."""
    error = ProviderError(said)
    error.__cause__ = httpx.ReadError(said)
    error.__cause__.__cause__ = OSError(7, said)

    Endpoint("https://host", key).hide_secrets(error)

    assert str(error) == told
    assert str(error.__cause__) == told
    assert error.__cause__.__cause__.args == (7, told)


@pytest.mark.parametrize(
    ("base_url", "api_key", "says"),
    [
        ("localhost:8080", "", "https://host/path"),
        ("ftp://host", "", "https://host/path"),
        ("http://", "", "https://host/path"),
        ("http://host:port", "", "is not a URL"),
        ("https://me:secret@host/v1", "", "by api_key"),
        ("https://host/v1?api-version=1", "", "by query="),
        ("https://host", "secret\n", "line break"),
        ("https://host", "sec ret", "space"),
        ("https://host", "sécret", "ASCII"),
    ],
)
def test_an_endpoint_is_refused_without_quoting_secrets(
    base_url: str, api_key: str, says: str
) -> None:
    """httpx would say so only in the middle of a run, and quote the header."""
    with pytest.raises(ConfigError, match=says) as caught:
        Endpoint(base_url, api_key)

    assert "secret" not in str(caught.value)
    assert "sécret" not in str(caught.value)


@pytest.mark.parametrize("given", [{"x": 1}, {"x": None}, {1: "x"}, {"": "x"}, ["x"], "x=1"])
@pytest.mark.parametrize("place", ["headers", "query"])
def test_a_header_or_a_field_of_the_url_that_is_no_text_is_refused(
    place: str, given: object
) -> None:
    """At the request, httpx would raise a TypeError without a word of what to mend."""
    with pytest.raises(ConfigError, match=f"{place}: .*, as in {{'x-tenant': '7'}}"):
        connect("openai:m", api_key="k", **{place: given})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the mistake


def test_a_header_that_its_owner_changes_later_stays_as_it_was_checked() -> None:
    headers = {"x": "1"}
    endpoint = Endpoint("https://host", "k", headers)

    headers["x"] = "2\n"

    assert endpoint.headers == {"x": "1"}


def given(key: str) -> str:
    """Return a key at once."""
    return key


async def fetched(key: str) -> str:
    """Return a key after a while."""
    await asyncio.sleep(0)
    return key


@pytest.mark.parametrize("function", [given, fetched])
async def test_a_function_gives_the_key_of_each_attempt(
    function: Callable[[str], str | Awaitable[str]],
) -> None:
    """A token that expires in an hour outlives no long run."""
    keys = iter(["key-1", "key-2", "key-3"])
    answers = [json_answer(529, "busy"), json_answer(401, "expired"), Answer(HI)]
    async with WireServer(answers) as server:
        talk = Talk(server)
        talk.endpoint = Endpoint(server.url, lambda: function(next(keys)))

        assert spoken(await talk.ask()) == "Hi there"

        sent = [request.headers["authorization"] for request in server.requests]
    assert ["Bearer key-1", "Bearer key-2", "Bearer key-3"] == sent
    assert talk.slept.seconds == [0.25]  # A new key is tried without a wait.


@pytest.mark.parametrize(("attempts_max", "sent"), [(1, 2), (3, 2)])
async def test_a_second_refusal_of_a_key_is_final(attempts_max: int, sent: int) -> None:
    """A server that refuses each key would be asked for ever."""
    async with WireServer([json_answer(401, "no")] * 5) as server:
        talk = Talk(server, retries=Retries(attempts_max=attempts_max))
        talk.endpoint = Endpoint(server.url, lambda: "key")

        with pytest.raises(ProviderError):
            await talk.ask()

        assert sent == len(server.requests)


async def test_a_key_of_text_is_not_sent_again() -> None:
    """The same key would be refused again."""
    async with WireServer([json_answer(401, "no")] * 2) as server:
        with pytest.raises(ProviderError):
            await Talk(server).ask()
        assert len(server.requests) == 1


def broken(error: Exception) -> str:
    """Fail."""
    raise error


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        (
            partial(broken, OSError("vault")),
            AuthenticationFailed,
            "api_key: .* found OSError. Fix: .* line [0-9]+ of test_endpoint.py, broken",
        ),
        (partial(broken, httpx.ReadError("x")), AuthenticationFailed, "found ReadError"),
        (lambda: None, ConfigError, "found NoneType"),
        (lambda: "", ConfigError, "found an empty text"),
        (lambda: "sec ret", ConfigError, "found a space"),
        (lambda: b"secret", ConfigError, "found bytes"),
    ],
)
async def test_a_function_without_a_key_is_told_before_a_request(
    function: Callable[[], str], kind: type[Exception], says: str
) -> None:
    """The error names the class of the function's own error, and its place."""
    async with WireServer() as server:
        talk = Talk(server)
        talk.endpoint = Endpoint(server.url, function)

        with pytest.raises(kind, match=says) as caught:
            await talk.ask()

        assert server.requests == []
    assert "sec" not in str(caught.value).replace("a space", "")


async def test_a_function_may_have_its_request_retried() -> None:
    """A vault that cannot be reached for a moment is no wrong key."""
    answers = iter([ConnectionFailed("vault"), None])

    def ask() -> str:
        if (error := next(answers)) is not None:
            raise error
        return "key"

    async with WireServer([Answer(HI)]) as server:
        talk = Talk(server)
        talk.endpoint = Endpoint(server.url, ask)

        assert spoken(await talk.ask()) == "Hi there"


async def test_the_time_limits_hold_for_the_function() -> None:
    """A vault that hangs would hold the run for ever."""

    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    provider = HttpProvider(
        EchoWire(), Endpoint("http://127.0.0.1:1", hang), timeouts=Timeouts(first_content_s=0.05)
    )

    with pytest.raises(ProviderTimeout, match="first_content"):
        await anext(provider.session().stream(ASK))
    await provider.aclose()


def test_a_key_of_another_type_is_refused() -> None:
    """A key read from a file may be bytes."""
    with pytest.raises(ConfigError, match=r"api_key: expected a text, .* found bytes"):
        Endpoint("https://host", b"secret")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a caller without a type checker
