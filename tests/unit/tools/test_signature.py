"""A function's signature becomes the schema that a model reads, or a clear refusal."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from enum import Enum
from functools import wraps
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from graphloop.errors import ToolDefinitionError
from graphloop.tools.tool import ToolContext, tool

if typing.TYPE_CHECKING:
    from decimal import Decimal


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "NO"


class Sentinel:
    """A default that no JSON can express."""


def schema_of(function: Callable[..., object]) -> dict[str, typing.Any]:
    return typing.cast("dict[str, typing.Any]", json.loads(tool(function).spec.parameters))


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


@pytest.mark.parametrize("text", ["Infinity", "-inf", "NaN"])
def test_a_text_that_says_no_number_is_none_for_a_float(text: str) -> None:
    """JSON has neither, and a model that writes one in quotes has made the same mistake."""

    @tool
    def pay(amount: float) -> str:
        """Pay."""
        return str(amount)

    assert "finite number" in (pay.validate(json.dumps({"amount": text})) or "")
    assert pay.validate('{"amount": "1.5"}') is None


@pytest.mark.parametrize(
    "kind",
    [
        str,
        int | None,
        float,
        list[bool],
        dict[str, list[int]],
        Literal["a", 1, True],
        typing.Optional[dict[str, None]],  # noqa: UP045 - both spellings are in use
    ],
)
def test_a_plain_annotation_that_is_compiled_late_always_compiles(kind: object) -> None:
    """The first use of a tool must not raise an error that belongs to its definition."""

    def work(value: object) -> None:
        pass

    work.__annotations__["value"] = kind

    schema = schema_of(work)

    assert schema["required"] == ["value"]


@pytest.mark.parametrize("kind", [Sentinel, list[Sentinel], Sentinel | None, dict[str, Sentinel]])
def test_an_annotation_that_no_schema_describes_is_refused_at_once(kind: object) -> None:
    """A wrong tool is found when the program starts, not when a model first calls it."""

    def work(value: object) -> None:
        pass

    work.__annotations__["value"] = kind

    with pytest.raises(ToolDefinitionError, match="parameter 'value'"):
        tool(work)
