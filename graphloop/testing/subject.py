"""Subject: the graph that is fuzzed, with the input of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Final, Generic, TypeVar, cast, final
from zlib import crc32

from ..agent import Agent, AgentOptions, Graph, RunTerms, ToolInput, Tools, split_tools
from ..conversation import Compaction
from ..errors import ConfigError
from ..events import Setup
from ..graph import NodeGraph, names_of
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import WILDCARDS, Rule, allow, ask, deny
from ..proofs import graph_given
from ..providers import ScriptedModel
from ..rules import AtMost, Rules, TemporalRule, resolve_words, rules_of, words_of
from ..tools import Tool, Toolbox
from ..topology import Topology
from ..values import Message, ToolKind, ToolSpec, UserMessage, evolve

__all__ = ["RULES_MARK", "Subject", "furnished", "invented_tools", "rules_of_gate", "subject_of"]

S = TypeVar("S")

RULES_MARK: Final = 0xFFFF
"""The bits of a mark for the rules; the other bits are for the table and the tools."""

NO_RULES: Final = Rules()
SCHEMA: Final = {"type": "object", "properties": {"text": {"type": "string"}}}
INVENTED: Final[Mapping[str, ToolKind]] = {
    "read": "function",
    "write": "function",
    "device": "client",
    "helper": "agent",
}


@final
@dataclass(frozen=True)
class Subject(Generic[S]):
    """The graph that is fuzzed, with the input of its runs.

    Args:
        graph: the topology.
        state: the state that each run begins with.
        setup: the tools on offer, and the bounds of each run.
        rules: temporal rules, with every word resolved.
        messages: the conversation that each run begins with.
        iterated: whether a caller may iterate its runs, as `Agent.iter` does.
        approvals: by the name of a tool, whether a person is asked about every call, or about no
            call. A tool with a predicate is missing here, and so is an invented one.
    """

    graph: NodeGraph[S]
    state: S
    setup: Setup
    rules: Rules = NO_RULES
    messages: tuple[Message, ...] = (UserMessage("Go."),)
    iterated: bool = False
    approvals: Mapping[str, bool] = field(default_factory=dict[str, bool])

    @property
    def mark(self) -> int:
        """A checksum of the table and the tools, and another of the rules."""
        table = [
            self.graph.name,
            self.graph.start,
            [[edge.source, edge.outcome, edge.target] for edge in self.graph.edges],
            [[tool.name, tool.kind, tool.parameters] for tool in self.setup.tools],
            sorted(self.approvals.items()),
        ]
        rules = sorted([type(rule).__name__, *_terms(rule)] for rule in self.rules)
        halves = [crc32(dumps(content).encode()) & RULES_MARK for content in (table, rules)]
        return halves[0] << 16 | halves[1]


def subject_of(
    subject: Agent | NodeGraph[Any],  # The state may be of any type.
    tools: Tools = (),
    state: object = None,
    rules: Rules | Iterable[Rules] = (),
) -> Subject[Any]:
    """Return a graph or an agent as a subject; the arguments are those of `fuzz`.

    Raises:
        ConfigError: a rule, a tool or the state cannot work, or `subject` is no graph.
    """
    added = rules_of(rules)
    if isinstance(subject, Agent):
        if tools:
            raise ConfigError("tools: expected none, an agent has its own. Fix: leave them out.")
        agent = furnished(subject)
        graph: NodeGraph[Any] = agent.graph
        terms = agent.as_tool(name="fuzzed").opener.terms
        assert isinstance(terms, RunTerms), "an agent's runs start with terms of its own"
        setup, toolbox = terms.setup, terms.world.toolbox
    else:
        graph = graph_given("fuzz", subject)
        brought = graph.with_tools(tools) if isinstance(graph, Topology) else tools
        toolbox = Toolbox(split_tools(brought)[0])
        invented = () if tools else invented_tools(graph, graph.rules & added)
        others = [tool for tool in invented if toolbox.get(tool.name) is None]
        setup = Setup("model", (*toolbox.specs, *others))
    names = names_of(graph, [tool.name for tool in setup.tools])
    kept = resolve_words(graph.rules, names)
    setup = evolve(setup, watch=(Rules(setup.watch) & kept).rules)
    known = resolve_words(added, names) & kept
    iterated = isinstance(subject, Agent)
    asked = {
        spec.name: tool.needs_approval for spec in toolbox.specs if (tool := toolbox.get(spec.name))
    }
    approvals = {name: asks for name, asks in asked.items() if isinstance(asks, bool)}
    state = _state(graph) if state is None else state
    return Subject(graph, state, setup, known, iterated=iterated, approvals=approvals)


def _state(graph: NodeGraph[Any]) -> object:
    """Return a state of the graph's type, made without arguments; None without a type."""
    kind = graph.state_type if isinstance(graph, Graph) else None
    if not isinstance(kind, type):
        return None
    try:
        made: object = kind()
    except TypeError as error:
        raise ConfigError(
            f"graph {graph.name!r}: expected a state type that is made without arguments, "
            f"found {kind.__name__} ({error}). Fix: give one with `state=`."
        ) from error
    return made


