"""The parameters of a tool: schema text and parser.

Everything slow happens once, when a tool is defined; `Parameters` is the result. Arguments are
strict JSON objects, and equal schemas are the same bytes. A pydantic model class is
described here, a function in `signature`, and a JSON Schema of the user's own in `raw_schema`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, TypeAlias, cast

import pydantic
from msgspec import DecodeError
from msgspec.json import decode
from pydantic import BaseModel, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

from ..errors import ToolDefinitionError
from .outcome import ArgumentsRejected, not_json

__all__ = [
    "JsonSchema",
    "Parameters",
    "arguments_parser",
    "model_parameters",
    "parameters_of",
    "schema_of",
    "schema_text",
]

JsonSchema: TypeAlias = dict[str, object]

# NaN, the infinities, and numbers that pydantic reads as an infinity, such as 1e999.
_may_not_be_json: Final = re.compile(r"NaN|Infinity|\d[eE]\+?\d{3}|\d{309}").search


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a tool: schema text and parser.

    `parse` returns checked arguments or raises. With `keywords` they are a dict of keyword
    arguments, else a single value. `context` names the parameter that receives the context, if
    there is one; `deps` is the type of the dependencies that this parameter expects. `summary` is
    the first paragraph of the docstring.
    """

    schema: str
    parse: Callable[[str], object]
    keywords: bool = False
    context: str = ""
    deps: object = object
    summary: str = ""


def parameters_of(given: object, place: str) -> Parameters:
    """Return the parameters given in any form that `Tool` accepts.

    Raises:
        ToolDefinitionError: it is none of these forms, or cannot be described to a model.
    """
    if isinstance(given, Parameters):
        return given
    if isinstance(given, type) and issubclass(given, BaseModel):
        return model_parameters(given, place)
    if not isinstance(given, Mapping):
        raise ToolDefinitionError(
            f"{place}: parameters: expected a pydantic model class or a JSON Schema mapping, "
            f"found {given!r}. Fix: pass one of these, or use @tool on a function."
        )
    # jsonschema is slow to import, and most programs define no such tool.
    module = import_module(".raw_schema", __package__)
    compile_schema: Callable[[Mapping[str, object], str], Parameters] = module.raw_parameters
    return compile_schema(cast("Mapping[str, object]", given), place)


def model_parameters(model: type[BaseModel], place: str) -> Parameters:
    """Return the parameters that a pydantic model class describes.

    Raises:
        ToolDefinitionError: the model has no JSON Schema, or is not an object at the top.
    """
    try:
        adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(model)
        schema = schema_of(adapter)
    except (PydanticUserError, NameError, TypeError) as error:
        raise ToolDefinitionError(
            f"{place}: no JSON Schema can be made of the model {model.__name__!r}: {error}. "
            "Fix: use field types that JSON can express."
        ) from error
    parse = arguments_parser(adapter.validator.validate_json)
    return Parameters(schema_text(schema, place), parse)


def arguments_parser(validate_json: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser of strict JSON objects around pydantic's compiled validator.

    An empty text means no arguments: some servers send it for `{}`. The parser raises
    `ArgumentsRejected`, pydantic's `ValidationError`, or any exception of a user's own validator.
    """

    def parse(arguments: str) -> object:
        if not arguments or arguments.isspace():
            arguments = "{}"
        elif _may_not_be_json(arguments):
            # The match may stand inside a string. Pydantic would accept it as a number.
            _check_numbers(arguments)
        return validate_json(arguments)

    return parse


def schema_of(adapter: pydantic.TypeAdapter[object]) -> JsonSchema:
    """Return the JSON Schema of a type, without pydantic's titles.

    Raises:
        PydanticUserError: the type has no JSON Schema.
    """
    return cast("JsonSchema", adapter.json_schema(schema_generator=_Untitled))


def schema_text(schema: Mapping[str, object], place: str) -> str:
    """Return an object's schema as compact, ordered JSON.

    Equal schemas give equal texts. Keywords are sorted; properties keep their order, because models
    answer in that order.

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
            f"{place}: parameters: expected a schema with 'type': 'object' at the top, "
            f"found {flat.get('type')!r}. Fix: make it a property of an object."
        )
    return to_json(_SORTER.sort(flat)).decode("utf-8")


_SORTER: Final = GenerateJsonSchema()  # To make it costs a tenth of a tool's definition.


class _Untitled(GenerateJsonSchema):
    """Leaves out titles: each repeats a name and costs tokens."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def _check_numbers(arguments: str) -> None:
    try:
        decode(arguments)
    except (DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ArgumentsRejected(not_json(arguments, str(error))) from error
