"""The values that models and tools exchange: messages, parts, calls, results, usage.

Roles are the strings of the OpenAI wire (system, user, assistant, tool). Every value is a frozen
`msgspec.Struct`: it is created ten times faster than a frozen dataclass and needs no JSON schema of
its own; a default `[]` or `{}` is a new one for each. `evolve` makes a changed copy. Values form no
reference cycles, so the garbage collector skips them (`gc=False`); with many live runs it would
take most of the time. Data that only one wire understands stays JSON text (`extra`, `OpaquePart`),
so that it survives a round trip to the same wire. The arguments of a call stay the model's string
until the tool runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, final

from msgspec import Struct

from .media import MediaPart
from .spending import NO_USAGE, Usage

if TYPE_CHECKING:
    # For type checkers, which know `dataclasses.replace` and check the fields given to it.
    from dataclasses import replace as evolve
else:
    from msgspec.structs import replace as evolve

__all__ = [
    "NO_USAGE",
    "AssistantMessage",
    "AssistantPart",
    "FinishReason",
    "MediaPart",
    "Message",
    "ModelRequest",
    "OpaquePart",
    "OutputSpec",
    "ReasoningPart",
    "Reply",
    "ResultStatus",
    "Settings",
    "SystemMessage",
    "TextPart",
    "ToolCall",
    "ToolChoice",
    "ToolKind",
    "ToolResult",
    "ToolSpec",
    "ToolSpecs",
    "Usage",
    "UserMessage",
    "UserPart",
    "call_key",
    "call_place",
    "evolve",
    "idempotency_key",
]


class FinishReason(StrEnum):
    """The reason why the model ended its reply, in the same terms for every wire."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    STOP_SEQUENCE = "stop_sequence"
    PAUSE = "pause"
    CONTEXT_WINDOW = "context_window"
    OTHER = "other"


class TextPart(Struct, frozen=True, tag_field="type", tag="text", gc=False):
    """Text that a person or a model wrote."""

    text: str
    extra: str = ""
    type: ClassVar[Literal["text"]] = "text"


class ReasoningPart(Struct, frozen=True, tag_field="type", tag="reasoning", gc=False):
    """A model's reasoning; `signature` and `data` (redacted text) are sent back unchanged."""

    text: str
    signature: str = ""
    data: str = ""
    extra: str = ""
    type: ClassVar[Literal["reasoning"]] = "reasoning"


class ToolCall(Struct, frozen=True, tag_field="type", tag="tool_call", gc=False):
    """A request of the model to run a tool.

    `id` comes from the provider and may repeat or be empty; it is sent back, never used as a key.
    `arguments` is the JSON text exactly as the model wrote it, valid or not.
    """

    id: str
    name: str
    arguments: str
    extra: str = ""
    type: ClassVar[Literal["tool_call"]] = "tool_call"


class OpaquePart(Struct, frozen=True, tag_field="type", tag="opaque", gc=False):
    """A content block that only its own wire understands, such as a server tool, as JSON text."""

    data: str
    type: ClassVar[Literal["opaque"]] = "opaque"


UserPart: TypeAlias = TextPart | MediaPart
AssistantPart: TypeAlias = TextPart | ReasoningPart | MediaPart | ToolCall | OpaquePart


class SystemMessage(Struct, frozen=True, tag_field="role", tag="system", gc=False):
    """Instructions for the whole run."""

    content: str
    role: ClassVar[Literal["system"]] = "system"


class UserMessage(Struct, frozen=True, tag_field="role", tag="user", gc=False):
    """A user message; `origin` is the name of the node that added the message, or empty."""

    content: str | tuple[UserPart, ...]
    origin: str = ""
    role: ClassVar[Literal["user"]] = "user"


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant", gc=False):
    """A reply of the model: its parts, in the order in which they arrived.

    `wire` names the wire that produced it; parts with provider data go back only to that wire.
    `service` names the service and the account that can read this data, as an `Endpoint` tells
    them; empty if each service on the wire can.
    """

    parts: tuple[AssistantPart, ...]
    wire: str = ""
    extra: str = ""
    service: str = ""
    role: ClassVar[Literal["assistant"]] = "assistant"

    @property
    def text(self) -> str:
        """All text of the message, without reasoning."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])

    @property
    def reasoning(self) -> str:
        """All readable reasoning of the message."""
        return "".join([part.text for part in self.parts if type(part) is ReasoningPart])

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The pictures and sounds that the model made, in order, as any model can be shown them.

        So they lack their `extra`, which only the wire that made them knows.
        """
        return tuple([evolve(part, extra="") for part in self.parts if type(part) is MediaPart])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the message, in request order."""
        calls: list[ToolCall] = []
        for part in self.parts:
            if type(part) is ToolCall:
                calls.append(part)  # noqa: PERF401 - costs less than a comprehension
        return tuple(calls)

    @property
    def is_blank(self) -> bool:
        """Whether the message has only white space; a message with reasoning is not blank."""
        for part in self.parts:  # noqa: SIM110 - a generator costs more than most messages
            if type(part) is not TextPart or part.text.strip():
                return False
        return True


ResultStatus: TypeAlias = Literal[
    "ok", "error", "invalid", "unknown_tool", "denied", "timeout", "not_run", "unknown"
]


class ToolResult(Struct, frozen=True, tag_field="role", tag="tool", gc=False):
    """The only result of one `ToolCall`; in a history, the result is a message of role `tool`.

    `key` is graphloop's own key of the call (`call_key`), and `call_id` the provider's id. The
    model reads `content`: text, or parts with media. `data` is JSON text for programs and pages,
    which no model reads; empty if there is none.
    """

    key: str
    call_id: str
    name: str
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"
    data: str = ""
    role: ClassVar[Literal["tool"]] = "tool"

    @property
    def is_error(self) -> bool:
        """Whether the model is told that the call did not succeed."""
        return self.status != "ok"

    @property
    def text(self) -> str:
        """The text in `content`, without media."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def value(self) -> object:
        """The `data`, or else the text parsed as JSON, or else the text itself."""
        try:
            return json.loads(self.data or self.text)
        except (ValueError, RecursionError):
            return self.text


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResult


