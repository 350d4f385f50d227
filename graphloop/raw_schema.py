"""Parameters that are given as JSON Schema itself, checked by the jsonschema library.

Apart from `schemas`, because jsonschema takes long to import and most tools never need it:
`tools` imports this module when the first such tool is made. Nothing is ever fetched: a schema
that refers to another document is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json
from referencing.exceptions import Unresolvable
from referencing.jsonschema import (
    EMPTY_REGISTRY,
    Schema,
    SchemaResource,
    UnknownDialect,
    specification_with,
)

from .errors import ToolDefinitionError
from .schemas import JsonSchema, Parameters, arguments_parser, schema_text
from .tool_outcome import ArgumentsRejected, join_issues

__all__ = ["raw_parameters"]

DRAFT202012_ID = "https://json-schema.org/draft/2020-12/schema"


def raw_parameters(schema: Mapping[str, object], place: str) -> Parameters:
    """Return the parameters that a JSON Schema describes; later changes to it have no effect.

    Raises:
        ToolDefinitionError: the schema is not JSON, not valid in its draft, not of an object, or
            refers to something it does not hold.
    """
    try:
        own = cast("JsonSchema", from_json(to_json(schema)))
    except ValueError as error:
        raise ToolDefinitionError(
            f"{place}: the parameters are not a JSON Schema: {error}. Fix: use JSON values only."
        ) from error
    text = schema_text(own, place)
    validator = _validator(own, place)
    parse_object = arguments_parser(TypeAdapter(dict[str, object]).validator.validate_json)

    def parse(arguments: str) -> object:
        value = parse_object(arguments)
        errors = validator.iter_errors(cast("dict[str, str]", value))  # The stub's JSON type.
        issues = [(_path(error.absolute_path), error.message) for error in errors]
        if issues:
            raise ArgumentsRejected(join_issues(sorted(issues)))
        return value

    return Parameters(text, parse)


def _validator(schema: JsonSchema, place: str) -> Validator:
    checked = cast("Schema", schema)
    try:
        specification = specification_with(str(schema.get("$schema", DRAFT202012_ID)))
        draft = validator_for(checked, default=Draft202012Validator)
        draft.check_schema(schema)
    except UnknownDialect as error:
        raise ToolDefinitionError(
            f"{place}: the schema's '$schema' names no known draft: {error.uri!r}. "
            "Fix: leave it out (2020-12 is meant then), or name a published draft."
        ) from error
    except SchemaError as error:
        raise ToolDefinitionError(
            f"{place}: the parameters are not a valid JSON Schema, "
            f"at {_path(error.absolute_path) or 'the top'}: {error.message}. Fix: mend it there."
        ) from error
    resource = specification.create_resource(checked)
    lost = sorted(set(_lost_references(resource)))
    if lost:
        raise ToolDefinitionError(
            f"{place}: the schema refers to what it does not hold: {', '.join(lost)}. "
            "Fix: put it under '$defs'; nothing is fetched."
        )
    return draft(schema, registry=EMPTY_REGISTRY)


def _lost_references(root: SchemaResource) -> Iterator[str]:
    pending = [(EMPTY_REGISTRY.resolver_with_root(root), root)]
    while pending:
        resolver, resource = pending.pop()
        contents = resource.contents
        reference = contents.get("$ref") if isinstance(contents, Mapping) else None
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                yield repr(reference)
        pending.extend((resolver.in_subresource(one), one) for one in resource.subresources())


def _path(steps: Iterable[str | int]) -> str:
    return ".".join(str(step) for step in steps)
