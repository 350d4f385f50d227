"""Options of tools: each is what it must be, and takes effect or complains."""

from __future__ import annotations

import pytest

from graphloop.errors import ToolDefinitionError
from graphloop.tool_options import Policy, ToolOptions, policy_of, reject_unknown
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


def test_options_that_are_left_out_have_their_defaults() -> None:
    """A tool runs at once, as long as it likes, and tells much."""
    assert Policy(False, None, False, 100_000) == policy_of({}, work, "tool 'x'")


@pytest.mark.parametrize(
    "options",
    [
        {"needs_approval": True},
        {"needs_approval": ask},
        {"timeout_s": 0.5},
        {"timeout_s": 3},
        {"result_chars_max": 1},
        {"timeout_s": None, "thread": False},
    ],
    ids=["always", "predicate", "half a second", "seconds", "one", "defaults"],
)
def test_an_option_that_can_work_is_kept(options: ToolOptions) -> None:
    """As it was given."""
    assert Policy(**options) == policy_of(options, work, "tool 'x'")


def test_a_plain_function_may_have_a_limit_in_a_thread() -> None:
    """Only there can it be left behind."""
    options: ToolOptions = {"timeout_s": 1, "thread": True}

    assert Policy(**options) == policy_of(options, block, "tool 'x'")


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
        ("timeout", 3, "tool 'x' has no option 'timeout'. Did you mean 'timeout_s'?"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(
    option: str, value: object, found: str
) -> None:
    """With what was expected and what to do, when the tool is defined and not when it runs."""
    with pytest.raises(ToolDefinitionError) as caught:
        policy_of(wrong({option: value}), work, "tool 'x'")

    assert found in str(caught.value)
    assert str(caught.value).startswith("tool 'x'")
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("options", [{"timeout_s": 1}, {"thread": True}], ids=str)
def test_a_client_tool_has_nothing_to_time(options: ToolOptions) -> None:
    """Whoever runs it limits it."""
    with pytest.raises(ToolDefinitionError, match="need `execute`"):
        policy_of(options, None, "tool 'x'")


def test_every_option_that_is_none_is_told() -> None:
    """Not one per attempt."""
    with pytest.raises(ToolDefinitionError, match=r"'a'.; 'nam'. Did you mean 'name'\? Fix: use"):
        reject_unknown(["a", "thread", "nam"], "tool 'x'")