def call_key(turn: int, index: int) -> str:
    """Return the key of call `index` of turn `turn`: unique in its run, unlike a provider's ids."""
    return f"c{turn}.{index}"


def idempotency_key(run_id: str, key: str) -> str:
    """Return a key for external services: equal for all attempts at one call or visit of a run."""
    return sha256(f"{run_id}\0{key}".encode()).digest()[:16].hex()


def call_place(key: str) -> int:
    """Return the position of a call in its turn, from the call's key."""
    return int(key.rpartition(".")[2])


class Reply(Struct, frozen=True, omit_defaults=True, gc=False):
    """A complete reply of a model; a stream that ends without a complete reply is an error.

    `raw_finish_reason` is the finish reason in the provider's own term. `model` names the model
    that replied. `metadata` is JSON text with the provider's data beside the message.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage = NO_USAGE
    raw_finish_reason: str = ""
    model: str = ""
    metadata: str = ""


ToolKind: TypeAlias = Literal["function", "client", "agent", "provider"]


class ToolSpec(Struct, frozen=True, gc=False):
    """A tool as a model sees it: name, description, and its parameters as JSON Schema text.

    `kind` says where a call runs: `function`, in this process; `client`, in the caller's process,
    so the run parks until the result arrives; `agent`, in a child run; `provider`, on the model's
    server during a reply, by the `definition` (JSON text, sent unchanged). Only the wire format
    named `wire` sends such a tool; empty for each wire format that knows the definition's form. The
    `definition` of another tool has further fields that its wire format adds. A
    turn ends the run if all its calls succeeded and were of tools with `ends`. A turn also ends the
    run if a call of an `agent` with `ends` succeeded. Calls of tools with the same non-empty `lock`
    never overlap. `server` names the foreign server that runs the tool, for people.
    """

    name: str
    description: str
    parameters: str
    kind: ToolKind = "function"
    ends: bool = False
    definition: str = ""
    lock: str = ""
    wire: str = ""
    server: str = ""

    @property
    def takes_over(self) -> bool:
        """Whether a call of this tool is a handoff: the agent's answer becomes the run's answer."""
        return self.ends and self.kind == "agent"


@final
class ToolSpecs(tuple[ToolSpec, ...]):
    """The tools on offer: a tuple with indexes by name.

    All turns of a run share one instance, so that its indexes are built only once.

    Attributes:
        by_name: all tools, by name.
        callable: the tools that a model can call, by name: all except provider tools.
        ending: the tools whose calls can end the run.
        unbound: the names of the functions without a lock, whose calls may start at any time.
    """

    by_name: Mapping[str, ToolSpec]
    callable: Mapping[str, ToolSpec]
    ending: tuple[ToolSpec, ...]
    unbound: frozenset[str]

    def __new__(cls, tools: Iterable[ToolSpec] = ()) -> ToolSpecs:
        """Create the tuple of tools and build its indexes by name."""
        self = super().__new__(cls, tools)
        self.by_name = {tool.name: tool for tool in self}
        self.callable = {tool.name: tool for tool in self if tool.kind != "provider"}
        self.ending = tuple([tool for tool in self if tool.ends])
        free = [tool.name for tool in self if tool.kind == "function" and not tool.lock]
        self.unbound = frozenset(free)
        return self


class ToolChoice(Struct, frozen=True, gc=False):
    """The tools that the model may or must call: `auto`, `required`, `none`, or one tool by name.

    The `scope` is every turn or the first turn only. With `required` in every turn, the model can
    never end a run with an answer.
    """

    mode: Literal["auto", "required", "none", "tool"] = "auto"
    name: str = ""
    scope: Literal["every_step", "first_step"] = "every_step"


class OutputSpec(Struct, frozen=True, gc=False):
    """The form that a final answer must have; `schema` is its JSON Schema text."""

    name: str
    schema: str
    description: str = ""


class Settings(Struct, frozen=True, gc=False):
    """Sampling settings of a model call; `None` leaves a setting to the server.

    `options` is JSON text of provider options: fields merged into the request body verbatim.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()
    seed: int | None = None
    parallel_tool_calls: bool | None = None
    options: str = ""


class ModelRequest(Struct, frozen=True, gc=False):
    """The content of one model call, independent of the format of any wire.

    `messages` is usually a `History`. `tools` are the tools offered in this turn. `output` is the
    form that the server enforces for the answer, on wires with a field for it.
    """

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    settings: Settings = Settings()
    output: OutputSpec | None = None
