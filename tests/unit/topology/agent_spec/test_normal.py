"""The normal form of documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.topology.agent_spec.normal import difference, normal_form
from graphloop.topology.compose import Value, compose
from graphloop.topology.problems import Complaints

TOOL: dict[str, Any] = {"component_type": "ServerTool", "id": "t", "name": "t"}
ROOT: dict[str, Any] = {"component_type": "X", "id": "x", "name": "x"}
REFERRED: dict[str, Any] = {
    **ROOT,
    "tool": {"$component_ref": "t"},
    "$referenced_components": {"t": {**TOOL, "requires_confirmation": False, "inputs": []}},
}


def differs(one: object, other: object) -> str:
    """Return where two documents differ."""
    forms = [normal_form(_composed(data), Complaints("a")) for data in (one, other)]
    return difference(*forms)


def clashes(data: object) -> str:
    """Return what is wrong with the ids of a document."""
    complaints = Complaints("a")
    normal_form(_composed(data), complaints)
    return "\n".join(map(str, complaints.problems))


def _composed(data: object) -> Value:
    return compose(json.dumps(data), Complaints("a"))


def test_where_a_component_stands_and_what_says_nothing_make_no_difference() -> None:
    """Another tool writes a document again in its own way."""
    assert not differs({**ROOT, "tool": TOOL, "agentspec_version": "26.1.2"}, REFERRED)


@pytest.mark.parametrize(
    "other",
    [
        {**ROOT, "tool": {**TOOL, "requires_confirmation": True}},
        {**ROOT, "tool": {**TOOL, "requires_confirmation": 0}},
        {**ROOT, "tool": {**TOOL, "name": "u"}},
        {**ROOT, "tool": TOOL, "metadata": {"a": {"b": 1}}},
        {**ROOT},
    ],
)
def test_whatever_says_something_makes_a_difference(other: object) -> None:
    """Above all a confirmation that is, or is no longer, demanded."""
    assert differs({**ROOT, "tool": TOOL}, other)
    assert differs(other, {**ROOT, "tool": TOOL})


CONFIRMED: dict[str, Any] = {**TOOL, "requires_confirmation": True}


@pytest.mark.parametrize(
    "data",
    [
        {**ROOT, "tools": [CONFIRMED, TOOL]},
        {**ROOT, "tool": CONFIRMED, "$referenced_components": {"t": TOOL}},
        {
            **ROOT,
            "inner": {**ROOT, "id": "y", "$referenced_components": {"t": TOOL}},
            "a": CONFIRMED,
        },
        {**ROOT, "tool": {**ROOT, "kind": "another"}},
    ],
)
def test_components_of_one_id_that_differ_are_told(data: object) -> None:
    """Which of the two counts would depend on who reads."""
    told = clashes(data)

    assert "two components have the id" in told
    assert not clashes({**ROOT, "tools": [TOOL, TOOL], "$referenced_components": {"t": TOOL}})


def test_a_component_stands_under_its_own_id() -> None:
    """Readers look for what is referred to by either."""
    assert "has the id 't'" in clashes({**ROOT, "$referenced_components": {"u": TOOL}})


def test_what_another_tool_noted_is_no_component() -> None:
    """Nor is what stands there taken for one."""
    assert not clashes({**ROOT, "tool": TOOL, "metadata": {"seen": CONFIRMED}})
    assert differs(
        {**ROOT, "tool": CONFIRMED}, {**ROOT, "tool": TOOL, "metadata": {"a": CONFIRMED}}
    )


@pytest.mark.parametrize(
    "tool",
    [
        {"": "t"},
        {"$component_ref": "t", "requires_confirmation": False},
        {"component_type": "ServerTool", "name": "t"},
        {**TOOL, "agentspec_version": "26.1.2"},
    ],
)
def test_nothing_else_is_taken_for_a_reference(tool: object) -> None:
    """A person who reads it sees something else."""
    held = {"$referenced_components": {"t": TOOL}}
    other = {**ROOT, "tool": tool, **held}

    assert clashes(other) or differs(other, {**ROOT, "tool": {"$component_ref": "t"}, **held})


def test_what_is_implied_is_left_out_only_if_it_says_so() -> None:
    """A configuration of one provider that names another does not say the same."""
    model = {"component_type": "OpenAiConfig", "id": "m", "name": "m"}

    assert not differs({**ROOT, "m": model}, {**ROOT, "m": {**model, "provider": "openai"}})
    assert differs({**ROOT, "m": model}, {**ROOT, "m": {**model, "provider": "other"}})
