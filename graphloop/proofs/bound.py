"""Bound: what a run of a graph can come to at most, before it has begun.

Model calls follow from the cycles' own bounds and are a property of the graph. Tool calls, tokens
and money follow from them only with numbers that are not in the graph: where one is missing, the
bound says which, and how to give it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Final, TypeVar, final

from ..contract import ChildContract, Contract, contract_of
from ..graph import Graph
from ..model_price import ModelPrice
from ..nodes.execute import Execute
from ..nodes.limit import Limit
from ..nodes.stop_check import StopCheck
from ..outcomes import Go, Retry
from ..spending import Budget
from .calls import CallWalk
from .cycles import unbounded
from .ground import Ground, Way
from .ranking import Ranking
from .visits import Visits

__all__ = ["Bound", "bound"]

S = TypeVar("S")

NEST_MAX: Final = 16
"""How many graphs deep children are looked into."""

TOKENS_PER_PRICE: Final = 1_000_000


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
        cycles: the cycles that nothing bounds, in words.
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

    @property
    def ends(self) -> bool:
        """Whether every run is over after so many visits."""
        return not self.cycles

    def to_json(self) -> str:
        """Return the bound as a JSON object with the fields of this class."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return a line a number, and for each that is missing why it is."""
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
                lines.append(f"  {word}: {value:,}")
            if name == "model_calls":
                lines += [f"    {reason}" for reason in self.why]
        return "\n".join(lines)


def bound(
    graph: Graph[S],
    *,
    budget: Budget | None = None,
    max_tokens: int | None = None,
    context_window: int | None = None,
    price: ModelPrice | None = None,
    agents: Mapping[str, Bound] | None = None,
) -> Bound:
    """Return the most that a run of `graph` can come to.

    Args:
        graph: the graph.
        budget: what the run may spend.
        max_tokens: the token limit of one reply.
        context_window: how many tokens the largest of the models' windows holds.
        price: the price of the dearest of the models.
        agents: the bounds of the agents that the graph's nodes start, by name. Agents that tools
            start are tools here: their model calls are not the graph's.
    """
    known = _Known(budget or Budget(), max_tokens, context_window, price, agents or {})
    return _bound(graph, known, 0)


