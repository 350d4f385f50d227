"""Watched: the temporal rules that a run is given, and what they mean for its child runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ..graph import Graph
from ..policy import Policy, allow, deny
from ..temporal import Rules, TemporalRule, rules_of
from ..temporal_names import guarded_tools, names_of, resolve
from .options import RunOptions

__all__ = ["beyond_watch", "watched"]

S = TypeVar("S")

REASON = "a rule of the run above bounds it"


def watched(options: RunOptions, graph: Graph[S], tools: Iterable[str]) -> tuple[TemporalRule, ...]:
    """Return the temporal rules of a run, every word of them looked up.

    Raises:
        ConfigError: a word means nothing, or more than one thing.
    """
    rules = graph.rules & rules_of(options.get("rules", ()))
    return resolve(rules, names_of(graph, tools)).rules if rules else ()


def beyond_watch(rules: tuple[TemporalRule, ...]) -> tuple[Policy, ...]:
    """Return the gate that keeps a child run from the tools that its parent's rules bound.

    What happens in a child is not counted above it, so nothing there could be allowed.
    """
    tools = guarded_tools(Rules(rules))
    if not tools:
        return ()
    if "*" in tools:
        return (deny("*", reason=REASON),)
    return (deny(*tools, reason=REASON) | allow("*"),)
