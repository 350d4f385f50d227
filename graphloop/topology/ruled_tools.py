"""Ruled tools: the names of tools that a file's nodes speak of, refused where no tool has them.

A rule about a name that is misspelt protects nothing, a stop condition never holds, and nothing is
on offer; so the names are looked up as soon as all tools are known; those of a file that leaves its
tools to its runs, when a run begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..agent import AgentTool, graph_of
from ..graph import NodeGraph
from ..limits import HasToolCall, parts_of
from ..node_protocol import Node, unwrapped
from ..nodes import Gate, PrepareStep, StopCheck
from ..outcomes import Outcome
from ..policy import NARROWER, WILDCARDS, shadowed
from .conditions import VERDICTS
from .document import AgentEntry, Document, documents_below
from .included import graphs_run
from .models import Reading
from .registration import RegisteredNames
from .table import Nodes
from .tree import Fields, Items, Mark, Scalar, Value, value_at

__all__ = ["brought_tools", "known_tools", "refuse_unruled", "registered_agents", "tell_document"]

SPELLED: Final = "tool:"
"""How temporal rules spell a tool."""


def refuse_unruled(
    value: Value,
    tools: Sequence[str],
    agents: Mapping[str, AgentEntry],
    nodes: Nodes,
    to: Reading,
) -> None:
    """Note the names of no tool, and the rules that protect none, if the file knows its tools.

    The rules of a gate hold of all runs below as well, other options of the run itself.

    Args:
        value: what stands at `nodes`.
        tools: the tools of the file.
        agents: its agents.
        nodes: its nodes.
        to: takes what is wrong.
    """
    below = _known(tools, agents, nodes, to)
    for name, node in nodes.items():
        for part in () if node is None else unwrapped([node]):
            written = value_at(value, (name,))
            _refuse_names(part, written, tools, below, to)
            for rule, problem in (
                shadowed(part.rules, below or ()) if isinstance(part, Gate) else ()
            ):
                marks = [mark for tool in rule.tools for mark in _places(written, VERDICTS, tool)]
                mark = marks[-1] if marks else written.mark
                to.diagnostics.note(mark, problem.rstrip("."), NARROWER)


def _refuse_names(
    node: object, written: Value, tools: Sequence[str], below: Collection[str] | None, to: Reading
) -> None:
    for name, option in dict.fromkeys(_named(node)):
        known = (tools or None) if option else below
        if known is None or name in known or not (option or WILDCARDS.isdisjoint(name)):
            continue
        hint = to.diagnostics.nearest(name.strip().removeprefix(SPELLED), known)
        says = f"`{option}`" if option else "the rule"
        found = f"{says} names {name!r}, and there is no such tool.{hint}"
        fix = (
            "or register that tool, and list it under `tools`."
            if option
            else "for tools that a run brings, or none yet, write a pattern, such as "
            f"{name + '*'!r}."
        )
        for mark in _places(written, {option} if option else VERDICTS, name):
            to.diagnostics.note(mark, found, f"name one of {', '.join(known)}; {fix}")


def _named(node: object) -> Iterator[tuple[str, str]]:
    """Yield the tools that a node names, each with the option that does; "" is a gate's rule."""
    match node:
        case Gate():
            yield from [(tool, "") for rule in node.rules for tool in rule.tools]
        case PrepareStep():
            yield from [(tool, "active_tools") for tool in node.active_tools or ()]
            if node.tool_choice.name:
                yield node.tool_choice.name, "tool_choice"
        case StopCheck():
            parts = [part for condition in node.conditions for part in parts_of(condition)]
            yield from [(part.tool, "has_tool_call") for part in parts if type(part) is HasToolCall]
        case _:
            pass


def _places(
    value: Value, keys: Collection[str], name: str, *, is_below: bool = False
) -> Iterator[Mark]:
    """Yield the places of a name below one of some keys."""
    match value:
        case Scalar():
            if is_below and value.value == name:
                yield value.mark
        case Items():
            for item in value.items:
                yield from _places(item, keys, name, is_below=is_below)
        case Fields():
            for entry in value.entries:
                yield from _places(entry.value, keys, name, is_below=is_below or entry.key in keys)


def known_tools(document: Document, names: RegisteredNames) -> tuple[str, ...] | None:
    """Return the tools that a file's runs may call, and those below; None if runs bring them all.

    Args:
        document: the file.
        names: what is registered.
    """
    given = any(entry.document is None for entry in document.agents.values())
    if given or not document.tools:
        return None
    return tuple(brought_tools(document.tools, document.agents, names))


def brought_tools(
    tools: Sequence[str], agents: Mapping[str, AgentEntry], names: RegisteredNames
) -> dict[str, None]:
    """Return the tools of a file, and those that its agents bring, at any depth, each once."""
    below = documents_below(agents)
    known: dict[str, None] = {}
    for own, own_agents in (
        (tools, agents),
        *[(document.tools, document.agents) for document in below],
    ):
        known |= dict.fromkeys(own)
        for name in own:
            # A registered tool that is an agent has tools of its own.
            found: object = None if name in own_agents else names.find("tool", name)
            if isinstance(found, AgentTool):
                known |= dict.fromkeys(found.opener.terms.tool_names)
    return known


def _known(
    tools: Sequence[str],
    agents: Mapping[str, AgentEntry],
    nodes: Nodes,
    to: Reading,
) -> dict[str, None] | None:
    """Return the tools of the runs and of those below them; None where the file cannot know."""
    known_nodes = [node for node in nodes.values() if node is not None]
    run = _run_tools(agents, known_nodes)
    if not tools or run is None or len(known_nodes) < len(nodes):
        return None
    return {**brought_tools(tools, agents, to.names), **dict.fromkeys(agents), **run}


def _run_tools(
    agents: Mapping[str, AgentEntry], nodes: Iterable[Node[Any, Outcome]]
) -> dict[str, None] | None:
    """Return the tools of graphs that nodes bring along, at any depth; None if one is not known."""
    below = [(each.agents, list(each.graph.nodes.values())) for each in documents_below(agents)]
    known: dict[str, None] = {}
    for own, own_nodes in ((agents, nodes), *below):
        if any(entry.document is None for entry in own.values()):
            return None
        for name, graph in graphs_run(own_nodes).items():
            brought = None if graph is None else graph.tool_names
            if name not in own and brought is None:
                return None
            known |= dict.fromkeys(brought or ())
    return known


def tell_document(graph: NodeGraph[Any], document: Document, names: RegisteredNames) -> None:
    """Tell the graph of a file the options that its file says, with its registered tools."""
    found = {name: names.find("tool", name) for name in document.tools}
    tools = {name: one.tool if isinstance(one, AgentTool) else one for name, one in found.items()}
    graph.run_options = {
        "description": document.description,
        "instructions": document.instructions,
        "prompt": document.prompt,
        "tools": tools,
        "agents": {name: one.description for name, one in document.agents.items()},
    }


def registered_agents(
    tools: Iterable[str], names: RegisteredNames
) -> dict[str, NodeGraph[Any] | None]:
    """Return the graphs of those among the registered tools that are agents."""
    found = {name: names.find("tool", name) for name in tools}
    return {name: graph_of(one.opener) for name, one in found.items() if isinstance(one, AgentTool)}
