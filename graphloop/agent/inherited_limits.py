"""Inherited limits: rules, gates and budgets that a run passes to its child runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import proofs
from ..driver import Ports
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
from ..tools import gates_of
from ..values import ToolSpec, evolve
from .options import Options
from .resources import AgentResources

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = [
    "added_under",
    "beyond_watch",
    "child_gates",
    "child_setup",
    "child_tools",
    "inherited_rules",
    "refuse_unsigned",
    "reply_max",
    "run_bound",
]


def child_setup(own: Setup, effect: StartRun, parent: Run[Any], gates: Sequence[Policy]) -> Setup:
    """Return the setup of a child run, restricted by the limits of its parent.

    Args:
        own: the setup of a run of the same graph without a parent.
        effect: the effect that starts the child and sets its budget.
        parent: the run that starts the child.
        gates: the gates of the parents, outermost first.
    """
    setup = parent.setup
    return evolve(
        own,
        tools=child_tools(own.tools, setup),
        budget=own.budget.tightened(effect.budget),
        rules=(*(gate.rules for gate in gates), *own.rules),
        depth=setup.depth + 1,
        depth_max=min(own.depth_max + setup.depth + 1, setup.depth_max),
        signed=setup.signed,
        approval_ttl_s=stricter(setup.approval_ttl_s, own.approval_ttl_s),
    )


def child_gates(effect: StartRun, parent: Run[Any], ports: Ports[Any]) -> tuple[Policy, ...]:
    """Return the parents' gates that also apply to a child run, outermost first.

    All gates that the parent inherited apply. If a tool call starts the child, the gates of the
    parent's own graph that passed this call apply, too. If a node starts the child, they do not.

    Args:
        effect: the effect that starts the child.
        parent: the run that starts the child.
        ports: the ports of the parent, with its gates.
    """
    recorded, added = gates_of(parent.setup.rules, ports.gates)
    passed = parent.turn.gated if parent.turn.has_call(effect.key) else ()
    unknown: Mapping[str, Condition] = {}
    functions = unknown if ports.own is None else ports.own.conditions
    # A parent's gate begins with a rule that allows its own answer tool. That rule is left out:
    # the child may have a tool of that name.
    answering = allow(*parent.setup.own).rules if parent.setup.own else ()
    own = [
        policy_of(rules[len(answering) :] if rules[:1] == answering else rules, functions)
        for rules in passed
    ]
    return (*recorded, *added, *own)


S = TypeVar("S")

REASON = "a rule of the run above speaks of it"  # Stored in journals, and found there again.


def inherited_rules(
    options: Options, graph: NodeGraph[S], resources: AgentResources
) -> tuple[TemporalRule, ...]:
    """Return the temporal rules of a run, with each word resolved to a node or tool.

    Raises:
        ConfigError: a word of a rule is unknown or ambiguous, or a rule is about calls that this
            run never sees.
    """
    rules = graph.rules & rules_of(options.rules)
    if not rules:
        return ()
    names = names_of(graph, resources.callable_names)
    found, problems = Rules(), list[str]()
    for rule in rules:
        try:
            found &= resolve_words(Rules((rule,)), names)
        except ConfigError as error:
            problems.append(f"{_place_of(graph, rule)}{error}")
    problems = problems or [problem for rule in found for problem in _unseen_tools(rule, resources)]
    if problems:
        raise ConfigError("\n".join(problems))
    return found.rules


def _place_of(graph: NodeGraph[S], rule: TemporalRule) -> str:
    """Return the prefix `file:line: ` of a rule from a topology file; empty for other rules."""
    source = graph.source
    line = None if source is None else (source.rules or {}).get(describe_rule(rule))
    return "" if source is None or line is None else f"{source.file}:{line}: "


def _unseen_tools(rule: TemporalRule, resources: AgentResources) -> Iterator[str]:
    """Yield a problem text for each tool in a rule whose calls this run never sees."""
    yield from _server_tools(rule, resources.given)
    _, *others = words_of(rule)
    servers = _run_by_servers(resources.given)
    for word in filter(None, others):
        kind, _, name = word.partition(":")
        if kind in {"tool", "approval"} and name not in {"*", *resources.own_names, *servers}:
            yield (
                f"rule {describe_rule(rule)!r}: only child runs have the tool {name!r}, and a rule "
                "counts no event of a child run. Fix: name the agent's own tool."
            )


def _server_tools(rule: TemporalRule, tools: Iterable[ToolSpec]) -> Iterator[str]:
    """Yield a problem text for each tool that a rule names and the model's server runs."""
    what, *others = words_of(rule)
    servers = _run_by_servers(tools)
    for word in filter(None, (what, *others)):
        kind, _, name = word.partition(":")
        if kind not in {"tool", "approval"}:
            continue
        # `tool:*` as a rule's condition is allowed: uncounted server tools make the rule stricter.
        is_any = name == "*" and kind == "tool" and word != others[0]
        unseen = servers if is_any else [name] if name in servers else []
        if unseen:
            yield (
                f"rule {describe_rule(rule)!r}: the model's server runs {unseen[0]!r} in the "
                "middle of a reply, so no rule can stop or count it. Fix: leave that tool out, or "
                "name the tools that the rule is about."
            )


