"""Ruled tools: the names of tools that a file's nodes speak of, refused where no tool has them.

A rule about a name that is misspelt protects nothing, a stop condition never holds, and nothing is
on offer; so the names are looked up as soon as all tools are known; those of a file that leaves its
tools to its runs, when a run begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..node_protocol import Node, unwrapped
from ..nodes.gate import Gate
from ..outcomes import Outcome
from ..policy import NARROWER, WILDCARDS, shadowed
from .document import AgentEntry, Document, documents_below
from .forms import NamedTool, Reading
from .included import graphs_run
from .registration import Names

__all__ = ["brought_tools", "known_tools", "refuse_unruled"]

SPELLED: Final = "tool:"
"""How temporal rules spell a tool."""


def refuse_unruled(
    ruled: Sequence[NamedTool],
    tools: Sequence[str],
    agents: Mapping[str, AgentEntry],
    nodes: Mapping[str, Node[Any, Outcome] | None],
    to: Reading,
) -> None:
    """Note the names of no tool, and the rules that protect none, if the file knows its tools.

    Args:
        ruled: what the file's nodes name: rules those of all runs below as well, other options
            those of the run itself.
        tools: the tools of the file.
        agents: its agents.
        nodes: its nodes; None for one that could not be read.
        to: takes what is wrong.
    """
    below = _known(tools, agents, nodes, to)
    for name, mark, option in ruled:
        known = (tools or None) if option else below
        if known is None or name in known or not (option or WILDCARDS.isdisjoint(name)):
            continue
        hint = to.complaints.nearest(name.strip().removeprefix(SPELLED), known)
        says = f"`{option}`" if option else "the rule"
        found = f"{says} names {name!r}, and there is no such tool.{hint}"
        fix = (
            "or register that tool, and list it under `tools`."
            if option
            else "for tools that a run brings, or none yet, write a pattern, such as "
            f"{name + '*'!r}."
        )
        to.complaints.note(mark, found, f"name one of {', '.join(known)}; {fix}")
    for gate in unwrapped([one for one in nodes.values() if one is not None]):
        for rule, problem in shadowed(gate.rules, below or ()) if isinstance(gate, Gate) else ():
            marks = [mark for name, mark, option in ruled if not option and name in rule.tools]
            to.complaints.note(marks[-1], problem.rstrip("."), NARROWER)


def known_tools(document: Document, names: Names) -> tuple[str, ...] | None:
    """Return the tools that a file's runs may call, and those below; None if runs bring them all.

    Args:
        document: the file.
        names: what is registered.
    """
    given = any(one.document is None for one in document.agents.values())
    if given or not document.tools:
        return None
    return tuple(brought_tools(document.tools, document.agents, names))


def brought_tools(
    tools: Sequence[str], agents: Mapping[str, AgentEntry], names: Names
) -> dict[str, None]:
    """Return the tools of a file, and those that its agents bring, at any depth, each once."""
    below = documents_below(agents)
    known: dict[str, None] = {}
    for own, own_agents in ((tools, agents), *[(one.tools, one.agents) for one in below]):
        known |= dict.fromkeys(own)
        for name in own:
            # A registered tool that is an agent has tools of its own.
            found: object = None if name in own_agents else names.find("tool", name)
            opener: object = getattr(found, "opener", None)
            known |= dict.fromkeys(getattr(opener, "tool_names", ()))
    return known


def _known(
    tools: Sequence[str],
    agents: Mapping[str, AgentEntry],
    nodes: Mapping[str, Node[Any, Outcome] | None],
    to: Reading,
) -> dict[str, None] | None:
    """Return the tools of the runs and of those below them; None where the file cannot know."""
    known_nodes = [one for one in nodes.values() if one is not None]
    run = _run_tools(agents, known_nodes)
    if not tools or run is None or len(known_nodes) < len(nodes):
        return None
    return {**brought_tools(tools, agents, to.names), **dict.fromkeys(agents), **run}


def _run_tools(
    agents: Mapping[str, AgentEntry], nodes: Iterable[Node[Any, Outcome]]
) -> dict[str, None] | None:
    """Return the tools of graphs that nodes bring along, at any depth; None if one is not known."""
    below = [(one.agents, list(one.graph.nodes.values())) for one in documents_below(agents)]
    known: dict[str, None] = {}
    for own, own_nodes in ((agents, nodes), *below):
        if any(one.document is None for one in own.values()):
            return None
        for name, graph in graphs_run(own_nodes).items():
            brought = None if graph is None else graph.tool_names
            if name not in own and brought is None:
                return None
            known |= dict.fromkeys(brought or ())
    return known
