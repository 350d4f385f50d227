"""The smallest wire there is, and a provider that speaks it with a `WireServer`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphloop.errors import (
    BadReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
    StreamTruncated,
)
from graphloop.providers.base import (
    Delta,
    ServerEvent,
    StreamItem,
    TextDelta,
    UsageSoFar,
)
from graphloop.providers.http import Endpoint, HttpEnvironment, HttpProvider, Retries, Timeouts
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    Reply,
    TextPart,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.wire_server import WireServer, sse

__all__ = ["ASK", "HI", "KEY", "PING", "EchoWire", "Sleeps", "Talk", "spoken"]

KEY = "sk-very-secret"
ASK = ModelRequest((UserMessage("Hello"),))
PING = '{"ping": true}'
HI = sse('{"text": "Hi"}', '{"text": " there"}', "[DONE]")


class EchoEncoder:
    """Sends the text of the last message."""

    def encode(self, request: ModelRequest) -> list[bytes]:
        last = request.messages[-1]
        assert isinstance(last, UserMessage)
        return [b'{"ask": ', json.dumps(last.content).encode(), b"}"]


class EchoDecoder:
    """Knows texts, pings, errors, what is spent, and the terminal marker."""

    def __init__(self) -> None:
        self.text = ""
        self.complete = False
        self.usage = Usage()

    @property
    def content_started(self) -> bool:
        return self.text != ""

    def feed(self, event: ServerEvent) -> list[Delta | UsageSoFar]:
        if event.data == b"[DONE]":
            self.complete = True
            return []
        said = json.loads(event.data)
        self.text += said.get("text", "")
        if "error" in said:
            raise Overloaded(said["error"])
        items: list[Delta | UsageSoFar] = [TextDelta(said["text"])] if "text" in said else []
        if "spent" in said:
            self.usage = Usage(said["spent"])
            items.append(UsageSoFar(self.usage))
        return items

    def reply(self) -> Reply:
        if not self.complete:
            raise StreamTruncated("the echo has no end")
        message = AssistantMessage((TextPart(self.text),), "echo")
        return Reply(message, FinishReason.STOP, self.usage)


class EchoWire:
    """The smallest wire there is."""

    name = "echo"
    model = "one"
    path = "/v1/echo"

    def headers(self, api_key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"}

    def check_tool(self, tool: ToolSpec) -> None:
        """Take every tool."""

    def encoder(self) -> EchoEncoder:
        return EchoEncoder()

    def decoder(self) -> EchoDecoder:
        return EchoDecoder()

    def error(self, status: int, body: bytes) -> ProviderError:
        kinds: dict[int, type[ProviderError]] = {429: RateLimited, 529: Overloaded, 200: BadReply}
        kind = kinds.get(status, RequestRejected)
        return kind(body.decode(), status=status)


@dataclass
class Sleeps:
    """Sleeps that take no time, written down."""

    seconds: list[float] = field(default_factory=list[float])

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@dataclass
class Talk:
    """One provider at one server, and all it said."""

    server: WireServer
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    slept: Sleeps = field(default_factory=Sleeps)
    endpoint: Endpoint | None = None

    def provider(self) -> HttpProvider:
        environment = HttpEnvironment(sleep=self.slept, jitter=lambda: 0.5, now=lambda: 1_000.0)
        return HttpProvider(
            EchoWire(),
            self.endpoint or Endpoint(self.server.url, KEY),
            timeouts=self.timeouts,
            retries=self.retries,
            environment=environment,
        )

    async def ask(self) -> list[StreamItem]:
        provider = self.provider()
        try:
            return [part async for part in provider.session().stream(ASK)]
        finally:
            await provider.aclose()


def spoken(parts: list[StreamItem]) -> str:
    *deltas, reply = parts
    assert isinstance(reply, Reply)
    assert reply.message.text == "".join(d.text for d in deltas if isinstance(d, TextDelta))
    return reply.message.text
