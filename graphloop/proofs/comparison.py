"""Comparison: how a graph differs from an earlier one.

Graphs are compared by names: rows, written parameters, dominators, bounds, temporal rules, and what
`check` finds. A renamed node is another node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar, cast, final

from ..contract import ChildContract
from ..errors import ConfigError
from ..graph import Edge, NodeGraph, names_of
from ..nodes import Gate
from ..rules import AtMost, Rules, TemporalRule, describe_rule, resolve_words, rules_of
from ..values import evolve
from .bounds import bound
from .checking import check
from .guards import gate_changes, lost_guards
from .nested import children_of
from .proof_graph import ProofGraph
from .temporal import RuleDecision, decided, rules_given
from .written_changes import Change, Effect, compared, node_changes

__all__ = ["NEST_MAX", "Comparison", "compare"]

S = TypeVar("S")

NEST_MAX: Final = 16
"""How many graphs deep agents are compared."""

BOUNDS: Final = ("model_calls", "tool_calls", "tokens", "usd")
STANDING: Final = ("means nothing", "can be broken", "is kept by the monitor alone", "is proven")
RANK: Final = {"violated": 1, "unknown": 2, "proven": 3}
EFFECTS: Final = ("weaker", "changed", "stronger")

Child: TypeAlias = tuple[tuple[str, ...], NodeGraph[Any], NodeGraph[Any]]
"""The names that lead to an agent, and its graph on both sides."""


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """How two graphs differ; print it to read it.

    Attributes:
        before: the earlier graph's name.
        after: the later graph's name.
        changes: what the difference means, losses first.
        nodes_added: nodes that only the later graph has.
        nodes_removed: nodes that only the earlier graph has.
        rows_added: lines of the table that only the later graph has.
        rows_removed: lines of the table that only the earlier graph has.
        children: the comparisons of agents that differ, by the names that lead there; two graphs
            that meet at several places stand at the first.
    """

    before: str
    after: str
    changes: tuple[Change, ...] = ()
    nodes_added: tuple[str, ...] = ()
    nodes_removed: tuple[str, ...] = ()
    rows_added: tuple[Edge, ...] = ()
    rows_removed: tuple[Edge, ...] = ()
    children: Mapping[str, Comparison] = field(default_factory=dict[str, "Comparison"])

    @property
    def weaker(self) -> bool:
        """Whether the later graph promises less, or one of its agents does."""
        own = any(one.effect == "weaker" for one in self.changes)
        return own or any(one.weaker for one in self.children.values())

    @property
    def none(self) -> bool:
        """Whether nothing differs."""
        return self == Comparison(self.before, self.before)

    def to_json(self) -> str:
        """Return a JSON object with `weaker` and the fields of this class."""
        return json.dumps({"weaker": self.weaker, **asdict(self)}, indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return what the difference means, then the rows, then the same of the agents."""
        names = self.after if self.before == self.after else f"{self.before!r} -> {self.after!r}"
        if self.none:
            return f"graph {names}: no difference"
        lines = [f"graph {names}: {'weaker' if self.weaker else 'not weaker'}"]
        lines += [f"  {line}" for one in self.changes for line in str(one).splitlines()]
        lines += [f"  {line}" for line in self._rows()]
        for name, child in self.children.items():
            lines += [f"in the agent {name!r}:", *(f"  {line}" for line in str(child).splitlines())]
        return "\n".join(lines)

    def _rows(self) -> Iterator[str]:
        """Yield a line a change of the table: `-` removed, `+` added, `~` led elsewhere."""
        yield from (f"- node {one}" for one in self.nodes_removed)
        yield from (f"+ node {one}" for one in self.nodes_added)
        was, now = (
            {f"{one.source} -{one.outcome}->": one.target for one in rows}
            for rows in (self.rows_removed, self.rows_added)
        )
        yield from (f"- {arc} {target}" for arc, target in was.items() if arc not in now)
        for arc, target in now.items():
            yield f"~ {arc} {target} (was {was[arc]})" if arc in was else f"+ {arc} {target}"


def compare(
    before: NodeGraph[S], after: NodeGraph[S], rules: Rules | Iterable[Rules] = ()
) -> Comparison:
    """Return how `after` differs from `before`; agents are compared by name, 16 graphs deep.

    Args:
        before: the earlier graph.
        after: the later graph.
        rules: temporal rules of your own, which are decided on both graphs.

    Raises:
        ConfigError: a rule means nothing in either graph.
    """
    own = rules_of(rules)
    problems = [[_meaning(graph, rule) for graph in (after, before)] for rule in own]
    vain = [f"{now}" for now, was in problems if isinstance(now, str) and isinstance(was, str)]
    if vain:
        raise ConfigError("\n".join(vain))
    todo: list[Child] = [((), before, after)]
    found: dict[str, Comparison] = {}
    seen: set[tuple[int, int]] = set()
    # Agents of agents are added while this loop runs.
    for path, old, new in todo:
        if (id(old), id(new)) not in seen and not (path and old is new):
            seen.add((id(old), id(new)))
            found["/".join(path)] = _compared(path, old, new, Rules() if path else own, todo)
    whole = found.pop("")
    return replace(whole, children={name: one for name, one in found.items() if not one.none})


