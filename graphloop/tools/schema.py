"""The parameters of a tool: schema text and parser.

The slow work happens once, at the latest when an agent first offers a tool. Arguments are
strict JSON objects. Equal schemas give equal texts. This module describes pydantic model classes;
`signature` describes functions, and `raw_schema` reads a user's own JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Final, Protocol, TypeAlias, cast

import pydantic
from msgspec import DecodeError, Struct
from msgspec.json import decode
from pydantic import PydanticUserError

from ..errors import ToolDefinitionError
from .outcome import ArgumentsRejected, not_json

__all__ = [
    "Form",
    "JsonSchema",
    "Parameters",
    "arguments_parser",
    "model_parameters",
    "parameters_of",
    "schema_of",
    "schema_text",
]

JsonSchema: TypeAlias = dict[str, object]

# Finds NaN, Infinity, and numbers that pydantic would read as an infinity, such as 1e999.
_may_not_be_json: Final = re.compile(
    # The first characters are one set, so that the search skips all others fast; texts such as
    # `0aN` match as well.
    r"[NI0-9](?:aN|nfinity|[eE]\+?[0-9]{3}|[0-9]{308})"
).search


class Form(Struct, frozen=True):
    """The text that describes parameters to a model, and the parser of a call's arguments.

    Attributes:
        schema: the JSON Schema of the arguments, as text.
        parse: reads the arguments of a call as JSON text, and returns checked arguments or raises.
        summary: the first paragraph of the function's docstring.
    """

    schema: str
    parse: Callable[[str], object]
    summary: str = ""


class Parameters(Struct, frozen=True, dict=True):
    """The parameters of a tool; pydantic compiles their form when it is first needed.

    `make` makes the form. It must not fail, because errors belong to the tool's definition.
    If `keywords` is true, `parse` returns a dict of keyword arguments; otherwise one value.
    `context` names the function's parameter that receives the `ToolContext`; empty for none.
    `deps` is the type of the dependencies that this parameter expects.
    """

    make: Callable[[], Form]
    keywords: bool = False
    context: str = ""
    deps: object = object

    @staticmethod
    def of(schema: str, parse: Callable[[str], object]) -> Parameters:
        """Return parameters whose form is known already."""
        form = Form(schema, parse)
        return Parameters(lambda: form)

    @cached_property
    def schema(self) -> str:
        """The JSON Schema of the arguments, as text."""
        return self._form.schema

    @cached_property
    def parse(self) -> Callable[[str], object]:
        """The function that returns the checked arguments of a call, from JSON text, or raises."""
        return self._form.parse

    @cached_property
    def summary(self) -> str:
        """The first paragraph of the function's docstring; empty for other parameters."""
        return self._form.summary

    @cached_property
    def _form(self) -> Form:
        return self.make()


def parameters_of(given: object, place: str) -> Parameters:
    """Return the `Parameters` for a pydantic model class, a JSON Schema, or a `Parameters`.

    Raises:
        ToolDefinitionError: `given` has none of these forms, or cannot be described to a model.
    """
    if isinstance(given, Parameters):
        return given
    if isinstance(given, type) and issubclass(given, pydantic.BaseModel):
        return model_parameters(given, place)
    if not isinstance(given, Mapping):
        raise ToolDefinitionError(
            f"{place}: parameters: expected a pydantic model class or a JSON Schema mapping, "
            f"found {given!r}. Fix: pass one of these, or use @tool on a function."
        )
    # jsonschema is slow to import, and most programs use no raw JSON Schema.
    compile_schema: Callable[[Mapping[str, object], str], Parameters] = _import_late(
        ".raw_schema"
    ).raw_parameters
    return compile_schema(cast("Mapping[str, object]", given), place)


def model_parameters(model: type[pydantic.BaseModel], place: str) -> Parameters:
    """Return the parameters of a tool whose arguments are an instance of a pydantic model.

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
    return Parameters.of(schema_text(schema, place), parse)


def arguments_parser(validate_json: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser that accepts strict JSON only, and then calls pydantic's `validate_json`.

    It reads an empty text as `{}`, because some servers send that. The parser raises
    `ArgumentsRejected`, pydantic's `ValidationError`, or any exception of a user's own validator.
    """

    def parse(arguments: str) -> object:
        if not arguments or arguments.isspace():
            arguments = "{}"
        elif _may_not_be_json(arguments):
            # Pydantic would accept these as numbers. Inside a string they are legal.
            _check_numbers(arguments)
        return validate_json(arguments)

    return parse


def schema_of(adapter: pydantic.TypeAdapter[object]) -> JsonSchema:
    """Return the JSON Schema of a type, without pydantic's titles.

    Raises:
        PydanticUserError: the type has no JSON Schema.
    """
    return _generator().generated(adapter)


def schema_text(schema: Mapping[str, object], place: str) -> str:
    """Return the schema of an object as compact JSON with sorted keywords.

    Equal schemas give equal texts. Properties keep their order, because models fill them in that
    order.

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
    return _generator().sorted_text(flat)


class _Generator(Protocol):
    """The functions of `json_schema`."""

    def generated(self, adapter: pydantic.TypeAdapter[object], /) -> JsonSchema: ...
    def sorted_text(self, schema: JsonSchema, /) -> str: ...


def _generator() -> _Generator:
    # Pydantic's generator takes long to load, and importing an agent needs none.
    return cast("_Generator", _import_late(".json_schema"))


def _import_late(module: str) -> ModuleType:
    """Import a module of this room that is slow to import, on its first use."""
    return import_module(module, __package__)


def _check_numbers(arguments: str) -> None:
    try:
        decode(arguments)
    except (DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ArgumentsRejected(not_json(arguments, str(error))) from error
