"""Bounds: `bound`, which computes upper bounds of a run's model calls, tool calls and cost.

The graph limits how often each cycle runs, so it also limits the model calls. The bounds of tool
calls, tokens and cost need further numbers, such as a budget or a price. If a number is missing,
the result names the number and how to give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, Final, TypeVar, final

from ..contract import Cap, ChildContract, Contract
from ..graph import NodeGraph
from ..limits import ModelPrice
from ..node_protocol import Node
from ..nodes import SUMMARY_TOKENS, Compact, Execute
from ..outcomes import Outcome, Retry
from ..spending import Budget
from .call_bounds import (
    Bound,
    Called,
    ModelCalls,
    calls_alone,
    calls_per_agent_call,
    tool_calls_most,
    with_agent_calls,
)
from .calls import CallProduct
from .cycles import unbounded
from .nested import NEST_MAX, GraphUse, graph_uses, known_child, runs_unknown
from .proof_graph import ProofGraph
from .ranking import Ranking
from .visits import VisitCount

__all__ = ["Called", "bound"]

S = TypeVar("S")

TOKENS_PER_PRICE: Final = 1_000_000
NO_TOOL_CALLS: Final = (
    "one reply may ask for any number of calls: give `budget(tool_calls=…)`, and run tools "
    "in Execute nodes, which keep it."
)


def bound(  # noqa: PLR0913 - what is known of a run, number by number
    graph: NodeGraph[S],
    *,
    budget: Budget | None = None,
    max_tokens: int | None = None,
    context_window: int | None = None,
    price: ModelPrice | None = None,
    agents: Mapping[str, Bound] | None = None,
    called: Called | None = None,
) -> Bound:
    """Return the upper bounds of one run of `graph`: model calls, tool calls, tokens and cost.

    Args:
        graph: the graph.
        budget: the budget of the run.
        max_tokens: the token limit of one reply; it must also hold for the caller's own nodes.
        context_window: the largest context window of the models, in tokens.
        price: the price of the most expensive model.
        agents: the bounds of the agents that nodes start, by name.
        called: the bounds of the agents that models call as tools. By default, these bounds are
            computed from the graphs of the agents.
    """
    known = _Known(
        budget or Budget(), max_tokens, context_window, price, agents or {}, called or Called()
    )
    known = known if called is not None else _with_called(graph, known, 0)
    return _bound_of(graph, known, 0).about(graph)


@final
@dataclass(frozen=True, slots=True)
class _Known:
    """The numbers about a run that its graph does not contain, such as budget and price."""

    budget: Budget
    max_tokens: int | None
    context_window: int | None
    price: ModelPrice | None
    agents: Mapping[str, Bound]
    called: Called
    children: dict[int, tuple[NodeGraph[Any], Bound]] = field(
        default_factory=dict[int, "tuple[NodeGraph[Any], Bound]"]
    )
    """A cache of the bounds of children: each child graph and its bound, by the graph's `id`.

    The entry holds the graph, so that Python does not reuse its `id`.
    """
    alone: bool = False
    """Whether to leave out the model calls of agents that models call as tools.

    The budget's `agent_calls` limits these calls, so they are counted separately.
    """

    @property
    def sizes(self) -> Mapping[str, object]:
        """The arguments of `bound` that limit the size of a model call, by name."""
        return {"max_tokens": self.max_tokens, "context_window": self.context_window}

    def model_calls(self, agent: Bound) -> int | None:
        """Return the most model calls of an agent that a node starts; None if unbounded."""
        return _int_or_none(calls_alone(agent)) if self.alone else agent.model_calls

    def tokens_per_call(self, uses: Sequence[GraphUse]) -> tuple[int, int] | None:
        """Return the most tokens that one model call reads, and writes; None if unknown.

        `uses` are the graph and the graphs of its children.
        """
        if self.max_tokens is None or self.context_window is None:
            return None
        nodes = [node for use in uses for node in use.graph.nodes.values()]
        # After a cut reply, the model is asked again with twice the token limit. A child agent
        # may do the same.
        widened = (
            runs_unknown(uses)
            or any(self.called)
            or any(issubclass(outcome, Retry) for node in nodes for outcome in node.outcomes)
        )
        sums_up = any(isinstance(node, Compact) and node.contract.model_calls for node in nodes)
        written = self.max_tokens * (2 if widened else 1)
        return self.context_window, max(written, SUMMARY_TOKENS if sums_up else 0)


def _bound_of(graph: NodeGraph[S], known: _Known, depth: int) -> Bound:
    """Return the bound of a graph; `depth` counts the graphs that it is nested in."""
    proof_graph = ProofGraph(graph)
    ranking = Ranking(proof_graph)
    every, visits = _model_calls(ranking, known, depth)
    started, called = _child_bounds(proof_graph, known, depth), known.called
    each = calls_per_agent_call(
        {**called.tools, **called.handoffs}, [bound for _, bound in started]
    )
    # If models call no agents, all model calls are the run's own.
    own = every
    if any(called) or each[0]:
        own = _model_calls(ranking, replace(known, alone=True), depth)[0]
    calls = with_agent_calls(every, own, each, known.budget.agent_calls)
    cycles = tuple(cycle.words for cycle in unbounded(ranking, CallProduct(proof_graph)))
    uses = graph_uses(graph, None).reported
    tool_calls = tool_calls_most(proof_graph, uses, known.budget)
    per_call = known.tokens_per_call(uses)
    tokens, no_tokens = _most_tokens(known, per_call, calls)
    usd, no_usd = _most_dollars(known, per_call, calls)
    missing = {
        "model_calls": "" if isfinite(calls.most) else calls.problem or _why_unbounded(cycles),
        "tool_calls": NO_TOOL_CALLS if tool_calls is None else "",
        "tokens": no_tokens,
        "usd": no_usd,
    }
    children = (*started, *called.tools.items(), *called.handoffs.items())
    below = dict.fromkeys(
        f"{cycle} of {name!r}" for name, child in children for cycle in child.cycles
    )
    return Bound(
        graph=graph.name,
        model_calls=_int_or_none(calls.most),
        tool_calls=tool_calls,
        tokens=tokens,
        usd=usd,
        visits=visits,
        why=calls.why if isfinite(calls.most) else (),
        missing={unit: why for unit, why in missing.items() if why},
        cycles=(*cycles, *below),
        alone=_int_or_none(own.most),
        each_call=_int_or_none(each[0]),
    )


def _why_unbounded(cycles: Sequence[str]) -> str:
    """Return why the model calls are unbounded, for a graph with these unbounded cycles."""
    return (
        f"nothing bounds the cycle {cycles[0]}: lead it through a StopCheck, and through a "
        "PrepareStep."
    )


def _most_tokens(
    known: _Known, per_call: tuple[int, int] | None, calls: ModelCalls
) -> tuple[int | None, str]:
    """Return the most tokens of a run, and an empty text; None and the reason if unbounded."""
    size = None if per_call is None else sum(per_call)
    tokens = _int_or_none(_most_within(calls, size, known.budget.tokens))
    return tokens, "" if tokens is not None else _why_missing(known.sizes)


def _most_dollars(
    known: _Known, per_call: tuple[int, int] | None, calls: ModelCalls
) -> tuple[float | None, str]:
    """Return the most dollars of a run, and an empty text; None and the reason if unbounded."""
    cost = (
        None if per_call is None or known.price is None else _cost_of_call(known.price, *per_call)
    )
    usd = _most_within(calls, cost, known.budget.usd)
    return (
        (usd, "") if isfinite(usd) else (None, _why_missing({**known.sizes, "price": known.price}))
    )


def _model_calls(
    ranking: Ranking[S], known: _Known, depth: int
) -> tuple[ModelCalls, Mapping[str, int | None]]:
    """Return upper bounds: on the model calls of a run, and on the visits of each node."""
    graph = ranking.graph
    names, arcs = ranking.split_graph()
    calls = {name: _calls_of_visit(graph, ranking.node(name), known, depth) for name in names}
    count = VisitCount(ranking, {name: most for name, (most, _) in calls.items()})
    stay = count.among(names, arcs)
    # A budget may be exceeded after its last check, so calls without a further check are counted.
    turn = count.among(names, [arc for arc in arcs if not _keeps_budget(ranking.cap(arc))])
    reasons = dict.fromkeys(reason for _, reason in calls.values() if reason)
    visits = {name: _int_or_none(most) for name, most in count.by_node(stay).items()}
    return ModelCalls(stay.weight, turn.weight, stay.why, " ".join(reasons)), visits


def _keeps_budget(cap: Cap | None) -> bool:
    """Return whether a capped transition is taken only while the budget lasts."""
    return cap is not None and cap.instead is not None


def _child_bounds(graph: ProofGraph[S], known: _Known, depth: int) -> list[tuple[str, Bound]]:
    """Return the name and bound of each child that nodes start, if its graph is known."""
    contracts = [c for c in map(graph.contracts.get, graph.reached) if c is not None]
    children = [known_child(graph.node_graph, child) for c in contracts for child in c.children]
    bounds = [(child.name, _child_bound(child, known, depth)) for child in children]
    return [(name, bound) for name, bound in bounds if bound is not None]


def _calls_of_visit(
    graph: ProofGraph[S], name: str, known: _Known, depth: int
) -> tuple[float, str]:
    """Return the most model calls of one visit of a node; if unknown, infinity and the reason."""
    contract = graph.contracts[name]
    if contract is None:
        return inf, f"{name!r} promises nothing, so it may do anything: give it a `contract`."
    if contract.model_calls is None:
        return inf, f"the contract of {name!r} does not say how many models a visit asks."
    calls: float = contract.model_calls
    for more, why in (
        _calls_of_tools(graph.nodes[name], contract, known),
        _calls_of_children(graph.node_graph, name, contract, known, depth),
    ):
        if why:
            return inf, why
        calls += more
    return calls, ""


def _calls_of_children(
    graph: NodeGraph[S], name: str, contract: Contract, known: _Known, depth: int
) -> tuple[int, str]:
    """Return the most model calls of the children that one visit starts; if unknown, the reason."""
    calls = 0
    for child in contract.children:
        inner = _child_bound(known_child(graph, child), known, depth)
        if inner is None or child.runs is None:
            what = "the graph" if inner is None else "the number of runs"
            return 0, f"{what} of the child {child.name!r} of {name!r} is not known."
        most = known.model_calls(inner)
        if most is None:
            return 0, f"the child {child.name!r} of {name!r}: {inner.missing['model_calls']}"
        calls += child.runs * most
    return calls, ""


def _calls_of_tools(node: Node[S, Outcome], contract: Contract, known: _Known) -> tuple[int, str]:
    """Return the most model calls of agents run as tools in one visit; if unknown, the reason."""
    if not (contract.tools or node.kind == "execute"):
        return 0, ""
    if known.alone and isinstance(node, Execute):
        return 0, ""
    most = 0
    tools, handoffs = known.called
    for name, agent in (*tools.items(), *handoffs.items()):
        if agent.model_calls is None:
            return 0, f"the agent {name!r}, a tool: {agent.missing['model_calls']}"
        # In one turn, only one agent can take over the conversation.
        if agent.model_calls and not (name in handoffs and isinstance(node, Execute)):
            return 0, (
                f"one reply may call the agent {name!r} any number of times, at up to "
                f"{agent.model_calls:,} model calls each: give `budget(agent_calls=…)`, and run "
                "tools in Execute nodes, which keep it; or let a node run it (`sub_graph`), or let "
                "it take over (`takes_over=True`), which it may once a turn."
            )
        most = max(most, agent.model_calls)
    return most, ""


def _child_bound(child: ChildContract, known: _Known, depth: int) -> Bound | None:
    """Return the bound of a child graph or agent; None if its graph is unknown."""
    given = known.agents.get(child.name)
    # A bound from the caller takes precedence: it also covers the agent's tools and options.
    if child.graph is None or depth >= NEST_MAX or (given is not None and depth == 0):
        return given
    if id(child.graph) not in known.children:
        inner = replace(known, agents={}, called=Called(), alone=False)
        inner = _with_called(child.graph, inner, depth + 1)
        known.children[id(child.graph)] = child.graph, _bound_of(child.graph, inner, depth + 1)
    return known.children[id(child.graph)][1]


def _with_called(graph: NodeGraph[Any], known: _Known, depth: int) -> _Known:
    """Return `known` with the bounds of the agents that models of `graph` call as tools."""
    around = graph.surroundings
    bounds = {
        name: _child_bound(ChildContract(name, around.agents.get(name)), known, depth)
        or Bound.unknown(name)
        for name in sorted(around.called)
    }
    tools = {name: bound for name, bound in bounds.items() if name not in around.handoffs}
    handoffs = {name: bound for name, bound in bounds.items() if name in around.handoffs}
    return replace(known, called=Called(tools, handoffs))


def _most_within(calls: ModelCalls, each: float | None, limit: float | None) -> float:
    """Return the upper bound of a quantity: all calls together, or its budget if that is lower.

    Args:
        calls: the most model calls of the run, and after the last check of the budget.
        each: the quantity of one call; None if unknown.
        limit: the budget of the quantity, which a run may exceed by one turn; None for none.
    """
    if each is None:
        return inf
    most = _int_or_none(calls.most)
    every = inf if most is None else most * each
    exceeded = inf if limit is None or not isfinite(calls.turn) else limit + calls.turn * each
    return min(every, exceeded)


def _why_missing(needed: Mapping[str, object]) -> str:
    """Return why a number is unbounded, and the arguments of `bound` that would bound it."""
    names = [f"`{name}`" for name, value in needed.items() if value is None]
    if names:
        return f"one call may be of any size: give {', '.join(names)}."
    return "the model calls are not bounded: bound them, or give a `budget` that a StopCheck keeps."


def _cost_of_call(price: ModelPrice, read: int, written: int) -> float:
    """Return the most US dollars that one call costs: each token has the highest price."""
    return (read * price.input_max_usd + written * price.output_max_usd) / TOKENS_PER_PRICE


def _int_or_none(number: float) -> int | None:
    """Return a number as an int; None for infinity."""
    return int(number) if isfinite(number) else None
