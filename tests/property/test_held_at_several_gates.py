"""Calls that are held at several gates in a row: nobody goes in circles over them.

A gate that does not hold the batch leaves what somebody has to be asked about for later: what
can runs first. An agent that takes the conversation over waits for all others: it never does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import END, Graph
from graphloop.events import CallCheck, Setup
from graphloop.graph import Edges
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Go,
    Outcome,
    Ready,
    Resend,
    Settled,
)
from graphloop.policy.approvals import Approval
from graphloop.policy.policy import Rule
from graphloop.proofs.bounds import bound
from tests.contract_monitor import broken_promises, visits_of
from tests.sizes import sized
from tests.strategies import Adversary, call, reply, spec, unshadowed

EVENTS_MAX: Final = 400
STEPS_MAX: Final = 3
NAMES: Final = ("read", "write", "client", "agent", "leaver")
SETUP: Final = Setup(
    "model",
    (
        *(spec("read"), spec("write", lock="one"), spec("client", "client")),
        *(spec("agent", "agent"), spec("leaver", "agent", ends=True)),
    ),
)


@dataclass(frozen=True)
class Row:
    """Gates in a row, and to which of them leads what is held."""

    gates: tuple[Gate, ...]
    back: int = 0
    execute: Execute = field(default_factory=Execute)

    @property
    def graph(self) -> Graph[None]:
        """A loop whose calls pass the gates."""
        prepare, model, append = PrepareStep(), ModelCall(), Append()
        stop = StopCheck(max_steps=STEPS_MAX)
        edges: Edges[None] = {
            prepare: {Ready: model, Calls: self.gates[0], ...: END},
            model: {Calls: self.gates[0], ...: append},
            self.execute: {ApprovalNeeded: self.gates[self.back % len(self.gates)], ...: append},
            append: {AnsweredCalls: stop, Resend: stop, ...: END},
            stop: {Go: prepare, ...: END},
        }
        targets: list[Node[None, Outcome]] = [*self.gates[1:], self.execute]
        for gate, after in zip(self.gates, targets, strict=True):
            edges = {**edges, gate: {Settled: after, ...: append}}
        return Graph("row", prepare, edges)


def asking(*names: str, hold: bool = False, at: int = 0) -> Gate:
    """Return a gate that asks about these."""
    return Gate(f"gate_{at}", (Rule("ask", names), Rule("allow", ("*",))), hold)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Return one to three gates, each with rules of its own."""
    some = st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
    gates: list[Gate] = []
    for at in range(draw(st.integers(1, 3))):
        asks, denies = draw(some), draw(some)
        rules = (Rule("ask", tuple(asks)), Rule("deny", tuple(denies[:1])), Rule("allow", ("*",)))
        given = unshadowed([one for one in rules if one.tools])
        gates.append(Gate(f"gate_{at}", given, draw(st.booleans())))
    execute = Execute(max_tool_concurrency=draw(st.integers(1, 3)), hold=draw(st.booleans()))
    return Row(tuple(gates), draw(st.integers(0, 2)), execute)


answers = st.lists(
    st.sampled_from((Approval(True), Approval(False), Approval(True, "", '{"a": 1}'))),
    min_size=1,
    max_size=3,
)
IN_CIRCLES = Row((asking("write"), asking("read", at=1)))


@settings(max_examples=sized(25), deadline=None)
@given(
    row=rows(),
    batch=st.lists(st.sampled_from(NAMES), min_size=1, max_size=5),
    said=answers,
    wishes=st.booleans(),
    seed=st.integers(0, 2**16),
)
@example(row=IN_CIRCLES, batch=["leaver", "read"], said=[Approval(True)], wishes=False, seed=0)
@example(row=IN_CIRCLES, batch=["leaver", "write"], said=[Approval(False)], wishes=True, seed=0)
def test_no_node_is_visited_more_often_than_is_proven(
    row: Row, batch: Sequence[str], said: Sequence[Approval], wishes: bool, seed: int
) -> None:
    """Calls are held once, whichever gates hold them, and whichever of them is asked last."""
    graph = row.graph
    world = Adversary(
        (reply(*[call(name) for name in batch]),),
        checks=(CallCheck(needs_approval=wishes), CallCheck()),
        decisions=tuple(said),
    )

    events = world.run(graph, setup=SETUP, seed=seed, events_max=EVENTS_MAX).events

    visits = visits_of(graph, events, None)
    assert [] == [*broken_promises(visits)]
    for name, times in Counter(one.node.name for one in visits).items():
        most = bound(graph).visits[name]
        assert most is not None
        assert times <= most, name
