"""Every short trace there is of small graphs: what is decided of a rule is right, and not lazy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeAlias

from hypothesis import example, given, settings

from graphloop.contract import Contract
from graphloop.graph import END, NodeGraph
from graphloop.outcomes import Calls, outcome_name
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.temporal import decided
from graphloop.rules import OnlyAfter, Rules, TemporalRule
from graphloop.rules.automata import Happening, approved_call, entered, ran, returned, taken
from tests.property.test_temporal_proofs import WORDS, Spot, acts, graphs
from tests.sizes import sized
from tests.temporal_reference import PASTS, breaches, owes, rule_lists

LINES = 3
ACTING = 2

Line: TypeAlias = tuple[str, str, str]
"""A node, the outcome by which it is left, and where that leads."""

BUSY: tuple[tuple[Happening, ...], ...] = (
    (),
    *((one,) for name in "xz" for one in (ran(name), approved_call(name))),
    *((ran(name), returned(name, well=well)) for name in "xz" for well in (True, False)),
    (approved_call("x"), ran("x"), ran("x")),
    (ran("x"), ran("x"), ran("x"), ran("x")),
    (*(approved_call("x") for _ in range(4)),),
    (approved_call("x"), ran("x"), approved_call("x")),
    (ran("z"), returned("z", well=True), ran("x")),
)
"""What may happen at a node where tools run."""


def all_traces(graph: NodeGraph[None], way: Sequence[Line]) -> Iterator[list[Happening]]:
    """Yield all that may happen on a way, after all that may have happened before it."""
    spots = [graph.start, *(target for _, _, target in way)]
    lines = [[taken(at, word), entered(to)] for at, word, to in way]
    choices = [PASTS, *(BUSY if acts(graph, spot) else ((),) for spot in spots)]
    for past, *busy in product(*choices):
        trace = [*past, entered(graph.start), *busy[0]]
        for line, some in zip(lines, busy[1:], strict=True):
            trace += [*line, *some]
        yield trace


def is_broken(rule: TemporalRule, trace: list[Happening]) -> bool:
    """Whether a run that has come so far breaks a rule, by what the reference says."""
    return bool(breaches(rule, trace)) or ("node:END" in trace[-1].words and owes(rule, trace))


def short_ways(graph: NodeGraph[None], lines: int) -> Iterator[list[Line]]:
    """Yield every way of at most so many lines."""
    todo: list[list[Line]] = [[]]
    while todo:
        way = todo.pop()
        yield way
        at = way[-1][2] if way else graph.start
        if at != "END" and len(way) < lines:
            todo += [
                [*way, (at, outcome_name(outcome), to)] for outcome, to in graph.table[at].items()
            ]


def acting(graph: NodeGraph[None], way: Sequence[Line]) -> int:
    return sum(acts(graph, spot) for spot in (graph.start, *(to for _, _, to in way)))


EXECUTE = Spot("a", frozenset({Calls}), "execute", (Contract(),))
ASKED_AGAIN = NodeGraph("g", EXECUTE, {EXECUTE: {Calls: END}})
"""A node may run a tool, and be approved to run it again: found by Hypothesis."""


@given(graphs(capped=False), rule_lists(WORDS))
@example(ASKED_AGAIN, Rules((OnlyAfter("approval:x", "node:a", "tool:x"),)))
@settings(max_examples=sized(25), deadline=None)
def test_what_is_decided_is_right_of_every_short_trace_there_is(
    graph: NodeGraph[None], rules: Rules
) -> None:
    """What is proven holds in all of them; what is unknown is broken in one, and held in others."""
    decisions = decided(ProofGraph(graph), rules)

    for one in decisions:
        if one.status == "proven":
            for way in short_ways(graph, LINES):
                if acting(graph, way) <= ACTING:
                    assert not any(is_broken(one.rule, trace) for trace in all_traces(graph, way))
        elif one.status == "unknown":
            way = [(line.source, line.word, line.target) for line in one.path]
            if acting(graph, way) <= ACTING + 1:
                assert any(is_broken(one.rule, trace) for trace in all_traces(graph, way))
