"""Encode requests in the OpenAI chat wire format: the head and the messages.

The encoding of a message depends on that message and on earlier messages, never on later messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, final

from ...errors import ConfigError
from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from ..encoder import CallIds, EncodedHistory, PrefixEncoder
from ..options import options_of
from ..strict_schema import strict_form, strict_parameters
from ..tool_forms import ToolForms
from ..wire_json import (
    JsonObject,
    json_bytes,
    json_text,
    object_in,
    object_text,
    sent_name,
)
from .messages import (
    CHAT_WIRE,
    media_of_result,
    plain_message,
    result_message,
    spoken_in,
    turn_message,
)

__all__ = ["CALL_ID", "ChatFields", "chat_encoder", "tool_bytes"]

CALL_ID: Final = ".+"
"""Most servers accept every id of a call, except for an empty one."""

TOOLS: Final = ToolForms(CHAT_WIRE, "OpenAI chat", fields={"strict": bool})
"""Chat completions have no tools of the server."""

_OWNED: Final[Mapping[str, str]] = {
    "max_completion_tokens": "Set Settings.max_tokens.",
    "max_tokens": "Set Settings.max_tokens.",
    "n": "A model call is one answer: ask as often as you want answers.",
    "parallel_tool_calls": "Set Settings.parallel_tool_calls.",
    "seed": "Set Settings.seed.",
    "stop": "Set Settings.stop_sequences.",
}


class ChatFields(NamedTuple):
    """The request fields of one server.

    Attributes:
        max_tokens: the field for `Settings.max_tokens`.
        seed: the field for `Settings.seed`.
        asks_usage: whether the request asks for a report of its usage; some servers refuse this.
        stream: whether the reply is streamed.
        call_id: a regular expression for the ids of calls that the server accepts.
        unknown_fields: whether the server takes fields back that only it knows.
    """

    max_tokens: str
    seed: str = "seed"
    asks_usage: bool = True
    stream: bool = True
    call_id: str = CALL_ID
    unknown_fields: bool = True


def chat_encoder(model: str, names: ChatFields, *, reasoning: bool) -> PrefixEncoder:
    """Return a new encoder for the requests of one run to `model`.

    Args:
        model: the model's name on the server.
        names: the names of the request fields.
        reasoning: whether the model's reasoning may be sent back to the server.
    """
    head = partial(_head, model, names)
    return PrefixEncoder(partial(_ChatHistory, model, names, reasoning=reasoning), head)


@final
class _ChatHistory(EncodedHistory):
    def __init__(self, model: str, names: ChatFields, *, reasoning: bool) -> None:
        super().__init__()
        self._model = model
        self._turn_message = partial(
            turn_message, reasoning=reasoning, unknown_fields=names.unknown_fields
        )
        self._call_ids = CallIds(re.compile(names.call_id, re.DOTALL).fullmatch)
        # The media of the turn's results, which follow all its results.
        self._apart: list[JsonObject] = []

    def add(self, position: int, message: Message) -> None:
        if isinstance(message, ToolResult):
            call_id = self._call_ids.of_result(message, position)
            self._apart += media_of_result(message, call_id)
            self.push(json_bytes(result_message(message, call_id)))
            return
        if self._apart:
            self.push(self._apart_message())
            self._apart = []
        if isinstance(message, AssistantMessage):
            spoken = spoken_in(message, self._model, self.now)
            if spoken:
                self.valid_until = min(self.valid_until, spoken.until)
            entry = self._turn_message(message, self._call_ids.of_turn(message), spoken)
        else:
            entry = plain_message(message)
        self.push(json_bytes(entry))

    def end(self, request: ModelRequest) -> bytes:
        del request
        return (b"," + self._apart_message() if self._apart else b"") + b"]}"

    def _apart_message(self) -> bytes:
        return json_bytes({"role": "user", "content": self._apart})


def _head(
    model: str, names: ChatFields, request: ModelRequest, instructions: Sequence[str]
) -> bytes:
    """Return the request body up to and including the bracket that opens `messages`."""
    del instructions  # This wire sends system messages in the history.
    settings = request.settings
    options, server_tools = options_of(settings, _OWNED)
    tools = [*map(tool_bytes, request.tools), *map(json_bytes, server_tools)]
    fields: dict[str, object] = {"model": model, "stream": names.stream}
    if names.asks_usage and names.stream:
        fields["stream_options"] = {"include_usage": True}
    asked = {
        names.max_tokens: settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop": list(settings.stop_sequences) or None,
        names.seed: settings.seed,
        # Servers refuse this field in a request without tools.
        "parallel_tool_calls": settings.parallel_tool_calls if tools else None,
    }
    fields |= {name: value for name, value in asked.items() if value is not None}
    # Last, so that a caller's option can replace `stream_options`, which some servers refuse.
    fields |= options
    head = json_bytes(fields)[:-1] + _response_format(request.output, options)
    if tools:
        head += b',"tools":[' + b",".join(tools) + b"]" + _choice(request.tool_choice)
    return head + b',"messages":['


def _response_format(output: OutputSpec | None, options: JsonObject) -> bytes:
    if output is None:
        return b""
    if "response_format" in options:
        raise ConfigError(
            "Settings.options: expected no 'response_format', for the request's own output "
            f"{output.name!r} is written there. Leave one of the two out."
        )
    place = f"output {output.name!r}: schema"
    schema = object_text(output.schema, place=place)
    about: dict[str, object] = {"name": sent_name(output.name)}
    if output.description:
        about["description"] = output.description
    parsed = object_in(schema, place=place)
    form = strict_form(parsed)
    about["strict"] = form is not None
    if form not in (None, parsed):
        schema = json_text(form)
    named = json_bytes(about)[:-1] + b',"schema":' + schema.encode()
    return b',"response_format":{"type":"json_schema","json_schema":' + named + b"}}"


def tool_bytes(tool: ToolSpec) -> bytes:
    """Return the definition of a tool as JSON.

    Raises:
        ConfigError: this wire format cannot carry the tool.
    """
    TOOLS.check(tool)
    parameters = object_text(tool.parameters, place=f"tool {tool.name!r}: parameters")
    options = TOOLS.options(tool)
    if options.get("strict"):
        parameters = strict_parameters(tool, parameters)
    about = json_bytes({"name": tool.name, "description": tool.description})[:-1]
    function = about + b',"parameters":' + parameters.encode()
    if options:
        function += b"," + json_bytes(options)[1:-1]
    return b'{"type":"function","function":' + function + b"}}"


def _choice(choice: ToolChoice) -> bytes:
    if choice.mode == "auto":
        return b""
    named = {"type": "function", "function": {"name": choice.name}}
    return b',"tool_choice":' + json_bytes(named if choice.mode == "tool" else choice.mode)
