"""What a tool takes: a JSON Schema as text, and one compiled parser of its arguments.

Everything slow happens once, when a tool is defined; `Parameters` is what stays. It owns what all
forms of a schema share: how arguments are read (strict JSON objects, CONTRACT §5.4) and how a
schema is written (the same bytes for equal schemas). Where a schema comes from is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from msgspec import DecodeError
from msgspec.json import decode
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

from .errors import ToolDefinitionError
from .tool_outcome import ArgumentsRejected, not_json

__all__ = ["JsonSchema", "Parameters", "arguments_parser", "schema_of", "schema_text"]

JsonSchema: TypeAlias = dict[str, object]

# The numbers that are none, and what is too large for one: 1e999 reads as infinity.
_may_be_no_number: Final = re.compile(r"NaN|Infinity|\d[eE]\+?\d{3}|\d{309}").search


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a tool takes: the JSON Schema as text, and the compiled parser of its arguments.

    `parse` returns checked arguments or raises. With `keywords` they are a dict of keyword
    arguments, and `context` names the parameter that gets the context instead, if there is one;
    otherwise they are one value. `summary` is the first paragraph of the docstring.
    """

    schema: str
    parse: Callable[[str], object]
    keywords: bool = False
    context: str = ""
    summary: str = ""


def arguments_parser(validate_json: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser of strict JSON objects around pydantic's compiled validator.

    An empty text means no arguments: some servers send it for `{}`. The parser raises
    `ArgumentsRejected`, pydantic's `ValidationError`, or whatever a user's own validator raises.
    """

    def parse(arguments: str) -> object:
        if not arguments or arguments.isspace():
            arguments = "{}"
        elif _may_be_no_number(arguments):
            # It may stand inside a string; pydantic would take it as a number that JSON has not.
            _check_numbers(arguments)
        return validate_json(arguments)

    return parse


def schema_of(adapter: TypeAdapter[object]) -> JsonSchema:
    """Return the JSON Schema of a type, without the titles that pydantic adds.

    Raises:
        PydanticUserError: the type has no JSON Schema.
    """
    return cast("JsonSchema", adapter.json_schema(schema_generator=_Untitled))


def schema_text(schema: Mapping[str, object], place: str) -> str:
    """Return the schema of an object as compact JSON, the same for equal schemas.

    Keywords are sorted; properties keep their order, for models answer in that order.

    Raises:
        ToolDefinitionError: the top level is not `type: object`.
    """
    flat = dict(schema)
    flat.pop("title", None)
    reference = flat.get("$ref")
    if isinstance(reference, str) and "$defs" in flat and "type" not in flat:
        # Pydantic writes a recursive model as a bare reference; providers want the object itself.
        definitions = cast("dict[str, JsonSchema]", flat["$defs"])
        flat = {**definitions.get(reference.removeprefix("#/$defs/"), {}), "$defs": definitions}
    if flat.get("type") != "object":
        raise ToolDefinitionError(
            f"{place}: the parameters must be an object, so the schema must say "
            f"'type': 'object' at the top; found {flat.get('type')!r}. "
            "Fix: make what you have one property of an object."
        )
    return to_json(GenerateJsonSchema().sort(flat)).decode("utf-8")


class _Untitled(GenerateJsonSchema):
    """Leaves out the title that repeats a property's name: it costs tokens and says nothing."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def _check_numbers(arguments: str) -> None:
    try:
        decode(arguments)
    except (DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ArgumentsRejected(not_json(arguments, str(error))) from error
