"""Documents as data, YAML and a fingerprint."""

from __future__ import annotations

import pytest
import yaml

from graphloop.errors import GraphError
from graphloop.graph import END, Graph
from graphloop.nodes import Append, ModelCall
from graphloop.topology.document import Document, document_of
from graphloop.topology.reader import read_text
from graphloop.topology.writer import data_of, fingerprint_of, yaml_of
from tests.topology_files import RIGHT
from tests.topology_forms import NAMES


def test_a_fingerprint_knows_what_is_said_and_not_how() -> None:
    """Order, defaults, `else`, comments and notation say nothing."""
    document = read_text(RIGHT, NAMES)
    lines = RIGHT.replace("max_steps: 8", "max_steps: 8, max_pauses: 10").splitlines()
    lines[15] = "  gate: {aborted: append, settled: execute} # the same"

    assert fingerprint_of(document, NAMES) == fingerprint_of(
        read_text("\n".join([*lines[12:], *lines[:12]]), NAMES), NAMES
    )
    assert fingerprint_of(document, NAMES) != fingerprint_of(
        read_text(RIGHT.replace("max_steps: 8", "max_steps: 9"), NAMES), NAMES
    )


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    """It stands in reviews and records."""
    graph: Graph[None] = Graph("a", Append(), {Append(): {...: END}})

    assert "a09c1a2f62463c63e0de8188bd86f6e06ba033755232d6afff9e9ece3a05ddb0" == fingerprint_of(
        document_of(graph), NAMES
    )


def test_other_readers_of_yaml_read_the_same() -> None:
    """Words that other versions take for values stand in quotes."""
    data = data_of(Document(read_text(RIGHT, NAMES).graph, prompt="yes"), NAMES)

    assert data == yaml.safe_load(yaml_of(data))


def test_all_nodes_that_no_file_can_hold_are_told() -> None:
    """Each with its reason."""
    model, append = ModelCall("a", kind="check"), Append("b", kind="pure")
    graph: Graph[None] = Graph("a", model, {model: {...: append}, append: {...: END}})

    with pytest.raises(GraphError) as refused:
        data_of(document_of(graph), NAMES)

    assert ["node 'a'", "node 'b'"] == [one.place for one in refused.value.problems]
