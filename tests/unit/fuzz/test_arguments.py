"""Arguments of adversarial calls."""

from __future__ import annotations

import json

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from graphloop.fuzz.arguments import fits, fitting, unfit
from graphloop.fuzz.choices import Choices

SCHEMA = {
    "type": "object",
    "properties": {
        "route": {"type": "string", "enum": ["a", "b"]},
        "amount": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "boolean"}},
        "kind": {"const": "x"},
        "deep": {"type": "object", "properties": {"text": {"type": "string"}}},
        "any": {},
    },
    "required": ["route", "kind"],
}


@given(values=st.lists(st.integers(0, 255), max_size=30))
def test_arguments_fit_the_schema(values: list[int]) -> None:
    """Otherwise a forced choice would never be made, and half a graph never seen."""
    arguments = json.loads(fitting(json.dumps(SCHEMA), Choices.given(values)))

    jsonschema.validate(arguments, SCHEMA)


def test_the_simplest_yes_or_no_is_yes() -> None:
    """A shrunk run ends soon, and a no sends most answers back."""
    assert "true" == fitting('{"type": "boolean"}', Choices.given(()))


def test_a_schema_that_goes_round_in_circles_ends() -> None:
    """A tool's schema is the user's, and may nest as deep as it likes."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}

    assert '"deep"' in fitting(json.dumps(schema), Choices.given(()))


def test_unfit_arguments_are_of_all_kinds() -> None:
    """Valid JSON that is no object, halves, and nothing."""
    every = [unfit(Choices.given((at,))) for at in range(8)]

    assert {True, False} == {fits(one) for one in every}
    assert "" in every
