"""Watched: the temporal rules that a run is given, and what they mean for its child runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ..errors import ConfigError
from ..events import Setup
from ..graph import Graph
from ..policy import Policy, allow, deny
from ..run import Run
from ..temporal import Rules, TemporalRule, describe_rule, rules_of, words_of
from ..temporal_names import guarded_tools, names_of, resolve
from ..values import ToolSpec, evolve
from .options import RunOptions
from .world import World

__all__ = ["added_under", "beyond_watch", "offered_below", "refuse_other_rules", "watched"]

S = TypeVar("S")

REASON = "a rule of the run above speaks of it"


def watched(options: RunOptions, graph: Graph[S], world: World) -> tuple[TemporalRule, ...]:
    """Return the temporal rules of a run, every word of them looked up.

    Raises:
        ConfigError: a word means nothing, or more than one thing; or no rule can count, or stop,
            what it means.
    """
    rules = graph.rules & rules_of(options.get("rules", ()))
    if not rules:
        return ()
    names = names_of(graph, world.callable_names)
    found, problems = Rules(), list[str]()
    for rule in rules:
        try:
            found &= resolve(Rules((rule,)), names)
        except ConfigError as error:
            problems.append(f"{_place(graph, rule)}{error}")
    problems = problems or [one for rule in found for one in _unseen(rule, world)]
    if problems:
        raise ConfigError("\n".join(problems))
    return found.rules


def _place(graph: Graph[S], rule: TemporalRule) -> str:
    """Return the line of a rule that stands in the graph's file, for the beginning of a message."""
    source = graph.source
    line = None if source is None else (source.rules or {}).get(describe_rule(rule))
    return "" if source is None or line is None else f"{source.file}:{line}: "


def _unseen(rule: TemporalRule, world: World) -> Iterator[str]:
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
    """Refuse to take a run up again under rules that it has not kept from its beginning.

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
    """Return the gate that keeps a child run from the tools that rules above it speak of.

    What happens in a child is not counted above it, so nothing there could be allowed.

    Args:
        above: what the run works with that the child is below.
        gates: those that the child is given anyhow.
    """
    tools = _kept_below(above)
    if not tools:
        return ()
    gate = deny("*", reason=REASON) if "*" in tools else deny(*tools, reason=REASON) | allow("*")
    return () if any(gate.rules == one.rules for one in gates) else (gate,)


def offered_below(tools: tuple[ToolSpec, ...], above: Setup) -> tuple[ToolSpec, ...]:
    """Return the tools that a child run may offer: no gate stops those that the server runs."""
    kept = _kept_below(above)
    if "*" in kept:
        return tuple([one for one in tools if one.kind != "provider"])
    return tuple([one for one in tools if one.kind != "provider" or one.name not in kept])


def added_under(setup: Setup, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return those of some tools that a run can be given as it goes on.

    Raises:
        ConfigError: a rule of its own speaks of one that the model's server runs.
    """
    problems = [one for rule in setup.watch for one in _uncounted(rule, tools)]
    if problems:
        raise ConfigError("\n".join(problems))
    return offered_below(tools, evolve(setup, watch=()))


def _kept_below(above: Setup) -> tuple[str, ...]:
    """Return the tools that the rules of a run, and of all runs above it, speak of.

    Those of the runs above are known by the gates that they have put before its own, which its
    journal keeps: nobody else may be left who knows them, as where a child is forked.
    """
    denied = [one for gate in above.rules for one in gate if one.reason == REASON]
    inherited = [name for one in denied if one.verdict == "deny" for name in one.tools]
    return tuple(dict.fromkeys((*inherited, *guarded_tools(Rules(above.watch)))))
