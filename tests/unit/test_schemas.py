"""Signatures, models and raw schemas become the JSON Schema a model reads, or a clear refusal."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import wraps
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, model_validator

from graphloop.errors import ToolDefinitionError
from graphloop.schemas import Parameters
from graphloop.tools import Tool, ToolContext, tool

if typing.TYPE_CHECKING:
    from decimal import Decimal


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "NO"


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Sentinel:
    """A default that no JSON can express."""


def schema_of(function: Callable[..., object]) -> dict[str, typing.Any]:
    return typing.cast("dict[str, typing.Any]", json.loads(tool(function).spec.parameters))


def raw(schema: Mapping[str, object]) -> Tool:
    return Tool(name="raw", parameters=schema)


# --- functions


def test_a_signature_becomes_a_schema() -> None:
    """Everything a model must know is in the code already: names, types, defaults, docs."""

    def forecast(
        place: Place,
        unit: Unit = Unit.CELSIUS,
        mode: Literal["short", "long"] = "short",
        days: Annotated[int, Field(ge=1, description="How far.")] = 3,
        note: str | None = None,
        *,
        context: ToolContext,
    ) -> str:
        """Tell the weather
        of a place.

        More for people.

        Args:
            place: Where
                it is.
            days: Overridden by the annotation.
            context: Not for models.
        """
        return f"{place}{unit}{mode}{days}{note}{context}"

    made = tool(forecast)
    schema = json.loads(made.spec.parameters)

    assert made.spec.name == "forecast"
    assert made.spec.description == "Tell the weather of a place."
    assert schema["type"] == "object"
    assert schema["required"] == ["place"]
    assert list(schema["properties"]) == ["place", "unit", "mode", "days", "note"]
    assert schema["properties"]["place"] == {"$ref": "#/$defs/Place", "description": "Where it is."}
    assert schema["properties"]["unit"] == {"$ref": "#/$defs/Unit", "default": "c"}
    assert schema["properties"]["mode"] == {
        "type": "string",
        "enum": ["short", "long"],
        "default": "short",
    }
    assert schema["properties"]["days"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How far.",
    }
    assert schema["properties"]["note"]["default"] is None
    assert set(schema["$defs"]) == {"Place", "Unit"}


def test_parsed_arguments_have_the_annotated_types() -> None:
    """The function gets what its annotations promise, and its own defaults for the rest."""
    seen: list[object] = []

    def visit(place: Place, unit: Unit, where: object = Sentinel) -> None:
        seen.extend([place, unit, where])

    made = tool(visit)

    assert made.validate('{"place": {"city": "Oslo"}, "unit": "f"}') is None
    assert "where" in json.loads(made.spec.parameters)["properties"]
    assert "default" not in json.loads(made.spec.parameters)["properties"]["where"]


@pytest.mark.parametrize("name", ["json", "schema", "copy", "_private", "model_config", "name"])
def test_a_parameter_may_have_any_name(name: str) -> None:
    """Names that a pydantic model would refuse are ordinary parameters of ordinary functions."""
    namespace: dict[str, object] = {}
    exec(f"def f({name}: int) -> int:\n    return {name}", namespace)  # noqa: S102 - any name.
    made = tool(typing.cast("Callable[..., int]", namespace["f"]))

    assert list(json.loads(made.spec.parameters)["properties"]) == [name]
    assert made.validate(json.dumps({name: 1})) is None


def test_a_method_is_a_tool_when_bound() -> None:
    """Tools often need an object: a client, a database."""

    class Shop:
        def price(self, item: str) -> int:
            """Tell a price."""
            return len(item)

    assert list(schema_of(Shop().price)["properties"]) == ["item"]


def test_a_wrapped_function_is_described_as_the_inner_one() -> None:
    """Decorators that keep `__wrapped__` do not hide the signature."""

    def inner(place: Place) -> str:
        return place.city

    @wraps(inner)
    def outer(place: Place) -> str:
        return inner(place)

    assert list(schema_of(outer)["properties"]) == ["place"]


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (None, ""),
        ("One line.", "One line."),
        ("Two\nlines.\n\nMore.", "Two lines."),
        ("\n    Args:\n        x: The x.\n    ", ""),
        ("Broken.\n\n: :raises:", "Broken."),
    ],
)
def test_the_description_is_the_first_paragraph(text: str | None, summary: str) -> None:
    """Whatever the docstring looks like, defining the tool works."""

    def documented(x: int) -> int:
        return x

    documented.__doc__ = text

    assert tool(documented).spec.description == summary
    assert list(schema_of(documented)["properties"]) == ["x"]


def variadic(*items: str) -> None: ...
def keywords(**items: str) -> None: ...
def positional(item: str, /) -> None: ...
def bare(item) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
def unbound(self) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
def field_default(item: int = Field(default=3)) -> None: ...
def two_contexts(one: ToolContext, two: ToolContext) -> None: ...
def hidden_type(amount: Decimal) -> None: ...
def no_schema(item: Callable[[], int]) -> None: ...
def unknown_type(fine: int, item: Sentinel) -> None: ...
def generator(item: int) -> typing.Iterator[int]:
    yield item


async def async_generator(item: int) -> typing.AsyncIterator[int]:
    yield item


REFUSED: list[tuple[Callable[..., object], str, str]] = [
    (variadic, "items", "list["),
    (keywords, "items", "dict["),
    (positional, "item", "drop the '/'"),
    (bare, "item", "`item: str`"),
    (unbound, "self", "tool(thing.method)"),
    (field_default, "item", "Annotated["),
    (two_contexts, "two", "keep one"),
    (hidden_type, "amount", "module level"),
    (no_schema, "item", "types that JSON can express"),
    (unknown_type, "item", "types that JSON can express"),
    (generator, "", "return a value"),
    (async_generator, "", "return a value"),
    (max, "", "wrap it in a `def`"),
]


@pytest.mark.parametrize(("function", "parameter", "fix"), REFUSED)
def test_a_signature_that_cannot_be_described_is_refused(
    function: Callable[..., object], parameter: str, fix: str
) -> None:
    """The message names the function, the parameter and the fix."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function)

    assert repr(function.__qualname__) in str(caught.value)
    assert not parameter or f"parameter {parameter!r}" in str(caught.value)
    assert fix in str(caught.value)


