"""Run: a value whose every change is a new value."""

from __future__ import annotations

import pytest

from graphloop.effects import AskHuman, CallTool, Effect, StartRun
from graphloop.events import Cancelled
from graphloop.run import INTERRUPTED, STOPPED, Ending, EndReason, ended_by, ended_by_stop, evolve
from graphloop.spending import Spent
from graphloop.turn import Turn
from graphloop.values import ToolResult, ToolSpecs
from tests.for_each import for_each
from tests.strategies import call, fresh, spec


@for_each("later", [None, *map(Ending, EndReason)])
@pytest.mark.parametrize("reason", EndReason)
def test_a_run_that_was_stopped_stays_so(reason: EndReason, later: Ending | None) -> None:
    """Whatever its table does with it afterwards: it starts nothing, so it comes to no bound."""
    before = Ending(reason, ("somebody",))
    stopped = reason in {EndReason.ABORTED, EndReason.TIMEOUT}

    run = ended_by(evolve(fresh(), ending=before), later)

    assert run.ending == (before if stopped else later)


FINE = ToolResult("c0.0", "", "read", "fine")
TURN = Turn(
    number=0,
    tools=ToolSpecs((spec("read"), spec("ask", "agent"))),
    calls=(call(), call("ask"), call(), call()),
    started=("c0.0", "c0.1", "c0.2"),
    results=(FINE, None, None, None),
)
CHILD = StartRun(4, "c0.1", "ask", "{}", ())
TOOL = CallTool(5, "c0.2", call())
AGAIN = AskHuman(5, "c0.2", call(), unknown=True)


def results(turn: Turn, stop: Cancelled, *pending: Effect) -> list[str]:
    """Return the status of each result that a stop leaves."""
    run = evolve(fresh(turn), pending={one.id: one for one in pending})
    return [one.status if one else "" for one in ended_by_stop(run, stop, Spent()).turn.results]


@pytest.mark.parametrize(
    ("turn", "unstarted", "pending", "expected"),
    [
        (TURN, (), (CHILD, TOOL), ["ok", "unknown", "unknown", ""]),
        (TURN, (4,), (CHILD, TOOL), ["ok", "", "unknown", ""]),
        (TURN, (4, 5, 99), (CHILD, TOOL), ["ok", "", "", ""]),
        # A person is asked whether it is to run again, or wants it: it may have run before.
        (TURN, (4,), (CHILD, AGAIN), ["ok", "", "unknown", ""]),
        (evolve(TURN, again=frozenset({2})), (4, 5), (CHILD, TOOL), ["ok", "", "unknown", ""]),
        (evolve(TURN, again=frozenset({2})), (4,), (CHILD,), ["ok", "", "unknown", ""]),
        # Another node wished for them, and kept no results.
        (evolve(TURN, results=()), (), (CHILD, TOOL), ["unknown", "unknown", "unknown", ""]),
        (evolve(TURN, results=(), started=()), (), (), []),
    ],
)
def test_a_call_that_may_have_run_has_a_result_in_a_stopped_run(
    turn: Turn, unstarted: tuple[int, ...], pending: tuple[Effect, ...], expected: list[str]
) -> None:
    """What surely has not started is left for whoever says why."""
    assert expected == results(turn, Cancelled(1.0, unstarted=unstarted), *pending)


def test_an_agent_that_was_stopped_is_told_apart_from_a_tool() -> None:
    """What it has done until then is known to be done."""
    run = evolve(fresh(TURN), pending={4: CHILD, 5: TOOL})

    told = ended_by_stop(run, Cancelled(1.0), Spent()).turn.results

    assert [FINE.content, STOPPED, INTERRUPTED, None] == [one and one.content for one in told]
