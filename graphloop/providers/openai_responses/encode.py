"""Encode requests in the Responses wire format: the settings and tools, then the input items.

The server stores nothing (`store` is false), so each request holds the whole conversation, with the
encrypted reasoning of the model. The items come last: each request begins with the bytes of the
request before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, assert_never, final

from ...errors import ConfigError
from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    Settings,
    SystemMessage,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from ..call_ids import CallIds
from ..encoder import EncodedHistory, PrefixEncoder
from ..options import options_of
from ..strict_schema import is_strict, not_strict
from ..tool_forms import ToolForms
from ..wire_json import JsonObject, is_list, is_object, json_text, object_in, object_text, sent_name
from .items import RESPONSES_WIRE, assistant_items, result_item, user_item

__all__ = ["function_or_tool", "responses_encoder"]

ENCRYPTED: Final = "reasoning.encrypted_content"
"""The field to include in replies: the model's reasoning, which the next request sends back."""

_is_call_id = re.compile(r"[^\s]{1,64}", re.ASCII).fullmatch


def _is_own(tool: ToolSpec, definition: JsonObject) -> bool:  # noqa: ARG001 - it has no name
    kind = definition.get("type")
    return isinstance(kind, str) and kind not in {"function", "custom", ""}


TOOLS: Final = ToolForms(
    RESPONSES_WIRE,
    "OpenAI Responses",
    "a definition with a 'type', such as {'type': 'web_search'}",
    _is_own,
    {"strict": bool, "defer_loading": bool},
)
"""The tools of OpenAI's server, which have a type and no name."""

_STATEFUL: Final = "The journal holds the conversation, and each request sends it."

_OWNED: Final[Mapping[str, str]] = {
    "background": "A run waits for its reply; another process can resume the run.",
    "conversation": _STATEFUL,
    "input": "Give the run its messages.",
    "instructions": "Begin the messages with a SystemMessage.",
    "max_output_tokens": "Set Settings.max_tokens.",
    "parallel_tool_calls": "Set Settings.parallel_tool_calls.",
    "previous_response_id": _STATEFUL,
    "store": _STATEFUL,
}


def responses_encoder(model: str, *, encrypted_reasoning: bool, stream: bool) -> PrefixEncoder:
    """Return a new encoder for the requests of one run to `model`.

    Args:
        model: the model's name on the server.
        encrypted_reasoning: whether requests ask for the model's reasoning in encrypted form.
        stream: whether requests ask for a stream.
    """
    fixed = {"model": model, "stream": stream, "store": False}
    head = partial(_head, fixed, encrypted_reasoning)
    return PrefixEncoder(_ResponsesHistory, head)


@final
class _ResponsesHistory(EncodedHistory):
    def __init__(self) -> None:
        super().__init__()
        self._call_ids = CallIds(_is_call_id)

    def add(self, position: int, message: Message) -> None:
        match message:
            case SystemMessage():
                items = [json_text({"role": "system", "content": message.content})]
            case UserMessage():
                items = [user_item(message)]
            case ToolResult():
                items = [result_item(message, self._call_ids.of_result(message, position))]
            case AssistantMessage():
                items = assistant_items(message, self._call_ids.of_turn(message, position))
            case _:
                assert_never(message)
        for item in items:
            self.push(item.encode())

    def end(self, request: ModelRequest) -> bytes:
        del request
        return b"]}"


def _head(
    fixed: JsonObject,
    encrypted_reasoning: bool,  # noqa: FBT001 - the encoder passes it by `partial`
    request: ModelRequest,
    instructions: Sequence[str],
) -> bytes:
    """Return the request body up to and including the bracket that opens `input`."""
    del instructions  # This wire sends system messages in the history.
    settings = request.settings
    options, server_tools = options_of(settings, _OWNED)
    for tool in server_tools:
        _refuse_asking(tool, "Settings.options: tools")
    tools = [*map(function_or_tool, request.tools), *map(json_text, server_tools)]
    fields = dict(fixed)
    include = _included(options, encrypted_reasoning=encrypted_reasoning)
    if include:
        fields["include"] = include
    asked = {
        "max_output_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "parallel_tool_calls": settings.parallel_tool_calls if tools else None,
        **_text_format(request.output, options),
    }
    _refuse_missing(settings)
    fields |= {name: value for name, value in asked.items() if value is not None} | options
    head = json_text(fields)[:-1]
    if tools:
        head += f',"tools":[{",".join(tools)}]' + _choice(request.tool_choice, request.tools)
    return f'{head},"input":['.encode()


