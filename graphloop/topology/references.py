"""References: the names that a file speaks of, refused where they name nothing.

A rule about a misspelt tool protects nothing, and a stop condition about one never holds. So the
reader looks the names up as soon as it knows all tools; if the file names no tools, the run looks
them up. An `ignore` entry must name a node that exists: `agent/node` is a node of an agent, and
`agent/` is the agent as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, final

from pydantic import Field, TypeAdapter

from ..agent import AgentTool
from ..errors import nearest
from ..graph import NodeGraph
from ..limits import HasToolCall, parts_of
from ..node_protocol import Node, unwrapped
from ..nodes import Gate, PrepareStep, StopCheck
from ..outcomes import Outcome
from ..policy import NARROWER, WILDCARDS, Rule, shadowed
from ..tools import legal_name
from .conditions import VERDICTS
from .diagnostics import ParseError
from .document import AgentEntry, Document, documents_below, graphs_run
from .models import Form, Reading, Said, model_of, parse, parse_fields
from .registration import RegisteredNames
from .tree import Entry, Fields, Items, Mark, Scalar, Value, entry_at, value_at

__all__ = [
    "CODES",
    "Declared",
    "IgnoreForm",
    "brought_tools",
    "conditional_rules",
    "known_tools",
    "lost",
    "note_uncallable",
    "note_unknown_tools",
    "read_ignored",
]

CODES: Final = tuple([f"GL{number}" for number in range(1, 14)])
"""The findings that may be set aside."""
SPELLED: Final = "tool:"
"""How temporal rules spell a tool."""

Near: TypeAlias = Callable[[str, Iterable[str]], str]
"""Suggests the nearest of some names."""

MANY: Final[Form] = list
IGNORE: Final = model_of(
    "ignore", {"node": Said, "code": Literal[CODES], "reason": Said}, ["code", "reason"]
)
IgnoreForm: Final[Form] = Annotated[MANY[IGNORE.form], Field(min_length=1)]
LISTED: Final = TypeAdapter(Annotated[list[object], Field(min_length=1)])


@final
@dataclass(frozen=True)
class Declared:
    """The nodes, agents and tools of a file; an unread node is None."""

    nodes: Mapping[str, Node[Any, Outcome] | None]
    agents: Mapping[str, AgentEntry]
    tools: Sequence[str] = ()

    @classmethod
    def by(cls, document: Document) -> Declared:
        """Return the names that a document declares."""
        return cls(document.graph.nodes, document.agents, document.tools)

    def with_agents(self) -> Iterator[Declared]:
        """Yield these, and those of the agents at any depth."""
        yield self
        yield from map(Declared.by, documents_below(self.agents))


def known_tools(document: Document, names: RegisteredNames) -> tuple[str, ...] | None:
    """Return the tools of a file's runs; None if runs bring them."""
    given = any(entry.document is None for entry in document.agents.values())
    if given or not document.tools:
        return None
    return tuple(brought_tools(Declared.by(document), names))


def brought_tools(declared: Declared, names: RegisteredNames) -> dict[str, None]:
    """Return the tools of a file and of its agents, each once."""
    known: dict[str, None] = {}
    for part in declared.with_agents():
        known |= dict.fromkeys(part.tools)
        for name in part.tools:
            # A registered tool that is an agent has tools of its own.
            found: object = None if name in part.agents else names.find("tool", name)
            if isinstance(found, AgentTool):
                known |= dict.fromkeys(found.opener.terms.tool_names)
    return known


def conditional_rules(nodes: Iterable[Node[Any, Outcome]]) -> list[Rule]:
    """Return the rules of gates that name a predicate."""
    gates = [node for node in unwrapped(nodes) if isinstance(node, Gate)]
    return [rule for gate in gates for rule in gate.rules if rule.condition]


def note_uncallable(value: Value, declared: Declared, unread: Collection[str], to: Reading) -> None:
    """Note tools that stand there twice, and agents that models cannot call."""
    tools = declared.tools
    if len(set(tools)) < len(tools):
        found = f"`tools`: a tool stands here twice: {', '.join(tools)}."
        to.diagnostics.note(value.mark, found, "remove one of the two.")
    for name in tools:
        agent = None if name in unread else declared.agents.get(name)
        if agent is None:
            continue
        if agent.document is None or not agent.description:
            found = f"agent {name!r} is called as a tool, and models know nothing of it."
            fix = "give it a `description`; one that is `given` is no tool of the file."
            to.diagnostics.note(value.mark, found, fix)
        if (legal := legal_name(name)) != name:
            found = f"agent {name!r:.60} is called as a tool, and no tool can have that name."
            to.diagnostics.note(value.mark, found, f"name it {legal!r}.")


