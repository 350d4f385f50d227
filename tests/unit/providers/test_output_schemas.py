"""Schemas of answers: which are strict to OpenAI, and how Anthropic takes them."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from graphloop.errors import ConfigError
from graphloop.providers.anthropic.output_schema import closed_schema, refused_part
from graphloop.providers.strict_schema import strict_form

NUMBER = {"type": "number"}
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": NUMBER},
    "required": ["a"],
    "additionalProperties": False,
}


def within(part: object) -> dict[str, Any]:
    """Return a closed object whose one property has this schema."""
    return {**CLOSED, "properties": {"a": part}}


def places(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a schema at each place at which a schema may hold another."""
    return [
        part,
        within(part),
        within({"type": "array", "items": part}),
        within({"anyOf": [NUMBER, part]}),
        within(NUMBER) | {"$defs": {"B": part}},
    ]


def closed(schema: object, **more: str) -> Any:
    """Return what is sent to Anthropic for `schema`."""
    return json.loads(closed_schema(json.dumps(schema), place="here", **more))


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        within(CLOSED),
        within({"type": "array", "items": CLOSED, "maxItems": 3}),
        within({"anyOf": [CLOSED, {"type": "null"}]}),
        within({"$ref": "#/$defs/B"}) | {"$defs": {"B": CLOSED}},
        within({"enum": ["x"], "description": "d", "title": "t"}),
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        {"type": "object", "additionalProperties": False},
    ],
)
def test_closed_objects_with_all_properties_required_are_strict(schema: dict[str, Any]) -> None:
    """Then the server makes the model keep to the schema, instead of asking it to."""
    assert strict_form(schema) == schema


OPEN = {**CLOSED, "additionalProperties": True}
SILENT = {key: value for key, value in CLOSED.items() if key != "additionalProperties"}
OPTIONAL = {key: value for key, value in CLOSED.items() if key != "required"}


@pytest.mark.parametrize("loose", [OPEN, OPTIONAL, {**CLOSED, "required": ["a", "b"]}])
def test_an_object_that_is_open_on_purpose_is_not_strict(loose: dict[str, Any]) -> None:
    """Strict mode would answer 400, at whatever depth it finds one."""
    assert [strict_form(each) for each in places(loose)] == [None] * len(places(loose))


def test_an_object_that_says_nothing_of_more_properties_forbids_them() -> None:
    """Pydantic's models say nothing; OpenAI would then only ask its model to keep to them."""
    null = {"anyOf": [NUMBER, {"type": "null"}]}
    inner: dict[str, Any] = {"type": "object", "properties": {"b": {**null, "default": None}}}
    closed_inner: dict[str, Any] = {
        "type": "object",
        "properties": {"b": null},
        "additionalProperties": False,
        "required": ["b"],
    }

    assert [strict_form(each) for each in places(SILENT)] == places(CLOSED)
    assert [strict_form(each) for each in places(inner)] == places(closed_inner)
    assert "default" in inner["properties"]["b"], "the caller's schema stays as it is"


class Kinds(BaseModel):
    """What pydantic writes of common types."""

    day: date
    tags: list[str]
    mood: Literal["good", "bad"]
    note: str | None = None
    size: int = Field(ge=0, le=9)


@pytest.mark.parametrize(
    ("annotation", "is_strict"),
    [
        (Kinds, True),
        (list[Kinds], True),
        (datetime | None, True),
        (dict[str, int], False),
        (Any, False),
        (list[Any], False),
        (Path, False),
        (tuple[int, str], False),
    ],
)
def test_a_model_of_pydantic_is_strict_if_openai_knows_its_types(
    annotation: Any, is_strict: bool
) -> None:
    """OpenAI answers 400 to other formats, to patterns that look around, to a part without type."""
    model = create_model("Model", field=(annotation, ...))

    form = strict_form(model.model_json_schema())

    assert (form is not None) is is_strict


@pytest.mark.parametrize(
    "schema",
    [
        within({"type": "number", "default": 1}),
        within({"type": "number", "default": None}),
        within({"enum": ["x"], "default": None}),
        within({"$ref": "#/$defs/B", "default": None}) | {"$defs": {"B": CLOSED}},
        within({"type": "string", "minLength": 1}),
        within({"oneOf": [NUMBER]}),
        within({}),
        within({"type": "array"}),
        within({"type": "string", "pattern": "(?=a)b"}),
        within({"$ref": "#/$defs/B", "description": "d"}) | {"$defs": {"B": CLOSED}},
        {"anyOf": [CLOSED, CLOSED]},
        CLOSED | {"anyOf": [CLOSED]},
        {"type": "array", "items": CLOSED},
        {"type": "object"},
        {},
    ],
)
def test_what_strict_mode_does_not_know_is_not_strict(schema: dict[str, Any]) -> None:
    """A schema that is only a hint is better than a request that is refused."""
    assert strict_form(schema) is None


