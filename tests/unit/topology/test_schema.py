"""The JSON Schema of topologies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jsonschema
import pytest
import yaml

from graphloop.topology.registration import LIBRARY
from graphloop.topology.schema import TOPOLOGY, topology_schema
from tests.topology_files import BAD, RIGHT, Bad
from tests.topology_forms import NAMES, is_valid

# What a schema has to find: an editor shows it while it is written.
FOUND = (
    "a list on top", "unknown top key", "missing key", "missing version", "version of tomorrow",
    "name is blank", "node named END", "node without use", "node is a word", "unknown use",
    "an import path", "unknown parameter", "a number as text", "no bound", "unknown verdict",
    "two verdicts", "a key of another verdict", "a row is a word", "unknown rule",
    "an agent of no kind", "an ignore without a reason", "rules are a word",
)  # fmt: skip


def test_it_is_a_schema_and_says_all_keys() -> None:
    """With a word about each."""
    schema = topology_schema(NAMES)
    jsonschema.Draft202012Validator.check_schema(schema)

    whole = cast("Mapping[str, Any]", schema)
    properties = whole["properties"]
    assert all(key["description"] for key in properties.values())
    assert set(TOPOLOGY.forms) == set(properties)
    assert is_valid(yaml.safe_load(RIGHT))


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad.kind in FOUND])
def test_it_refuses_what_the_reader_refuses(bad: Bad) -> None:
    """As far as a schema can."""
    assert not is_valid(yaml.safe_load(bad.text))


@pytest.mark.parametrize("use", LIBRARY)
def test_no_node_takes_a_key_that_is_not_known(use: str) -> None:
    """A word that is mistyped is shown at once."""
    topology = yaml.safe_load(RIGHT)
    topology["nodes"]["append"] = {"use": use, "no_such_key": 1}

    assert not is_valid(topology)


def test_an_open_schema_takes_nodes_that_it_cannot_know() -> None:
    """They may be registered elsewhere; a node of the library takes its own parameters only."""
    topology = yaml.safe_load(RIGHT)
    topology["nodes"]["append"] = {"use": "own_node", "speed": 3}
    again = {"use": "retrying", "times": 1, "node": {"use": "own_node", "name": "a"}}
    topology["nodes"]["execute"] = again

    assert not is_valid(topology)
    assert is_valid(topology, open_to_others=True)
    topology["nodes"]["append"] = {"use": "append", "speed": 3}
    assert not is_valid(topology, open_to_others=True)
    topology["nodes"]["append"] = {"speed": 3}
    assert not is_valid(topology, open_to_others=True)