def _compared(
    path: tuple[str, ...],
    before: NodeGraph[S],
    after: NodeGraph[S],
    rules: Rules,
    todo: list[Child],
) -> Comparison:
    """Return how two graphs differ by themselves; their agents are added to what is to do."""
    old, new = ProofGraph(before), ProofGraph(after)
    changes = [
        *lost_guards(old, new),
        *_rules(old, new, rules_given(before) & rules, rules_given(after) & rules),
        # The reports and bounds of a graph hold for its agents as well.
        *(() if path else (*_bounds(before, after), *_properties(before, after))),
        *_nodes(before, after),
        *_given(before, after),
        *_children(path, before, after, todo),
    ]
    rows, rows_now = before.edges, after.edges
    return Comparison(
        before.name,
        after.name,
        tuple(sorted(dict.fromkeys(changes), key=lambda one: EFFECTS.index(one.effect))),
        tuple([name for name in after.nodes if name not in before.nodes]),
        tuple([name for name in before.nodes if name not in after.nodes]),
        tuple([one for one in rows_now if one not in rows]),
        tuple([one for one in rows if one not in rows_now]),
    )


def _meaning(graph: NodeGraph[S], rule: TemporalRule) -> Rules | str:
    """Return a rule with its words looked up; or why they mean nothing."""
    try:
        return resolve_words(Rules((rule,)), names_of(graph))
    except ConfigError as error:
        return str(error)


def _rules(old: ProofGraph[S], new: ProofGraph[S], before: Rules, after: Rules) -> Iterator[Change]:
    """Yield what becomes of each temporal rule of either graph, decided on both."""
    had, has = ({evolve(one, reason=""): one for one in rules} for rules in (before, after))
    for rule in dict.fromkeys((*had, *has)):
        was, now = _decision(old, rule), _decision(new, rule)
        rank, rank_now = (0 if one is None else RANK[one.status] for one in (was, now))
        said, standing = f"the rule {describe_rule(rule)!r}", STANDING[rank_now]
        path = () if now is None else now.path
        if rule not in has:
            kept = standing == "is proven" or any(_is_stricter(one, rule) for one in has)
            removed = f"{said} is removed{', and still kept' if kept else ''}"
            yield Change("changed" if kept else "weaker", "rule", removed).along(path)
        elif rank_now < rank or (was and now and was.rule != now.rule):
            told = f"{said} {standing}; in the earlier graph it {STANDING[rank]}"
            yield Change("weaker", "rule", told).along(path)
        elif rank_now > rank or rule not in had:
            new_rule = f"{said} {standing}{' and is new' if rule not in had else ' now'}"
            yield Change("stronger" if rank_now > 1 else "changed", "rule", new_rule)
        elif had[rule] != has[rule]:
            yield Change("changed", "rule", f"{said} has another reason")


def _is_stricter(rule: TemporalRule, other: TemporalRule) -> bool:
    """Whether a rule allows the same happening fewer times than another."""
    if not isinstance(rule, AtMost) or not isinstance(other, AtMost):
        return False
    return (rule.what, rule.per) == (other.what, other.per) and rule.times <= other.times


def _decision(ground: ProofGraph[S], rule: TemporalRule) -> RuleDecision | None:
    """Return what can be said of a rule on a graph; None if it means nothing there."""
    meaning = _meaning(ground.node_graph, rule)
    return None if isinstance(meaning, str) else decided(ground, meaning)[0]


