"""Encode requests in the OpenAI chat wire format: the head and the messages.

The encoding of a message depends on that message and on earlier messages, never on later messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, final

from ...errors import ConfigError
from ...values import Message, ModelRequest, OutputSpec, ToolChoice, ToolSpec
from ..encoder import EncodedHistory, PrefixEncoder
from ..options import options_of
from ..strict_schema import is_strict, not_strict
from ..tool_forms import ToolForms
from ..wire_json import (
    JsonObject,
    json_bytes,
    object_in,
    object_text,
    sent_name,
)
from .messages import CHAT_WIRE, Batch, encode_message

__all__ = ["ChatFields", "chat_encoder", "tool_bytes"]

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
    """

    max_tokens: str
    seed: str = "seed"
    asks_usage: bool = True
    stream: bool = True


def chat_encoder(model: str, names: ChatFields, *, reasoning: bool) -> PrefixEncoder:
    """Return a new encoder for the requests of one run to `model`.

    Args:
        model: the model's name on the server.
        names: the names of the request fields.
        reasoning: whether the model's reasoning may be sent back to the server.
    """
    head = partial(_head, model, names)
    return PrefixEncoder(partial(_ChatHistory, reasoning=reasoning), head)


@final
class _ChatHistory(EncodedHistory):
    def __init__(self, *, reasoning: bool) -> None:
        super().__init__()
        self._reasoning = reasoning
        self._batch = Batch()

    def add(self, position: int, message: Message) -> None:
        self._batch, entries = encode_message(
            self._batch, position, message, reasoning=self._reasoning
        )
        for entry in entries:
            self.push(json_bytes(entry))

    def end(self, request: ModelRequest) -> bytes:
        del request
        # Images of an unfinished batch of results are sent here but not stored as encoded: in the
        # next request, the remaining results must come before the images.
        waiting = b"".join(b"," + json_bytes(entry) for entry in self._batch.waiting())
        return waiting + b"]}"


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
    about["strict"] = is_strict(object_in(schema, place=place))
    named = json_bytes(about)[:-1] + b',"schema":' + schema.encode()
    return b',"response_format":{"type":"json_schema","json_schema":' + named + b"}}"


def tool_bytes(tool: ToolSpec) -> bytes:
    """Return the definition of a tool as JSON.

    Raises:
        ConfigError: this wire format cannot carry the tool.
    """
    TOOLS.check(tool)
    parameters = object_text(tool.parameters, place=f"tool {tool.name!r}: parameters")
    about = json_bytes({"name": tool.name, "description": tool.description})[:-1]
    function = about + b',"parameters":' + parameters.encode()
    if options := TOOLS.options(tool):
        schema = object_in(parameters, place=f"tool {tool.name!r}: parameters")
        if options["strict"] and not is_strict(schema):
            raise not_strict(tool, parameters)
        function += b"," + json_bytes(options)[1:-1]
    return b'{"type":"function","function":' + function + b"}}"


def _choice(choice: ToolChoice) -> bytes:
    if choice.mode == "auto":
        return b""
    named = {"type": "function", "function": {"name": choice.name}}
    return b',"tool_choice":' + json_bytes(named if choice.mode == "tool" else choice.mode)