# --- models


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


def test_findings_are_bounded() -> None:
    """A model that writes nonsense at length must not get it back at length."""

    def add(numbers: list[int]) -> int:
        return sum(numbers)

    problem = tool(add).validate(json.dumps({"numbers": ["x" * 1_000] * 50})) or ""
    broken = tool(add).validate("[" + "x" * 100_000) or ""

    assert "numbers.0: " in problem
    assert "and 40 more" in problem
    assert len(problem) <= 4_000
    assert "…" in broken
    assert len(broken) < 600


def test_a_models_own_finding_has_no_path() -> None:
    """A rule over several fields belongs to none of them."""

    class Span(BaseModel):
        start: int
        end: int

        @model_validator(mode="after")
        def check(self) -> Span:
            if self.end < self.start:
                raise ValueError("end is before start")
            return self

    problem = Tool(name="span", parameters=Span).validate('{"start": 3, "end": 1}')

    assert problem == (
        "Invalid arguments for tool 'span': Value error, end is before start, "
        "found {'start': 3, 'end': 1}. Correct the arguments and call the tool again."
    )


# --- raw JSON Schema


def test_a_raw_schema_is_kept_and_checked() -> None:
    """A schema from elsewhere is as binding as one of ours."""
    schema: dict[str, object] = {
        "type": "object",
        "title": "Gone",
        "properties": {
            "z": {"type": "array", "items": {"$ref": "#/$defs/n"}},
            "a": {"enum": [1, 2]},
        },
        "required": ["z"],
        "$defs": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    made = raw(schema)
    schema["type"] = "string"

    assert list(json.loads(made.spec.parameters)["properties"]) == ["z", "a"]
    assert "Gone" not in made.spec.parameters
    assert made.validate('{"z": [1]}') is None
    assert made.validate('{"z": ["x"], "a": 3}') == (
        "Invalid arguments for tool 'raw': a: 3 is not one of [1, 2]; "
        "z.0: 'x' is not of type 'integer'. Correct the arguments and call the tool again."
    )
    assert "'z' is a required property" in (made.validate("{}") or "")


def test_equal_schemas_give_equal_text() -> None:
    """Prompt caches hit only if the bytes are the same."""
    one = raw({"type": "object", "properties": {"b": {"type": "string", "minLength": 1}}})
    two = raw({"properties": {"b": {"minLength": 1, "type": "string"}}, "type": "object"})

    assert one.spec.parameters == two.spec.parameters
    assert " " not in one.spec.parameters


def test_the_schemas_own_draft_counts() -> None:
    """`items` as a list means one thing in draft 7 and is no schema at all in 2020-12."""
    items = {"type": "object", "properties": {"p": {"items": [{"type": "integer"}]}}}
    draft7 = raw({"$schema": "http://json-schema.org/draft-07/schema#", **items})

    assert draft7.validate('{"p": ["x"]}') is not None
    with pytest.raises(ToolDefinitionError, match=r"at properties\.p\.items"):
        raw(items)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {}}, "found None"),
        ({"type": "array"}, "found 'array'"),
        ({"type": "object", "required": "a"}, "at required"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "at properties.a.pattern"),
        ({"type": "object", "$schema": "urn:mine"}, "no known draft: 'urn:mine'"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "'#/$defs/b'"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://x.test/s"}}},
            "nothing is fetched",
        ),
        ({"type": "object", "default": object()}, "not a JSON Schema"),
    ],
)
def test_a_raw_schema_that_cannot_work_is_refused(
    schema: Mapping[str, object], expected: str
) -> None:
    """A schema's mistakes belong to its author, not to the model that meets them later."""
    with pytest.raises(ToolDefinitionError) as caught:
        raw(schema)

    assert expected in str(caught.value)
    assert "tool 'raw'" in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_a_schema_that_refers_to_itself_without_end_refuses_arguments() -> None:
    """Nothing that validation can do may end the run."""
    endless = raw({"type": "object", "allOf": [{"$ref": "#"}]})

    assert "RecursionError" in (endless.validate("{}") or "")


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_an_open_schema_accepts_every_object(value: dict[str, object]) -> None:
    """What the schema does not forbid is allowed."""
    assert raw({"type": "object"}).validate(json.dumps(value)) is None


def test_compiled_parameters_can_be_shared() -> None:
    """A renamed tool does not compile its schema again."""
    parameters = Parameters('{"type":"object"}', json.loads)

    assert Tool(name="x", parameters=parameters).spec.parameters is parameters.schema


@pytest.mark.parametrize("hint", [str, Place, Literal["a", 1], int | None, Place | None, object])
def test_a_default_of_none_is_told_only_where_null_would_be_taken(hint: object) -> None:
    """A model that reads `default: null` sends null, and must not be refused for it."""

    def search(page: object = None) -> None:
        """Search."""

    search.__annotations__["page"] = hint
    made = tool(search)

    told = "default" in json.loads(made.spec.parameters)["properties"]["page"]

    assert told == (made.validate('{"page": null}') is None)
