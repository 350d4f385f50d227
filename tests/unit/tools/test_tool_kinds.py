"""Who runs a tool follows from what it is given, or is said, and must not contradict it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ToolDefinitionError
from graphloop.tools.kinds import definition_text, kind_of
from graphloop.values import ToolKind

SEARCH = {"type": "search_1", "name": "search"}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_without_a_kind_the_executor_decides() -> None:
    """CONTRACT §3.1: no executor, no server function."""
    assert kind_of(None, print, "here") == "function"
    assert kind_of(None, None, "here") == "client"


@pytest.mark.parametrize("kind", ["client", "agent", "provider"])
def test_what_others_run_has_no_executor(kind: ToolKind) -> None:
    """It would never be called."""
    assert kind_of(kind, None, "here") == kind
    with pytest.raises(ToolDefinitionError, match=r"here: .*found <built-in.* Fix: "):
        kind_of(kind, print, "here")


def test_a_function_has_an_executor() -> None:
    """Nobody else would answer its calls."""
    assert kind_of("function", print, "here") == "function"
    with pytest.raises(ToolDefinitionError, match=r"here: .*found none with kind 'function'"):
        kind_of("function", None, "here")


@given(st.dictionaries(st.text(), JSON_VALUES))
def test_a_definition_survives_as_text(options: dict[str, object]) -> None:
    """What the provider is sent is what its user wrote."""
    definition = {**options, **SEARCH}

    assert json.loads(definition_text("provider", definition, "search")) == definition


def test_the_definition_keeps_its_order() -> None:
    """It is sent as it is."""
    assert definition_text("provider", SEARCH, "search") == '{"type":"search_1","name":"search"}'


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (None, "found None"),
        ({"type": "x"}, "found {'type': 'x'}"),
        ({"name": "search"}, "found {'name': 'search'}"),
        ({"type": 3, "name": "search"}, "do not rename it"),
        ({"type": "x", "name": "other"}, "do not rename it"),
        ({**SEARCH, "limit": float("nan")}, "not JSON"),
        ({**SEARCH, "limit": {1, 2}}, "not JSON"),
    ],
)
def test_a_definition_that_cannot_be_sent_is_refused(
    definition: Mapping[str, object] | None, expected: str
) -> None:
    """When the tool is defined, not by the server."""
    with pytest.raises(ToolDefinitionError) as caught:
        definition_text("provider", definition, "search")

    assert expected in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("kind", ["client", "agent", "function"])
def test_only_providers_are_sent_a_definition(kind: ToolKind) -> None:
    """Elsewhere it would be dropped in silence."""
    assert definition_text(kind, None, "search") == ""
    with pytest.raises(ToolDefinitionError, match=r"with kind .* Fix: drop it"):
        definition_text(kind, SEARCH, "search")
