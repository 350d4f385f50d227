"""Trace: a journal as steps, with every decision of its nodes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graphloop import Graph
from graphloop.events import CallCheck, Event, Queued, Setup
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.outcomes import Go, Outcome, Stop
from graphloop.policy.approvals import Approval
from graphloop.run import evolve
from graphloop.testing.choices import Choices
from graphloop.testing.sim import Simulation, simulate
from graphloop.testing.subject import Subject, invented_tools
from graphloop.testing.trace import (
    Move,
    Recording,
    Trace,
    TraceStep,
    difference,
    recorded_graph,
    traced,
)
from graphloop.testing.trace_text import trace_lines
from graphloop.testing.trial import tried
from graphloop.values import UserMessage
from tests.strategies import QUESTION, SETUP, Adversary, call, fresh, loop, reply
from tests.unit.testing.planted import BUGS

ASKED = Adversary(
    (reply("done"), reply(call("read", "", '{"long": "%s"}' % ("x" * 200)), call("client"))),
    checks=(CallCheck(needs_approval=True),),
    decisions=(Approval(approved=True, arguments="{}"),),
)


def trace_of(simulation: Simulation[None], graph: Graph[None] | None = None) -> Trace[None]:
    """Return the trace of a simulation."""
    return traced(Subject(graph or loop(), None, SETUP), simulation.events)


def test_a_trace_has_a_step_for_each_event_and_the_last_run() -> None:
    """It is the replay of the journal."""
    for crashes in ((), (2, 5)):
        simulation = ASKED.run(loop(), crash_after=crashes)
        trace = trace_of(simulation)

        assert simulation.events == [one.event for one in trace.steps]
        assert simulation.run == trace.run
        assert trace.broken is None


def test_a_line_says_what_was_heard_passed_and_wished_for() -> None:
    """It is what a person reads of a failure; long texts are cut."""
    text = "\n".join(trace_lines(trace_of(ASKED.run(loop(), crash_after=(4,)))))

    for words in (
        "1 started; prepare_step -ready-> model_call; asks for 1=model",
        "model: tool_calls, calls read(",
        "CheckCalls: ask, ask; asks for 3=AskHuman",
        "AskHuman: approved, with {}",
        "resumed",
        "effects started",
        "(c0.0): ok",
        "append -answered_calls-> stop_check",
    ):
        assert words in text
    assert all(len(line) < 500 for line in text.splitlines())


def test_what_breaks_a_run_ends_its_story() -> None:
    """The event that could not be taken is the last line."""
    graph = BUGS["an empty reply"][1]()
    journal: list[Event] = Adversary((reply(),)).run(loop()).events[:2]

    trace = traced(Subject(graph, None, SETUP), journal)

    assert isinstance(trace.broken, IndexError)
    assert 1 == len(trace.steps)
    assert "model replied: stop" in list(trace_lines(trace))[-1]


ADVERSARY = Adversary((reply("done"), reply(call(), call())))


def test_a_watched_graph_runs_as_the_graph_does() -> None:
    """Watching must not be seen."""
    recording, graph = Recording(), loop()

    watched = ADVERSARY.run(recorded_graph(graph, recording))

    plain = ADVERSARY.run(graph)
    assert (plain.events, plain.run) == (watched.events, watched.run)
    assert graph.table == recorded_graph(graph, recording).table
    assert [(one.name, one.kind, one.outcomes) for one in graph.nodes.values()] == [
        (one.name, one.kind, one.outcomes)
        for one in recorded_graph(graph, recording).nodes.values()
    ]


GRAPH = loop()
SUBJECT = Subject(GRAPH, None, Setup("model", invented_tools(GRAPH)))
TRACE = tried(SUBJECT, Choices.replayed([0] * 9 + [1]), 100).trace


def test_each_move_begins_where_the_last_one_ended() -> None:
    """Between two moves, only the kernel changes the run."""
    moves = list(TRACE.moves)

    assert [UserMessage("Go.")] == list(moves[0].before.messages)
    assert moves[-1].run.record.added
    for move, after in pairwise(moves):
        assert move.run == after.before


RUN = fresh()
OTHER = evolve(RUN, node="x")


@pytest.mark.parametrize(
    ("name", "reaction", "text"),
    [
        ("stop_check", Leave(RUN, Stop()), "left by 'stop'; asked the same again, it left by 'go'"),
        ("stop_check", Wait(RUN), "asked for nothing; asked the same again, it left by 'go'"),
        ("gate", Leave(RUN, Go()), "asked the same again, node 'stop_check' left by 'go'"),
        ("stop_check", Leave(OTHER, Go()), "left by 'go'; asked the same again, it left by 'go'"),
        (None, None, "node 'stop_check' did not react; asked the same again, it left by 'go'"),
    ],
)
def test_the_first_difference_tells_both_reactions(
    name: str | None, reaction: Reaction[None, Outcome] | None, text: str
) -> None:
    """That is where to look in the node."""
    node = next(one for one in GRAPH.nodes.values() if one.name == "stop_check")
    move = Move(1, None, node, RUN, RUN, Leave(RUN, Go()), "prepare_step")
    trace = Trace((TraceStep(Queued(0.0, UserMessage("x")), None, "", (move,), (), RUN),))
    reactions = {1: [(name, reaction)] if name and reaction else []}

    assert difference(trace, {1: [("stop_check", Leave(RUN, Go()))]}, "why") is None
    assert text in str(difference(trace, reactions, "why"))


@pytest.mark.parametrize("crashes", [(), (1,), (2,), (3, 4), (1, 2, 5), (4, 4)])
def test_a_process_that_resumes_reacts_as_before(crashes: tuple[int, ...]) -> None:
    """Its reactions to the old events are not taken for new ones."""
    recording, graph = Recording(), loop()

    simulation = simulate(
        recorded_graph(graph, recording),
        QUESTION,
        ADVERSARY.world,
        None,
        setup=SETUP,
        crash_after=crashes,
        journal=recording.journal,
    )

    trace = traced(Subject(graph, None, SETUP), simulation.events)
    assert difference(trace, recording.reactions, "") is None
