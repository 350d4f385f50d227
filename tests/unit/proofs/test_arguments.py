"""What is given to the proofs is looked at before anything is walked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.errors import ConfigError
from graphloop.nodes import PrepareStep
from graphloop.proofs.arguments import codes, graph_given, tool_names
from graphloop.proofs.bounds import bound
from graphloop.proofs.checking import check
from graphloop.providers.script import ScriptedModel
from tests.graphs import agent


@pytest.mark.parametrize("door", [check, bound])
@pytest.mark.parametrize("given", [5, None, "agent", PrepareStep(), agent])
def test_what_is_no_graph_is_refused_with_what_would_be_one(
    door: Callable[[Any], object], given: object
) -> None:
    """Not by whatever it lacks first."""
    with pytest.raises(
        ConfigError, match=rf"{door.__name__}: expected a Graph, found .*Fix: pass a"
    ):
        door(given)


def test_an_agent_has_the_graph_that_is_meant() -> None:
    """The proofs know graphs only."""
    one = Agent(ScriptedModel([]))

    with pytest.raises(ConfigError, match="Fix: pass its `graph`"):
        graph_given("check", cast("Graph[None]", one))
    assert graph_given("check", one.graph) is one.graph


@pytest.mark.parametrize(
    ("ignore", "found"),
    [
        ({"GL3": "why"}, "key, found 'GL3'"),
        ({("gate", "GL3", "x"): "why"}, "key, found"),
    ],
)
def test_reasons_of_another_form_are_refused_with_the_right_one(ignore: Any, found: str) -> None:
    """The form is shown."""
    with pytest.raises(ConfigError, match=found) as caught:
        check(agent(), ignore=ignore)
    assert 'ignore={("node", "GL6"): "reason"}' in str(caught.value)


def test_codes_are_those_of_properties() -> None:
    """A code that is not there would never be proven."""
    assert ("GL1", "GL4") == codes("proven", ["GL1", "GL4"])
    with pytest.raises(ConfigError, match=r"no property 'GL33'.*Did you mean 'GL3'"):
        codes("proven", ("GL33",))
    assert ("GL1",) == codes("proven", "GL1")


class Refund:
    """What has a name, as a tool does."""

    name = "refund"


def test_tools_are_given_as_tools_or_by_name() -> None:
    """A bare text would be read by its letters."""
    assert ("refund", "read") == tool_names("check", [Refund(), "read"])
    assert () == check(agent(), tools=[Refund()]).findings
    with pytest.raises(ConfigError, match="check: `tools`: expected tools or their names"):
        check(agent(), tools="refund")