def furnished(agent: Agent) -> Agent:
    """Return an agent with tools; if it has none, it gets some, and each option that it lacks.

    Most decisions of the standard loop concern calls: denied, asked about, answered by a client or
    by a child run. Without tools, none of these would be fuzzed.
    """
    if agent.options.get("tools"):
        return agent
    asked = {"read": False, "list": False, "erase": False, "pay": False, "write": True}
    helper = Agent(ScriptedModel(()))
    tools: list[ToolInput] = [
        *[
            Tool(name=name, parameters=SCHEMA, execute=_played, needs_approval=always)
            for name, always in asked.items()
        ],
        Tool(name="spend", parameters=SCHEMA, execute=_played, needs_approval=_played),
        Tool(name="device", parameters=SCHEMA),
        helper.as_tool(name="helper"),
        helper.as_tool(name="successor", takes_over=True),
    ]
    options: AgentOptions = {
        "gate": deny("erase") | ask("pay", when=_played) | ask("list") | allow("*"),
        "max_steps": 6,
        "compaction": Compaction(context_window=1_000, keep_recent_turns=1),
        "verify": _played,
        **agent.options,
        "tools": tools,
    }
    return agent.with_options(**options)


def _played(*_: object) -> bool:
    raise AssertionError("an adversary answers in place of every function")


def invented_tools(graph: NodeGraph[Any], rules: Rules = NO_RULES) -> tuple[ToolSpec, ...]:
    """Return tools for a graph without tools: at least one of each kind.

    The tools that its gates and the rules name are among them: otherwise no rule would apply.
    """
    kinds = dict(INVENTED)
    gates = [rule for node in graph.nodes.values() for rule in rules_of_gate(node)]
    named = [name for rule in gates for name in rule.tools if WILDCARDS.isdisjoint(name)]
    for name in (*named, *_tools_in(rules)):
        kinds.setdefault(name, "function")
    return tuple([ToolSpec(name, f"{name}.", dumps(SCHEMA), kind) for name, kind in kinds.items()])


def rules_of_gate(node: Node[Any, Outcome]) -> tuple[Rule, ...]:
    """Return the rules of a gate; for any other node, none."""
    rules: object = getattr(node, "rules", ())
    if node.kind != "gate" or not isinstance(rules, tuple):
        return ()
    items = cast("tuple[object, ...]", rules)  # isinstance cannot tell the type of the items.
    return tuple([rule for rule in items if isinstance(rule, Rule)])


def _tools_in(rules: Rules) -> Iterator[str]:
    for rule in rules:
        for word in words_of(rule):
            kind, _, name = word.partition(":")
            if kind in {"tool", "approval"} and name and name != "*":
                yield name


def _terms(rule: TemporalRule) -> Iterator[str]:
    """Yield the terms of a rule without its reason, because a reason changes no run."""
    yield from map(str, words_of(rule))
    yield str(rule.times) if isinstance(rule, AtMost) else ""
