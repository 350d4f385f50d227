"""Strict schemas: the form in which OpenAI's server can enforce a JSON Schema.

A request may say that its schema is strict. The API then enforces the schema, and refuses every
schema with a keyword or an object that strict mode does not allow.
"""

from __future__ import annotations

import re
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
_FORMATS: Final = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
)
_looks_around = re.compile(r"\(\?<?[=!]").search
_MAPPINGS: Final = ("properties", "$defs", "definitions")


def strict_parameters(tool: ToolSpec, parameters: str) -> str:
    """Return the parameters of a tool as strict mode accepts them, unchanged if possible.

    Raises:
        ConfigError: strict mode does not accept the parameters in any form.
    """
    schema = object_in(parameters, place=f"tool {tool.name!r}: parameters")
    form = strict_form(schema)
    if form is None:
        raise ConfigError(
            f"tool {tool.name!r}: provider_options: strict: expected parameters that OpenAI's "
            "strict mode takes (no object with properties of any name, no default but None, and "
            f"no limit of a text's length), found {parameters:.200}. Fix: leave strict out, or "
            "change the parameters."
        )
    return parameters if form == schema else json_text(form)


def strict_form(schema: JsonObject) -> JsonObject | None:
    """Return `schema` in the form that OpenAI's strict mode accepts, or None if there is none.

    Strict mode requires that objects forbid additional properties and require all their properties.
    So an object that says nothing of additional properties forbids them, and a property that may
    be null, and is by default, is required. Each value that fits the form fits `schema`, too.
    """
    form = _close_objects(schema)
    is_plain = form.get("type") == "object" and "anyOf" not in form
    return form if is_plain and _is_strict_part(form) else None


def _close_objects(part: JsonObject) -> JsonObject:
    closed = {key: _strict_value(key, value) for key, value in part.items()}
    properties, required = closed.get("properties"), closed.get("required", [])
    if not (is_object(properties) and is_list(required)):
        return closed
    closed.setdefault("additionalProperties", False)
    for name, schema in properties.items():
        if is_object(schema) and schema.get("default", "") is None and _takes_null(schema):
            del schema["default"]
            required = required if name in required else [*required, name]
    return {**closed, "required": required} if required else closed


def _takes_null(part: JsonObject) -> bool:
    kind, among, either = part.get("type"), part.get("enum"), part.get("anyOf")
    return (
        "null" in (kind if is_list(kind) else [kind])
        or (is_list(among) and None in among)
        or (is_list(either) and any(_takes_null(each) for each in either if is_object(each)))
    )


def _strict_value(key: str, value: object) -> object:
    if key in _MAPPINGS and is_object(value):
        return {
            name: _close_objects(part) if is_object(part) else part for name, part in value.items()
        }
    if key == "anyOf" and is_list(value):
        return [_close_objects(part) if is_object(part) else part for part in value]
    return _close_objects(value) if key == "items" and is_object(value) else value


def _is_strict_part(part: object) -> bool:
    if not is_object(part):
        return True
    if not _has_strict_words(part):
        return False
    properties, required = part.get("properties"), part.get("required")
    names = set(properties) if is_object(properties) else set[str]()
    if part.get("type") == "object" or "properties" in part:
        needed = set(map(str, required)) if is_list(required) else set[str]()
        if part.get("additionalProperties") is not False or names != needed:
            return False
    inner = [part.get("items"), *(part["anyOf"] if is_list(part.get("anyOf")) else ())]
    for key in _MAPPINGS:
        inner += part[key].values() if is_object(part.get(key)) else ()
    return all(map(_is_strict_part, inner))


def _has_strict_words(part: JsonObject) -> bool:
    """Whether the API takes the keywords of a schema, apart from the schemas inside it."""
    if part.keys() - _STRICT_WORDS or ("$ref" in part and len(part.keys() - _MAPPINGS) > 1):
        return False
    kind, pattern = part.get("type"), part.get("pattern")
    says = part.keys() & {"type", "$ref", "anyOf", "enum", "const"}
    return (
        bool(says)
        and part.get("format", "date") in _FORMATS
        and not (isinstance(pattern, str) and _looks_around(pattern))
        and (kind != "array" or is_object(part.get("items")))
    )