def note_unknown_tools(value: Value, declared: Declared, to: Reading) -> None:
    """Note names of no tool in nodes, and rules that protect none.

    The rules of a gate hold of all runs below as well, other options of the run itself.
    """
    callable_below = _callable_below(declared, to)
    for name, node in declared.nodes.items():
        for part in () if node is None else unwrapped([node]):
            written = value_at(value, (name,))
            _note_names(part, written, declared.tools, callable_below, to)
            for rule, problem in (
                shadowed(part.rules, callable_below or ()) if isinstance(part, Gate) else ()
            ):
                marks = [mark for tool in rule.tools for mark in _places(written, VERDICTS, tool)]
                mark = marks[-1] if marks else written.mark
                to.diagnostics.note(mark, problem.rstrip("."), NARROWER)


def _callable_below(declared: Declared, to: Reading) -> dict[str, None] | None:
    """Return the tools of all runs; None where the file cannot know."""
    if not declared.tools or None in declared.nodes.values():
        return None
    known = {**brought_tools(declared, to.names), **dict.fromkeys(declared.agents)}
    for part in declared.with_agents():
        if any(entry.document is None for entry in part.agents.values()):
            return None
        for name, graph in graphs_run([node for node in part.nodes.values() if node]).items():
            brought = None if graph is None else graph.tool_names
            if name not in part.agents and brought is None:
                return None
            known |= dict.fromkeys(brought or ())
    return known


def _note_names(
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
    """Yield the tools that a node names, with their options.

    A gate's rule has none.
    """
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


def read_ignored(value: Value, known: Declared, to: Reading) -> dict[tuple[str, str], str]:
    """Return the reasons by node and code; problems are noted.

    Raises:
        ParseError: the value is no list, or an empty one.
    """
    parse(LISTED, value, to, "ignore")
    ignored: dict[tuple[str, str], str] = {}
    first: dict[tuple[str, str], Mark] = {}
    for item in value.items if isinstance(value, Items) else ():
        match entry_at(item, "node"):
            case Entry(value=Scalar(str(path), mark)) if wrong := lost(
                path, known, to.diagnostics.nearest
            ):
                to.diagnostics.note(mark, *wrong)
            case _:
                pass
        try:
            said = parse_fields(IGNORE, item, to, "ignore")
        except ParseError:
            continue
        place = node, code = said.get("node", ""), said["code"]
        if first.setdefault(place, item.mark) is not item.mark:
            of = repr(node) if node else "the graph"
            found = f"{code} of {of} is set aside twice, first on line {first[place].line}."
            to.diagnostics.note(item.mark, found, "remove one of the two.")
        ignored[place] = said["reason"]
    return ignored


def lost(path: str, known: Declared, near: Near = nearest) -> tuple[str, str] | None:
    """Return the problem of a node's name and its fix, if any."""
    *agents, node = path.split("/")
    within = ""
    here: Declared | NodeGraph[Any] = known
    for name in agents:
        if isinstance(here, Declared) and name in here.tools and name not in here.agents:
            return None  # A registered tool may be an agent.
        below = _below(here)
        if name not in below:
            what = "runs no agent" if name in here.nodes else "is no agent"
            hint = "" if name in here.nodes else near(name, [*below, *here.nodes])
            found = f"{name!r}{within} {what}, so nothing stands below it.{hint}"
            return found, f"name one of the agents: {', '.join(below) or 'there are none'}."
        inner = below[name]
        if inner is None:
            return None
        here, within = inner, f" of the agent {name!r}"
    if node in here.nodes or (agents and not node):
        return None
    hint = near(node, here.nodes)
    fix = "name one of the nodes."
    if node in _below(here):
        fix = f"write '{path}/' for the agent as a whole, or '{path}/node' for a node of it."
    return f"there is no node {node!r}{within}.{hint}", fix


def _below(here: Declared | NodeGraph[Any]) -> dict[str, Declared | NodeGraph[Any] | None]:
    """Return the agents of nodes and models; None for unknown graphs."""
    below: dict[str, Declared | NodeGraph[Any] | None] = {
        **graphs_run([node for node in here.nodes.values() if node])
    }
    if isinstance(here, NodeGraph):
        return {**below, **here.agents}
    documents = {name: entry.document for name, entry in here.agents.items()}
    return below | {
        name: None if one is None else Declared.by(one) for name, one in documents.items()
    }
