"""Hypothesis strategies that generate model replies and simulated runs of a graph.

    @given(run=strategies.simulations(graph, tools=[refund]))
    def test_money_is_paid_once(run: Simulation[Ticket]) -> None:
        assert sum(run.executions[key] for key in run.executions) <= 1

Only this module of graphloop needs Hypothesis (`pip install "graphloop[test]"`).
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
    """Return a strategy that generates replies of a model that may call these tools."""
    request = ModelRequest((UserMessage("Go."),), tuple(tools))

    def answered(values: list[int]) -> Reply | None:
        try:
            return answered_by_a_model(CallModel(1, "model", request), Choices.replayed(values))
        except Exception:  # noqa: BLE001 - the simulated request failed, so it has no reply.
            return None

    # In Hypothesis' types, `filter` does not remove None.
    return cast("st.SearchStrategy[Reply]", choices.map(answered).filter(bool))


def simulations(
    graph: Agent[Any, Any] | NodeGraph[Any],  # The state may be of any type.
    *,
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> st.SearchStrategy[Simulation[Any]]:
    """Return a strategy that generates simulated runs of a graph, as `graphloop.testing.fuzz` does.

    Args:
        graph: a graph or an agent.
        tools: the tools that a graph's model can call; without them, sample tools are made. An
            agent has tools of its own.
        state: the user's state at the start of each run.
        events_max: the number of events after which a run raises an error.

    Raises:
        ConfigError: the tools or the state are invalid.
    """
    subject = subject_of(graph, tools, state)

    def simulated(values: list[int]) -> Simulation[Any]:
        trial = tried(subject, Choices.replayed(values), events_max)
        if trial.simulation is None:
            assert trial.error is not None, "a simulation ends, or raises"
            raise trial.error
        return trial.simulation

    return choices.map(simulated)
