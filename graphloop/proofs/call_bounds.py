"""Call bounds: upper bounds of model calls and tool calls in runs whose tools may be agents.

A reply may call an agent any number of times, and that agent's models may call agents again.
`budget(agent_calls=…)` limits these calls for a run and all its children together. So the upper
bound is the run's own model calls, plus that limit times the model calls of the costliest agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, Final, NamedTuple, TypeVar, final

from ..contract import contract_of
from ..graph import NodeGraph
from ..nodes import Execute
from ..spending import Budget
from .nested import GraphUse, runs_unknown
from .proof_graph import ProofGraph
from .report import PicturedGraphs, result_data

__all__ = [
    "NUMBERS",
    "Bound",
    "Called",
    "ModelCalls",
    "calls_alone",
    "calls_per_agent_call",
    "tool_calls_most",
    "with_agent_calls",
]

S = TypeVar("S")

NUMBERS: Final = ("model_calls", "tool_calls", "tokens", "usd")


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """The upper bounds of one run; None means that a number is unbounded or unknown.

    Attributes:
        graph: the graph's name.
        model_calls: the most model calls of the run and its children.
        tool_calls: the most tool calls of the run and its children.
        tokens: the most tokens that models read and write. This may exceed the budget by one turn,
            since a StopCheck reads the budget between turns.
        usd: the cost of `tokens` in US dollars; it may exceed the budget by one turn.
        visits: the most visits of each reachable node.
        why: the reasons for `model_calls`.
        missing: for each number that is None, the reason and the fix.
        cycles: the unbounded cycles of the graph and of its children, as text.
        alone: `model_calls` without the calls of agents that models call as tools.
        each_call: the most model calls of one call to an agent, without the calls of further agents
            that it calls.
        subject: the graph itself, for the picture in a notebook.
    """

    graph: str
    model_calls: int | None
    tool_calls: int | None
    tokens: int | None
    usd: float | None
    visits: Mapping[str, int | None]
    why: tuple[str, ...]
    missing: Mapping[str, str]
    cycles: tuple[str, ...] = ()
    alone: int | None = None
    each_call: int | None = None
    subject: PicturedGraphs = field(default_factory=PicturedGraphs, compare=False)

    _repr_mimebundle_ = PicturedGraphs.display

    @classmethod
    def unknown(cls, agent: str) -> Bound:
        """Return a bound without numbers, for an agent whose graph is unknown."""
        why = f"the graph of the agent {agent!r} is not known."
        return cls(agent, None, None, None, None, {}, (), dict.fromkeys(NUMBERS, why))

    def about(self, graph: NodeGraph[Any]) -> Bound:
        """Return this bound with its graph, so that a notebook can draw it."""
        return replace(self, subject=PicturedGraphs(graph))

    @property
    def ends(self) -> bool:
        """Whether every run ends: no cycle is unbounded."""
        return not self.cycles

    def to_json(self) -> str:
        """Return the bound as a JSON object with the fields of this class."""
        return json.dumps(result_data(self), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        numbers = [(name.replace("_", " "), getattr(self, name)) for name in NUMBERS]
        known = [f"{round(value, 6):,} {name}" for name, value in numbers if value is not None]
        return f"<Bound {self.graph!r}: at most {', '.join(known) or 'an unknown number'}>"

    def __str__(self) -> str:
        lines = [f"graph {self.graph!r}: at most"]
        for name in NUMBERS:
            value: float | None = getattr(self, name)
            said = f"unknown: {self.missing[name]}" if value is None else f"{round(value, 6):,}"
            lines.append(f"  {name.replace('_', ' ')}: {said}")
            if name == "model_calls":
                lines += [f"    {reason}" for reason in self.why]
        lines += [f"  not bounded: the cycle {cycle}" for cycle in self.cycles]
        return "\n".join(lines)


class Called(NamedTuple):
    """The bounds of the agents that models call as tools, by the agents' names.

    Attributes:
        tools: the agents whose answer is the result of the tool call.
        handoffs: the agents that take over the conversation.
    """

    tools: Mapping[str, Bound] = {}
    handoffs: Mapping[str, Bound] = {}


class ModelCalls(NamedTuple):
    """The upper bound of a run's model calls.

    Attributes:
        most: the most model calls of the whole run; infinite if unknown.
        turn: the most model calls after the last check of the budget.
        why: the reasons for `most`.
        problem: why `most` is unknown; empty if it is known.
    """

    most: float
    turn: float
    why: tuple[str, ...]
    problem: str


def calls_alone(agent: Bound) -> float:
    """Return an agent's model calls without those of agents that its models call as tools."""
    return _alone_and_each(agent)[0]


def calls_per_agent_call(
    called: Mapping[str, Bound], started: Iterable[Bound]
) -> tuple[float, str]:
    """Return the most model calls of one call to an agent; if unknown, infinity and the reason.

    Args:
        called: the bounds of the agents that models call as tools, by name.
        started: the bounds of the agents that nodes start; their models may call agents too.
    """
    dearest = 0.0
    for name, agent in called.items():
        most = max(_alone_and_each(agent))
        if not isfinite(most):
            return inf, f"the agent {name!r}, a tool: {agent.missing['model_calls']}"
        dearest = max(dearest, most)
    return max([dearest, *[_alone_and_each(agent)[1] for agent in started]]), ""


def with_agent_calls(
    every: ModelCalls, own: ModelCalls, each: tuple[float, str], limit: int | None
) -> ModelCalls:
    """Return the upper bound of a run's model calls under a limit on its calls to agents.

    Args:
        every: the model calls of the run and its agents, without the limit.
        own: the model calls without those of agents that models call as tools.
        each: the model calls of one call to an agent; if infinite, also the reason.
        limit: `agent_calls` of the budget; None for no limit.
    """
    if limit is None:
        return every
    calls, problem = each
    called = limit * calls if limit else 0.0
    if not own.most + called < every.most:
        unknown = not isfinite(every.most)
        return every._replace(problem=own.problem or problem) if unknown else every
    why = f"models call agents at most {limit:,} times: {limit:,} x {calls:.0f} model calls"
    return ModelCalls(own.most + called, own.turn + called, (*own.why, why), "")


def _alone_and_each(agent: Bound) -> tuple[float, float]:
    """Return `alone` and `each_call` of a bound; without them, all `model_calls` and 0."""
    if agent.alone is not None and agent.each_call is not None:
        return agent.alone, agent.each_call
    return inf if agent.model_calls is None else agent.model_calls, 0


def tool_calls_most(graph: ProofGraph[S], uses: Sequence[GraphUse], budget: Budget) -> int | None:
    """Return the most tool calls of a run and its children; None if unbounded.

    Args:
        graph: the graph of the run.
        uses: the graph and the graphs of its children, the graph first.
        budget: the budget, whose `tool_calls` is the limit that Execute nodes keep.
    """
    nodes = [graph.nodes[name] for name in graph.reached]
    nodes += [node for use in uses[1:] for node in use.graph.nodes.values()]
    contracts = [(node, contract_of(node)) for node in nodes]
    running = [
        node
        for node, contract in contracts
        if contract is None or contract.tools or node.kind == "execute"
    ]
    # A child whose graph is unknown may run tools, so it prevents a bound of zero.
    if not running and not runs_unknown(uses):
        return 0
    kept = all(isinstance(node, Execute) for node in running)
    return budget.tool_calls if kept else None
