"""Arguments are strict JSON objects, and every form of parameters is the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel, TypeAdapter

from graphloop.errors import ToolDefinitionError
from graphloop.tools.outcome import ArgumentsRejected
from graphloop.tools.schema import (
    JsonSchema,
    arguments_parser,
    parameters_of,
    schema_text,
)
from graphloop.tools.tool import Tool

OBJECT: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


PARSE = arguments_parser(OBJECT.validator.validate_json)


KEYWORDS = st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers()))


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


@given(KEYWORDS)
def test_the_order_of_keywords_does_not_matter(keywords: dict[str, object]) -> None:
    """Prompt caches hit only if the bytes are the same."""
    schema: JsonSchema = {**keywords, "type": "object"}
    backwards = dict(reversed(schema.items()))

    assert schema_text(schema, "here") == schema_text(backwards, "here")


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "NO"


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


def test_a_recursive_model_is_an_object_at_the_top() -> None:
    """Providers refuse parameters whose top is a bare reference."""
    made = Tool(name="plant", parameters=Tree)
    schema = json.loads(made.spec.parameters)

    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["value", "children"]
    assert made.validate('{"value": 1, "children": [{"value": 2}]}') is None
    assert "children.0.value: " in (made.validate('{"value": 1, "children": [{}]}') or "")


class Handler(BaseModel):
    call: Callable[[], int]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (RootModel[list[int]], "found 'array'"),
        (RootModel[Place | Unit], "found None"),
        (Handler, "no JSON Schema can be made"),
    ],
)
def test_a_model_that_is_no_object_is_refused(model: type[BaseModel], expected: str) -> None:
    """Arguments have names, so their schema is an object's."""
    with pytest.raises(ToolDefinitionError) as caught:
        Tool(name="x", parameters=model)

    assert expected in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_parameters_come_in_three_forms() -> None:
    """A model class, a schema of one's own, or what has been compiled already."""
    compiled = parameters_of(Place, "here")

    assert parameters_of(compiled, "here") is compiled
    assert parameters_of(json.loads(compiled.schema), "here").schema == compiled.schema


@pytest.mark.parametrize("given", [int, [], "city", None])
def test_what_is_none_of_these_forms_is_refused(given: object) -> None:
    """With what was found, and what to do."""
    with pytest.raises(ToolDefinitionError, match=r"here: .*, found .* Fix: "):
        parameters_of(given, "here")
