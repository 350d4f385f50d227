"""Structured output: what a model is told of the form, and what it is told when it misses it."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, field_validator
from typing_extensions import TypedDict

from graphloop.agent.final_answer import Output
from graphloop.errors import ConfigError, OutputInvalid


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: Annotated[int, Field(le=60)] = 0


class Tree(BaseModel):
    """A tree."""

    value: int
    children: list[Tree] = []


@dataclass
class Point:
    """A place on a map."""

    x: int
    y: int = 0


class Song(TypedDict):
    """A song."""

    title: str


class Colour(Enum):
    """A colour."""

    RED = "red"


class Names(RootModel[list[str]]):
    """Names."""


class Fussy(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def check(cls, word: str) -> str:
        raise KeyError(word)


def forecast(city: str) -> str:
    """A function could be called with what a model says, which is what tools are for."""
    return city


class Unfit:
    """No JSON can make one."""


WEATHER = Output(Weather)


def refused(output: Output[object] | Output[Weather], text: str) -> str:
    with pytest.raises(OutputInvalid) as caught:
        output.parse(text)

    assert caught.value.text == text
    return str(caught.value)


def schema(output: Output[object]) -> dict[str, object]:
    told: dict[str, object] = json.loads(output.spec.schema)
    return told


def test_a_model_class_is_told_by_name_docstring_and_schema() -> None:
    """All a model has to go by."""
    spec = WEATHER.spec

    assert ("Weather", "The weather of a city.") == (spec.name, spec.description)
    assert json.loads(spec.schema)["properties"]["city"] == {"type": "string"}


def test_a_name_and_a_description_can_be_given() -> None:
    """The class may be named for people."""
    spec = Output(Weather, name="Das Wetter!", description="Today's.").spec

    assert ("Das_Wetter", "Today's.") == (spec.name, spec.description)
    assert repr(Output(Weather, name="now")) == "Output('now')"


@given(st.text(max_size=90))
def test_every_name_becomes_one_that_wires_take(name: str) -> None:
    """A refused name would be a refused request."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", Output({"type": "object"}, name=name).spec.name)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Weather, ' {"city": "Oslo"}\n', Weather(city="Oslo")),
        (Tree, '{"value": 1, "children": [{"value": 2}]}', Tree(value=1, children=[Tree(value=2)])),
        (Point, '{"x": 1}', Point(1)),
        (Song, '{"title": "a"}', {"title": "a"}),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (list[str], '{"value": ["a"]}', ["a"]),
        (list[Weather], '{"value": [{"city": "a"}]}', [Weather(city="a")]),
        (Weather | Point, '{"value": {"x": 1}}', Point(1)),
        (Colour, '{"value": "red"}', Colour.RED),
        (Names, '{"value": ["a"]}', Names(["a"])),
        (int, '{"value": 3}', 3),
        (str | None, '{"value": null}', None),
        ({"type": "object", "required": ["a"]}, '{"a": [1.5]}', {"a": [1.5]}),
        ({"type": "array", "items": {"type": "integer"}}, '{"value": [1]}', [1]),
        ({"enum": ["a", "b"]}, '{"value": "b"}', "b"),
        (
            {"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}},
            '{"value": 1}',
            1,
        ),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, '{"value": 1}', 1),
    ],
)
def test_an_answer_in_the_form_is_read_by_either_way(
    kind: object, text: str, value: object
) -> None:
    """As the text of an answer, or as the arguments of a final call."""
    output = Output(kind)

    assert value == output.parse(text) == output.parse_arguments(text)
    assert schema(output)["type"] == "object"