def _run_by_servers(tools: Iterable[ToolSpec]) -> list[str]:
    return sorted(tool.name for tool in tools if tool.kind == "provider")


def refuse_unsigned(resources: AgentResources, secret: bytes | None) -> None:
    """Refuse sub-agents that require signed approvals if there is no secret to sign them.

    Raises:
        ConfigError: the message names such a sub-agent.
    """
    unsigned = [name for name, plan in resources.children.items() if plan.opener.terms.is_signed]
    if unsigned and secret is None:
        raise ConfigError(
            f"agent {unsigned[0]!r} takes signed approvals only, and a child run takes the "
            "approvals of its parent. Fix: give `approval_secret` to the parent, too."
        )


def beyond_watch(parent: Setup, gates: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return a gate that denies a child run each tool that its parents' temporal rules name.

    A rule counts no event of a child run, so the child must not call these tools. The tuple is
    empty if the rules name no tool, or if `gates` has this gate already.

    Args:
        parent: the setup of the parent.
        gates: the gates that apply to the child already.
    """
    tools = _rule_tools(parent)
    if not tools:
        return ()
    gate = deny("*", reason=REASON) if "*" in tools else deny(*tools, reason=REASON) | allow("*")
    return () if any(gate.rules == known.rules for known in gates) else (gate,)


def child_tools(tools: tuple[ToolSpec, ...], parent: Setup) -> tuple[ToolSpec, ...]:
    """Return the tools that a child run may offer to its model.

    Server tools that a parent's rules name are left out, because no gate can stop a server tool.
    """
    kept = _rule_tools(parent)
    refused = [tool for tool in tools if tool.kind == "provider" and {"*", tool.name} & {*kept}]
    return tuple([tool for tool in tools if tool not in refused])


def added_under(setup: Setup, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools out of `tools` that a run may add after its start.

    Raises:
        ConfigError: a rule of the run names a tool that the model's server runs.
    """
    problems = [problem for rule in setup.watch for problem in _server_tools(rule, tools)]
    if problems:
        raise ConfigError("\n".join(problems))
    return child_tools(tools, evolve(setup, watch=()))


def _rule_tools(parent: Setup) -> tuple[str, ...]:
    """Return the names of the tools that the temporal rules of a run and its parents name.

    The rules of the parents are read from the gates that `beyond_watch` made from these rules. The
    run's journal contains these gates, even if the run is a fork without a parent.
    """
    denied = [rule for gate in parent.rules for rule in gate if rule.reason == REASON]
    inherited = [name for rule in denied if rule.verdict == "deny" for name in rule.tools]
    return tuple(dict.fromkeys((*inherited, *guarded_tools(Rules(parent.watch)))))


def reply_max(setup: Setup, resources: AgentResources) -> int | None:
    """Return the largest token limit of a reply in a run or its child runs; None if unlimited."""
    limits = [setup.settings.max_tokens]
    limits += [plan.opener.terms.reply_max for plan in resources.children.values()]
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


def run_bound(
    graph: NodeGraph[Any],
    setup: Setup,
    resources: AgentResources,
    context_window: int | None,
    price: ModelPrice | None,
) -> Bound:
    """Return the upper bound of one run of `graph`, including the agents that the run may call.

    Args:
        graph: the graph that runs.
        setup: the run's budget and limits.
        resources: the agents of the run.
        context_window: the largest context window among the models, in tokens.
        price: the price of the most expensive model.
    """
    agents = {
        name: plan.opener.terms.bound(context_window, price)
        for name, plan in resources.children.items()
    }
    called = [tool for tool in setup.tools if tool.kind == "agent" and setup.depth_max > 0]
    return proofs.bound(
        graph,
        budget=setup.budget,
        max_tokens=reply_max(setup, resources),
        context_window=context_window,
        price=price,
        agents=agents,
        called=proofs.Called(
            {tool.name: agents[tool.name] for tool in called if not tool.takes_over},
            {tool.name: agents[tool.name] for tool in called if tool.takes_over},
        ),
    )
