"""The values that models and tools exchange: messages, parts, calls, results, usage.

Roles are the OpenAI wire's strings (system, user, assistant, tool). Everything is a frozen
`msgspec.Struct`: made ten times faster than a frozen dataclass, and written as JSON without a
second description; `evolve` makes a changed copy. None can be part of a cycle, so the garbage
collector is told not to look (`gc=False`): with many runs alive it would do little else. A
part that only its wire understands is kept as JSON text (`extra`, `OpaquePart`), so that it
survives a round trip to the same wire. Arguments stay the model's string until a tool is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, final

from msgspec import Struct

if TYPE_CHECKING:
    # The same thing, and checkers know it: they test the names and types of what is changed.
    from dataclasses import replace as evolve
else:
    from msgspec.structs import replace as evolve

__all__ = [
    "AssistantMessage",
    "AssistantPart",
    "FilePart",
    "FinishReason",
    "ImagePart",
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
]


class FinishReason(StrEnum):
    """Why the model stopped, the same for every wire."""

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


class ImagePart(Struct, frozen=True, tag_field="type", tag="image", gc=False):
    """An image for the model: `source` is a URL, or base64 data when `media_type` is set.

    `detail` is how closely the chat wire's servers look at it; empty leaves it to them.
    """

    source: str
    media_type: str = ""
    detail: str = ""
    type: ClassVar[Literal["image"]] = "image"


class FilePart(Struct, frozen=True, tag_field="type", tag="file", gc=False):
    """A document for the model: base64 `data` of `media_type`, under `name`."""

    data: str
    media_type: str
    name: str = ""
    type: ClassVar[Literal["file"]] = "file"


class ReasoningPart(Struct, frozen=True, tag_field="type", tag="reasoning", gc=False):
    """The thoughts of the model. `signature` and `data` (redacted thinking) go back unchanged."""

    text: str
    signature: str = ""
    data: str = ""
    extra: str = ""
    type: ClassVar[Literal["reasoning"]] = "reasoning"


class ToolCall(Struct, frozen=True, tag_field="type", tag="tool_call", gc=False):
    """A request of the model to run a tool.

    `id` is the provider's and may repeat or be empty: it is sent back, never used as a key.
    `arguments` is the JSON text exactly as the model wrote it, valid or not.
    """

    id: str
    name: str
    arguments: str
    extra: str = ""
    type: ClassVar[Literal["tool_call"]] = "tool_call"


class OpaquePart(Struct, frozen=True, tag_field="type", tag="opaque", gc=False):
    """A block only its own wire understands (server tools, fallbacks …), as JSON text."""

    data: str
    type: ClassVar[Literal["opaque"]] = "opaque"


UserPart: TypeAlias = TextPart | ImagePart | FilePart
AssistantPart: TypeAlias = TextPart | ReasoningPart | ToolCall | OpaquePart


class SystemMessage(Struct, frozen=True, tag_field="role", tag="system", gc=False):
    """Instructions for the whole run."""

    content: str
    role: ClassVar[Literal["system"]] = "system"


class UserMessage(Struct, frozen=True, tag_field="role", tag="user", gc=False):
    """A message of a person. `origin` names the node that injected it, or is empty."""

    content: str | tuple[UserPart, ...]
    origin: str = ""
    role: ClassVar[Literal["user"]] = "user"


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant", gc=False):
    """A reply of the model: its parts in the order they came.

    `wire` names the wire that produced it; parts with provider data go back only to that wire.
    """

    parts: tuple[AssistantPart, ...]
    wire: str = ""
    extra: str = ""
    role: ClassVar[Literal["assistant"]] = "assistant"

    @property
    def text(self) -> str:
        """All text of the turn, without reasoning."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])

    @property
    def reasoning(self) -> str:
        """All readable reasoning of the turn."""
        return "".join([part.text for part in self.parts if isinstance(part, ReasoningPart)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turn, in request order."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def is_blank(self) -> bool:
        """Whether nothing but white space came; reasoning alone is not blank."""
        return all(isinstance(part, TextPart) and not part.text.strip() for part in self.parts)


ResultStatus: TypeAlias = Literal[
    "ok", "error", "invalid", "unknown_tool", "denied", "timeout", "not_run", "unknown"
]


class ToolResult(Struct, frozen=True, tag_field="role", tag="tool", gc=False):
    """The one answer to one `ToolCall`; in a history it is the message of role `tool`.

    `key` is graphloop's own key of the call (`call_key`); `call_id` the provider's id, for the
    wire. `content` is what the model reads: text, or parts with images.
    """

    key: str
    call_id: str
    name: str
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"
    role: ClassVar[Literal["tool"]] = "tool"

    @property
    def is_error(self) -> bool:
        """Whether the model is told that the call did not succeed."""
        return self.status != "ok"

    @property
    def text(self) -> str:
        """The textual content."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def value(self) -> object:
        """The content as the tool returned it: parsed JSON where it is JSON, else the text."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResult


def call_key(turn: int, index: int) -> str:
    """Return the key of call `index` of turn `turn` in its run: unique whatever ids come."""
    return f"c{turn}.{index}"


def call_place(key: str) -> int:
    """Return the place of a call in its turn, from its key."""
    return int(key.rpartition(".")[2])


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one or more model calls.

    `input_tokens` excludes what was read from or written to a prompt cache; `output_tokens`
    includes `reasoning_tokens` (providers differ, codecs normalise).
    `server_tool_calls` counts the tools that the provider ran itself; they are no tokens.
    `untold_attempts` counts attempts whose server showed content, and told no usage.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    server_tool_calls: int = 0
    untold_attempts: int = 0

    @property
    def total_tokens(self) -> int:
        """Everything that was read or written."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.server_tool_calls + other.server_tool_calls,
            self.untold_attempts + other.untold_attempts,
        )


class Reply(Struct, frozen=True, omit_defaults=True, gc=False):
    """A complete answer of a model: the only thing a stream may end with.

    `raw_finish_reason` is the provider's own word; `model` the model that answered;
    `metadata` JSON text of what the provider said beside the message.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage = Usage()
    raw_finish_reason: str = ""
    model: str = ""
    metadata: str = ""


ToolKind: TypeAlias = Literal["function", "client", "agent", "provider"]


class ToolSpec(Struct, frozen=True, gc=False):
    """A tool as a model sees it: name, description, and its parameters as JSON Schema text.

    `kind` says who runs it: a `function` of this process; a `client`, so that a call parks the run
    until its result arrives; an `agent`, as a child run; or the `provider` itself, in the middle of
    a reply, by its own `definition` (JSON text, sent as it is). `ends` says that a turn in which
    only such tools ran, and all went well, is the run's last; so is one in which an agent that
    `ends` took over, whatever ran beside it. Of the tools with the same `lock`, if there is one,
    no two calls run at once.
    """

    name: str
    description: str
    parameters: str
    kind: ToolKind = "function"
    ends: bool = False
    definition: str = ""
    lock: str = ""

    @property
    def takes_over(self) -> bool:
        """Whether a call of it is a handoff: an agent whose answer is the run's."""
        return self.ends and self.kind == "agent"


@final
class ToolSpecs(tuple[ToolSpec, ...]):
    """Tools on offer: a tuple that keeps its look-ups by name.

    All turns of a run share one, so that no turn pays for tools that it does not call.

    Attributes:
        by_name: all tools.
        callable: the tools that a model can call: all but those of its provider.
        ending: the tools that can end the run.
    """

    by_name: Mapping[str, ToolSpec]
    callable: Mapping[str, ToolSpec]
    ending: tuple[ToolSpec, ...]

    def __new__(cls, tools: Iterable[ToolSpec] = ()) -> ToolSpecs:
        """Make the look-ups."""
        self = super().__new__(cls, tools)
        self.by_name = {tool.name: tool for tool in self}
        self.callable = {tool.name: tool for tool in self if tool.kind != "provider"}
        self.ending = tuple([tool for tool in self if tool.ends])
        return self


class ToolChoice(Struct, frozen=True, gc=False):
    """How freely the model may choose: `auto`, `required`, `none`, or one tool by name.

    The `scope` is every turn, or the first one only: `required` in every turn lets no run end
    of itself.
    """

    mode: Literal["auto", "required", "none", "tool"] = "auto"
    name: str = ""
    scope: Literal["every_step", "first_step"] = "every_step"


class OutputSpec(Struct, frozen=True, gc=False):
    """The form that a final answer must have: `schema` is JSON Schema text."""

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
    """Everything one model call says, in no wire's words.

    `messages` is usually a `History`; `tools` are those offered in this turn only. `output`, where
    the wire has a field for it, is the form in which the server makes the model answer.
    """

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    settings: Settings = Settings()
    output: OutputSpec | None = None
