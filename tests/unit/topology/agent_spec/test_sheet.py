"""Sheets: documents while they are written."""

from __future__ import annotations

import json

from graphloop.topology.agent_spec.sheet import Sheet, literal, text_property
from graphloop.topology.compose import Fields, Scalar, compose
from graphloop.topology.problems import Complaints


def test_components_have_ids_of_their_own_unless_they_are_the_same() -> None:
    """Two models of one name are one, two nodes are not."""
    sheet = Sheet()

    assert "a" == sheet.keep("X", "a", "n")
    assert "a.2" == sheet.keep("X", "a", "n")
    assert "m" == sheet.once("X", "m", "n", a=1) == sheet.once("X", "m", "n", a=1)
    assert "m.2" == sheet.once("X", "m", "n", a=2)


def test_every_character_is_read_back() -> None:
    """Some are line breaks in YAML, which is how it is read here."""
    said = "a\u0085b\u2028c\ufeffd\x7fe😀\t\n\u00a0\ufffe"
    sheet = Sheet()

    text = sheet.json(sheet.keep("X", "x", said), {})

    tree = compose(text, Complaints("a"), json=True)
    assert isinstance(tree, Fields)
    name = next(one.value for one in tree.entries if one.key == "name")
    assert isinstance(name, Scalar)
    assert said == name.value == json.loads(text)["name"]


def test_braces_begin_no_placeholder() -> None:
    """A text that has them would be given inputs."""
    assert "{ {a}}" == literal("{{a}}")
    assert {"title": "a", "type": "string"} == text_property("a")
