"""Inherited limits: rules, gates and budgets that a run passes to its child runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import proofs
from ..driver import Ports, gates_of
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Setup
from ..graph import NodeGraph, names_of
from ..limits import ModelPrice
from ..policy import Condition, Policy, allow, deny, policy_of
from ..rules import (
    Rules,
    TemporalRule,
    describe_rule,
    guarded_tools,
    resolve_words,
    rules_of,
    words_of,
)
from ..run import Run
from ..spending import stricter
from ..values import ToolSpec, evolve
from .options import Options
from .world import AgentResources

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = [
    "added_under",
    "beyond_watch",
    "gates_below",
    "inherited_rules",
    "offered_below",
    "refuse_other_rules",
    "reply_max",
    "run_bound",
    "setup_below",
]


def setup_below(own: Setup, effect: StartRun, parent: Run[Any], above: Sequence[Policy]) -> Setup:
    """Return the setup of a child run.

    Args:
        own: the setup of a run of the same graph without a parent.
        effect: starts the child, with its budget.
        parent: the run that starts it.
        above: the gates of its parents, outermost first.
    """
    setup = parent.setup
    return evolve(
        own,
        tools=offered_below(own.tools, setup),
        budget=own.budget.tightened(effect.budget),
        rules=(*(gate.rules for gate in above), *own.rules),
        depth=setup.depth + 1,
        depth_max=min(own.depth_max + setup.depth + 1, setup.depth_max),
        signed=setup.signed,
        approval_ttl_s=stricter(setup.approval_ttl_s, own.approval_ttl_s),
    )


def gates_below(effect: StartRun, parent: Run[Any], ports: Ports[Any]) -> tuple[Policy, ...]:
    """Return the gates that hold for a child run, outermost first.

    The gates above its parent hold. Gates of the parent's own graph hold if they let the call pass
    that starts the child, which works in that call's name; no call starts the child of a node.

    Args:
        effect: starts the child.
        parent: the run that starts it.
        ports: the parent's world.
    """
    recorded, added = gates_of(parent.setup.rules, ports.gates)
    passed = parent.turn.gated if parent.turn.has_call(effect.key) else ()
    unknown: Mapping[str, Condition] = {}
    functions = unknown if ports.own is None else ports.own.conditions
    # The parent's own tools are no tools of the child, though one may be named alike.
    answering = allow(*parent.setup.own).rules if parent.setup.own else ()
    own = [
        policy_of(one[len(answering) :] if one[:1] == answering else one, functions)
        for one in passed
    ]
    return (*recorded, *added, *own)


S = TypeVar("S")

REASON = "a rule of the run above speaks of it"


def inherited_rules(
    options: Options, graph: NodeGraph[S], world: AgentResources
) -> tuple[TemporalRule, ...]:
    """Return the temporal rules of a run, every word of them looked up.

    Raises:
        ConfigError: a word means nothing, or more than one thing; or no rule can count, or stop,
            what it means.
    """
    rules = graph.rules & rules_of(options.rules)
    if not rules:
        return ()
    names = names_of(graph, world.callable_names)
    found, problems = Rules(), list[str]()
    for rule in rules:
        try:
            found &= resolve_words(Rules((rule,)), names)
        except ConfigError as error:
            problems.append(f"{_place(graph, rule)}{error}")
    problems = problems or [one for rule in found for one in _unseen(rule, world)]
    if problems:
        raise ConfigError("\n".join(problems))
    return found.rules


def _place(graph: NodeGraph[S], rule: TemporalRule) -> str:
    """Return the line of a rule that stands in the graph's file, for the beginning of a message."""
    source = graph.source
    line = None if source is None else (source.rules or {}).get(describe_rule(rule))
    return "" if source is None or line is None else f"{source.file}:{line}: "


def _unseen(rule: TemporalRule, world: AgentResources) -> Iterator[str]:
    """Yield why a rule would speak of tools whose calls never come here."""
    yield from _uncounted(rule, world.given)
    _, *others = words_of(rule)
    servers = _run_by_servers(world.given)
    for word in filter(None, others):
        kind, _, name = word.partition(":")
        if kind in {"tool", "approval"} and name not in {"*", *world.own_names, *servers}:
            yield (
                f"rule {describe_rule(rule)!r}: only the agents that this run calls have the tool "
                f"{name!r}, and what happens in a child run is not counted above it. Fix: name the "
                "tool by which the agent is called"
            )


