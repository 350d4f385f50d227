"""Requests of the OpenAI chat wire: each message is encoded once, the body is a join.

The messages stand last in the body, so that while a run only appends, all bytes up to the end of
the last message are a prefix of the next request: prompt caches hit it. The form of a message
depends only on that message and those before it, never on later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, final

from ...errors import ConfigError
from ...values import Message, ModelRequest, OutputSpec, Settings, ToolChoice, ToolSpec
from ..options import options_of
from ..output_schema import is_strict
from ..sent_messages import SentMessages
from ..wire_json import JsonObject, json_bytes, object_in, object_text, sent_name
from .messages import Batch, encode_message

__all__ = ["ChatEncoder"]

_END_OF_BODY: Final = b"]}"

_HeadOf: TypeAlias = tuple[tuple[ToolSpec, ...], ToolChoice, Settings, OutputSpec | None]

_OWNED: Final[Mapping[str, str]] = {
    "max_completion_tokens": "Set Settings.max_tokens.",
    "max_tokens": "Set Settings.max_tokens.",
    "n": "A model call is one answer: ask as often as you want answers.",
    "parallel_tool_calls": "Set Settings.parallel_tool_calls.",
    "seed": "Set Settings.seed.",
    "stop": "Set Settings.stop_sequences.",
}


@final
class ChatEncoder:
    """Encodes the requests of one run, and keeps the encoded messages (see `Encoder`)."""

    def __init__(self, model: str, max_tokens_field: str, *, reasoning: bool = True) -> None:
        """Start a run with `model`, whose server names the limit `max_tokens_field`.

        `reasoning` is whether a turn's reasoning may go back to the server.
        """
        self._model = model
        self._max_tokens_field = max_tokens_field
        self._reasoning = reasoning
        self._head_of: _HeadOf | None = None
        self._head = b""
        self._sent = SentMessages()
        self._batch = Batch()

    def encode(self, request: ModelRequest) -> list[bytes]:
        """Return the request body in parts; their join is one JSON object.

        Raises:
            ConfigError: the settings' options, a tool's parameters, the output's schema or a
                message's `extra` are not JSON objects, the options hold a field that graphloop
                writes itself, or a tool is to be run by the server.
        """
        asked = (request.tools, request.tool_choice, request.settings, request.output)
        if asked != self._head_of:
            self._head = _head(self._model, self._max_tokens_field, request)
            self._head_of = asked
        if not self._sent.begin(request.messages):
            self._sent, self._batch = SentMessages(), Batch()
        self._append_new(request.messages)
        # An unfinished batch of results keeps its images back. They are sent, but not remembered:
        # the results still to come must follow their calls directly.
        waiting = b"".join(b"," + json_bytes(entry) for entry in self._batch.held())
        return [self._head, *self._sent.parts, waiting + _END_OF_BODY]

    def _append_new(self, messages: Sequence[Message]) -> None:
        batch, entries = self._batch, list[bytes]()
        for index, message in self._sent.missing_in(messages):
            batch, encoded = encode_message(batch, index, message, reasoning=self._reasoning)
            entries += map(json_bytes, encoded)
        self._sent.keep(messages)
        self._batch = batch
        if entries:
            self._sent.push((b"," if self._sent.parts else b"") + b",".join(entries))


def _head(model: str, max_tokens_field: str, request: ModelRequest) -> bytes:
    """Return the body up to and with the bracket that opens the messages."""
    settings = request.settings
    options, server_tools = options_of(settings, _OWNED)
    tools = [*map(_tool, request.tools), *map(json_bytes, server_tools)]
    fields: dict[str, object] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    asked = {
        max_tokens_field: settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop": list(settings.stop_sequences) or None,
        "seed": settings.seed,
        # Servers refuse this field in a request without tools.
        "parallel_tool_calls": settings.parallel_tool_calls if tools else None,
    }
    fields |= {name: value for name, value in asked.items() if value is not None}
    fields |= options  # `stream_options` among them: some servers refuse ours.
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


def _tool(tool: ToolSpec) -> bytes:
    if tool.kind == "provider":
        raise ConfigError(
            f"tool {tool.name!r}: expected a tool that runs here, found one that the model's "
            "server runs itself; the OpenAI chat wire has none. Offer it to a model on the "
            "Anthropic wire, or give a function that does the same."
        )
    parameters = object_text(tool.parameters, place=f"tool {tool.name!r}: parameters")
    about = json_bytes({"name": tool.name, "description": tool.description})[:-1]
    function = about + b',"parameters":' + parameters.encode()
    return b'{"type":"function","function":' + function + b"}}"


def _choice(choice: ToolChoice) -> bytes:
    if choice.mode == "auto":
        return b""
    named = {"type": "function", "function": {"name": choice.name}}
    return b',"tool_choice":' + json_bytes(named if choice.mode == "tool" else choice.mode)