def test_a_value_that_is_no_object_is_told_in_one() -> None:
    """Tools take objects, and servers with a JSON mode ask for one."""
    told = schema(Output(list[Weather]))

    assert (["value"], True) == (told["required"], "$defs" in told)
    assert "output" == Output(list[str]).spec.name
    assert "output" == Output(int | str).spec.name


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("Oslo!", "not valid JSON"),
        ('```json\n{"city": "Oslo"}\n```', "not valid JSON"),
        ('{"city": "Oslo"} and more', "not valid JSON"),
        ('{"city": "\ud800"}', "not valid JSON"),
        ('{"city": "Oslo", "degrees": NaN}', "not valid JSON"),
        ("[1]", "found [1]"),
        ("{}", "'Weather': city: Field required. Answer again"),
        ('{"city": 3}', "city: Input should be a valid string, found 3"),
        ('{"city": "a", "degrees": 61}', "degrees: Input should be less than or equal to 60"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(text: str, finding: str) -> None:
    """The message is the model's only way to do better."""
    message = refused(WEATHER, text)

    assert message.startswith("The answer does not have the form 'Weather': ")
    assert finding in message
    assert message.endswith("Answer again, with nothing but JSON that fits the schema.")


@pytest.mark.parametrize("text", ['["a"]', '{"value": "a"}', '{"values": ["a"]}'])
def test_what_is_not_in_its_object_is_told_the_object(text: str) -> None:
    """Models like to answer with the bare list."""
    kind: object = list[str]

    assert 'the schema, {"value": …}.' in refused(Output(kind), text)


@pytest.mark.parametrize(
    ("text", "finding"),
    [("{}", "'a' is a required property"), ('{"a": "x"}', "a: 'x' is not of type 'integer'")],
)
def test_a_json_schema_is_held_to_by_its_own_rules(text: str, finding: str) -> None:
    """And what was given cannot be changed afterwards."""
    given_schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    output = Output(given_schema)
    given_schema.clear()

    assert finding in refused(output, text)


def test_a_json_schema_is_named_by_its_title() -> None:
    """It has no class."""
    spec = Output({"type": "object", "title": "My form", "description": "All of it."}).spec

    assert ("My_form", "All of it.") == (spec.name, spec.description)
    assert "output" == Output({"type": "object", "title": "!"}).spec.name


def test_arguments_that_do_not_fit_are_told_as_those_of_a_call() -> None:
    """The model has to call again, not to write."""
    with pytest.raises(OutputInvalid, match="call the tool again") as caught:
        WEATHER.parse_arguments('{"city": 3}')

    assert '{"city": 3}' == caught.value.text
    assert Point(0) == Output(Annotated[Point, Field(default=None)]).parse_arguments('{"x": 0}')


def test_no_arguments_are_an_empty_object() -> None:
    """Some servers send nothing for `{}`."""
    assert {} == Output({"type": "object"}).parse_arguments("")


def test_a_validator_that_fails_in_its_own_way_is_a_refusal_too() -> None:
    """A run must not die of an answer."""
    output: Output[object] = Output(Fussy)  # pyright: ignore[reportAssignmentType]
    assert "KeyError" in refused(output, '{"word": "x"}')


def test_a_refusal_is_bounded() -> None:
    """It goes into the next request."""
    text = json.dumps({"city": ["x" * 10_000]})

    assert len(refused(WEATHER, text)) < 1_000
    assert len(refused(WEATHER, "x" * 100_000)) < 1_000


@pytest.mark.parametrize(
    "kind",
    [
        Unfit,
        5,
        len,
        forecast,
        {"type": "nothing"},
        {"type": "array", "items": {"$ref": "#/items"}, "x": {1, 2}},
        {"$ref": "https://x"},
    ],
)
def test_what_cannot_be_told_to_a_model_is_refused_at_once(kind: object) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="output type"):
        Output(kind)


def test_partial_values_are_taken_out_of_their_object() -> None:
    """Listeners see the answer, not its wrapping."""
    plain, wrapped = Output(Weather), Output(list[str])

    assert {"city": "O"} == plain.unwrap({"city": "O"})
    assert (["a"], None, None) == (
        wrapped.unwrap({"value": ["a"]}),
        wrapped.unwrap({}),
        wrapped.unwrap("?"),
    )


def test_the_type_of_the_answer_is_known_to_checkers() -> None:
    """The point of giving a type."""
    weather: Weather = WEATHER.parse('{"city": "Oslo"}')
    names: list[str] = Output(list[str]).parse('{"value": []}')
    form: Mapping[str, object] = {"type": "object"}
    free: object = Output(form).parse("{}")

    assert (Weather(city="Oslo"), [], {}) == (weather, names, free)


def test_an_invalid_output_survives_being_sent_to_another_process() -> None:
    """Process pools send errors home as pickles."""
    again = pickle.loads(pickle.dumps(OutputInvalid("wrong", text="{")))  # noqa: S301 - ours.

    assert ("wrong", "{") == (str(again), again.text)