def _included(options: JsonObject, *, encrypted_reasoning: bool) -> list[object]:
    """Take `include` out of the options; return it with the field that the loop needs."""
    given: object = options.pop("include", [])
    if not is_list(given):
        raise ConfigError(
            f"Settings.options: expected an array at 'include', found {given!r:.80}. Fix: list the "
            "fields to include in the reply."
        )
    own = [ENCRYPTED] if encrypted_reasoning and ENCRYPTED not in given else []
    return [*own, *given]


def _refuse_missing(settings: Settings) -> None:
    """Refuse the settings that this wire format has no field for.

    Raises:
        ConfigError: a seed, or stop sequences.
    """
    for name, value in (("seed", settings.seed), ("stop_sequences", settings.stop_sequences)):
        if value not in (None, ()):
            raise ConfigError(
                f"Settings.{name}: expected none, since the OpenAI Responses wire has no such "
                f"field, found {value!r:.80}. Fix: leave it out for this model, or ask the model "
                "over chat completions ('openai:NAME')."
            )


def _text_format(output: OutputSpec | None, options: JsonObject) -> JsonObject:
    """Return the `text` field, with the output schema and other `text` settings of the options."""
    if output is None:
        return {}
    text: object = options.pop("text", {})
    if not is_object(text) or "format" in text:
        raise ConfigError(
            "Settings.options: expected an object without 'format' at 'text', where the request's "
            f"own output {output.name!r} goes, found {text!r:.80}. Fix: leave out one of the two."
        )
    schema = object_in(output.schema, place=f"output {output.name!r}: schema")
    about: JsonObject = {"type": "json_schema", "name": sent_name(output.name)}
    if output.description:
        about["description"] = output.description
    return {"text": {**text, "format": {**about, "strict": is_strict(schema), "schema": schema}}}


def function_or_tool(tool: ToolSpec) -> str:
    """Return the definition of a tool as JSON.

    Raises:
        ConfigError: this wire format cannot carry the tool.
    """
    if tool.kind == "provider":
        definition = TOOLS.definition(tool)
        place = f"tool {tool.name!r}"
        _refuse_asking(object_in(definition, place=place), place)
        return definition
    parameters = object_text(tool.parameters, place=f"tool {tool.name!r}: parameters")
    options = TOOLS.options(tool)
    if options.get("strict") and not is_strict(object_in(parameters, place=tool.name)):
        raise not_strict(tool, parameters)
    about = {"type": "function", "name": tool.name, "description": tool.description}
    # Without `strict`, this server makes the schema strict, and so optional parameters required.
    return f'{json_text({**about, "strict": False, **options})[:-1]},"parameters":{parameters}}}'


def _refuse_asking(definition: object, place: str) -> None:
    """Refuse an MCP server that OpenAI's server would ask about: such a question parks no run.

    Raises:
        ConfigError: the definition leaves a call to an approval, as OpenAI does by default.
    """
    if not is_object(definition) or definition.get("type") != "mcp":
        return
    found = definition.get("require_approval", "always")
    if found != "never":
        raise ConfigError(
            f"{place}: require_approval: expected 'never', since no run can wait for an approval "
            f"that OpenAI's server asks for, found {found!r:.80}. Fix: connect to the MCP server "
            "from here with `graphloop.mcp.http(url)`, so that a gate asks about its calls; or "
            "give require_approval='never'."
        )


def _choice(choice: ToolChoice, tools: Sequence[ToolSpec]) -> str:
    if choice.mode == "auto":
        return ""
    asked: object = choice.mode
    if choice.mode == "tool":
        asked = {"type": "function", "name": choice.name}
        for tool in tools:
            if tool.kind == "provider" and tool.name == choice.name:
                asked = {"type": object_in(tool.definition, place=tool.name)["type"]}
    return f',"tool_choice":{json_text(asked)}'
