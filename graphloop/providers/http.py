"""The HTTP provider for all wire formats: connections, time limits and retries.

This module does not interpret events. Only the decoder's terminal marker completes a reply; a
stream that breaks raises an error. A retry after content first yields `Restarted`, because
listeners may have seen the earlier content.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import chain
from typing import Final, final

import httpx

from ..errors import ProviderError, RateLimited
from ..values import ModelRequest, Reply, ToolSpec, Usage, evolve
from .base import Decoder, Restarted, ServerEvent, StreamItem, UsageSoFar, Waiting, Wire
from .encoder import PrefixEncoder, of_service
from .endpoint import Endpoint
from .exchange import HttpExchange
from .live_requests import check_request
from .pace import Limits, PaceGate
from .retries import HttpEnvironment, Retries
from .timeouts import Timeouts, Watch
from .whole_reply import comes_whole

__all__ = ["Endpoint", "HttpEnvironment", "HttpProvider", "HttpSession", "Retries", "Timeouts"]

LOG: Final = logging.getLogger("graphloop")

UNAUTHORIZED: Final = 401

_UNTOLD = Usage(untold_attempts=1)


@final
class HttpProvider:
    """A model behind an HTTP API with any wire format; all runs share it.

    Args:
        wire: the format of requests and replies.
        endpoint: the server's URL and API key.
        label: the `"provider:model"` name; by default the wire's name and model.
        timeouts: the time limits of a model call; `Timeouts()` by default.
        retries: the retry rules of a model call; `Retries()` by default.
        limits: the most that all runs together send; no limits by default.
        environment: the sleep function, random source and clock; `HttpEnvironment()` by default.
    """

    def __init__(  # noqa: PLR0913 - one parameter for each rule of a model call
        self,
        wire: Wire,
        endpoint: Endpoint,
        *,
        label: str = "",
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        limits: Limits | None = None,
        environment: HttpEnvironment | None = None,
    ) -> None:
        self._url = endpoint.url(wire.path)
        self.wire = wire
        self.label = label or f"{wire.name}:{wire.model}"
        self.endpoint = endpoint
        self.timeouts = timeouts or Timeouts()
        self.retries = retries or Retries()
        self.gate = None if limits is None else PaceGate(limits)
        self.environment = environment or HttpEnvironment()
        # A connection works only on its own event loop, so each loop has its own client.
        self._clients: dict[asyncio.AbstractEventLoop, _Client] = {}

    def __repr__(self) -> str:
        return f"HttpProvider({self.label!r}, {self.endpoint!r})"

    @property
    def service(self) -> str:
        """The service and account that get the requests, as `AssistantMessage.service` has them."""
        return self.endpoint.service(self.wire.name)

    def session(self) -> HttpSession:
        """Return a new session for the model calls of one run."""
        return HttpSession(self)

    async def aclose(self) -> None:
        """Close the running event loop's connections; the provider can be used again."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.keeper.aclose()

    def accessed(
        self, *, timeouts: Timeouts | None, headers: Mapping[str, str] | None
    ) -> HttpProvider:
        """Return this provider with other time limits or headers, and the same connections.

        Args:
            timeouts: the time limits of a model call; None keeps the provider's.
            headers: the further headers of a request; None keeps the provider's.
        """
        changed = copy(self)
        changed.timeouts = timeouts or self.timeouts
        if headers is not None:
            changed.endpoint = replace(self.endpoint, headers=headers)
        return changed

    def check_tool(self, tool: ToolSpec) -> None:
        """Raise a ConfigError if no request to this model can carry `tool`."""
        self.wire.check_tool(tool)

    def check_content(self, request: ModelRequest) -> None:
        """Raise a ConfigError if this model's wire format cannot carry `request`."""
        self.wire.encoder().encode(request)

    def check(self) -> None:
        """Raise a ConfigError if this process must not send a request to the server."""
        check_request(self.label, self._url.host)

    async def post(
        self, exchange: HttpExchange, body: bytes, ask_key: Callable[[], Awaitable[str]]
    ) -> None:
        """Send `body` to this provider's endpoint as the request of `exchange`.

        Args:
            exchange: the attempt.
            body: the request body.
            ask_key: returns the API key of this attempt.

        Raises:
            ProviderError: there is no key, the server could not be reached, or it refused the
                request.
        """
        client = await self._client()

        async def request() -> httpx.Request:
            return self._request(client, body, await ask_key())

        await exchange.open(client, request, self.environment.now())

    def _request(self, client: httpx.AsyncClient, body: bytes, api_key: str) -> httpx.Request:
        headers = {
            "content-type": "application/json",
            "accept": "application/json" if comes_whole(self.wire) else "text/event-stream",
            # Compression would delay the stream, because the compressor waits for more bytes.
            "accept-encoding": "identity",
            **self.wire.headers(api_key),
        }
        sent = httpx.Headers(headers)
        sent.update(self.endpoint.headers)  # Header names differ in case only.
        limit = httpx.Timeout(None, connect=self.timeouts.connect_s or None)
        return client.build_request("POST", self._url, content=body, headers=sent, timeout=limit)

    async def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        known = self._clients.get(loop)
        if known is not None and not known.client.is_closed:
            return known.client
        for ended in list(self._clients):  # A copy: other threads may add clients.
            if ended.is_closed():
                self._clients.pop(ended, None)
        keeper = _keep(self._new_client())
        client = await anext(keeper)
        self._clients[loop] = _Client(client, keeper)
        return client

    def _new_client(self) -> httpx.AsyncClient:
        plain = self._url.scheme == "http"
        return httpx.AsyncClient(
            # Plain HTTP does not load the trust store (15 ms). If a proxy demands TLS after all,
            # the empty context refuses its certificate.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else _trust_store(),
            # No limit: a run that waits for a free connection would look like a slow server.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            # A cookie of one run must not reach another.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )


@dataclass(frozen=True, slots=True)
class _Client:
    """The HTTP client of an event loop, and the generator that closes the client at its end."""

    client: httpx.AsyncClient
    keeper: AsyncGenerator[httpx.AsyncClient, None]


async def _keep(client: httpx.AsyncClient) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Yield `client`, and close it when its event loop ends.

    A closed loop cannot close connections. But `asyncio.run` closes the loop's asynchronous
    generators before the loop, so this generator closes the client in time.
    """
    async with client:
        yield client


@cache
def _trust_store() -> ssl.SSLContext:
    return httpx.create_ssl_context()


@final
class HttpSession:
    """A session for one run, which keeps the bytes of the run's encoded messages."""

    def __init__(self, provider: HttpProvider) -> None:
        self._provider, self._service = provider, provider.service
        self._encoder = provider.wire.encoder()
        if isinstance(self._encoder, PrefixEncoder):
            self._encoder.service = self._service

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Send `request`, and retry as `Retries` allows (see `ModelSession.stream`).

        Raises:
            ConfigError: `check_request` refuses requests to this server.
        """
        self._provider.check()
        attempts = _Attempts(self._provider, b"".join(self._encoder.encode(request)))
        try:
            while True:  # `Retries.attempts_max` and `Timeouts.total_s` bound this loop.
                try:
                    async with aclosing(attempts.starting()) as starting:
                        async for told in starting:
                            yield told
                    exchange = attempts.exchange
                    decoder, early = exchange.decoder, map(attempts.counted, exchange.items)
                    for item in chain(early, attempts.decoded(decoder, exchange.events)):
                        yield item
                    while not (decoder.complete or exchange.ended):
                        for item in attempts.decoded(decoder, await exchange.receive()):
                            yield item
                    reply = of_service(decoder.reply(), self._service)
                    await exchange.drain()
                    yield attempts.counted(reply)
                except ProviderError as error:
                    if attempts.is_untold:
                        yield attempts.counted(UsageSoFar(_UNTOLD))
                    if not await attempts.again(error):
                        attempts.hide_keys(error)
                        raise
                else:
                    return
        finally:
            await attempts.close()


@final
class _Attempts:
    """The attempts of one model call, and their total usage."""

    def __init__(self, provider: HttpProvider, body: bytes) -> None:
        self._provider = provider
        self._body = body
        self._watch: Watch | None = None
        self._exchange: HttpExchange | None = None
        self._count = 0
        self._spent = Usage()
        self._has_entered = self._is_void = self._renewed = False
        self._refused_s: float | None = None
        self._keys: set[str] = set()

    @property
    def exchange(self) -> HttpExchange:
        """The exchange of the current attempt, which `starting` opens."""
        assert self._exchange is not None, "the attempt has started"
        return self._exchange

    @property
    def content_started(self) -> bool:
        """Whether the current attempt has delivered content."""
        return self._exchange is not None and self._exchange.decoder.content_started

    @property
    def is_untold(self) -> bool:
        """Whether the current attempt has delivered content but no usage report."""
        exchange = self._exchange
        return exchange is not None and self.content_started and exchange.spent == Usage()

    async def starting(self) -> AsyncGenerator[StreamItem, None]:
        """Begin the next attempt; yield what comes before its content: waits, a restart, usage.

        The total time limit begins when the first attempt may begin.

        Raises:
            ProviderError: the server refused the request, or could not be reached.
        """
        if (wait_s := self._refused_s) is not None:
            self._refused_s = None
            yield Waiting(self._provider.label, "rate_limited", wait_s)
            await self._provider.environment.sleep(wait_s)
        if self._is_void:
            self._is_void = False
            yield Restarted()
        provider = self._provider
        if provider.gate is not None:
            longest_s = provider.retries.delay_max_s
            async with aclosing(provider.gate.enter(self, provider.label, longest_s)) as waits:
                async for waiting in waits:
                    yield waiting
            self._has_entered = True
        if self._watch is None:
            limits = provider.timeouts
            if comes_whole(provider.wire):  # The first content comes with the last.
                limits = replace(limits, first_content_s=0.0)
            self._watch = Watch(asyncio.get_running_loop(), limits)
        self._count += 1
        self._exchange = exchange = HttpExchange(provider.wire, self._watch)
        await provider.post(exchange, self._body, self._ask_key)
        if provider.gate is not None:
            provider.gate.accepted(self)
        while not await exchange.begin():
            yield self.counted(UsageSoFar(exchange.spent))

    async def _ask_key(self) -> str:
        key = await self._provider.endpoint.ask_key()
        self._keys.add(key)
        return key

    async def again(self, error: ProviderError) -> bool:
        """Return whether to retry after `error`; if so, close the attempt and wait first.

        The first refusal of a key from a function is answered by another key, without a wait: such
        a key expires. That attempt does not count.
        """
        if (
            error.status == UNAUTHORIZED
            and self._provider.endpoint.is_renewable
            and not self._renewed
        ):
            self._renewed = True
            self._count -= 1
            await self.close()
            return True
        retries, environment = self._provider.retries, self._provider.environment
        wait_s, gate = retries.wait_s(self._count, error, environment.jitter()), self._provider.gate
        is_refused = gate is not None and self._has_entered and isinstance(error, RateLimited)
        if gate is not None and is_refused:
            gate.refused(self, wait_s)
            self._count -= retries.attempts_max > 1
        watch = self._watch
        if watch is None or not (retries.allows(self._count, error) and watch.allows(wait_s)):
            return False
        said = self._provider.label, self._count + is_refused, type(error).__name__, wait_s
        LOG.warning("model %s: attempt %d failed (%s); the next one starts in %.1f s", *said)
        self._is_void = self.content_started
        await self.close()
        if not isinstance(error, RateLimited):
            await environment.sleep(wait_s)
        elif not is_refused:
            self._refused_s = wait_s
        return True

    def decoded(self, decoder: Decoder, events: Iterable[ServerEvent]) -> Iterable[StreamItem]:
        """Decode `events` and yield their items, with usage of all attempts in usage reports."""
        for event in events:
            for item in decoder.feed(event):
                yield self.counted(item) if type(item) is UsageSoFar else item

    def counted(self, item: StreamItem) -> StreamItem:
        """Return `item`, with the usage of earlier failed attempts added to its own usage."""
        match item:
            case UsageSoFar() if self._exchange is not None:
                self._exchange.spent = item.usage
                return UsageSoFar(self._spent + item.usage)
            case Reply() if self._spent == Usage():
                return item
            case Reply():
                # An attempt without reported tokens counts as an attempt of unknown usage.
                last = item.usage if item.usage.total_tokens else item.usage + _UNTOLD
                return evolve(item, usage=self._spent + last)
            case _:
                return item

    def hide_keys(self, error: ProviderError) -> None:
        """Remove the keys of all attempts from `error` and its causes."""
        self._provider.endpoint.hide_secrets(error, self._keys)

    async def close(self) -> None:
        """Close the current attempt, if any, and add its usage to the total."""
        exchange, self._exchange = self._exchange, None
        if self._has_entered and self._provider.gate is not None:
            self._has_entered = False
            tokens = 0 if exchange is None else exchange.spent.total_tokens
            self._provider.gate.leave(self, tokens)
        if exchange is not None:
            self._spent += exchange.spent
            await exchange.close()
