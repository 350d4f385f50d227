"""Strict schemas: whether OpenAI's server can enforce a JSON Schema.

A request may say that its schema is strict. The API then enforces the schema, and refuses every
schema with a keyword or an object that strict mode does not allow.
"""

from __future__ import annotations

from typing import Final

from ..errors import ConfigError
from ..values import ToolSpec
from .wire_json import is_list, is_object

__all__ = ["is_strict", "not_strict"]

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


def not_strict(tool: ToolSpec, parameters: str) -> ConfigError:
    """Return the error of a tool that asks for strict mode with parameters that it refuses."""
    return ConfigError(
        f"tool {tool.name!r}: provider_options: strict: expected parameters that OpenAI's "
        "strict mode takes (each object requires all its properties and forbids others), "
        f"found {parameters:.200}. Fix: leave strict out, or change the parameters."
    )


def is_strict(schema: object) -> bool:
    """Whether OpenAI's strict mode accepts `schema`.

    Strict mode requires that objects forbid additional properties and require all their properties.
    """
    is_plain = is_object(schema) and schema.get("type") == "object" and "anyOf" not in schema
    return is_plain and _is_strict_part(schema)


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
