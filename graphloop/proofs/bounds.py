"""Bounds: the most that a run of a graph comes to.

Model calls follow from the cycles' own bounds and are a property of the graph. Tool calls, tokens
and money follow from them only with numbers that are not in the graph: where one is missing, the
bound says which, and how to give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, Final, TypeVar, final

from ..contract import ChildContract, Contract
from ..graph import NodeGraph
from ..limits import ModelPrice
from ..node_protocol import Node
from ..nodes import SUMMARY_TOKENS, Compact, Execute, Limit, StopCheck
from ..outcomes import Go, Outcome, Retry
from ..spending import Budget
from .arguments import graph_given
from .call_bounds import Asked, Bound, Called, alone, each_call, shared, tool_calls_most
from .calls import CallProduct
from .cycles import unbounded
from .nested import NEST_MAX, Nested, known_child, nested, runs_unknown
from .proof_graph import Arc, ProofGraph
from .ranking import Ranking
from .visits import Visits

__all__ = ["Called", "bound"]

S = TypeVar("S")

TOKENS_PER_PRICE: Final = 1_000_000


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
    """Return the most that a run of `graph` can come to.

    Args:
        graph: the graph.
        budget: what the run may spend.
        max_tokens: the token limit of one reply, also of those that nodes of your own ask for.
        context_window: how many tokens the largest of the models' windows holds.
        price: the price of the dearest of the models.
        agents: the bounds of the agents that the graph's nodes start, by name.
        called: the bounds of the agents that models call as tools, where who asks knows more of
            them than the graph does.

    Raises:
        ConfigError: `graph` is none.
    """
    known = _Known(
        budget or Budget(),
        max_tokens,
        context_window,
        price,
        agents or {},
        called or Called(),
    )
    looked = graph_given("bound", graph)
    return _bound(looked, known if called is not None else _calling(looked, known, 0), 0)


@final
@dataclass(frozen=True, slots=True)
class _Known:
    """All that is known of a run beside its graph."""

    budget: Budget
    max_tokens: int | None
    context_window: int | None
    price: ModelPrice | None
    agents: Mapping[str, Bound]
    called: Called
    below: dict[int, tuple[NodeGraph[Any], Bound]] = field(
        default_factory=dict[int, "tuple[NodeGraph[Any], Bound]"]
    )
    """The bounds of children, by the identity of their graphs, which stay alive here."""
    alone: bool = False
    """Whether what models call is left out, since the budget counts it."""

    def calls(self, found: Bound) -> int | None:
        """Return how many models an agent asks at most that a node begins."""
        return _whole(alone(found)) if self.alone else found.model_calls

    def per_call(self, graphs: Sequence[Nested]) -> tuple[int, int] | None:
        """Return how many tokens one call in these graphs reads and writes at most, if known."""
        if self.max_tokens is None or self.context_window is None:
            return None
        nodes = [node for one in graphs for node in one.graph.nodes.values()]
        # A reply that was cut is asked for again with twice the room; so may any agent do.
        dark = runs_unknown(graphs)
        widened = dark or any(self.called) or any(map(_widens, nodes))
        written = self.max_tokens * (2 if widened else 1)
        return self.context_window, max(written, SUMMARY_TOKENS if any(map(_sums_up, nodes)) else 0)


def _bound(graph: NodeGraph[S], known: _Known, depth: int) -> Bound:
    ground = ProofGraph(graph)
    ranking = Ranking(ground)
    every, visits = _count(ranking, known, depth)
    begun, called = _begun(ground, known, depth), known.called
    each = each_call({**called.tools, **called.handoffs}, [found for _, found in begun])
    # What calls nobody asks alone all that it asks.
    calling = any(known.called) or each[0]
    own = _count(ranking, replace(known, alone=True), depth)[0] if calling else every
    asked = shared(every, own, each, known.budget.agent_calls)
    cycles = tuple(cycle.words for cycle in unbounded(ranking, CallProduct(ground)))
    missing: dict[str, str] = {}
    if not isfinite(asked.calls):
        missing["model_calls"] = asked.problem or (
            f"nothing bounds the cycle {cycles[0]}: lead it through a StopCheck, and through a "
            "PrepareStep."
        )
    graphs = nested(graph, None).told
    tool_calls = tool_calls_most(ground, graphs, known.budget)
    if tool_calls is None:
        missing["tool_calls"] = (
            "one reply may ask for any number of calls: give `budget(tool_calls=…)`, and run tools "
            "in Execute nodes, which keep it."
        )
    model_calls = _whole(asked.calls)
    per_call = known.per_call(graphs)
    size = None if per_call is None else sum(per_call)
    tokens = _whole(_most(model_calls, size, known.budget.tokens, asked.turn))
    if tokens is None:
        missing["tokens"] = _lacking(
            model_calls, {"max_tokens": known.max_tokens, "context_window": known.context_window}
        )
    cost = None if per_call is None or known.price is None else _cost(known.price, *per_call)
    usd = _most(model_calls, cost, known.budget.usd, asked.turn)
    if not isfinite(usd):
        missing["usd"] = _lacking(
            model_calls,
            {
                "max_tokens": known.max_tokens,
                "context_window": known.context_window,
                "price": known.price,
            },
        )
    return Bound(
        graph.name,
        model_calls,
        tool_calls,
        tokens,
        usd if isfinite(usd) else None,
        visits,
        asked.why if isfinite(asked.calls) else (),
        missing,
        (*cycles, *_cycles_below((*begun, *called.tools.items(), *called.handoffs.items()))),
        _whole(own.calls),
        _whole(each[0]),
        _beyond(known.budget, {"tokens": tokens, "usd": usd}),
    )


def _count(
    ranking: Ranking[S], known: _Known, depth: int
) -> tuple[Asked, Mapping[str, int | None]]:
    """Return how many models are asked, and how often each node is visited."""
    ground = ranking.ground
    names, arcs = ranking.whole()
    asked = {name: _asked(ground, ranking.node(name), known, depth) for name in names}
    counted = Visits(ranking, {name: calls for name, (calls, _) in asked.items()})
    stay = counted.among(names, arcs)
    # After the last check that lets it go on, a run still does what needs no other check.
    turn = counted.among(names, [arc for arc in arcs if not _is_checked(ground, arc)])
    reasons = dict.fromkeys(reason for _, reason in asked.values() if reason)
    whole = {name: _whole(count) for name, count in counted.by_node(stay).items()}
    return Asked(stay.weight, turn.weight, stay.why, " ".join(reasons)), whole


def _cycles_below(bounds: Iterable[tuple[str, Bound]]) -> Iterable[str]:
    return dict.fromkeys(f"{one} of {name!r}" for name, found in bounds for one in found.cycles)


def _begun(ground: ProofGraph[S], known: _Known, depth: int) -> list[tuple[str, Bound]]:
    """Return the bounds of what nodes begin, as far as they are known, by name."""
    contracts = [one for one in map(ground.contracts.get, ground.reached) if one is not None]
    children = [
        known_child(ground.node_graph, child) for one in contracts for child in one.children
    ]
    begun = [(child.name, _child_bound(child, known, depth)) for child in children]
    return [(name, found) for name, found in begun if found is not None]


def _asked(ground: ProofGraph[S], name: str, known: _Known, depth: int) -> tuple[float, str]:
    """Return how many models one visit asks at most, and if that is unknown, why."""
    contract = ground.contracts[name]
    if contract is None:
        return inf, f"{name!r} promises nothing, so it may do anything: give it a `contract`."
    if contract.model_calls is None:
        return inf, f"the contract of {name!r} does not say how many models a visit asks."
    calls: float = contract.model_calls
    for more, why in (
        _called(ground.nodes[name], contract, known),
        _below(ground.node_graph, name, contract, known, depth),
    ):
        if why:
            return inf, why
        calls += more
    return calls, ""


def _below(
    graph: NodeGraph[S], name: str, contract: Contract, known: _Known, depth: int
) -> tuple[int, str]:
    """Return how many models the agents and the children of one visit ask at most."""
    calls = 0
    for child in contract.children:
        inner = _child_bound(known_child(graph, child), known, depth)
        if inner is None or child.runs is None:
            what = "the graph" if inner is None else "the number of runs"
            return 0, f"{what} of the child {child.name!r} of {name!r} is not known."
        most = known.calls(inner)
        if most is None:
            return 0, f"the child {child.name!r} of {name!r}: {inner.missing['model_calls']}"
        calls += child.runs * most
    return calls, ""


def _called(node: Node[S, Outcome], contract: Contract, known: _Known) -> tuple[int, str]:
    """Return how many models the agents ask at most that one visit calls as tools."""
    if not (contract.tools or node.kind == "execute") or (
        known.alone and isinstance(node, Execute)
    ):
        return 0, ""
    most = 0
    tools, handoffs = known.called
    for name, found in (*tools.items(), *handoffs.items()):
        if found.model_calls is None:
            return 0, f"the agent {name!r}, a tool: {found.missing['model_calls']}"
        # Of agents that take over, there is one a turn.
        if found.model_calls and not (name in handoffs and isinstance(node, Execute)):
            return 0, (
                f"one reply may call the agent {name!r} any number of times, at up to "
                f"{found.model_calls:,} model calls each: give `budget(agent_calls=…)`, and run "
                "tools in Execute nodes, which keep it; or let a node run it (`sub_graph`), or let "
                "it take over (`takes_over=True`), which it may once a turn."
            )
        most = max(most, found.model_calls)
    return most, ""


def _child_bound(child: ChildContract, known: _Known, depth: int) -> Bound | None:
    given = known.agents.get(child.name)
    # Who gives the bound of an agent knows of its tools and its options as well.
    if child.graph is None or depth >= NEST_MAX or (given is not None and depth == 0):
        return given
    found = known.below.get(id(child.graph))
    if found is None:
        found = known.below[id(child.graph)] = child.graph, _inner(child.graph, known, depth + 1)
    return found[1]


def _inner(graph: NodeGraph[Any], known: _Known, depth: int) -> Bound:
    """Return the bound of a graph that is so deep within another."""
    inner = replace(known, agents={}, called=Called(), alone=False)
    return _bound(graph, _calling(graph, inner, depth), depth)


def _calling(graph: NodeGraph[Any], known: _Known, depth: int) -> _Known:
    """Return what is known, with the agents that models of a graph call, as it knows them."""
    bounds = {
        name: _child_bound(ChildContract(name, graph.agents.get(name)), known, depth)
        or Bound.unknown(name)
        for name in sorted(graph.called)
    }
    tools = {name: one for name, one in bounds.items() if name not in graph.handoffs}
    handoffs = {name: one for name, one in bounds.items() if name in graph.handoffs}
    return replace(known, called=Called(tools, handoffs))


def _is_checked(ground: ProofGraph[S], arc: Arc) -> bool:
    """Whether a line is taken only while the budget is not spent."""
    return issubclass(arc.outcome, Go) and isinstance(
        ground.nodes.get(arc.source), StopCheck | Limit
    )


def _widens(node: Node[S, Outcome]) -> bool:
    return any(issubclass(outcome, Retry) for outcome in node.outcomes)


def _sums_up(node: Node[S, Outcome]) -> bool:
    return isinstance(node, Compact) and bool(node.contract.model_calls)


def _most(calls: int | None, each: float | None, limit: float | None, turn: float) -> float:
    """Return the least of what calls come to, and of a limit that one turn may exceed."""
    if each is None:
        return inf
    every = inf if calls is None else calls * each
    exceeded = inf if limit is None or not isfinite(turn) else limit + turn * each
    return min(every, exceeded)


def _beyond(budget: Budget, found: Mapping[str, float | None]) -> dict[str, str]:
    """Return why a number may be more than its budget, for each that may."""
    limits = {"tokens": budget.tokens, "usd": budget.usd}
    return {
        name: f"the budget's {limit:,}, and up to {round(most - limit, 6):,} more: a StopCheck or "
        "a Limit looks at it between turns. Fewer steps of the agents that a turn runs "
        "(`max_steps`), or a smaller `max_tokens`, lower it."
        for name, most in found.items()
        if (limit := limits[name]) is not None and most is not None and limit < most < inf
    }


def _lacking(calls: int | None, needed: Mapping[str, object]) -> str:
    names = [f"`{name}`" for name, value in needed.items() if value is None]
    if names:
        return f"one call may be of any size: give {', '.join(names)}."
    assert calls is None, "with all of it, calls that are bounded have a sum"
    return "the model calls are not bounded: bound them, or give a `budget` that a StopCheck keeps."


def _cost(price: ModelPrice, read: int, written: int) -> float:
    """Return what one call costs at most, however its prompt is cached."""
    kinds = (price.input_usd, price.cache_read_usd, price.cache_write_usd)
    dearest = max(one for one in kinds if one is not None)
    return (read * dearest + written * price.output_usd) / TOKENS_PER_PRICE


def _whole(number: float) -> int | None:
    return int(number) if isfinite(number) else None
