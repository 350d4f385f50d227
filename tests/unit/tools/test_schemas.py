"""A pydantic model becomes the schema that a model reads, or a clear refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum

import pytest
from pydantic import BaseModel, RootModel, model_validator

from graphloop.errors import ToolDefinitionError
from graphloop.tools.parameters import Parameters
from graphloop.tools.schemas import parameters_of
from graphloop.tools.tool import Tool, tool


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


def test_compiled_parameters_can_be_shared() -> None:
    """A renamed tool does not compile its schema again."""
    parameters = Parameters('{"type":"object"}', json.loads)

    assert Tool(name="x", parameters=parameters).spec.parameters is parameters.schema


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
