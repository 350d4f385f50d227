"""A run that was stopped stays stopped if what its table does next fails, and nobody sends it back.

A node that failed afterwards made an error of it; and a judge that rejected the answer of a run
that had been stopped softly sent it round a cycle that no bound of the table counts.
"""

from __future__ import annotations

import pytest

from graphloop import EndReason, Graph, RunStream, check, tool
from graphloop.events import CallbackReturned, Cancelled, Started, StopRequested
from graphloop.graph import END
from graphloop.node_protocol import Leave, Node
from graphloop.nodes import (
    Append,
    Approve,
    Critique,
    Execute,
    Gate,
    Limit,
    MapOver,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from graphloop.outcomes import (
    Aborted,
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Final,
    Go,
    Outcome,
    Ready,
    Rejected,
    Resend,
    Settled,
    Stop,
)
from graphloop.run import Ending, evolve
from graphloop.step import begin, step
from graphloop.testing import ScriptedModel
from tests.strategies import QUESTION, SETUP, call, fresh, reply

STOPPED = [EndReason.ABORTED, EndReason.TIMEOUT]


@pytest.mark.parametrize("node", [Critique("good?"), Approve(), MapOver("kid", 3)])
def test_a_stopped_run_has_no_judges_plans_or_approvals(
    node: Node[None, Outcome],
) -> None:
    """Each is left as aborted, by whatever row its table has for that, and says nothing."""
    bound = StopCheck(callback="enough")
    graph = Graph[None]("g", bound, {bound: {Stop: node, ...: END}, node: {...: END}})
    run = begin(graph, Started(0.0, "r", "g", QUESTION, SETUP), None).run
    run = step(graph, run, Cancelled(1.0, "enough", after_step=True)).run

    taken = step(graph, run, CallbackReturned(2.0, 1, StopRequested()))

    assert ((), True, True) == (taken.effects, taken.run.ended, taken.run.was_stopped)
    assert ((), *QUESTION) == (taken.run.turn.notes, *taken.run.messages)


@pytest.mark.parametrize("reason", STOPPED)
def test_a_run_that_was_stopped_has_no_plan(reason: EndReason) -> None:
    """What was said last is not looked at."""
    run = evolve(fresh(), ending=Ending(reason, ("somebody",)))

    assert Leave(run, Aborted()) == MapOver("kid", 3).enter(run)


async def test_a_run_that_was_stopped_after_a_step_comes_to_its_end() -> None:
    """Though its judge would reject whatever it says, and its table leads a stop to the judge."""
    prepare, model, gate, execute = PrepareStep(), ModelCall(), Gate(), Execute()
    append, stop, judge = Append(), StopCheck(max_steps=3), Critique("Is it good?")
    note, again = Append(name="note"), Limit(2, name="again")
    graph: Graph[None] = Graph(
        "desk",
        prepare,
        {
            prepare: {Ready: model, Calls: gate, ...: END},
            model: {Calls: gate, ...: append},
            gate: {Settled: execute, ...: append},
            execute: {ApprovalNeeded: gate, ...: append},
            append: {AnsweredCalls: stop, Resend: stop, Final: judge, ...: END},
            stop: {Go: prepare, Stop: judge, ...: END},
            judge: {Rejected: note, ...: END},
            note: {Resend: again, Aborted: judge, ...: END},
            again: {Go: prepare, ...: END},
        },
    )
    assert check(graph).ok
    asked = ScriptedModel([reply(call("work")), "more"])
    streams: list[RunStream] = []

    @tool
    async def work() -> str:
        """Work, and have nothing more done."""
        streams[0].abort("enough", after_step=True)
        return "done"

    streams.append(graph.stream(None, model=asked, prompt="go", tools=[work]))
    assert EndReason.ABORTED is (await streams[0].result()).end_reason
    assert 1 == len(asked.requests)
