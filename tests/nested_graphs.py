"""Graphs that run graphs that run graphs: deep ones, and ones that are used in many places."""

from __future__ import annotations

from graphloop.agent.graph import Graph
from graphloop.graph import END, Edges
from graphloop.nodes import Append, Execute, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Calls, Failed, Final, Ready
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.providers.script import ScriptedModel

__all__ = ["nest", "shared", "ungated"]


def nest(inner: Graph[None], deep: int) -> Graph[None]:
    """Return a graph as the only thing that another does, so many times over."""
    for number in range(deep):
        node, append = sub_graph(inner, name=f"k{number}", model=ScriptedModel([])), Append()
        edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
        inner = Graph(f"g{number}", node, edges)
    return inner


def ungated() -> Graph[None]:
    """Return a graph whose tools run without a gate."""
    prepare, model, execute, append = PrepareStep(), ModelCall(), Execute(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: execute, ...: END},
        model: {Calls: execute, Failed: END, ...: append},
        execute: {...: append},
        append: {...: END},
    }
    return Graph("bad", prepare, edges)


def shared(inner: Graph[None], levels: int) -> Graph[None]:
    """Return graphs that each run the one below in two places."""
    for level in range(levels):
        first, second = (
            sub_graph(inner, name=f"c{level}-{at}", model=ScriptedModel([])) for at in range(2)
        )
        append, last = Append(), Append("last")
        edges: Edges[None] = {
            first: {Answered: append, ...: END},
            append: {Final: second, ...: END},
            second: {Answered: last, ...: END},
            last: {...: END},
        }
        inner = Graph(f"g{level}", first, edges)
    return inner
