"""Call bounds: the most model calls and tool calls of a run whose tools may be agents.

One reply may call an agent any number of times, and so may that agent's own models. A run and all
runs below it share one limit of such calls (`budget(agent_calls=…)`), and each call starts one run.
So a run makes its own model calls, and for each agent call those of the dearest agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Final, NamedTuple, TypeVar, final

from ..contract import contract_of
from ..nodes import Execute
from ..spending import Budget
from .nested import GraphUse, runs_unknown
from .proof_graph import ProofGraph

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
    """The worst case of one run; None stands for an unbounded number.

    Attributes:
        graph: the graph's name.
        model_calls: the model calls, with those of children.
        tool_calls: the tool calls, with those of children.
        tokens: the tokens that models read and write. It may exceed the budget by one turn, since
            a StopCheck looks at the budget between turns.
        usd: the price of these tokens in US dollars; it may exceed the budget in the same way.
        visits: the visits of each reachable node.
        why: the reasons for `model_calls`.
        missing: for each number that is None, the reason and the fix.
        cycles: the cycles without a bound, in words, with those of children.
        alone: the model calls without those of agents that models call as tools.
        each_call: the most model calls of one such agent call, without further agent calls in it.
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

    @classmethod
    def unknown(cls, agent: str) -> Bound:
        """Return the bound of an agent whose graph is unknown."""
        why = f"the graph of the agent {agent!r} is not known."
        return cls(agent, None, None, None, None, {}, (), dict.fromkeys(NUMBERS, why))

    @property
    def ends(self) -> bool:
        """Whether every run ends."""
        return not self.cycles

    def to_json(self) -> str:
        """Return the bound as a JSON object with the fields of this class."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

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
    """The bounds of the agents that models call as tools.

    Attributes:
        tools: the agents that answer.
        handoffs: the agents that take over.
    """

    tools: Mapping[str, Bound] = {}
    handoffs: Mapping[str, Bound] = {}


class ModelCalls(NamedTuple):
    """The most model calls of a run.

    Attributes:
        most: the calls in all; infinite if unknown.
        turn: the calls after the last check that lets the run go on.
        why: the reasons for the number.
        problem: why the number is unknown.
    """

    most: float
    turn: float
    why: tuple[str, ...]
    problem: str


def calls_alone(agent: Bound) -> float:
    """Return the model calls of an agent without the agents that it calls as tools."""
    return _alone_and_each(agent)[0]


def calls_per_agent_call(
    called: Mapping[str, Bound], started: Iterable[Bound]
) -> tuple[float, str]:
    """Return the model calls of one agent call; if unknown, infinity and the reason.

    Args:
        called: the agents that models call as tools, by name.
        started: the agents that nodes start, whose models may call others.
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
    """Return the model calls of a run whose agent calls are limited.

    Args:
        every: the model calls without the limit.
        own: the model calls without agents that models call.
        each: the model calls of one agent call, and why they are unknown.
        limit: the limit of agent calls, if known.
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
    if agent.alone is not None and agent.each_call is not None:
        return agent.alone, agent.each_call
    # Without the split, `model_calls` counts both.
    return inf if agent.model_calls is None else agent.model_calls, 0


def tool_calls_most(graph: ProofGraph[S], uses: Sequence[GraphUse], budget: Budget) -> int | None:
    """Return the tool calls of a run, with those of children; None if unbounded."""
    nodes = [graph.nodes[name] for name in graph.reached]
    nodes += [node for use in uses[1:] for node in use.graph.nodes.values()]
    contracts = [(node, contract_of(node)) for node in nodes]
    running = [
        node
        for node, contract in contracts
        if contract is None or contract.tools or node.kind == "execute"
    ]
    # A child whose graph is unknown may run tools.
    if not running and not runs_unknown(uses):
        return 0
    kept = all(isinstance(node, Execute) for node in running)
    return budget.tool_calls if kept else None
