"""Components: what a document consists of, each with its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

import pytest

from graphloop.topology.agent_spec.components import Components, defaults_of, word
from graphloop.topology.compose import Items, Scalar, compose
from graphloop.topology.problems import Mark, Misread
from tests.topology_forms import reading


def components(data: object) -> tuple[Components, _Told]:
    """Return the components of a document, and its problems as they come."""
    to = reading()
    return Components(compose(json.dumps(data), to.complaints), to), _Told(to.complaints.problems)


class _Told:
    """The problems as a text, whenever one looks."""

    def __init__(self, problems: Sequence[object]) -> None:
        self._problems = problems

    def __str__(self) -> str:
        return "\n".join(map(str, self._problems))


ROOT = {"component_type": "X", "id": "x", "name": "x", "agentspec_version": "26.1.2"}
HELD = {"component_type": "Y", "id": "y", "name": "y"}


def test_a_reference_is_the_component_it_names() -> None:
    """It may stand at any depth, but not in what another tool noted."""
    held = {"$referenced_components": {"y": HELD}}
    data = {**ROOT, "a": {"$component_ref": "y"}, "inner": {**HELD, "id": "z", **held}}
    found, _ = components(data)
    hidden, told = components({**ROOT, "a": {"$component_ref": "y"}, "metadata": held})

    one = found.at(found.root(), "a")
    assert one is found.at(found.root(), "a")
    assert ("Y", "y") == (one.kind, one.id)
    assert {"y"} == found.used == {*found.referenced}
    with pytest.raises(Misread):
        hidden.at(hidden.root(), "a")
    assert "no component 'y'" in str(told)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"$component_ref": "y", "more": 1}, "has no key 'more'"),
        ({"$component_ref": "z"}, "has the id 'y'"),
        ({"component_type": "Y", "id": "y"}, "lacks `name`"),
        ({"component_type": "Y", "id": "y", "name": "y" * 501}, "at most 500 characters"),
        ("text", "a component is a mapping"),
        (None, "lacks `a`"),
    ],
)
def test_what_is_no_component_is_told(value: object, message: str) -> None:
    """With its place, and once."""
    data = {**ROOT, "a": value, "$referenced_components": {"y": HELD, "z": HELD}}
    found, told = components(data)

    with suppress(Misread):
        found.at(found.root(), "a")
    assert message in str(told)


def test_a_component_stands_once() -> None:
    """A second one of the same id would be taken for the first."""
    held = {"$referenced_components": {"y": HELD}}
    _, told = components({**ROOT, **held, "b": {**HELD, "id": "z", **held}})

    assert "the component 'y' stands here twice" in str(told)


def test_properties_have_titles() -> None:
    """Edges name them so."""
    found, told = components({**ROOT, "inputs": [{"title": "a"}, {"type": "string"}]})

    assert {"a"} == {*found.titles(found.root(), "inputs")}
    assert "a property lacks `title`" in str(told)


def test_what_was_read_of_a_component_is_kept() -> None:
    """Every edge asks for it: a document with many would be read for minutes."""
    found, _ = components({**ROOT, "inputs": [{"title": "a"}]})
    root = found.root()

    assert found.titles(root, "inputs") is found.titles(root, "inputs")


def test_a_word_is_the_text_of_a_scalar() -> None:
    """Whatever else stands there is none."""
    assert "a" == word(Scalar("a", Mark(1, 1), "a"))
    assert not word(Items((), Mark(1, 1)))


def test_defaults_say_something() -> None:
    """An empty one is none."""
    given = [{"title": "a", "default": "x"}, {"title": "b", "default": " "}, {"title": "c"}]
    found, _ = components({**ROOT, "inputs": given})

    assert {"a": "x"} == defaults_of(found.titles(found.root(), "inputs"))
