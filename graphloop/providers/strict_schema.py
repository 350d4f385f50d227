"""Strict schemas: whether OpenAI's server can enforce a JSON Schema.

A request may say that its schema is strict. The API then enforces the schema, and refuses every
schema with a keyword or an object that strict mode does not allow.
"""

from __future__ import annotations

from typing import Final

from ..errors import ConfigError
from ..values import ToolSpec
from .wire_json import JsonObject, is_list, is_object, json_text, object_in

__all__ = ["strict_form", "strict_parameters"]

# The schema keywords that OpenAI's strict mode accepts, from OpenAI's page on structured outputs.
# The API answers 400 to other keywords, such as `default`.
_STRICT_WORDS: Final = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "$ref", "$defs", "definitions", "description", "title", "pattern", "format"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems"),
    )
)


def strict_parameters(tool: ToolSpec, parameters: str) -> str:
    """Return the JSON Schema text of a strict tool's parameters, in the form of strict mode.

    Raises:
        ConfigError: strict mode refuses them.
    """
    strict = strict_form(parameters, place=f"tool {tool.name!r}: parameters")
    if strict is not None:
        return strict
    raise ConfigError(
        f"tool {tool.name!r}: provider_options: strict: expected parameters that OpenAI's "
        "strict mode takes (each object lists its properties, and requires all of them), "
        f"found {parameters:.200}. Fix: leave strict out, or change the parameters."
    )


def strict_form(text: str, *, place: str) -> str | None:
    """Return the schema `text` in the form that OpenAI's strict mode accepts; None for no form.

    A schema that strict mode accepts is returned unchanged: servers cache it by its text.
    Strict mode requires that objects forbid additional properties and require all their properties.
    An object that lists properties and does not mention others forbids them from here on, since
    neither pydantic nor a dataclass says so.

    Raises:
        ConfigError: `text` is not a JSON object; the message names `place`.
    """
    schema = object_in(text, place=place)
    closed = _close_part(schema)
    is_plain = schema.get("type") == "object" and "anyOf" not in schema
    if not (is_plain and _is_strict_part(closed)):
        return None
    return text if closed == schema else json_text(closed)


def _close_part(part: JsonObject) -> JsonObject:
    closed = dict(part)
    if part.get("type") == "object" and "properties" in part:
        closed.setdefault("additionalProperties", False)
    for key in ("properties", "$defs", "definitions"):
        if is_object(inner := part.get(key)):
            closed[key] = {name: _close_value(value) for name, value in inner.items()}
    for key in ("items", "anyOf"):
        if key in part:
            closed[key] = _close_value(part[key])
    return closed


def _close_value(value: object) -> object:
    if is_list(value):
        return [_close_value(inner) for inner in value]
    return _close_part(value) if is_object(value) else value


def _is_strict_part(part: object) -> bool:
    if not is_object(part):
        return True
    if not part.keys() <= _STRICT_WORDS:
        return False
    properties, required = part.get("properties"), part.get("required")
    names = set(properties) if is_object(properties) else set[str]()
    if part.get("type") == "object" or "properties" in part:
        needed = set(map(str, required)) if is_list(required) else set[str]()
        if part.get("additionalProperties") is not False or names != needed:
            return False
    inner = [part.get("items"), *(part["anyOf"] if is_list(part.get("anyOf")) else ())]
    for key in ("properties", "$defs", "definitions"):
        inner += part[key].values() if is_object(part.get(key)) else ()
    return all(map(_is_strict_part, inner))
