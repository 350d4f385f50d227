"""Options of tools: each is what it must be, and takes effect or complains."""

from __future__ import annotations

import pytest

from graphloop.errors import ToolDefinitionError
from graphloop.tools.options import ToolOptions, ToolPolicy, reject_unknown, tool_policy_of
from graphloop.tools.repeats import UNKNOWN, Reconciliation
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


def test_options_that_are_left_out_have_their_defaults() -> None:
    """A tool runs at once, as long as it likes, tells much, and is never run twice unasked."""
    assert ToolPolicy(
        False, None, False, 100_000, "at_most_once", None, False, False
    ) == tool_policy_of({}, "function", work, "tool 'x'")


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
    """As it was given."""
    assert ToolPolicy(**options) == tool_policy_of(options, "function", work, "tool 'x'")


def test_a_plain_function_may_have_a_limit_in_a_thread() -> None:
    """Only there can it be left behind."""
    options: ToolOptions = {"timeout_s": 1, "thread": True}

    assert ToolPolicy(**options) == tool_policy_of(options, "function", block, "tool 'x'")


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        ("needs_approval", "yes", "True, False or a function of (arguments, context), found 'yes'"),
        ("timeout_s", "5", "timeout_s must be more than 0 seconds, found '5'"),
        ("timeout_s", True, "timeout_s must be more than 0 seconds, found True"),
        ("timeout_s", -1, "timeout_s must be more than 0 seconds, found -1"),
        ("timeout_s", float("inf"), "timeout_s must be more than 0 seconds, found inf"),
        ("thread", "no", "thread must be True or False, found 'no'"),
        ("thread", None, "thread must be True or False, found None"),
        ("result_chars_max", "5", "result_chars_max must be at least 1, a whole number, found '5'"),
        ("result_chars_max", True, "found True"),
        ("result_chars_max", 2.5, "found 2.5"),
        ("result_chars_max", 0, "found 0"),
        ("thread", True, "thread=True is for plain functions"),
        ("effect", "atmost_once", "found 'atmost_once'. Did you mean 'at_most_once'?"),
        ("effect", 3, "effect must be one of 'pure', 'idempotent'"),
        ("effect", "reconcile", "effect='reconcile' needs a function"),
        ("reconcile", look, "never be asked with effect='at_most_once'"),
        ("reconcile", 3, "reconcile must be a function of (arguments, context), found 3"),
        ("reconcile", work, "reconcile must be a function of (arguments, context)"),
        ("sequential", "", "sequential must be True, False or the name of a lock, found ''"),
        ("sequential", 1, "the name of a lock, found 1"),
        ("ends_run", "yes", "ends_run must be True or False, found 'yes'"),
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


@pytest.mark.parametrize("options", [{"timeout_s": 1}, {"thread": True}], ids=str)
def test_a_client_tool_has_nothing_to_time(options: ToolOptions) -> None:
    """Whoever runs it limits it."""
    with pytest.raises(ToolDefinitionError, match="need `execute`"):
        tool_policy_of(options, "client", None, "tool 'x'")


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


def test_a_client_orders_its_calls_itself_and_agents_are_ordered_here() -> None:
    """Only what this process starts can wait for a lock."""
    assert tool_policy_of({"sequential": True}, "agent", None, "tool 'x'").sequential is True
    with pytest.raises(ToolDefinitionError, match="sequential needs `execute`"):
        tool_policy_of({"sequential": "db"}, "client", None, "tool 'x'")


@pytest.mark.parametrize("kind", ["client", "agent"])
def test_a_call_that_others_run_may_need_approval_and_end_the_run(kind: ToolKind) -> None:
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


def test_a_lock_is_named_by_the_tool_or_by_its_author() -> None:
    """Tools of one database share it (CONTRACT §9 #35)."""
    locks = [ToolPolicy(sequential=given).lock("read") for given in (False, True, "db")]

    assert locks == ["", "read", "db"]


def test_every_option_that_is_none_is_told() -> None:
    """Not one per attempt."""
    with pytest.raises(ToolDefinitionError, match=r"'a', 'nam'\. Did you mean 'name'\? Fix: use"):
        reject_unknown(["a", "thread", "nam"], "tool 'x'")
