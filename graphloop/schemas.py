"""The parameters of a tool, in any form that `Tool` accepts.

A pydantic model class is described here; a JSON Schema of the user's own is left to `raw_schema`,
which takes long to import and which most programs never need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from pydantic import BaseModel, PydanticUserError, TypeAdapter

from .errors import ToolDefinitionError
from .parameters import Parameters, arguments_parser, schema_of, schema_text

__all__ = ["model_parameters", "parameters_of"]


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
            f"{place}: parameters must be a pydantic model class or a JSON Schema mapping, "
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
        adapter: TypeAdapter[object] = TypeAdapter(model)
        schema = schema_of(adapter)
    except (PydanticUserError, NameError, TypeError) as error:
        raise ToolDefinitionError(
            f"{place}: no JSON Schema can be made of the model {model.__name__!r}: {error}. "
            "Fix: use field types that JSON can express."
        ) from error
    parse = arguments_parser(adapter.validator.validate_json)
    return Parameters(schema_text(schema, place), parse)
