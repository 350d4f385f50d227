"""Options: each is defined once, and explained where it is defined."""

from __future__ import annotations

import inspect
import re

import pytest

from graphloop.front import checking
from graphloop.front.options import AgentOptions, RunOptions


def explained(options: type[object]) -> set[str]:
    """Return the names that a class of options explains: what stands before a colon."""
    # From 3.13 on, Python takes the margin off a docstring itself.
    manual = inspect.cleandoc(options.__doc__ or "")
    heads = re.findall(r"^((?:`\w+`(?:, )?)+):", manual, re.MULTILINE)
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


@pytest.mark.parametrize("options", [RunOptions, AgentOptions])
def test_every_option_is_explained_where_it_is_defined(options: type[object]) -> None:
    """`help(AgentOptions)` is the manual of the options; there is no other."""
    inherited = RunOptions.__annotations__ if options is AgentOptions else {}

    assert options.__annotations__.keys() - inherited.keys() == explained(options)


def test_an_agent_takes_all_that_a_graph_takes() -> None:
    """Whoever turns an agent into a graph of their own keeps their options."""
    assert RunOptions.__annotations__.items() <= AgentOptions.__annotations__.items()


def test_what_is_checked_is_an_option() -> None:
    """A check of a name that no option has checks nothing."""
    checked = {
        *checking.FUNCTIONS,
        *checking.TEXTS,
        *checking.KINDS,
        *checking.MEMBERS,
        *checking.NEVER_NONE,
        *checking.WORDS,
    }

    assert set() == checked - AgentOptions.__annotations__.keys()
