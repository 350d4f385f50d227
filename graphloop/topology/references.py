"""References: check that the names in a document's rules refer to tools, nodes or outcomes.

A rule about a misspelt tool protects nothing, so the reader refuses such a rule. Names in stop
conditions, options and `ignore` are checked later, by the checker or when a run starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from ..agent import AgentTool
from ..errors import ConfigError
from ..graph import NodeGraph, names_of
from ..node_protocol import unwrapped
from ..nodes import Gate
from ..policy import NARROWER, Rule, shadowed, unmatched
from ..rules import Rules, TemporalRule, resolve_words, spelled_tools
from ..tools import legal_name
from .diagnostics import Diagnostics
from .document import AnyNode, Document, graphs_run, nested_documents
from .registration import Registry
from .servers import served_tools
from .tree import Mark, Value, value_at

__all__ = [
    "conditional_rules",
    "known_tools",
    "note_gate_rules",
    "note_rules",
    "note_tools",
    "refuse_unknown_words",
]


def known_tools(document: Document, registry: Registry) -> tuple[str, ...] | None:
    """Return the names of all tools of a file and its agents; None if a run may add others."""
    is_open = any(entry.document is None for entry in document.agents.values())
    return None if is_open or not document.tools else (*_brought_tools(document, registry),)


def _brought_tools(document: Document, registry: Registry) -> dict[str, None]:
    """Return the tool names of a file and of its agents as the ordered keys of a dict."""
    tools: dict[str, None] = {}
    for part in (document, *nested_documents(document.agents)):
        tools |= dict.fromkeys(part.tools)
        for name in part.tools:
            # A registered tool that is an agent has tools of its own.
            tool = None if name in part.agents else registry.get("tool", name)
            if isinstance(tool, AgentTool):
                tools |= dict.fromkeys(tool.opener.terms.tool_names)
    return tools


def conditional_rules(nodes: Iterable[AnyNode]) -> list[Rule]:
    """Return the rules with a predicate from all gates among these nodes."""
    gates = [node for node in unwrapped(nodes) if isinstance(node, Gate)]
    return [rule for gate in gates for rule in gate.rules if rule.condition]


def refuse_unknown_words(
    rules: Rules, graph: NodeGraph[Any], document: Document, registry: Registry
) -> None:
    """Check that each word in temporal rules has exactly one meaning in the graph.

    A rule may name a tool that only a run adds, as `tool:name`.

    Raises:
        ConfigError: a word is unknown or ambiguous; the error lists every such word.
    """
    tools = (*_brought_tools(document, registry), *spelled_tools(rules)) if document.tools else None
    resolve_words(rules, names_of(graph, tools))


def note_rules(
    rules: Mapping[TemporalRule, Mark],
    document: Document,
    registry: Registry,
    diagnostics: Diagnostics,
) -> None:
    """Report each temporal rule that contains an unknown or ambiguous word."""
    for rule, mark in rules.items():
        try:
            refuse_unknown_words(Rules((rule,)), document.graph, document, registry)
        except ConfigError as error:
            problem, _, fix = str(error).partition(" Fix: ")
            diagnostics.note(mark, problem, fix or "mend the rule.")


def note_tools(tree: Value, document: Document, diagnostics: Diagnostics) -> None:
    """Report duplicate names of tools, and agents in `tools` that a model cannot call."""
    value = value_at(tree, ("tools",))
    listed, of_servers = document.listed_tools, served_tools(document.servers)
    if len(set(listed)) < len(listed):
        problem = f"`tools`: a tool stands here twice: {', '.join(listed)}."
        diagnostics.note(value.mark, problem, "remove one of the two.")
    known = Counter(chain(set(listed), document.agents.keys() - set(listed), of_servers))
    if twice := [name for name in dict.fromkeys(of_servers) if known[name] > 1]:
        problem = f"`mcp`: two tools have the name {twice[0]!r}."
        fix = "give each server a `prefix` of its own."
        diagnostics.note(value_at(tree, ("mcp",)).mark, problem, fix)
    for name in document.tools:
        agent = document.agents.get(name)
        if agent is None:
            continue
        if agent.document is None or not agent.description:
            problem = f"agent {name!r} is called as a tool, and models know nothing of it."
            fix = "give it a `description`; a `given` agent is no tool of the file."
            diagnostics.note(value.mark, problem, fix)
        if (legal := legal_name(name)) != name:
            problem = f"agent {name!r:.60} is called as a tool, and no tool can have that name."
            diagnostics.note(value.mark, problem, f"name it {legal!r}.")


def note_gate_rules(
    nodes: Value, document: Document, registry: Registry, diagnostics: Diagnostics
) -> None:
    """Report each gate rule that is unreachable or names an unknown tool.

    A gate's rules also apply to child runs, so a rule may name a tool of an agent.
    """
    tools = _callable_tools(document, registry)
    if tools is None:
        return
    for gate in [node for node in document.graph.nodes.values() if isinstance(node, Gate)]:
        idle = dict(shadowed(gate.rules, tools))
        for at, rule in enumerate(gate.rules):
            place = (gate.name, "rules", at, rule.verdict)
            if rule in idle:
                mark = value_at(nodes, (*place, 0)).mark
                diagnostics.note(mark, idle[rule].rstrip("."), NARROWER)
            for tool in unmatched([rule], tools):
                mark = value_at(nodes, (*place, rule.tools.index(tool))).mark
                hint = diagnostics.nearest(tool.strip().removeprefix("tool:"), tools)
                diagnostics.note(
                    mark,
                    f"the rule names {tool!r}, and there is no such tool.{hint}",
                    f"name one of {', '.join(tools)}; for tools that a run brings, or none "
                    f"yet, write a pattern, such as {tool + '*'!r}.",
                )


def _callable_tools(document: Document, registry: Registry) -> Collection[str] | None:
    """Return the tools that a run or its child runs can call; None if they are unknown."""
    if not document.tools:
        return None
    tools = {**_brought_tools(document, registry), **dict.fromkeys(document.agents)}
    for part in (document, *nested_documents(document.agents)):
        if any(entry.document is None for entry in part.agents.values()):
            return None
        for name, graph in graphs_run(part.graph.nodes.values()).items():
            brought = None if graph is None else graph.surroundings.tool_names
            if name not in part.agents and brought is None:
                return None
            tools |= dict.fromkeys(brought or ())
    return tools
