"""Convert JSON Schemas to the form that Anthropic's API accepts for structured output.

The API enforces a part of JSON Schema, and refuses requests with other keywords. The run itself
still checks every answer against the whole schema. Source: the page "Structured outputs" of
platform.claude.com.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Final

from ..text import whole_text
from ..wire_json import JsonObject, is_list, is_object, json_text, object_in

__all__ = ["closed_schema", "refused_part"]

_SUBSCHEMAS: Final = ("items", "additionalProperties")
_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPPINGS: Final = ("properties", "$defs", "definitions")

# The API refuses these limits, so they move into the description, as in Anthropic's own SDK.
_DESCRIBED_WORDS: Final[tuple[str, ...]] = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)


def closed_schema(text: str, *, place: str, description: str = "") -> str:
    """Return the schema `text` in the form that the API accepts, unchanged if possible.

    Objects without `additionalProperties` forbid additional properties. Limits that the API refuses
    move into the description. `description` is added if the schema has none at the top.

    Raises:
        ConfigError: `text` is not a JSON object; the message names `place`.
    """
    schema = object_in(text, place=place)
    closed = _close_schema(schema)
    if description and not closed.get("description"):
        closed["description"] = description
    return whole_text(text) if closed == schema else json_text(closed)


def refused_part(text: str, *, place: str) -> str:
    """Describe the first part of the schema `text` that Anthropic's API refuses.

    The result is empty if the API accepts the whole schema. `closed_schema` cannot convert a
    refused part without excluding valid answers. Other servers of this wire format accept it.

    Raises:
        ConfigError: `text` is not a JSON object; the message names `place`.
    """
    part = _refused_part(object_in(text, place=place))
    return f"{part}, which Anthropic's API does not take" if part else ""


def _refused_part(schema: JsonObject) -> str:
    parts = _nested_schemas(schema)
    if any(map(_is_mapping, parts)):
        return "an object with properties of any name"
    enums = [value for part in parts if is_list(part.get("enum")) for value in part["enum"]]
    if any(is_list(value) or is_object(value) for value in enums):
        return "an enumeration of values that are not plain"
    combined = [inner for part in parts if is_list(part.get("allOf")) for inner in part["allOf"]]
    if any(is_object(inner) and "$ref" in inner for inner in combined):
        return "a reference within `allOf`"
    definitions = {
        f"#/{key}/{name}": part
        for key in ("$defs", "definitions")
        if is_object(schema.get(key))
        for name, part in schema[key].items()
        if is_object(part)
    }
    references = _references(parts)
    if references - definitions.keys() - {"#"}:
        return "a reference to something else than one of its definitions"
    try:
        TopologicalSorter(
            {name: _references(_nested_schemas(part)) for name, part in definitions.items()}
        ).prepare()
    except CycleError:
        references.add("#")
    return "a schema within itself" if "#" in references else ""


def _is_mapping(part: JsonObject) -> bool:
    if "patternProperties" in part or part.get("additionalProperties", False) is not False:
        return True
    is_open = "properties" not in part and "additionalProperties" not in part
    return part.get("type") == "object" and is_open


def _references(parts: list[JsonObject]) -> set[str]:
    return {str(part["$ref"]) for part in parts if "$ref" in part}


def _nested_schemas(schema: JsonObject) -> list[JsonObject]:
    """Return `schema` and all schemas nested in it, but no plain data such as enum values."""
    parts, waiting = list[JsonObject](), [schema]
    while waiting:
        part = waiting.pop()
        parts.append(part)
        inner = [part.get(key) for key in _SUBSCHEMAS]
        for key in _LISTS:
            inner += part[key] if is_list(part.get(key)) else ()
        for key in _MAPPINGS:
            inner += part[key].values() if is_object(part.get(key)) else ()
        waiting += [schema for schema in inner if is_object(schema)]
    return parts


def _close_schema(schema: JsonObject) -> JsonObject:
    closed = {key: _closed_value(key, value) for key, value in schema.items()}
    if closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    # The API accepts `anyOf`, but neither `oneOf` nor `discriminator`.
    if "oneOf" in closed and "anyOf" not in closed:
        closed["anyOf"] = closed.pop("oneOf")
        closed.pop("discriminator", None)
    described = {word: closed.pop(word) for word in _DESCRIBED_WORDS if word in closed}
    # The API accepts only 0 and 1 as `minItems`.
    if closed.get("minItems") not in {None, 0, 1}:
        described["minItems"] = closed.pop("minItems")
    if described:
        limits = ", ".join(f"{word}: {json_text(value)}" for word, value in described.items())
        closed["description"] = f"{closed.get('description', '')} ({limits})".lstrip()
    return closed


def _closed_value(key: str, value: object) -> object:
    if key in _MAPPINGS and is_object(value):
        return {
            name: _close_schema(part) if is_object(part) else part for name, part in value.items()
        }
    if key in _LISTS and is_list(value):
        return [_close_schema(part) if is_object(part) else part for part in value]
    return _close_schema(value) if key in _SUBSCHEMAS and is_object(value) else value
