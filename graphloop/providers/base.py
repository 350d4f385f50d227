"""The seam between a run and a model: wire and provider.

A **wire** is pure: its encoder turns a request into bytes, its decoder turns server-sent events
into deltas and one reply. A **provider** performs the exchange. Streaming is the only path; a
buffered answer is the drained stream. The last item of every stream is one `Reply`; a stream that
cannot end with a reply raises a `ProviderError`, and its deltas are void. It reports its usage on
the way, for the caller also pays for a turn that does not end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from ..errors import ProviderError
from ..values import ModelRequest, Reply, Usage

__all__ = [
    "Decoder",
    "Delta",
    "Encoder",
    "Live",
    "ModelSession",
    "Provider",
    "ReasoningDelta",
    "Restarted",
    "ServerEvent",
    "StreamItem",
    "TextDelta",
    "ToolCallDelta",
    "UsageSoFar",
    "Wire",
]


class TextDelta(Struct, frozen=True, tag_field="type", tag="text-delta", gc=False):
    """A live piece of the answer's text, in whole characters."""

    text: str
    type: ClassVar[Literal["text-delta"]] = "text-delta"


class ReasoningDelta(Struct, frozen=True, tag_field="type", tag="reasoning-delta", gc=False):
    """A piece of readable reasoning, live."""

    text: str
    type: ClassVar[Literal["reasoning-delta"]] = "reasoning-delta"


class ToolCallDelta(Struct, frozen=True, tag_field="type", tag="tool-call-delta", gc=False):
    """A live piece of a call's arguments.

    `index` counts the calls of the turn from 0. `id` and `name` are set on the first piece of a
    call and empty afterwards.
    """

    index: int
    id: str
    name: str
    arguments_delta: str
    type: ClassVar[Literal["tool-call-delta"]] = "tool-call-delta"


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


class Restarted(Struct, frozen=True, gc=False):
    """The model is asked again: the deltas so far are void."""


Live: TypeAlias = Delta | Restarted
"""The items of a model call before its reply that a listener sees."""


class UsageSoFar(Struct, frozen=True, tag_field="type", tag="usage-so-far", gc=False):
    """The usage of a stream so far, for turns that never end.

    Each replaces the previous item. A decoder counts its own stream; a session adds the failed
    attempts before it, also when an attempt fails without a usage of its own. It is no delta:
    listeners do not see it.
    """

    usage: Usage
    type: ClassVar[Literal["usage-so-far"]] = "usage-so-far"


StreamItem: TypeAlias = Live | UsageSoFar | Reply


class ServerEvent(Struct, frozen=True, gc=False):
    """A server-sent event: its `event:` name and its joined `data:`."""

    name: str
    data: bytes


class Encoder(Protocol):
    """Encodes the requests of one run, each message once."""

    def encode(self, request: ModelRequest) -> list[bytes]:
        """Return the request body in parts; their join is one JSON object.

        Only data from the messages themselves (the id of a container) follows them in the body. So
        while a run only appends, all bytes up to the end of the last message are a prefix of its
        next request. The encoder encodes each message once: the work depends on the new messages.
        """
        ...


class Decoder(Protocol):
    """Decodes the events of one stream."""

    def feed(self, event: ServerEvent) -> Iterable[Live | UsageSoFar]:
        """Take an event; return deltas to show, and usage if reported.

        `Restarted` makes the earlier deltas of the same stream void.

        Raises:
            BadReply: the event's JSON does not parse or is not of this wire.
            ProviderError: the event reports an error of the server, of the fitting class.
        """
        ...

    @property
    def content_started(self) -> bool:
        """Whether content has come, so that a retry voids shown deltas."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the terminal marker has come."""
        ...

    def reply(self) -> Reply:
        """Return the whole answer once the stream has ended.

        Raises:
            StreamTruncated: the terminal marker has not come.
        """
        ...


class Wire(Protocol):
    """A wire format, bound to one model. Pure; all runs share it."""

    @property
    def name(self) -> str:
        """The wire's name, as stored in `AssistantMessage.wire`."""
        ...

    @property
    def model(self) -> str:
        """The model's name on this wire."""
        ...

    @property
    def path(self) -> str:
        """The path below the base URL that requests are posted to."""
        ...

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the headers that authenticate and version a request."""
        ...

    def encoder(self) -> Encoder:
        """Return a fresh encoder for one run."""
        ...

    def decoder(self) -> Decoder:
        """Return a fresh decoder for one stream."""
        ...

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the error that an HTTP refusal means; never raises."""
        ...


class ModelSession(Protocol):
    """A provider's memory of one run: the messages that it has encoded."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask the model; yield deltas and, last, exactly one `Reply`.

        A session that asks again after content yields `Restarted` before the new deltas.
        Where the wire reports usage before the end, `UsageSoFar` comes in between. The usage of the
        reply counts all attempts, also those that failed before it. Closing the generator early
        closes the connection.

        Raises:
            ProviderError: the model could not be asked or did not answer completely.
        """
        ...


class Provider(Protocol):
    """A model: the seam for providers of your own."""

    @property
    def label(self) -> str:
        """The `"provider:model"` string that names this model in journals and diagrams."""
        ...

    def session(self) -> ModelSession:
        """Return a session for one run."""
        ...

    async def aclose(self) -> None:
        """Release connections; the provider can be used again afterwards."""
        ...
