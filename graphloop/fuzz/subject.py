"""Subject: what is fuzzed: a graph, and all that its runs are given beside the adversary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Final, Generic, TypeVar, cast, final
from zlib import crc32

from ..events import Setup
from ..graph import Graph
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import WILDCARDS, Rule
from ..temporal import AtMost, Rules, TemporalRule, words_of
from ..values import Message, ToolKind, ToolSpec, UserMessage

__all__ = ["RULES_MARK", "Subject", "invented_tools", "rules_of_gate"]

S = TypeVar("S")

RULES_MARK: Final = 0xFFFF
"""Which bits of a mark are about the rules; the others are about the table and the tools."""

NO_RULES: Final = Rules()
SCHEMA: Final = dumps({"type": "object", "properties": {"text": {"type": "string"}}})
INVENTED: Final[tuple[tuple[str, ToolKind], ...]] = (
    ("read", "function"),
    ("write", "function"),
    ("device", "client"),
    ("helper", "agent"),
)


@final
@dataclass(frozen=True)
class Subject(Generic[S]):
    """What is fuzzed.

    Args:
        graph: the topology.
        state: the state that each run begins with.
        setup: the tools on offer, and the bounds of each run.
        rules: temporal rules, with every word looked up.
        messages: the conversation that each run begins with.
        iterated: whether a caller may iterate its runs, as `Agent.iter` does.
        approvals: whether a person is asked about every call of a tool, or about none; what is
            not among them has a predicate, or was made up.
    """

    graph: Graph[S]
    state: S
    setup: Setup
    rules: Rules = NO_RULES
    messages: tuple[Message, ...] = (UserMessage("Go."),)
    iterated: bool = False
    approvals: Mapping[str, bool] = field(default_factory=dict[str, bool])

    @property
    def mark(self) -> int:
        """A checksum of what choices are made for: the table and the tools, and the rules."""
        told = [
            self.graph.name,
            self.graph.start,
            [[one.source, one.outcome, one.target] for one in self.graph.edges],
            [[one.name, one.kind, one.parameters] for one in self.setup.tools],
            sorted(self.approvals.items()),
        ]
        ruled = sorted([type(one).__name__, *map(str, _terms(one))] for one in self.rules)
        return _half(told) << 16 | _half(ruled)


def invented_tools(graph: Graph[Any], rules: Rules = NO_RULES) -> tuple[ToolSpec, ...]:
    """Return tools to fuzz with where nobody has given any: one of each kind.

    What the gates and the rules name is among them, or they would have nothing to say.
    """
    kinds: dict[str, ToolKind] = dict(INVENTED)
    gates = [rule for node in graph.nodes.values() for rule in rules_of_gate(node)]
    for name in (*_named(gates), *_spoken_of(rules)):
        kinds.setdefault(name, "function")
    return tuple([ToolSpec(name, f"{name}.", SCHEMA, kind) for name, kind in kinds.items()])


def rules_of_gate(node: Node[Any, Outcome]) -> tuple[Rule, ...]:
    """Return the rules of a gate; none for any other node, and for a gate without."""
    rules: object = getattr(node, "rules", ())
    if node.kind != "gate" or not isinstance(rules, tuple):
        return ()
    every = cast("tuple[object, ...]", rules)  # isinstance cannot tell what is in it.
    return tuple([one for one in every if isinstance(one, Rule)])


def _named(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        yield from (name for name in rule.tools if WILDCARDS.isdisjoint(name))


def _half(content: object) -> int:
    """Return half a checksum."""
    return crc32(dumps(content).encode()) & RULES_MARK


def _terms(rule: TemporalRule) -> tuple[object, ...]:
    """Return what a rule says; why it says so changes no run."""
    return (*words_of(rule), rule.times if isinstance(rule, AtMost) else "")


def _spoken_of(rules: Rules) -> Iterator[str]:
    for rule in rules:
        for word in words_of(rule):
            kind, _, name = word.partition(":")
            if kind in {"tool", "approval"} and name and name != "*":
                yield name
