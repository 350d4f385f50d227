"""Encode the part of an Anthropic request before its messages: settings, tools, system text.

Fields have a fixed order, so equal requests give equal bytes. A server tool is sent as its
definition. Server tools from the provider options follow the request's own tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...errors import ConfigError, nearest
from ...values import ModelRequest, OutputSpec, Settings, ToolChoice, ToolSpec
from ..options import options_of
from ..tool_forms import ToolForms
from ..wire_json import JsonObject, is_object, json_text, object_text
from .blocks import ANTHROPIC_WIRE
from .container import names_container
from .output_schema import closed_schema

__all__ = ["HeadFields", "head_bytes", "tool_text"]


def _is_own(tool: ToolSpec, definition: JsonObject) -> bool:
    return definition.get("name") == tool.name and isinstance(definition.get("type"), str)


TOOLS: Final = ToolForms(
    ANTHROPIC_WIRE,
    "Anthropic Messages",
    "a definition with a 'type' and the tool's 'name'",
    _is_own,
    {
        "allowed_callers": list,
        "cache_control": dict,
        "defer_loading": bool,
        "eager_input_streaming": bool,
        "input_examples": list,
        "strict": bool,
    },
)
"""The tools of Anthropic's server have a type with a date, and a fixed name."""

_OWNED: Final[Mapping[str, str]] = {
    "max_tokens": "Set Settings.max_tokens.",
    "stop_sequences": "Set Settings.stop_sequences.",
    "system": "Begin the messages with a SystemMessage.",
}


class HeadFields(NamedTuple):
    """The fields that each request of a wire has: its model, a default limit, and streaming."""

    model: str
    max_tokens: int
    stream: bool


def head_bytes(request: ModelRequest, instructions: Sequence[str], *, fixed: HeadFields) -> bytes:
    """Return the request body up to and including the bracket that opens `messages`.

    Raises:
        ConfigError: this wire format cannot express a setting, tool or option.
    """
    settings = request.settings
    options, server_tools = options_of(settings, _OWNED)
    if not names_container(options):
        options.pop("container", None)  # `container_member` writes it after the messages.
    max_tokens = fixed.max_tokens if settings.max_tokens is None else settings.max_tokens
    head = fixed._replace(max_tokens=max_tokens)._asdict()
    fields = {name: json_text(value) for name, value in head.items()}
    fields |= _sampling_fields(settings)
    output = _output_config(request.output, options)
    fields |= {name: json_text(value) for name, value in options.items()} | output
    fields |= _tools(request.tools, server_tools)
    names = [spec.name for spec in request.tools] + _tool_names(server_tools)
    fields |= _tool_choice(request.tool_choice, settings, names)
    if system := "\n\n".join(filter(None, instructions)):
        fields["system"] = json_text(system)
    members = "".join(f"{json_text(name)}:{text}," for name, text in fields.items())
    return f'{{{members}"messages":['.encode()


def _sampling_fields(settings: Settings) -> dict[str, str]:
    if settings.seed is not None:
        raise ConfigError(
            f"Settings.seed: expected None, found {settings.seed!r}. "
            "The Anthropic Messages wire has no seed; leave it out for this model."
        )
    fields: dict[str, str] = {}
    if settings.temperature is not None:
        fields["temperature"] = json_text(settings.temperature)
    if settings.top_p is not None:
        fields["top_p"] = json_text(settings.top_p)
    if settings.stop_sequences:
        fields["stop_sequences"] = json_text(settings.stop_sequences)
    return fields


def _output_config(output: OutputSpec | None, options: JsonObject) -> dict[str, str]:
    """Return the `output_config` field, which makes the answer follow the schema of `output`.

    The field also keeps other `output_config` settings from the options, such as the effort.
    """
    if output is None:
        return {}
    config: object = options.get("output_config", {})
    if not is_object(config) or "format" in config:
        raise ConfigError(
            "Settings.options: expected an object without 'format' at 'output_config', where the "
            f"request's own output {output.name!r} goes, found {config!r}. Fix: leave out one of "
            "the two."
        )
    place = f"output {output.name!r}: schema"
    schema = closed_schema(output.schema, place=place, description=output.description)
    beside = "".join(f"{json_text(name)}:{json_text(value)}," for name, value in config.items())
    return {"output_config": f'{{{beside}"format":{{"type":"json_schema","schema":{schema}}}}}'}


def _tools(specs: tuple[ToolSpec, ...], server_tools: list[object]) -> dict[str, str]:
    texts = [*map(tool_text, specs), *map(json_text, server_tools)]
    return {"tools": f"[{','.join(texts)}]"} if texts else {}


def tool_text(spec: ToolSpec) -> str:
    """Return the definition of a tool as JSON text.

    Raises:
        ConfigError: this wire format cannot carry the tool.
    """
    if spec.kind == "provider":
        return TOOLS.definition(spec)
    schema = object_text(spec.parameters, place=f"tool {spec.name!r}: parameters")
    description = f',"description":{json_text(spec.description)}' if spec.description else ""
    more = "".join(
        f",{json_text(name)}:{json_text(value)}" for name, value in TOOLS.options(spec).items()
    )
    return f'{{"name":{json_text(spec.name)}{description},"input_schema":{schema}{more}}}'


def _tool_names(tools: list[object]) -> list[str]:
    names = (tool.get("name") for tool in tools if is_object(tool))
    return [name for name in names if isinstance(name, str)]


def _tool_choice(choice: ToolChoice, settings: Settings, names: list[str]) -> dict[str, str]:
    if choice.mode in ("required", "tool") and not names:
        raise ConfigError(
            f"tool_choice: expected at least one tool to choose from, found none with mode "
            f"{choice.mode!r}. Offer tools, or choose 'auto'."
        )
    if choice.mode == "tool" and choice.name not in names:
        raise ConfigError(
            f"tool_choice: expected one of the offered tools {names!r}, found "
            f"{choice.name!r}.{nearest(choice.name, names)}"
        )
    single = settings.parallel_tool_calls is False
    if not names or (choice.mode == "auto" and not single):
        return {}
    fields: dict[str, object] = {"type": "any" if choice.mode == "required" else choice.mode}
    if choice.mode == "tool":
        fields["name"] = choice.name
    if single and choice.mode != "none":
        fields["disable_parallel_tool_use"] = True
    return {"tool_choice": json_text(fields)}
