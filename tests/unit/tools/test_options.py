"""A tool's name, kind, effect policy and options take effect or are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ToolDefinitionError
from graphloop.tools.options import (
    REPEATABLE,
    UNKNOWN,
    EffectPolicy,
    Reconciliation,
    ToolOptions,
    ToolPolicy,
    check_name,
    definition_text,
    kind_of,
    legal_name,
    tool_policy_of,
)
from graphloop.values import ToolKind
from tests.strategies import wrong


async def work(arguments: object) -> object:
    """Return the arguments."""
    return arguments


def block(arguments: object) -> object:
    """Return the arguments."""
    return arguments


def ask(arguments: object, context: object) -> bool:
    """Ask always."""
    return bool((arguments, context))


def look(arguments: object, context: object) -> Reconciliation:
    """Find out nothing."""
    return UNKNOWN


@pytest.mark.parametrize(
    "options",
    [
        {"needs_approval": True},
        {"needs_approval": ask},
        {"timeout_s": 0.5},
        {"timeout_s": 3},
        {"result_chars_max": 1},
        {"timeout_s": None, "thread": False},
        {"effect": "pure"},
        {"effect": "idempotent"},
        {"effect": "at_least_once"},
        {"effect": "reconcile", "reconcile": look},
        {"sequential": True},
        {"sequential": "db"},
        {"ends_run": True},
    ],
    ids=" ".join,
)
def test_an_option_that_can_work_is_kept(options: ToolOptions) -> None:
    """A plain function may have a limit in a thread: only there can it be left behind."""
    in_thread: ToolOptions = {"timeout_s": 1, "thread": True}
    assert ToolPolicy(**in_thread) == tool_policy_of(in_thread, "function", block, "tool 'x'")
    assert ToolPolicy(**options) == tool_policy_of(options, "function", work, "tool 'x'")


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        (
            "needs_approval",
            "yes",
            "expected True, False or a function of (arguments, context), found 'yes'",
        ),
        ("timeout_s", "5", "timeout_s: expected more than 0 seconds, found '5'"),
        ("timeout_s", True, "timeout_s: expected more than 0 seconds, found True"),
        ("timeout_s", -1, "timeout_s: expected more than 0 seconds, found -1"),
        ("timeout_s", float("inf"), "timeout_s: expected more than 0 seconds, found inf"),
        ("timeout_s", float("nan"), "timeout_s: expected more than 0 seconds, found nan"),
        ("needs_approval", callable, "found <built-in function callable>"),
        ("result_chars_max", 0, "found 0"),
        ("thread", True, "thread=True is for plain functions"),
        ("effect", "atmost_once", "found 'atmost_once'. Did you mean 'at_most_once'?"),
        ("effect", 3, "effect: expected one of 'pure', 'idempotent'"),
        ("effect", "reconcile", "or neither, found effect='reconcile' and None"),
        ("reconcile", look, "or neither, found effect='at_most_once'"),
        ("reconcile", 3, "reconcile: expected a function of (arguments, context), found 3"),
        ("reconcile", work, "reconcile: expected a function of (arguments, context)"),
        ("sequential", "", "sequential: expected True, False or the name of a lock, found ''"),
        ("timeout", 3, "tool 'x' has no option 'timeout'. Did you mean 'timeout_s'?"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(
    option: str, value: object, found: str
) -> None:
    """With what was expected and what to do, when the tool is defined and not when it runs."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool_policy_of(wrong({option: value}), "function", work, "tool 'x'")

    assert found in str(caught.value)
    assert str(caught.value).startswith("tool 'x'")
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("kind", ["client", "agent"])
@pytest.mark.parametrize(
    "options",
    [{"effect": "pure"}, {"effect": "reconcile", "reconcile": look}],
    ids=["pure", "reconcile"],
)
def test_what_nobody_here_runs_has_no_effect_here(options: ToolOptions, kind: ToolKind) -> None:
    """Whoever runs it knows what became of a call (DURABLE §6.4)."""
    with pytest.raises(ToolDefinitionError, match="effect and reconcile need `execute`"):
        tool_policy_of(options, kind, None, "tool 'x'")


def test_a_lock_is_for_tools_and_agents_only() -> None:
    """Only what this process starts can wait for a lock."""
    assert tool_policy_of({"sequential": True}, "agent", None, "tool 'x'").sequential is True
    with pytest.raises(ToolDefinitionError, match="sequential needs `execute`"):
        tool_policy_of({"sequential": "db"}, "client", None, "tool 'x'")


@pytest.mark.parametrize("kind", ["client", "agent"])
def test_clients_and_agents_take_two_options(kind: ToolKind) -> None:
    """Both are decided before and after the call."""
    options: ToolOptions = {"needs_approval": ask, "ends_run": True}

    assert tool_policy_of(options, kind, None, "tool 'x'") == ToolPolicy(**options)


@pytest.mark.parametrize(
    "options",
    [{"needs_approval": True}, {"ends_run": True}, {"sequential": "db"}, {"result_chars_max": 5}],
    ids=" ".join,
)
def test_a_provider_heeds_no_option(options: ToolOptions) -> None:
    """Its tool has run before anybody here knows: an approval would be a pretence."""
    assert tool_policy_of({}, "provider", None, "tool 'x'") == ToolPolicy()
    with pytest.raises(ToolDefinitionError, match=r"the provider runs it.* Fix: drop them"):
        tool_policy_of(options, "provider", None, "tool 'x'")


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


@given(st.dictionaries(st.text(), JSON_VALUES))
def test_a_definition_survives_as_text(options: dict[str, object]) -> None:
    """What the provider is sent is what its user wrote."""
    definition = {**options, **SEARCH}

    sent = json.loads(definition_text("provider", definition, "search"))
    assert list(sent.items()) == list(definition.items())


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (None, "found None"),
        ({}, "found {}"),
        ({"type": "x", "name": None}, "do not rename it"),
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
def test_only_providers_have_a_definition_and_a_wire(kind: ToolKind) -> None:
    """Elsewhere it would be dropped in silence."""
    assert definition_text(kind, None, "search") == ""
    for definition, wire in ((SEARCH, ""), (None, "anthropic")):
        with pytest.raises(ToolDefinitionError, match=r"with kind .* Fix: drop it"):
            definition_text(kind, definition, "search", wire)


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_a_legal_name_passes(name: str) -> None:
    """Letters, digits, '_' and '-' are taken everywhere (CONTRACT §9 #56)."""
    check_name(name)
    assert name == legal_name(name)


@given(st.text())
@example("")
@example("x" * 65)
@example("name\n")
@example("wetter_für")
def test_the_name_that_is_offered_instead_is_legal(name: str) -> None:
    """A message whose remedy fails would be worse than none."""
    try:
        check_name(name)
    except ToolDefinitionError as error:
        offered = re.search(r"Fix: name it '([^']*)'\.$", str(error))
        assert offered is not None
        check_name(offered[1])
        assert offered[1] == legal_name(name)
    else:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


def test_only_what_says_so_may_run_again() -> None:
    """Whoever adds a policy decides on which side it stands."""
    assert set(get_args(EffectPolicy)) - REPEATABLE == {"at_most_once", "reconcile"}
    assert set(get_args(EffectPolicy)) > REPEATABLE
