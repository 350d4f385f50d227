"""JSON Schemas in the form that servers accept for structured output.

Each server enforces a part of JSON Schema, and refuses a request that asks for more. The server
alone gives up the rest: the run checks every answer against the whole schema. Sources: the
structured-output pages of platform.claude.com and OpenAI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .wire_json import JsonObject, is_list, is_object, json_text, object_in

__all__ = ["closed_schema", "is_strict", "unenforced"]

_SUBSCHEMAS: Final = ("items", "additionalProperties")
_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPPINGS: Final = ("properties", "$defs", "definitions")

# The keywords of OpenAI's strict mode; it answers 400 to `default` and many others.
_STRICT_WORDS: Final = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "$ref", "$defs", "definitions", "description", "title", "pattern", "format"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems"),
    )
)
# Anthropic's API refuses these limits; its own SDK writes them into the description.
_TOLD_WORDS: Final[tuple[str, ...]] = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)


def is_strict(schema: object) -> bool:
    """Whether OpenAI's strict mode takes `schema`: closed objects, all properties required."""
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    return all(_is_strict_part(one) for one in _parts(schema))


def closed_schema(text: str, *, place: str, description: str = "") -> str:
    """Return the schema `text` in the form of Anthropic's API, unchanged if possible.

    Objects without a rule for further properties allow none; limits that the API refuses become
    part of the description. `description` describes the whole, if the schema does not.

    Raises:
        ConfigError: `text` is no JSON object; the message names `place`.
    """
    schema = object_in(text, place=place)
    closed = _closed(schema)
    if description and not closed.get("description"):
        closed["description"] = description
    return text if closed == schema else json_text(closed)


def unenforced(text: str, *, place: str) -> str:
    """Return the part of the schema `text` that Anthropic's own API refuses; else nothing.

    `closed_schema` cannot mend these: that would exclude valid answers, and other servers of this
    wire accept them.

    Raises:
        ConfigError: `text` is no JSON object; the message names `place`.
    """
    schema = object_in(text, place=place)
    parts = _parts(schema)
    if any(map(_is_mapping, parts)):
        return "an object with properties of any name"
    if any(_has_rich_enum(part) for part in parts):
        return "an enumeration of values that are not plain"
    combined = (one for part in parts if is_list(part.get("allOf")) for one in part["allOf"])
    if any(is_object(one) and "$ref" in one for one in combined):
        return "a reference within `allOf`"
    return _reference_problem(schema, parts)


def _is_mapping(part: JsonObject) -> bool:
    if "patternProperties" in part or part.get("additionalProperties", False) is not False:
        return True
    return (
        part.get("type") == "object"
        and "properties" not in part
        and "additionalProperties" not in part
    )


def _has_rich_enum(part: JsonObject) -> bool:
    values = part.get("enum")
    return is_list(values) and any(is_list(one) or is_object(one) for one in values)


def _reference_problem(schema: JsonObject, parts: list[JsonObject]) -> str:
    """Return the problem of a reference that leads to no definition, or in a circle."""
    named = {
        f"#/{key}/{name}": part
        for key in ("$defs", "definitions")
        if is_object(schema.get(key))
        for name, part in schema[key].items()
        if is_object(part)
    }
    if _references(parts) - named.keys() - {"#"}:
        return "a reference to something else than one of its definitions"
    if "#" in _references(parts):
        return "a schema within itself"
    leading = {name: _references(_parts(part)) for name, part in named.items()}
    while ends := [name for name, to in leading.items() if not to & leading.keys()]:
        for name in ends:
            del leading[name]
    return "a schema within itself" if leading else ""


def _references(parts: list[JsonObject]) -> set[str]:
    return {str(part["$ref"]) for part in parts if "$ref" in part}


def _parts(schema: JsonObject) -> list[JsonObject]:
    """Return `schema` and all schemas within it, without mere data."""
    found, waiting = list[JsonObject](), [schema]
    while waiting:
        part = waiting.pop()
        found.append(part)
        inner = [part.get(key) for key in _SUBSCHEMAS]
        for key in _LISTS:
            inner += part[key] if is_list(part.get(key)) else ()
        for key in _MAPPINGS:
            inner += part[key].values() if is_object(part.get(key)) else ()
        waiting += [one for one in inner if is_object(one)]
    return found


def _is_strict_part(part: JsonObject) -> bool:
    if not part.keys() <= _STRICT_WORDS:
        return False
    if part.get("type") != "object" and "properties" not in part:
        return True
    properties, required = part.get("properties"), part.get("required")
    names = set(properties) if is_object(properties) else set[str]()
    needed = set(map(str, required)) if is_list(required) else set[str]()
    return part.get("additionalProperties") is False and names == needed


def _closed(schema: JsonObject) -> JsonObject:
    closed = {key: _closed_value(key, value) for key, value in schema.items()}
    if closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    # Of alternatives the API knows one form, and no pointer to what tells them apart.
    if "oneOf" in closed and "anyOf" not in closed:
        closed["anyOf"] = closed.pop("oneOf")
        closed.pop("discriminator", None)
    told = {word: closed.pop(word) for word in _TOLD_WORDS if word in closed}
    # Of a least number of items the API enforces 0 and 1.
    if closed.get("minItems") not in {None, 0, 1}:
        told["minItems"] = closed.pop("minItems")
    if told:
        limits = ", ".join(f"{word}: {json_text(value)}" for word, value in told.items())
        closed["description"] = f"{closed.get('description', '')} ({limits})".lstrip()
    return closed


def _closed_value(key: str, value: object) -> object:
    if key in _MAPPINGS and is_object(value):
        return _closed_mapping(value)
    if key in _LISTS and is_list(value):
        return [_closed(one) if is_object(one) else one for one in value]
    return _closed(value) if key in _SUBSCHEMAS and is_object(value) else value


def _closed_mapping(schemas: Mapping[str, object]) -> JsonObject:
    return {name: _closed(one) if is_object(one) else one for name, one in schemas.items()}