def test_a_schema_that_fits_is_sent_as_it_was_written() -> None:
    """Servers cache the compiled schema by its text."""
    text = json.dumps(within(CLOSED), indent=1)

    assert closed_schema(text, place="here") is text


class Point(BaseModel):
    """A place."""

    kind: Literal["point"] = "point"
    x: int = Field(ge=0, description="Steps east")


class Line(BaseModel):
    kind: Literal["line"] = "line"
    points: list[Point] = Field(min_length=2, max_length=9)


class Drawing(BaseModel):
    shapes: list[Point | Line] = Field(min_length=1)
    best: Point | Line = Field(discriminator="kind")


def test_objects_are_closed_and_limits_are_told() -> None:
    """The API answers 400 to an open object or a limit; the run checks limits itself."""
    found = closed(Drawing.model_json_schema())

    point, line = found["$defs"]["Point"], found["$defs"]["Line"]
    assert {False} == {one["additionalProperties"] for one in (found, point, line)}
    assert point["properties"]["x"]["description"] == "Steps east (minimum: 0)"
    assert "minimum" not in point["properties"]["x"]
    points = line["properties"]["points"]
    assert points["description"] == "(maxItems: 9, minItems: 2)"
    assert not {"minItems", "maxItems"} & points.keys()
    assert found["properties"]["shapes"]["minItems"] == 1
    best = found["properties"]["best"]
    assert [one["$ref"] for one in best["anyOf"]] == ["#/$defs/Point", "#/$defs/Line"]
    assert not {"oneOf", "discriminator"} & best.keys()


def test_a_schema_that_says_what_else_is_allowed_is_believed() -> None:
    """A mapping that was closed in silence could only ever be empty; the server says so."""
    mapping = {"type": "object", "additionalProperties": {"type": "object"}}

    assert closed(mapping) == {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": False},
    }


def test_a_description_is_told_where_the_schema_has_none() -> None:
    """This wire has no field of its own for it."""
    assert closed(CLOSED, description="The answer.") == CLOSED | {"description": "The answer."}
    described = CLOSED | {"description": "Mine."}
    assert closed(described, description="The answer.") == described


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    """Spliced in, it would break the whole request."""
    with pytest.raises(ConfigError, match="here"):
        closed_schema(text, place="here")


class Tree(BaseModel):
    """A type that holds itself."""

    inner: list[Tree]


class Leaf(BaseModel):
    """One that is used twice, and holds nothing."""

    n: int


class Pair(BaseModel):
    left: Leaf
    right: Leaf | None


class Scores(BaseModel):
    by_name: dict[str, int]


class Open(BaseModel, extra="allow"):
    n: int


MAPPING = "an object with properties of any name"
CIRCLE = "a schema within itself"
ELSEWHERE = "a reference to something else than one of its definitions"
RING = {
    "A": {"anyOf": [{"$ref": "#/definitions/B"}, NUMBER]},
    "B": {"type": "array", "items": {"$ref": "#/definitions/A"}},
}


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (Scores.model_json_schema(), MAPPING),
        (Open.model_json_schema(), MAPPING),
        (within({"type": "object"}), MAPPING),
        (within({"type": "object", "patternProperties": {"^x": NUMBER}}), MAPPING),
        (within(NUMBER) | {"$defs": {"M": {"additionalProperties": NUMBER}}}, MAPPING),
        (Tree.model_json_schema(), CIRCLE),
        (within({"$ref": "#"}), CIRCLE),
        (within({"$ref": "#/definitions/A"}) | {"definitions": RING}, CIRCLE),
        (within({"$ref": "https://example.com/a.json"}), ELSEWHERE),
        (within({"$ref": "#/properties/a"}), ELSEWHERE),
        (within({"$ref": "#/$defs/B"}), ELSEWHERE),
        (within({"enum": ["a", {"b": 1}]}), "an enumeration of values that are not plain"),
        (
            within({"allOf": [{"$ref": "#/$defs/B"}]}) | {"$defs": {"B": CLOSED}},
            "a reference within `allOf`",
        ),
    ],
)
def test_what_anthropics_api_cannot_enforce_is_named(schema: object, found: str) -> None:
    """It would answer 400, and no closing of objects can mend it."""
    assert refused_part(json.dumps(schema), place="here").startswith(f"{found}, which Anthropic")


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        SILENT,
        Pair.model_json_schema(),
        Drawing.model_json_schema(),
        within({"enum": ["a", None, 1]}),
        within({"allOf": [CLOSED]}),
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": False},
    ],
)
def test_everything_else_is_left_to_the_server(schema: object) -> None:
    """A definition that is used twice is no circle; limits and open objects are mended."""
    assert refused_part(json.dumps(schema), place="here") == ""
