"""Comparison: `compare`, which lists the differences between a graph and an earlier version.

Nodes are matched by name, so a renamed node counts as removed and added. The comparison covers
transitions, parameters, guards that protect nodes, bounds, temporal rules, and the findings of
`check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar, cast, final, get_args

from ..contract import ChildContract
from ..errors import ConfigError
from ..graph import Edge, NodeGraph, Surroundings, names_of
from ..nodes import Gate
from ..rules import AtMost, Rules, TemporalRule, describe_rule, resolve_words, rules_of
from ..values import evolve
from .bounds import bound
from .call_bounds import NUMBERS
from .checking import check
from .guards import gate_changes, lost_guards
from .nested import NEST_MAX, children_of
from .parameter_changes import Change, Effect, node_changes, value_changes
from .proof_graph import ProofGraph
from .report import PicturedGraphs, result_data
from .temporal import RuleDecision, decided, rules_given

__all__ = ["Comparison", "compare"]

S = TypeVar("S")

STANDING: Final = ("means nothing", "can be broken", "is kept by the monitor alone", "is proven")
RANK: Final = {"violated": 1, "unknown": 2, "proven": 3}

Child: TypeAlias = tuple[tuple[str, ...], NodeGraph[Any], NodeGraph[Any]]
"""An agent: the names that lead to the agent from the outermost graph, and its two graphs."""


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two graphs; `str` returns them as readable lines.

    Attributes:
        before: the name of the earlier graph; `after` is the name of the later graph.
        changes: the differences, those that weaken a promise first.
        nodes_added: the nodes that only the later graph has.
        nodes_removed: the nodes that only the earlier graph has.
        rows_added: the transitions that only the later graph has.
        rows_removed: the transitions that only the earlier graph has.
        children: the comparisons of agents whose graphs differ, by path: `agent/inner_agent`.
        subject: the two graphs, for the picture in a notebook.
    """

    before: str
    after: str
    changes: tuple[Change, ...] = ()
    nodes_added: tuple[str, ...] = ()
    nodes_removed: tuple[str, ...] = ()
    rows_added: tuple[Edge, ...] = ()
    rows_removed: tuple[Edge, ...] = ()
    children: Mapping[str, Comparison] = field(default_factory=dict[str, "Comparison"])
    subject: PicturedGraphs = field(default_factory=PicturedGraphs, compare=False)

    _repr_mimebundle_ = PicturedGraphs.display

    @property
    def weaker(self) -> bool:
        """Whether the later graph, or an agent in it, lost a guarantee."""
        own = any(change.effect == "weaker" for change in self.changes)
        return own or any(child.weaker for child in self.children.values())

    @property
    def none(self) -> bool:
        """Whether the two graphs have no differences."""
        return self == Comparison(self.before, self.before)

    def to_json(self) -> str:
        """Return a JSON object with `weaker` and the fields of this class."""
        data = {"weaker": self.weaker, **result_data(self)}
        return json.dumps(data, indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        said = "no difference" if self.none else "weaker" if self.weaker else "not weaker"
        return f"<Comparison {self.before!r} -> {self.after!r}: {said}>"

    def __str__(self) -> str:
        names = self.after if self.before == self.after else f"{self.before!r} -> {self.after!r}"
        said = "no difference" if self.none else "weaker" if self.weaker else "not weaker"
        lines = [f"graph {names}: {said}"]
        lines += [f"  {line}" for change in self.changes for line in str(change).splitlines()]
        lines += [f"  {line}" for line in self._row_lines()]
        for name, child in self.children.items():
            lines += [f"in the agent {name!r}:", *(f"  {line}" for line in str(child).splitlines())]
        return "\n".join(lines)

    def _row_lines(self) -> Iterator[str]:
        """Yield a line per node or transition: `-` removed, `+` added, `~` with a new target."""
        yield from (f"- node {name}" for name in self.nodes_removed)
        yield from (f"+ node {name}" for name in self.nodes_added)
        was, now = (
            {f"{row.source} -{row.outcome}->": row.target for row in rows}
            for rows in (self.rows_removed, self.rows_added)
        )
        yield from (f"- {cell} {target}" for cell, target in was.items() if cell not in now)
        for cell, target in now.items():
            yield f"~ {cell} {target} (was {was[cell]})" if cell in was else f"+ {cell} {target}"


def compare(
    before: NodeGraph[S], after: NodeGraph[S], rules: Rules | Iterable[Rules] = ()
) -> Comparison:
    """Return the differences between two graphs, and between the graphs of their agents.

    The temporal `rules` are checked on both graphs, in addition to the graphs' own rules.

    Raises:
        ConfigError: both graphs lack a name in a rule.
    """
    own = rules_of(rules)
    for rule in own:
        if _resolve_rule(before, rule) is None:
            resolve_words(Rules((rule,)), names_of(after))
    todo: list[Child] = [((), before, after)]
    compared: dict[str, Comparison] = {}
    seen: set[tuple[int, int]] = set()
    # `_compare_graphs` appends the agents of these graphs to `todo` while this loop runs.
    for path, old, new in todo:
        if (id(old), id(new)) not in seen and not (path and old is new):
            seen.add((id(old), id(new)))
            compared["/".join(path)] = _compare_graphs((path, old, new), own, todo)
    whole = compared.pop("")
    return replace(whole, children={name: diff for name, diff in compared.items() if not diff.none})


def _compare_graphs(pair: Child, rules: Rules, todo: list[Child]) -> Comparison:
    """Return the differences of two graphs without their agents; append the agents to `todo`."""
    path, before, after = pair
    old, new = ProofGraph(before), ProofGraph(after)
    changes = [
        *lost_guards(old, new),
        *_rule_changes(old, new, Rules() if path else rules),
        # The report and bound of the outermost graph already cover the agents.
        *(() if path else (*_bound_changes(before, after), *_finding_changes(before, after))),
        *_node_changes(before, after),
        *_option_changes(before, after),
        *_agent_changes(pair, todo),
    ]
    order, old_rows, new_rows = get_args(Effect).index, before.edges, after.edges
    changes = sorted(dict.fromkeys(changes), key=lambda change: order(change.effect))
    return Comparison(
        before.name,
        after.name,
        tuple(changes),
        tuple(name for name in after.nodes if name not in before.nodes),
        tuple(name for name in before.nodes if name not in after.nodes),
        tuple(row for row in new_rows if row not in old_rows),
        tuple(row for row in old_rows if row not in new_rows),
        subject=PicturedGraphs(before, after),
    )


def _resolve_rule(graph: NodeGraph[S], rule: TemporalRule) -> Rules | None:
    """Return a rule with its words resolved in the graph; None if the graph lacks one of them."""
    try:
        return resolve_words(Rules((rule,)), names_of(graph))
    except ConfigError:
        return None


def _rule_changes(old: ProofGraph[S], new: ProofGraph[S], rules: Rules) -> Iterator[Change]:
    """Yield the change of each temporal rule that was added, removed, or newly holds or fails."""
    had, has = (
        {evolve(rule, reason=""): rule for rule in rules_given(side.node_graph) & rules}
        for side in (old, new)
    )
    for rule in dict.fromkeys((*had, *has)):
        was, now = _keeps_rule(old, rule), _keeps_rule(new, rule)
        rank, rank_now = (RANK[side.status] if side else 0 for side in (was, now))
        standing = STANDING[rank_now]
        effect: Effect = "weaker"
        if rule not in has:
            # A remaining `at_most` rule makes this rule redundant if its limit is not higher.
            kept = standing == "is proven" or any(
                isinstance(rule, AtMost)
                and isinstance(other, AtMost)
                and (rule.what, rule.per) == (other.what, other.per)
                and other.times <= rule.times
                for other in has
            )
            said = f"is removed{', and still kept' if kept else ''}"
            effect = "changed" if kept else "weaker"
        elif rank_now < rank or (was and now and was.rule != now.rule):
            said = f"{standing}; in the earlier graph it {STANDING[rank]}"
        elif rank_now > rank or rule not in had:
            effect = "stronger" if rank_now > 1 else "changed"
            said = f"{standing}{' and is new' if rule not in had else ' now'}"
        elif had[rule] != has[rule]:
            effect, said = "changed", "has another reason"
        else:
            continue
        said = f"the rule {describe_rule(rule)!r} {said}"
        yield Change(effect, "rule", said).along(now.path if now else ())


def _keeps_rule(graph: ProofGraph[S], rule: TemporalRule) -> RuleDecision | None:
    """Return whether a graph keeps a rule; None if the graph lacks a name in the rule."""
    resolved = _resolve_rule(graph.node_graph, rule)
    return None if resolved is None else decided(graph, resolved)[0]


def _finding_changes(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield findings of `check` that are new, gone or newly undecidable, except rule findings."""
    old, new = check(before), check(after)
    was, now = (
        {(fault.code, fault.node or fault.message, fault.outcome): fault for fault in faults}
        for faults in ([f for f in side.findings if f.code != "GL12"] for side in (old, new))
    )
    for finding in [now[key] for key in now if key not in was]:
        said = f"{finding.code} fails at {finding.place}: {finding.message.rstrip('.')}"
        effect: Effect = "weaker" if finding.severity == "error" else "changed"
        yield Change(effect, finding.code, said, finding.node, finding.witness, finding.outcomes)
    for finding in [was[key] for key in was if key not in now]:
        said = f"{finding.code} at {finding.place} is mended: {finding.message.rstrip('.')}"
        yield Change("stronger", finding.code, said, finding.node)
    for unknown in new.unknown:
        if unknown.code in old.proven and unknown.code != "GL12":
            said = f"{unknown.code} can no longer be decided: {unknown.reason.rstrip('.')}"
            yield Change("weaker", unknown.code, said, unknown.node)


def _bound_changes(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield a change for each upper bound that differs: model calls, tool calls, tokens, cost."""
    old, new = bound(before), bound(after)
    for name in NUMBERS:
        was: float | None = getattr(old, name)
        now: float | None = getattr(new, name)
        if was != now:
            grew = was is not None and (now is None or now > was)
            sides = ["unbounded" if side is None else f"{side:,}" for side in (was, now)]
            said = f"worst-case {name.replace('_', ' ')} {sides[0]} -> {sides[1]}"
            yield Change("weaker" if grew else "stronger", "bound", said)


def _node_changes(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield the changes of the start, and of parameters and gate rules of nodes in both graphs."""
    if before.start != after.start:
        said = f"the start is `{after.start}`, and was `{before.start}`"
        yield Change("changed", "start", said, after.start)
    for name, new in after.nodes.items():
        old = before.nodes.get(name)
        if old is not None:
            yield from node_changes(old, new)
        if isinstance(old, Gate) and isinstance(new, Gate):
            yield from gate_changes(f"`{name}`", old.rules, new.rules)


def _tools_by_name(around: Surroundings) -> Mapping[str, object]:
    """Return the tools of a graph's runs, by name; the value is None if only the name is known."""
    tools = around.options.get("tools", dict.fromkeys(around.tool_names or ()))
    # The cast is safe since `agent.known` always stores the tools as a mapping.
    return cast("Mapping[str, object]", tools)


def _option_changes(before: NodeGraph[S], after: NodeGraph[S]) -> Iterator[Change]:
    """Yield the changes of tools, run options and suppressed findings between two graphs."""
    was, now = _tools_by_name(before.surroundings), _tools_by_name(after.surroundings)
    yield from _new_and_gone("tool", was, now)
    for name in [name for name in was if name in now]:
        yield from value_changes("tool", f"the tool {name!r}", "options", was[name], now[name])
    options, options_now = before.surroundings.options, after.surroundings.options
    for name in dict.fromkeys((*options, *options_now)):
        if name not in {"tools", "rules"}:
            sides = options.get(name), options_now.get(name)
            yield from value_changes("given", "the runs", name, *sides)
    for node, code in dict.fromkeys((*before.ignore, *after.ignore)):
        why, why_now = (side.ignore.get((node, code)) for side in (before, after))
        if why != why_now:
            effect: Effect = "stronger" if why_now is None else "changed"
            said = f"{code} of {node or 'the graph'!r} is set aside: {why!r} -> {why_now!r}"
            yield Change("weaker" if why is None else effect, "ignore", said, node)


def _agent_changes(pair: Child, todo: list[Child]) -> Iterator[Change]:
    """Yield agents that are new, gone or have other gate rules; append their graphs to `todo`."""
    path, before, after = pair
    was, now = _agents_by_name(before), _agents_by_name(after)
    yield from _new_and_gone("agent", was, now)
    for name in [name for name in was if name in now]:
        old, new = was[name], now[name]
        gate = f"the gate of the agent {name!r}"
        yield from gate_changes(gate, old.gate_rules or (), new.gate_rules or ())
        if old.graph and new.graph and len(path) < NEST_MAX:
            todo.append(((*path, name), old.graph, new.graph))
        elif old.graph is not new.graph:
            effect: Effect = "changed" if old.graph is None else "weaker"
            yield Change(effect, "agent", f"nothing compares the agent {name!r}")


def _new_and_gone(subject: str, was: Iterable[str], now: Iterable[str]) -> Iterator[Change]:
    """Yield a change for each tool or agent that only one graph has; a new one acts."""
    old, new = dict.fromkeys(was), dict.fromkeys(now)
    for name in [name for name in new if name not in old]:
        yield Change("weaker", subject, f"the {subject} {name!r} is new")
    for name in [name for name in old if name not in new]:
        yield Change("changed", subject, f"the {subject} {name!r} is gone")


def _agents_by_name(graph: NodeGraph[S]) -> dict[str, ChildContract]:
    """Return the agents of a graph by name; a second graph with the same name is `name (2)`."""
    agents: dict[tuple[str, int], ChildContract] = {}
    known = [ChildContract(name, agent) for name, agent in graph.surroundings.agents.items()]
    for child in (*(child for _, child in children_of(graph)), *known):
        agents.setdefault((child.name, id(child.graph)), child)
    labels: dict[str, ChildContract] = {}
    for child in agents.values():
        number = sum(child.name == earlier.name for earlier in labels.values()) + 1
        labels[child.name if number == 1 else f"{child.name} ({number})"] = child
    return labels