def _properties(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield what `check` finds now and did not, and the reverse; rules are told by themselves."""
    old, new = check(before), check(after)
    was, now = (
        {(one.code, one.node or one.message, one.outcome): one for one in report.findings}
        for report in (old, new)
    )
    for key, one in now.items():
        if key not in was and one.code != "GL12":
            said = f"{one.code} fails at {one.place}: {one.message.rstrip('.')}"
            arc = (one.witness, one.outcomes) if one.outcomes else ((), ())
            effect: Effect = "weaker" if one.severity == "error" else "changed"
            yield Change(effect, one.code, said, one.node, *arc)
    for key, one in was.items():
        if key not in now and one.code != "GL12":
            said = f"{one.code} at {one.place} is mended: {one.message.rstrip('.')}"
            yield Change("stronger", one.code, said, one.node)
    for unknown in new.unknown:
        if unknown.code in old.proven and unknown.code != "GL12":
            said = f"{unknown.code} can no longer be decided: {unknown.reason.rstrip('.')}"
            yield Change("weaker", unknown.code, said, unknown.node)


def _bounds(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    old, new = bound(before), bound(after)
    for name in BOUNDS:
        was: float | None = getattr(old, name)
        now: float | None = getattr(new, name)
        if was != now:
            grew = was is not None and (now is None or now > was)
            sides = ["unbounded" if one is None else f"{one:,}" for one in (was, now)]
            said = f"worst-case {name.replace('_', ' ')} {sides[0]} -> {sides[1]}"
            yield Change("weaker" if grew else "stronger", "bound", said)


def _nodes(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    if before.start != after.start:
        said = f"the start is `{after.start}`, and was `{before.start}`"
        yield Change("changed", "start", said, after.start)
    come = frozenset(_tools(after)) - frozenset(_tools(before))
    for name, new in after.nodes.items():
        old = before.nodes.get(name)
        if old is not None:
            yield from node_changes(old, new)
        if isinstance(old, Gate) and isinstance(new, Gate):
            yield from gate_changes(f"`{name}`", old.rules, new.rules, come)


def _tools(graph: NodeGraph[S]) -> Mapping[str, object]:
    """Return the tools of a graph's runs by name; only the names, where no more is known."""
    tools = graph.run_options.get("tools", dict.fromkeys(graph.tool_names or ()))
    return cast("Mapping[str, object]", tools)  # `front.known` puts nothing else there.


def _given(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield what differs of the tools and options of runs, and of what `check` sets aside."""
    was, now = _tools(before), _tools(after)
    for name in dict.fromkeys((*was, *now)):
        if name in was and name in now:
            yield from compared("tool", f"the tool `{name}`", "options", was[name], now[name])
        else:
            effect: Effect = "weaker" if name in now else "changed"
            how = "new" if name in now else "gone"
            yield Change(effect, "tool", f"the tool `{name}` is {how}")
    if [*was] != [*now] and {*was} == {*now}:
        yield Change("changed", "tool", "the tools stand in another order")
    options, options_now = before.run_options, after.run_options
    for name in dict.fromkeys((*options, *options_now)):
        if name not in {"tools", "rules"}:
            sides = options.get(name), options_now.get(name)
            yield from compared("given", "the runs", name, *sides)
    for node, code in dict.fromkeys((*before.ignore, *after.ignore)):
        why, why_now = (side.ignore.get((node, code)) for side in (before, after))
        if why != why_now:
            effect = "weaker" if why is None else "stronger" if why_now is None else "changed"
            said = f"{code} of {node or 'the graph'!r} is set aside: {why!r} -> {why_now!r}"
            yield Change(effect, "ignore", said, node)


def _children(
    path: tuple[str, ...], before: NodeGraph[S], after: NodeGraph[S], todo: list[Child]
) -> Iterator[Change]:
    """Yield what differs of agents; two graphs of one name are added to what is to do.

    Several agents of one name are held to each other in their order.
    """
    was, now = _agents(before), _agents(after)
    for name in dict.fromkeys((*was, *now)):
        some, others = was.get(name, []), now.get(name, [])
        if len(some) != len(others):
            more = len(others) > len(some)
            effect: Effect = "weaker" if more else "changed"
            yield Change(effect, "agent", f"the agent {name!r} is {'new' if more else 'gone'}")
        for place, (old, new) in enumerate(zip(some, others, strict=False), 1):
            label = name if place == 1 else f"{name} ({place})"
            owner = f"the gate of the agent {label!r}"
            yield from gate_changes(owner, old.gate_rules or (), new.gate_rules or ())
            if old.graph and new.graph and len(path) < NEST_MAX:
                todo.append(((*path, label), old.graph, new.graph))
            elif old.graph is not new.graph:
                effect = "changed" if old.graph is None else "weaker"
                yield Change(effect, "agent", f"nothing compares the agent {label!r}")


def _agents(graph: NodeGraph[S]) -> dict[str, list[ChildContract]]:
    """Return the agents of a graph by name, each once: those that nodes run, then the others."""
    known = [ChildContract(name, one) for name, one in graph.agents.items()]
    found: dict[str, dict[object, ChildContract]] = {}
    for child in (*(one for _, one in children_of(graph)), *known):
        found.setdefault(child.name, {}).setdefault(id(child.graph), child)
    return {name: [*some.values()] for name, some in found.items()}
