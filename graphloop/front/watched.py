"""Watched: the temporal rules that a run is given, and what they mean for its child runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..errors import ConfigError
from ..graph import Graph
from ..policy import Policy, allow, deny
from ..run import Run
from ..temporal import Rules, TemporalRule, describe_rule, rules_of, words_of
from ..temporal_names import guarded_tools, names_of, resolve
from ..values import ToolSpec
from .options import RunOptions
from .world import World

__all__ = ["beyond_watch", "offered_below", "refuse_other_rules", "watched"]

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
    found = resolve(rules, names_of(graph, world.callable_names))
    problems = [one for rule in found for one in _unseen(rule, world)]
    if problems:
        raise ConfigError("\n".join(problems))
    return found.rules


def _unseen(rule: TemporalRule, world: World) -> Iterator[str]:
    """Yield why a rule would speak of tools whose calls never come here."""
    what, *others = words_of(rule)
    said = f"rule {describe_rule(rule)!r}:"
    servers = {one.name for one in world.given if one.kind == "provider"}
    for word in filter(None, (what, *others)):
        kind, _, name = word.partition(":")
        if kind not in {"tool", "approval"}:
            continue
        # That none of them counts as what allows something leaves the rule as strict as it was.
        is_any = name == "*" and kind == "tool" and word != others[0]
        unseen = sorted(servers) if is_any else [name] if name in servers else []
        if unseen:
            yield (
                f"{said} the model's server runs {unseen[0]!r} in the middle of a reply, so no "
                "rule can stop or count it. Fix: leave that tool away, or name the tools that the "
                "rule is about"
            )
        elif word != what and name not in {"*", *world.own_names}:
            yield (
                f"{said} only the agents that this run calls have the tool {name!r}, and what "
                "happens in a child run is not counted above it. Fix: name the tool by which the "
                "agent is called"
            )


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


def beyond_watch(rules: tuple[TemporalRule, ...]) -> tuple[Policy, ...]:
    """Return the gate that keeps a child run from the tools that its parent's rules speak of.

    What happens in a child is not counted above it, so nothing there could be allowed.
    """
    tools = guarded_tools(Rules(rules))
    if not tools:
        return ()
    if "*" in tools:
        return (deny("*", reason=REASON),)
    return (deny(*tools, reason=REASON) | allow("*"),)


def offered_below(
    tools: tuple[ToolSpec, ...], rules: tuple[TemporalRule, ...]
) -> tuple[ToolSpec, ...]:
    """Return the tools that a child run may offer: no gate stops those that the server runs."""
    guarded = guarded_tools(Rules(rules))
    if "*" in guarded:
        return tuple([one for one in tools if one.kind != "provider"])
    return tuple([one for one in tools if one.kind != "provider" or one.name not in guarded])
