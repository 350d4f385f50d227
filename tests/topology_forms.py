"""Reading and writing one form of a topology's file, for tests."""

from __future__ import annotations

from typing import Any

import jsonschema

from graphloop.topology.compose import compose
from graphloop.topology.forms import Data, Form, Reading, Writing
from graphloop.topology.node_forms import read_part, write_part
from graphloop.topology.problems import Complaints, Misread
from graphloop.topology.registration import Names, Registry
from graphloop.topology.schema import schema_of

__all__ = ["NAMES", "REGISTRY", "WRITING", "is_valid", "read", "reading", "refusal", "written"]


def over(arguments: object, context: object) -> bool:
    """Say yes."""
    return True


async def helps(run: object) -> None:
    """Help nobody."""


REGISTRY = Registry()
REGISTRY.predicate(over)
REGISTRY.function(helps)
REGISTRY.tool(len, name="search")
NAMES = Names(REGISTRY, installed=False)
WRITING = Writing(NAMES, write_part)


def reading(*agents: str) -> Reading:
    """Return what a form may look at in a file with these agents."""
    return Reading(Complaints("a"), NAMES, read_part, dict.fromkeys(agents))


def read(form: Form, text: str, *agents: str) -> object:
    """Return what a form reads in a text."""
    to = reading(*agents)
    value = form.read(compose(text, to.complaints), to)
    assert not to.complaints.problems
    return value


def refusal(form: Form, text: str, *agents: str) -> str:
    """Return what a form says of a text that it refuses."""
    to = reading(*agents)
    try:
        form.read(compose(text, to.complaints), to)
    except Misread:
        return "\n".join(map(str, to.complaints.problems))
    raise AssertionError(f"it was read: {text!r}")


def written(form: Form, value: object) -> Data:
    """Return what a form writes."""
    return form.write(value, WRITING)


def is_valid(data: Any, names: Names = NAMES, *, open_to_others: bool = False) -> bool:
    """Whether the JSON Schema takes plain data for a topology."""
    schema = schema_of(names, open_to_others=open_to_others)
    validator = jsonschema.Draft202012Validator(schema)
    return bool(validator.is_valid(data))  # pyright: ignore[reportUnknownMemberType] - its stub lacks a type
