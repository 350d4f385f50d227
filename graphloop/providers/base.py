"""Interfaces between a run and a model: `Wire` (the data format) and `Provider` (the exchange).

A **wire** does no I/O: its encoder turns a request into bytes, and its decoder turns server-sent
events into deltas and one reply. A **provider** sends the request and reads the response. Every
response is streamed; a buffered answer is collected from a stream. The last item of every stream is
one `Reply`. A stream that cannot end with a reply raises a `ProviderError`, and its deltas are
void. A stream also reports usage before its end, because a caller pays for unfinished replies too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct
from typing_extensions import TypeIs

from ..errors import ProviderError
from ..values import ModelRequest, Reply, ToolSpec, Usage

__all__ = [
    "DELTAS",
    "LIVE",
    "ApiKey",
    "BufferedWire",
    "Decoder",
    "Delta",
    "Encoder",
    "Live",
    "MediaDelta",
    "ModelSession",
    "Postponed",
    "Provider",
    "ProviderToolDelta",
    "ProviderToolState",
    "ReasoningDelta",
    "Restarted",
    "ServerEvent",
    "StreamItem",
    "TextDelta",
    "ToolCallDelta",
    "UsageSoFar",
    "WaitReason",
    "Waiting",
    "Wire",
    "is_delta",
    "is_live",
]


ApiKey: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""An API key, or a function that returns the key for the next attempt at a model call."""


class TextDelta(Struct, frozen=True, tag_field="type", tag="text-delta", gc=False):
    """The next piece of an answer's text while it streams, in whole characters."""

    text: str
    type: ClassVar[Literal["text-delta"]] = "text-delta"


class ReasoningDelta(Struct, frozen=True, tag_field="type", tag="reasoning-delta", gc=False):
    """The next piece of the model's readable reasoning while it streams."""

    text: str
    type: ClassVar[Literal["reasoning-delta"]] = "reasoning-delta"


class ToolCallDelta(Struct, frozen=True, tag_field="type", tag="tool-call-delta", gc=False):
    """The next piece of a tool call's JSON arguments while they stream.

    `index` is the call's position in the turn, from 0. `id` and `name` are set on the first piece
    of a call and empty on later pieces.
    """

    index: int
    id: str
    name: str
    arguments_delta: str
    type: ClassVar[Literal["tool-call-delta"]] = "tool-call-delta"


ProviderToolState: TypeAlias = Literal["started", "running", "done", "failed"]


class ProviderToolDelta(Struct, frozen=True, tag_field="type", tag="provider-tool-delta", gc=False):
    """The new state of a tool that the model's server runs while it writes the reply.

    `index` is the position of the run among the server's tool runs in this reply, from 0. A tool
    is `started` when its name is known, `running` when its arguments are complete, and at last
    `done` or `failed`. Some servers skip states. `arguments` is their JSON text, as soon as the
    server has sent all of it. The reply keeps calls and results (`OpaquePart`).
    """

    index: int
    name: str
    state: ProviderToolState
    arguments: str = ""
    type: ClassVar[Literal["provider-tool-delta"]] = "provider-tool-delta"


class MediaDelta(Struct, frozen=True, tag_field="type", tag="media-delta", gc=False):
    """The next piece of a picture or sound that the model generates.

    `index` is the position of the medium in the reply, and `data` the base64 text of whole bytes.
    The pieces with one index, joined, are the medium. A `preview` is a whole picture: the next
    piece with its index replaces it.
    """

    index: int
    media_type: str
    data: str
    preview: bool = False
    type: ClassVar[Literal["media-delta"]] = "media-delta"


WaitReason: TypeAlias = Literal[
    "requests_per_minute", "tokens_per_minute", "concurrent", "rate_limited", "fleet"
]


class Waiting(Struct, frozen=True, tag_field="type", tag="waiting", gc=False):
    """A request to a model waits before it is sent.

    `reason` is the limit of the provider's `Limits`, `fleet` for a `Rate` that processes share, or
    `rate_limited` after the server has refused a request for too many.
    `seconds` is the wait; None until another request ends.
    """

    model: str
    reason: WaitReason
    seconds: float | None = None
    type: ClassVar[Literal["waiting"]] = "waiting"


Delta: TypeAlias = (
    TextDelta | ReasoningDelta | ToolCallDelta | ProviderToolDelta | MediaDelta | Waiting
)


class Restarted(Struct, frozen=True, gc=False):
    """The provider sends the request again: all earlier deltas of this model call are void."""


Live: TypeAlias = Delta | Restarted
"""The items of a model call's stream that listeners see before the reply."""

DELTAS: Final = frozenset[type](get_args(Delta))
"""The types of `Delta`."""

LIVE: Final = DELTAS | {Restarted}
"""The types of `Live`."""