def _uncounted(rule: TemporalRule, tools: Iterable[ToolSpec]) -> Iterator[str]:
    """Yield why a rule would speak of tools that the model's server runs."""
    what, *others = words_of(rule)
    servers = _run_by_servers(tools)
    for word in filter(None, (what, *others)):
        kind, _, name = word.partition(":")
        if kind not in {"tool", "approval"}:
            continue
        # That none of them counts as what allows something leaves the rule as strict as it was.
        is_any = name == "*" and kind == "tool" and word != others[0]
        unseen = servers if is_any else [name] if name in servers else []
        if unseen:
            yield (
                f"rule {describe_rule(rule)!r}: the model's server runs {unseen[0]!r} in the "
                "middle of a reply, so no rule can stop or count it. Fix: leave that tool away, or "
                "name the tools that the rule is about"
            )


def _run_by_servers(tools: Iterable[ToolSpec]) -> list[str]:
    return sorted(one.name for one in tools if one.kind == "provider")


def refuse_other_rules(run: Run[S], rules: tuple[TemporalRule, ...]) -> None:
    """Refuse to resume a run under rules that it has not kept from its start.

    Raises:
        ConfigError: naming each rule that it does not keep.
    """
    others = [describe_rule(one) for one in rules if one not in run.setup.watch]
    if others and not run.ended:
        kept = "; ".join(map(describe_rule, run.setup.watch)) or "none"
        raise ConfigError(
            f"run {run.id!r} began under other rules: it keeps {kept}; found {'; '.join(others)}. "
            "A rule holds for a whole run, so none can be added to one that has begun. Fix: take "
            "it up again under the rules it began with, or begin a new run"
        )


def beyond_watch(above: Setup, gates: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the gate that keeps a child run from the tools that its parents' rules name.

    A rule counts no event of a child, so no such call could be allowed there.

    Args:
        above: the setup of the parent.
        gates: the gates that hold for the child anyhow.
    """
    tools = _kept_below(above)
    if not tools:
        return ()
    gate = deny("*", reason=REASON) if "*" in tools else deny(*tools, reason=REASON) | allow("*")
    return () if any(gate.rules == one.rules for one in gates) else (gate,)


def offered_below(tools: tuple[ToolSpec, ...], above: Setup) -> tuple[ToolSpec, ...]:
    """Return the tools that a child run may offer: no gate stops tools that the server runs."""
    kept = _kept_below(above)
    if "*" in kept:
        return tuple([one for one in tools if one.kind != "provider"])
    return tuple([one for one in tools if one.kind != "provider" or one.name not in kept])


def added_under(setup: Setup, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools among these that a run can be given while it goes on.

    Raises:
        ConfigError: a rule of its own speaks of one that the model's server runs.
    """
    problems = [one for rule in setup.watch for one in _uncounted(rule, tools)]
    if problems:
        raise ConfigError("\n".join(problems))
    return offered_below(tools, evolve(setup, watch=()))


def _kept_below(above: Setup) -> tuple[str, ...]:
    """Return the tools that the rules of a run, and of all its parents, name.

    A parent's rules stand in the gates that it has put before the run's own. The run's journal
    keeps these gates, also where the child is forked and has no parent any more.
    """
    denied = [one for gate in above.rules for one in gate if one.reason == REASON]
    inherited = [name for one in denied if one.verdict == "deny" for name in one.tools]
    return tuple(dict.fromkeys((*inherited, *guarded_tools(Rules(above.watch)))))


def reply_max(setup: Setup, world: AgentResources) -> int | None:
    """Return how many tokens one reply may have, also to an agent of the world; None for any."""
    limits = [setup.settings.max_tokens]
    limits += [one.opener.terms.reply_max for one in world.children.values()]
    known = [one for one in limits if one is not None]
    return max(known) if len(known) == len(limits) else None


def run_bound(
    graph: NodeGraph[Any],
    setup: Setup,
    world: AgentResources,
    context_window: int | None,
    price: ModelPrice | None,
) -> Bound:
    """Return the bound of one run of `graph`, with the agents that it may call.

    Args:
        graph: what runs.
        setup: the run's budget and limits.
        world: the agents of the run.
        context_window: how many tokens the largest of the models' windows holds.
        price: the price of the dearest of the models.
    """
    agents = {
        name: plan.opener.terms.bound(context_window, price)
        for name, plan in world.children.items()
    }
    called = [one for one in setup.tools if one.kind == "agent" and setup.depth_max > 0]
    return proofs.bound(
        graph,
        budget=setup.budget,
        max_tokens=reply_max(setup, world),
        context_window=context_window,
        price=price,
        agents=agents,
        called=proofs.Called(
            {one.name: agents[one.name] for one in called if not one.takes_over},
            {one.name: agents[one.name] for one in called if one.takes_over},
        ),
    )
