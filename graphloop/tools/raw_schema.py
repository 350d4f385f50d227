r"""Parameters given as JSON Schema, checked by jsonschema.

jsonschema takes long to import, so `schema` imports this module only for the first tool that
needs it. A schema that refers to another document is refused; no document is fetched. Patterns
are JavaScript regular expressions, which are searched for, not matched from the start. Python's
`re` reads most of them; pydantic's Rust engine reads the others (`\p{L}`, `(?<name>…)`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias, cast

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import (
    extend,  # pyright: ignore[reportUnknownVariableType] - its stub is untyped.
    validator_for,
)
from pydantic import TypeAdapter
from pydantic_core import SchemaError, SchemaValidator, core_schema, from_json, to_json
from referencing.exceptions import Unresolvable
from referencing.jsonschema import (
    EMPTY_REGISTRY,
    Schema,
    SchemaResource,
    UnknownDialect,
    specification_with,
)

from ..errors import ToolDefinitionError
from .outcome import ArgumentsRejected, join_issues
from .schema import JsonSchema, Parameters, arguments_parser, schema_text

__all__ = ["is_pattern", "matches", "raw_parameters"]

Extend: TypeAlias = Callable[[type[Validator], Mapping[str, object]], type[Validator]]

DRAFT202012_ID = "https://json-schema.org/draft/2020-12/schema"


def raw_parameters(schema: Mapping[str, object], place: str) -> Parameters:
    """Return the parameters that a JSON Schema describes, with a parser that checks arguments.

    The schema is copied: later changes to it have no effect.

    Raises:
        ToolDefinitionError: the schema is not JSON, not valid in its draft, not of an object, or
            refers to a definition that it does not contain.
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
        errors = validator.iter_errors(cast("dict[str, str]", value))  # The type in the stub.
        issues = [(_path_text(error.absolute_path), error.message) for error in errors]
        if issues:
            raise ArgumentsRejected(join_issues(sorted(issues)))
        return value

    return Parameters.of(text, parse)


def is_pattern(text: object) -> bool:
    """Whether `text` is a valid pattern for `re` or for pydantic's engine.

    True for a value that is no string: a format constrains strings only (JSON Schema 2020-12 §7.1).
    """
    if not isinstance(text, str):
        return True
    try:
        _searcher(text)
    except SchemaError:
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether a search for the regular expression `pattern` finds a match in `text`.

    Raises:
        SchemaError: `pattern` is not a valid pattern.
    """
    return _searcher(pattern)(text)


@lru_cache(maxsize=512)
def _searcher(pattern: str) -> Callable[[str], bool]:
    try:
        search = re.compile(pattern).search
    except (re.error, RecursionError, OverflowError):
        described = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
        return SchemaValidator(described).isinstance_python
    return lambda text: search(text) is not None


def _validator(schema: JsonSchema, place: str) -> Validator:
    checked = cast("Schema", schema)
    try:
        specification = specification_with(str(schema.get("$schema", DRAFT202012_ID)))
    except UnknownDialect as error:
        raise ToolDefinitionError(
            f"{place}: '$schema': expected a published draft, found {error.uri!r}. "
            "Fix: leave it out for 2020-12, or name a published draft."
        ) from error
    draft = validator_for(checked, default=Draft202012Validator)
    grammar = draft(draft.META_SCHEMA, format_checker=_format_checker(draft))
    wrong = next(iter(grammar.iter_errors(cast("dict[str, str]", schema))), None)
    if wrong is not None:
        raise ToolDefinitionError(
            f"{place}: the parameters are not a valid JSON Schema, "
            f"at {_path_text(wrong.absolute_path) or 'the top'}: {wrong.message}. Fix: correct it "
            "there."
        )
    _check_parts(specification.create_resource(checked), place)
    extended = cast("Extend", extend)(draft, {"pattern": _check_pattern})
    # With a `$schema`, jsonschema would follow references with its own draft, not our extension.
    unnamed = {name: value for name, value in schema.items() if name != "$schema"}
    return extended(unnamed, registry=EMPTY_REGISTRY)


def _format_checker(draft: type[Validator]) -> FormatChecker:
    """Return the format checker of a draft; its `regex` format uses `is_pattern`."""
    formats = FormatChecker(())
    formats.checkers = {**draft.FORMAT_CHECKER.checkers, "regex": (is_pattern, ())}
    return formats


def _check_pattern(
    validator: Validator, pattern: str, instance: object, _: object
) -> Iterator[ValidationError]:
    del validator
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _check_parts(root: SchemaResource, place: str) -> None:
    """Refuse references to other documents, and `patternProperties` that `re` cannot read."""
    lost: set[str] = set()
    for lookup, resource in _subresources(root):
        contents = resource.contents
        if not isinstance(contents, Mapping):
            continue
        reference, patterns = contents.get("$ref"), contents.get("patternProperties")
        if isinstance(reference, str):
            try:
                lookup(reference)
            except Unresolvable:
                lost.add(repr(reference))
        # Several keywords of jsonschema search for these patterns, always with Python's `re`.
        for pattern in cast("Mapping[str, object]", patterns or {}):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ToolDefinitionError(
                    f"{place}: patternProperties: expected patterns that Python can read, found "
                    f"{pattern!r}: {error}. Fix: write it with character ranges."
                ) from error
    if lost:
        raise ToolDefinitionError(
            f"{place}: '$ref': expected definitions in the schema itself, "
            f"found references to {', '.join(sorted(lost))}. Fix: put them under '$defs'."
        )


def _subresources(root: SchemaResource) -> Iterator[tuple[Callable[[str], object], SchemaResource]]:
    pending = [(EMPTY_REGISTRY.resolver_with_root(root), root)]
    while pending:
        resolver, resource = pending.pop()
        yield resolver.lookup, resource
        pending.extend((resolver.in_subresource(part), part) for part in resource.subresources())


def _path_text(steps: Iterable[str | int]) -> str:
    return ".".join(str(step) for step in steps)
