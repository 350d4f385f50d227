"""Arguments are strict JSON objects, and equal schemas are the same text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from graphloop.errors import ToolDefinitionError
from graphloop.tools.outcome import ArgumentsRejected
from graphloop.tools.parameters import JsonSchema, arguments_parser, schema_of, schema_text

OBJECT: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])
PARSE = arguments_parser(OBJECT.validator.validate_json)

KEYWORDS = st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers()))


class Place(BaseModel):
    city: str


@pytest.mark.parametrize("arguments", ["", " \n", "{}"])
def test_nothing_is_an_empty_object(arguments: str) -> None:
    """Some servers send an empty string for a call without arguments (CONTRACT §5.4)."""
    assert PARSE(arguments) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        *("NaN", '{"a": NaN}', '{"a": [-Infinity]}', '{"a": 1e999}', '{"a": [-1.5E+400]}'),
        '{"a": 1%s.5}' % ("0" * 400),
    ],
)
def test_numbers_that_json_does_not_have_are_rejected(arguments: str) -> None:
    """They could not be sent back in a history."""
    with pytest.raises(ArgumentsRejected, match="not valid JSON"):
        PARSE(arguments)


def test_words_for_such_numbers_may_stand_in_strings() -> None:
    """Text about NaN is text."""
    for text in ("NaN, Infinity", "1e999", "0" * 400, "3e1000 lines"):
        assert PARSE(json.dumps({"a": text})) == {"a": text}
    assert PARSE('{"a": 1e-999, "b": 1e+0300}') == {"a": 0.0, "b": 1e300}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_is_no_object_is_refused(value: object) -> None:
    """Arguments have names."""
    with pytest.raises(ValidationError):
        PARSE(json.dumps(value))


def test_titles_are_left_out() -> None:
    """They repeat the names, and cost tokens in every request."""
    schema = schema_of(TypeAdapter(Place))

    assert schema["properties"] == {"city": {"type": "string"}}
    assert "title" not in schema_text(schema, "here")


@given(KEYWORDS)
def test_the_order_of_keywords_does_not_matter(keywords: dict[str, object]) -> None:
    """Prompt caches hit only if the bytes are the same."""
    schema: JsonSchema = {**keywords, "type": "object"}
    backwards = dict(reversed(schema.items()))

    assert schema_text(schema, "here") == schema_text(backwards, "here")


def test_the_order_of_properties_is_kept() -> None:
    """Models answer in that order."""
    text = schema_text({"type": "object", "properties": {"z": {}, "a": {}}}, "here")

    assert list(json.loads(text)["properties"]) == ["z", "a"]


def test_a_reference_at_the_top_is_resolved() -> None:
    """Providers want the object itself."""
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/T"}}}
    text = schema_text({"$ref": "#/$defs/T", "$defs": {"T": tree}}, "here")

    assert json.loads(text) == {**tree, "$defs": {"T": tree}}


def test_a_schema_of_no_object_is_refused() -> None:
    """With the place, what was found, and what to do."""
    with pytest.raises(ToolDefinitionError, match=r"here: .*found 'array'.* Fix: "):
        schema_text({"type": "array"}, "here")
