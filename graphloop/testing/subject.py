"""Subject: the graph to fuzz, with the state, tools, rules and messages of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Final, Generic, TypeVar, cast, final
from zlib import crc32

from ..agent import Agent, Graph, ToolInput, Tools, split_tools
from ..conversation import Compaction
from ..errors import ConfigError
from ..events import Setup
from ..graph import NodeGraph, names_of
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import WILDCARDS, Rule, allow, ask, deny
from ..providers import ScriptedModel
from ..rules import AtMost, Rules, TemporalRule, resolve_words, rules_of, words_of
from ..tools import Tool, Toolbox
from ..topology import Topology
from ..values import Message, ToolKind, ToolSpec, UserMessage, evolve

__all__ = ["RULES_MARK", "Subject", "furnished", "invented_tools", "rules_of_gate", "subject_of"]

S = TypeVar("S")

RULES_MARK: Final = 0xFFFF
"""The bits of `Subject.mark` that hold the checksum of the rules."""

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
    """The graph to fuzz, with the state, tools, rules and messages of its runs.

    Args:
        graph: the graph to fuzz.
        state: the user's state at the start of each run.
        setup: the tools that models can call, and the limits of each run.
        rules: the temporal rules, with the names in them resolved to nodes and tools.
        messages: the input messages of each run.
        iterated: whether a caller may iterate the runs, as `Agent.iter` does.
        approvals: maps the name of a tool to whether every call of it needs an approval. Sample
            tools, and tools that decide by a predicate, are missing.
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
        """A checksum of the graph's table and tools (high bits) and of the rules (low bits)."""
        table = [
            self.graph.name,
            self.graph.start,
            [[edge.source, edge.outcome, edge.target] for edge in self.graph.edges],
            [[tool.name, tool.kind, tool.parameters] for tool in self.setup.tools],
            sorted(self.approvals.items()),
        ]
        rules = sorted([type(rule).__name__, *_rule_terms(rule)] for rule in self.rules)
        halves = [crc32(dumps(content).encode()) & RULES_MARK for content in (table, rules)]
        return halves[0] << 16 | halves[1]


def subject_of(
    subject: Agent[Any, Any] | NodeGraph[Any],  # The state may be of any type.
    tools: Tools = (),
    state: object = None,
    rules: Rules | Iterable[Rules] = (),
) -> Subject[Any]:
    """Build the `Subject` to fuzz from a graph or an agent; the arguments are those of `fuzz`.

    Raises:
        ConfigError: a rule, a tool or the state is invalid.
    """
    added = rules_of(rules)
    if isinstance(subject, Agent):
        if tools:
            raise ConfigError("`tools`: expected none: an agent has its own. Fix: leave it out.")
        agent = furnished(subject)
        graph: NodeGraph[Any] = agent.graph
        terms = agent.as_tool(name="fuzzed").opener.terms
        setup, toolbox = terms.setup, terms.resources.toolbox
    else:
        graph = subject
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
    state = _make_state(graph) if state is None else state
    return Subject(graph, state, setup, known, iterated=iterated, approvals=approvals)


def _make_state(graph: NodeGraph[Any]) -> object:
    """Create a state by calling the graph's state type; return None if the graph has no type."""
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


def furnished(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """Return the agent; if it has no tools, return a copy with sample tools and option defaults.

    Most decisions of the standard loop concern tool calls: denials, approvals, client tools and
    sub-agents. Without tools, the fuzzer could not test them.
    """
    if agent.options.get("tools"):
        return agent
    asked = {"read": False, "list": False, "erase": False, "pay": False, "write": True}
    helper = Agent(ScriptedModel(()))
    tools: list[ToolInput] = [
        *[
            Tool(name=name, parameters=SCHEMA, execute=_never_called, needs_approval=always)
            for name, always in asked.items()
        ],
        Tool(name="spend", parameters=SCHEMA, execute=_never_called, needs_approval=_never_called),
        Tool(name="device", parameters=SCHEMA),
        helper.as_tool(name="helper"),
        helper.as_tool(name="successor", takes_over=True),
    ]
    options: dict[str, Any] = {
        "gate": deny("erase") | ask("pay", when=_never_called) | ask("list") | allow("*"),
        "max_steps": 6,
        "compaction": Compaction(context_window=1_000, keep_recent_turns=1),
        "verify": _never_called,
        **agent.options,
        "tools": tools,
    }
    return agent.with_options(**options)


def _never_called(*_: object) -> bool:
    raise AssertionError("an adversary answers in place of every function")


def invented_tools(graph: NodeGraph[Any], rules: Rules = NO_RULES) -> tuple[ToolSpec, ...]:
    """Return sample tools for a graph that has none: functions, a client tool and a sub-agent.

    Every tool that a gate or a temporal rule names is added; otherwise that rule could not apply.
    """
    kinds = dict(INVENTED)
    gates = [rule for node in graph.nodes.values() for rule in rules_of_gate(node)]
    named = [name for rule in gates for name in rule.tools if WILDCARDS.isdisjoint(name)]
    for name in (*named, *_tools_in(rules)):
        kinds.setdefault(name, "function")
    return tuple([ToolSpec(name, f"{name}.", dumps(SCHEMA), kind) for name, kind in kinds.items()])


def rules_of_gate(node: Node[Any, Outcome]) -> tuple[Rule, ...]:
    """Return the policy rules of a gate node; an empty tuple for any other node."""
    rules: object = getattr(node, "rules", ())
    if node.kind != "gate" or not isinstance(rules, tuple):
        return ()
    items = cast("tuple[object, ...]", rules)  # `isinstance` leaves the type of the items open.
    return tuple([rule for rule in items if isinstance(rule, Rule)])


def _tools_in(rules: Rules) -> Iterator[str]:
    for rule in rules:
        for word in words_of(rule):
            kind, _, name = word.partition(":")
            if kind in {"tool", "approval"} and name and name != "*":
                yield name


def _rule_terms(rule: TemporalRule) -> Iterator[str]:
    """Yield the parts of a temporal rule for the checksum; its reason has no effect on a run."""
    yield from map(str, words_of(rule))
    yield str(rule.times) if isinstance(rule, AtMost) else ""
