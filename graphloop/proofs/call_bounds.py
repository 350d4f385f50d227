"""Call bounds: the most calls of models and tools in a run.

A reply may call an agent any number of times, and so may the agent's own models. A run and all
runs below it share one number of such calls (`budget(agent_calls=…)`), and each call starts one
run. So a run asks what it asks alone, and for each call what the dearest agent asks alone. How
many tools run, a budget bounds where Execute nodes run them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import NamedTuple, TypeVar, final

from ..contract import contract_of
from ..node_protocol import Node
from ..nodes import Execute
from ..outcomes import Outcome
from ..spending import Budget
from .nested import Nested, runs_unknown
from .proof_graph import ProofGraph

__all__ = ["Asked", "Bound", "Called", "alone", "each_call", "shared", "tool_calls_most"]

S = TypeVar("S")


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """The most that one run of the graph of that name can come to; None is not bounded.

    Attributes:
        graph: the graph's name.
        model_calls: how many models are asked, children included.
        tool_calls: how many tools run, children included.
        tokens: what models read and write.
        usd: what that costs.
        visits: how often each node is visited that runs arrive at.
        why: what the model calls follow from.
        missing: for each number that is None, why, and how to give it.
        cycles: the cycles that nothing bounds, in words; those of its children among them.
        alone: how many models are asked without those of agents that models call as tools.
        each_call: how many one such call asks at most, without those of the calls in it.
        beyond: for each number that is more than its budget, why.
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
    beyond: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def unknown(cls, agent: str) -> Bound:
        """Return the bound of an agent whose graph is not known."""
        why = f"the graph of the agent {agent!r} is not known."
        missing: dict[str, str] = dict.fromkeys(("model_calls", "tool_calls", "tokens", "usd"), why)
        return cls(agent, None, None, None, None, {}, (), missing)

    @property
    def ends(self) -> bool:
        """Whether every run is over after so many visits."""
        return not self.cycles

    def to_json(self) -> str:
        """Return the bound as a JSON object with the fields of this class."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return a line a number, for each that is missing why, and what has no bound."""
        lines = [f"graph {self.graph!r}: at most"]
        for name, value in (
            ("model_calls", self.model_calls),
            ("tool_calls", self.tool_calls),
            ("tokens", self.tokens),
            ("usd", self.usd),
        ):
            word = name.replace("_", " ")
            if value is None:
                lines.append(f"  {word}: unknown: {self.missing[name]}")
            else:
                lines.append(f"  {word}: {round(value, 6):,}")
                lines += [f"    {self.beyond[name]}"] if name in self.beyond else []
            if name == "model_calls":
                lines += [f"    {reason}" for reason in self.why]
        lines += [f"  not bounded: the cycle {cycle}" for cycle in self.cycles]
        return "\n".join(lines)


class Called(NamedTuple):
    """The bounds of the agents that models call as tools: those that answer, and take over."""

    tools: Mapping[str, Bound] = {}
    handoffs: Mapping[str, Bound] = {}


class Asked(NamedTuple):
    """How many models a run asks at most.

    Attributes:
        calls: in all; infinite if that is unknown.
        turn: after the last check that lets the run go on.
        why: what it follows from.
        problem: why it is unknown.
    """

    calls: float
    turn: float
    why: tuple[str, ...]
    problem: str


def alone(found: Bound) -> float:
    """Return how many models an agent asks at most without the agents that it calls as tools."""
    return _parts(found)[0]


def each_call(called: Mapping[str, Bound], begun: Iterable[Bound]) -> tuple[float, str]:
    """Return how many models one call of an agent asks at most, and if unknown, why.

    Args:
        called: the agents that models call as tools, by name.
        begun: the agents that nodes begin, whose models may call others.
    """
    dearest = 0.0
    for name, found in called.items():
        most = max(_parts(found))
        if not isfinite(most):
            return inf, f"the agent {name!r}, a tool: {found.missing['model_calls']}"
        dearest = max(dearest, most)
    return max([dearest, *[_parts(found)[1] for found in begun]]), ""


def shared(every: Asked, own: Asked, each: tuple[float, str], most: int | None) -> Asked:
    """Return how many models a run and its agents ask with so many calls of agents.

    Args:
        every: what is known without a number of them.
        own: what the run asks without them.
        each: what one of them asks.
        most: how many there may be, if that is known.
    """
    if most is None:
        return every
    calls, problem = each
    called = most * calls if most else 0.0
    if not own.calls + called < every.calls:
        unknown = not isfinite(every.calls)
        return every._replace(problem=own.problem or problem) if unknown else every
    why = (f"models call agents at most {most:,} times: {most:,} x {calls:.0f} model calls",)
    return Asked(own.calls + called, own.turn + called, (*own.why, *why), "")


def _parts(found: Bound) -> tuple[float, float]:
    """Return what an agent asks alone, and what each call of an agent in it asks."""
    if found.alone is not None and found.each_call is not None:
        return found.alone, found.each_call
    # Without that split, `model_calls` counts both.
    return inf if found.model_calls is None else found.model_calls, 0


def tool_calls_most(ground: ProofGraph[S], graphs: Sequence[Nested], budget: Budget) -> int | None:
    """Return how many tools run at most, in a graph and those that it runs; None for any number."""
    nodes = [ground.nodes[name] for name in ground.reached]
    nodes += [node for one in graphs[1:] for node in one.graph.nodes.values()]
    running = [node for node in nodes if _runs_tools(node)]
    # An agent whose graph is not known may run some.
    if not running and not runs_unknown(graphs):
        return 0
    kept = all(isinstance(node, Execute) for node in running)
    return budget.tool_calls if kept else None


def _runs_tools(node: Node[S, Outcome]) -> bool:
    contract = contract_of(node)
    return contract is None or contract.tools or node.kind == "execute"
