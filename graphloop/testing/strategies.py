"""Strategies for Hypothesis: any answer of a model, and any run of a graph.

    @given(run=strategies.simulations(graph, tools=[refund]))
    def test_money_is_paid_once(run: Simulation[Ticket]) -> None:
        assert sum(run.executions[key] for key in run.executions) <= 1

This module needs Hypothesis (`pip install "graphloop[test]"`); nothing else of graphloop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "graphloop.testing.strategies needs Hypothesis, which is not installed. "
        'Fix: pip install "graphloop[test]".',
        name=error.name,
    ) from error

from ..agent import Agent, Tools
from ..effects import CallModel
from ..graph import NodeGraph
from ..values import ModelRequest, Reply, ToolSpec, UserMessage
from .choices import Choices
from .fuzzing import EVENTS_MAX
from .replies import answered_by_a_model
from .sim import Simulation
from .subject import subject_of
from .trial import tried

__all__ = ["replies", "simulations"]

CHOICES_MAX: Final = 300
choices = st.lists(st.integers(0, 255), max_size=CHOICES_MAX)


def replies(tools: Sequence[ToolSpec] = ()) -> st.SearchStrategy[Reply]:
    """Return any answer of a model that is offered these tools."""
    request = ModelRequest((UserMessage("Go."),), tuple(tools))

    def answered(values: list[int]) -> Reply | None:
        try:
            return answered_by_a_model(CallModel(1, "model", request), Choices.replayed(values))
        except Exception:  # noqa: BLE001 - a request that fails has no reply.
            return None

    # Hypothesis does not type a filter as narrowing.
    return cast("st.SearchStrategy[Reply]", choices.map(answered).filter(bool))


def simulations(
    graph: Agent | NodeGraph[Any],  # The state may be of any type.
    *,
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> st.SearchStrategy[Simulation[Any]]:
    """Return any run of a graph in a hostile world of `graphloop.testing.fuzz`.

    Args:
        graph: a graph, or an agent.
        tools: the tools on offer, for a graph; by default, some are invented.
        state: the state that each run begins with.
        events_max: the number of events after which a run is given up, with an error.

    Raises:
        ConfigError: the tools or the state cannot work.
    """
    subject = subject_of(graph, tools, state)

    def simulated(values: list[int]) -> Simulation[Any]:
        trial = tried(subject, Choices.replayed(values), events_max)
        if trial.simulation is None:
            assert trial.error is not None, "a simulation ends, or raises"
            raise trial.error
        return trial.simulation

    return choices.map(simulated)