@final
@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a run beside its graph."""

    budget: Budget
    max_tokens: int | None
    context_window: int | None
    price: ModelPrice | None
    agents: Mapping[str, Bound]

    def per_call(self, *, widened: bool) -> tuple[int, int] | None:
        """Return how many tokens one call reads and writes at most, if that is known."""
        if self.max_tokens is None or self.context_window is None:
            return None
        # A reply that was cut is asked for again with twice the room.
        return self.context_window, self.max_tokens * (2 if widened else 1)


def _bound(graph: Graph[S], known: _Known, depth: int) -> Bound:
    ground = Ground(graph)
    ranking = Ranking(ground)
    names, ways = ranking.whole()
    asked = {name: _asked(ground, ranking.node(name), known, depth) for name in names}
    counted = Visits(ranking, {name: calls for name, (calls, _) in asked.items()})
    stay = counted.among(names, ways)
    # After the last check that lets it go on, a run still does what needs no other check.
    turn = counted.among(names, [way for way in ways if not _is_checked(ground, way)])
    cycles = tuple(cycle.words for cycle in unbounded(ranking, CallWalk(ground)))
    missing: dict[str, str] = {}
    if not isfinite(stay.weight):
        reasons = dict.fromkeys(reason for _, reason in asked.values() if reason)
        missing["model_calls"] = " ".join(reasons) or (
            f"nothing bounds the cycle {cycles[0]}: lead it through a StopCheck, and through a "
            "PrepareStep."
        )
    tool_calls = _tool_calls(ground, known.budget)
    if tool_calls is None:
        missing["tool_calls"] = (
            "one reply may ask for any number of calls: give `budget(tool_calls=…)`, and run tools "
            "in Execute nodes, which keep it."
        )
    model_calls = _whole(stay.weight)
    per_call = known.per_call(widened=any(issubclass(way.outcome, Retry) for way in ways))
    size = None if per_call is None else sum(per_call)
    tokens = _whole(_most(model_calls, size, known.budget.tokens, turn.weight))
    if tokens is None:
        missing["tokens"] = _lacking(
            model_calls, {"max_tokens": known.max_tokens, "context_window": known.context_window}
        )
    cost = None if per_call is None or known.price is None else _cost(known.price, *per_call)
    usd = _most(model_calls, cost, known.budget.usd, turn.weight)
    if not isfinite(usd):
        missing["usd"] = _lacking(
            model_calls,
            {
                "max_tokens": known.max_tokens,
                "context_window": known.context_window,
                "price": known.price,
            },
        )
    visits = dict.fromkeys(ground.reached, 0.0)
    for place in names:
        visits[ranking.node(place)] += stay.visits[place]
    return Bound(
        graph.name,
        model_calls,
        tool_calls,
        tokens,
        usd if isfinite(usd) else None,
        {name: _whole(count) for name, count in visits.items()},
        stay.why if isfinite(stay.weight) else (),
        missing,
        cycles,
    )


def _asked(ground: Ground[S], name: str, known: _Known, depth: int) -> tuple[float, str]:
    """Return how many models one visit asks at most, and if nobody knows, why."""
    contract = ground.contracts[name]
    if contract is None:
        return inf, f"nobody says what {name!r} may do: give it a `contract`."
    if contract.model_calls is None:
        return inf, f"the contract of {name!r} does not say how many models a visit asks."
    calls: float = contract.model_calls
    children = {child.name for child in contract.children}
    for agent in contract.agents:
        if agent in children:
            continue
        found = known.agents.get(agent)
        if found is None or found.model_calls is None:
            return inf, f"the bound of the agent {agent!r} is not known: give it with `agents`."
        calls += found.model_calls
    for child in contract.children:
        inner = _child_bound(child, known, depth)
        if inner is None or child.runs is None:
            what = "its graph" if inner is None else "how often it runs"
            return inf, f"of the child {child.name!r} of {name!r} nobody knows {what}."
        if inner.model_calls is None:
            return inf, f"the child {child.name!r} of {name!r}: {inner.missing['model_calls']}"
        calls += child.runs * inner.model_calls
    return calls, ""


def _child_bound(child: ChildContract, known: _Known, depth: int) -> Bound | None:
    if child.graph is None or depth >= NEST_MAX:
        return known.agents.get(child.name)
    return _bound(child.graph, known, depth + 1)


def _is_checked(ground: Ground[S], way: Way) -> bool:
    """Whether a line is taken only while the budget is not spent."""
    return issubclass(way.outcome, Go) and isinstance(
        ground.graph.nodes.get(way.source), StopCheck | Limit
    )


def _tool_calls(ground: Ground[S], budget: Budget) -> int | None:
    """Return how many tools run at most; a budget is kept by the nodes that run them."""
    kept = True
    running = False
    for name in ground.reached:
        node, contract = ground.graph.nodes[name], ground.contracts[name]
        runs = contract is None or contract.tools or node.kind == "execute"
        running = running or runs or (contract is not None and _runs_deeper(contract, 0))
        kept = kept and (not runs or isinstance(node, Execute))
    if not running:
        return 0
    return budget.tool_calls if kept else None


def _runs_deeper(contract: Contract, depth: int) -> bool:
    """Whether a child may run tools; one that nobody knows may."""
    if set(contract.agents) - {child.name for child in contract.children}:
        return True
    graphs = [child.graph for child in contract.children]
    if None in graphs or depth >= NEST_MAX:
        return bool(graphs)
    for node in (one for graph in graphs if graph is not None for one in graph.nodes.values()):
        inner = contract_of(node)
        if inner is None or inner.tools or node.kind == "execute":
            return True
        if _runs_deeper(inner, depth + 1):
            return True
    return False


def _most(calls: int | None, each: float | None, limit: float | None, turn: float) -> float:
    """Return the least of what calls come to, and of a limit that one turn may exceed."""
    if each is None:
        return inf
    every = inf if calls is None else calls * each
    exceeded = inf if limit is None or not isfinite(turn) else limit + turn * each
    return min(every, exceeded)


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