# Not `isinstance`: for a value of none of the seven types it takes 2 µs, and this takes 0.1 µs.
def is_delta(item: object) -> TypeIs[Delta]:
    """Whether an item is one of `DELTAS`."""
    return type(item) in DELTAS


def is_live(item: object) -> TypeIs[Live]:
    """Whether an item is one of `LIVE`."""
    return type(item) in LIVE


class UsageSoFar(Struct, frozen=True, tag_field="type", tag="usage-so-far", gc=False):
    """The usage of a model call so far, which counts if no reply follows.

    Each item replaces the previous item. A decoder counts its own stream. A session adds the usage
    of earlier failed attempts, and also counts a failed attempt without a usage report. Listeners
    do not see this item.
    """

    usage: Usage
    type: ClassVar[Literal["usage-so-far"]] = "usage-so-far"


StreamItem: TypeAlias = Live | UsageSoFar | Reply


class ServerEvent(Struct, frozen=True, gc=False):
    """A server-sent event: its `event:` name and its joined `data:` lines."""

    name: str
    data: bytes


class Encoder(Protocol):
    """Encodes the requests of one run, each message only once."""

    def encode(self, request: ModelRequest) -> list[bytes]:
        """Return the request body as parts that concatenate to one JSON object.

        Only data taken from the messages, such as a container id, follows them in the body. So if a
        run only appends messages, the body up to its last message is a byte prefix of the next
        body. The encoder keeps encoded messages, so the work depends only on the new messages.
        """
        ...


class Decoder(Protocol):
    """Decodes the server-sent events of one response stream."""

    def feed(self, event: ServerEvent) -> Iterable[Live | UsageSoFar]:
        """Decode an event; return the deltas to show, and the usage if the event reports it.

        A returned `Restarted` makes the earlier deltas of this stream void.

        Raises:
            BadReply: the event is not valid JSON or does not follow this wire format.
            ProviderError: the event reports a server error, which determines the subclass.
        """
        ...

    @property
    def content_started(self) -> bool:
        """Whether the stream has delivered content, which a retry would make void."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the stream has delivered its terminal marker."""
        ...

    def reply(self) -> Reply:
        """Return the complete reply after the stream has ended.

        Raises:
            StreamTruncated: the stream ended without its terminal marker.
        """
        ...


class Wire(Protocol):
    """A wire format for one model; it does no I/O, and all runs share it."""

    @property
    def name(self) -> str:
        """The name of the wire format, as stored in `AssistantMessage.wire`."""
        ...

    @property
    def model(self) -> str:
        """The model's name in requests."""
        ...

    @property
    def path(self) -> str:
        """The URL path for requests, relative to the base URL."""
        ...

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the HTTP headers that authenticate a request and name the API version."""
        ...

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry.

        The encoder refuses the same tools. An agent calls this method when it is constructed.

        Raises:
            ConfigError: the tool belongs to another wire format; the message names both.
        """
        ...

    def encoder(self) -> Encoder:
        """Return a new encoder for the requests of one run."""
        ...

    def decoder(self) -> Decoder:
        """Return a new decoder for one response stream."""
        ...

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the `ProviderError` for an HTTP error response; never raises."""
        ...


class BufferedWire(Wire, Protocol):
    """A wire format that can also read a reply in one piece, from a server without streaming."""

    @property
    def stream(self) -> bool:
        """Whether requests ask for a stream; otherwise the reply comes in one piece."""
        ...

    def events_of(self, body: bytes) -> Iterable[ServerEvent]:
        """Return the events of the stream that the decoder would read in place of `body`.

        Raises:
            BadReply: `body` is not a JSON object.
        """
        ...


class Postponed(Exception):
    """Raised in place of a model call that is too early: nothing was sent, and its run may park.

    Attributes:
        seconds: the seconds after which the call is worth another attempt.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the model may be asked in {seconds:.1f} s")
        self.seconds = seconds


class ModelSession(Protocol):
    """A provider's session for one run, which keeps the run's encoded messages."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Send `request` to the model; yield deltas and, last, exactly one `Reply`.

        If the session retries after content, it yields `Restarted` before the new deltas. If the
        wire reports usage before the end, the session yields `UsageSoFar` in between. The reply's
        usage includes all failed attempts. Closing the generator early closes the connection.

        Raises:
            ProviderError: the server could not be reached, refused the request, or did not answer
                completely.
        """
        ...


class Provider(Protocol):
    """A model that runs can call; implement this protocol to add a provider of your own."""

    @property
    def label(self) -> str:
        """The `"provider:model"` name of this model in journals and diagrams."""
        ...

    def session(self) -> ModelSession:
        """Return a new session for the model calls of one run."""
        ...

    async def aclose(self) -> None:
        """Close the connections; the provider can be used again afterwards."""
        ...
