"""Nodes in a file."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop.nodes import Append, Limit, ModelCall, Retrying
from graphloop.topology.compose import compose
from graphloop.topology.forms import Unwritable
from graphloop.topology.node_forms import read_node, registered_nodes, write_node
from graphloop.topology.problems import Misread
from tests.topology_forms import REGISTRY, WRITING, reading


@dataclass(frozen=True)
class Polite(Append):
    """Append, and say please.

    Args:
        word: what to say.
    """

    word: str = "please"


REGISTRY.node(Polite, name="polite")
REGISTRY.node(Append("closing"))


def test_nodes_are_read_by_their_use_and_written_so() -> None:
    """The library's, and those that are registered as a class or as they are."""
    to = reading()
    for name, text, node in (
        ("a", "{use: limit, times: 3}", Limit(3, "a")),
        ("b", "{use: polite, word: now}", Polite("b", word="now")),
        ("closing", "{use: closing}", Append("closing")),
        (
            "c",
            "{use: retrying, node: {use: model_call}, times: 2, after: failed}",
            Retrying(ModelCall(), 2, name="c"),
        ),
    ):
        assert node == read_node(compose(text, to.complaints), to, name)
        assert node == read_node(compose(str(write_node(node, WRITING)), to.complaints), to, name)
    assert [("closing", Append("closing"))] == [*registered_nodes(WRITING)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{use: limt, times: 3}", "Did you mean 'limit'?"),
        ("{times: 3}", "lacks `use`"),
        ("{use: polite, word: 3}", "text was expected"),
        ("{use: closing}", "under its own name only"),
        ("{use: retrying, node: {use: execute}, times: 2}", "must not happen twice"),
        ("{use: retrying, node: {use: model_call}, times: 2, after: go}", "`after` names outcomes"),
    ],
)
def test_what_is_no_node_is_refused(text: str, said: str) -> None:
    """In the words of the node itself, where it has some."""
    to = reading()

    with pytest.raises(Misread):
        read_node(compose(text, to.complaints), to, "a")

    assert said in str(to.complaints.problems[0])


def test_a_node_of_python_alone_cannot_be_written() -> None:
    """The message says how it could."""

    @dataclass(frozen=True)
    class Unknown(Append):
        """A class that is not registered."""

    with pytest.raises(Unwritable, match=r"register it with @registry\.node"):
        write_node(Unknown(), WRITING)
