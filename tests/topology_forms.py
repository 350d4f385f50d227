"""Reading and writing one node of a topology's file, for tests."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome
from graphloop.topology.compose import compose
from graphloop.topology.diagnostics import Diagnostics, ParseError
from graphloop.topology.models import Reading, parse
from graphloop.topology.node_models import NODE
from graphloop.topology.registration import Registry
from graphloop.topology.schema import topology_schema
from graphloop.topology.writer import node_data

__all__ = ["NAMES", "REGISTRY", "is_valid", "read", "reading", "refusal", "written"]


def over(arguments: object, context: object) -> bool:
    """Say yes."""
    return True


async def helps(run: object) -> None:
    """Help nobody."""


REGISTRY = Registry()
REGISTRY.predicate(over)
REGISTRY.function(helps)
REGISTRY.tool(len, name="search")
NAMES = REGISTRY


def reading(*agents: str) -> Reading:
    """Return what a model may look at in a file with these agents."""
    return Reading(Diagnostics("a"), NAMES, dict.fromkeys(agents))


def read(text: str, *agents: str) -> Node[Any, Outcome]:
    """Return the node that a text says, in a file with these agents."""
    to = reading(*agents)
    made = parse(NODE, compose(text, to.diagnostics), to)
    assert not to.diagnostics.problems
    return made


def refusal(text: str, *agents: str) -> str:
    """Return what is said of a text that is no node."""
    to = reading(*agents)
    with pytest.raises(ParseError):
        parse(NODE, compose(text, to.diagnostics), to)
    return "\n".join(map(str, to.diagnostics.problems))


def written(node: Node[Any, Outcome]) -> str:
    """Return a node as the text of a part, with its name."""
    data = {**node_data(node, NAMES), "name": node.name}
    return json.dumps(data)


def is_valid(data: Any, names: Registry = NAMES, *, open_to_others: bool = False) -> bool:
    """Whether the JSON Schema takes plain data for a topology."""
    schema = topology_schema(names, open_to_others=open_to_others)
    validator = jsonschema.Draft202012Validator(schema)
    return bool(validator.is_valid(data))  # pyright: ignore[reportUnknownMemberType] - its stub lacks a type
