"""Refused requests: nothing leaves the process, and the error says how to allow it."""

from __future__ import annotations

import asyncio
from threading import Thread

import pytest

from graphloop import Agent
from graphloop.errors import ConfigError
from graphloop.providers import check_request
from graphloop.testing import ScriptedModel, allow_requests, refuse_requests
from tests.echo_wire import HI, Talk, spoken
from tests.wire_server import Answer, WireServer

VARIABLE = "GRAPHLOOP_ALLOW_REQUESTS"


@pytest.mark.parametrize("host", ["localhost", "app.localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_the_loopback_stays_allowed(host: str) -> None:
    """A server on this machine belongs to the test."""
    with refuse_requests():
        check_request("echo:one", host)


@pytest.mark.parametrize("host", ["api.openai.com", "10.0.0.1", "localhost.example", "[::2]"])
def test_every_other_host_is_refused(host: str) -> None:
    """The error names the model, the host and what allows the request."""
    with refuse_requests(), pytest.raises(ConfigError, match="nothing was sent") as raised:
        check_request("echo:one", host)

    assert "'echo:one'" in str(raised.value)
    assert repr(host) in str(raised.value)
    assert "allow_requests()" in str(raised.value)
    check_request("echo:one", host)


@pytest.mark.parametrize("text", ["0", "false", " FALSE "])
def test_the_environment_refuses(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """CI sets one variable, and no test has to change."""
    monkeypatch.setenv(VARIABLE, text)

    with pytest.raises(ConfigError, match=f"{VARIABLE}=1"):
        check_request("echo:one", "api.openai.com")
    with allow_requests():
        check_request("echo:one", "api.openai.com")


@pytest.mark.parametrize("text", ["", "1", "true"])
def test_the_environment_allows(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An empty variable is no variable; a block takes precedence over it."""
    monkeypatch.setenv(VARIABLE, text)

    check_request("echo:one", "api.openai.com")
    with refuse_requests(), pytest.raises(ConfigError, match="refuse_requests"):
        check_request("echo:one", "api.openai.com")


def test_an_odd_value_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`no` may mean either; a guess could cost money."""
    monkeypatch.setenv(VARIABLE, "no")

    with pytest.raises(ConfigError, match="expected 0 or 1, found 'no'"):
        check_request("echo:one", "api.openai.com")


def test_the_innermost_block_decides_in_every_thread() -> None:
    """A tool's worker thread must not ask what its test refuses."""
    refused: list[ConfigError] = []

    def ask() -> None:
        try:
            check_request("echo:one", "api.openai.com")
        except ConfigError as error:
            refused.append(error)

    with allow_requests(), refuse_requests():
        thread = Thread(target=ask)
        thread.start()
        thread.join()
        with allow_requests():
            ask()

    assert len(refused) == 1


def test_a_refused_run_says_so_and_a_scripted_one_runs() -> None:
    """The refusal is an error of the caller: no retry, and no other model, gets around it."""
    agent = Agent("openai:gpt-5", api_key="sk-0", fallback_models=[ScriptedModel(["Hi."])])

    with refuse_requests():
        with pytest.raises(ConfigError, match=r"'openai:gpt-5'.*'api.openai.com'"):
            agent.generate_sync("Hello")
        assert Agent(ScriptedModel(["Hi."])).generate_sync("Hello").text == "Hi."


async def test_a_server_on_the_loopback_answers() -> None:
    """Over a real socket."""
    async with WireServer([Answer(HI)]) as server:
        with refuse_requests():
            assert spoken(await Talk(server).ask()) == "Hi there"


async def test_nothing_is_sent_once_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal comes before a connection."""

    async def connected(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connected)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", connected)
    agent = Agent("anthropic:claude-opus-4-8", api_key="sk-0")

    with refuse_requests(), pytest.raises(ConfigError, match="nothing was sent"):
        await agent.generate("Hello")
