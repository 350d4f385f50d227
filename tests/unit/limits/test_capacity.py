"""Capacity: the remaining calls go out in request order, and the others are answered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.effects import CallTool, Effect, StartRun
from graphloop.limits.capacity import (
    budget_remaining,
    has_capacity,
    no_start,
    note_limits,
    queued,
    refusals,
    starts,
    too_deep,
)
from graphloop.run import EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.turn import Turn
from graphloop.values import ToolSpecs, Usage
from tests.strategies import SETUP, call, fresh, spec

TOOLS = ToolSpecs((spec("read"), spec("ask", "agent"), spec("boss", "agent", ends=True)))
NOTHING = Spent()


def calling(
    *names: str,
    budget: Budget,
    spent: Spent = NOTHING,
    pending: Sequence[Effect] = (),
    depth: int = 0,
) -> Run[None]:
    """Return a run whose turn calls these tools."""
    turn = Turn(number=0, tools=TOOLS, calls=tuple([call(name) for name in names]))
    return evolve(
        fresh(turn),
        setup=evolve(SETUP, budget=budget, depth=depth),
        spent=spent,
        pending={one.id: one for one in pending},
    )


def refused(run: Run[None]) -> dict[int, str]:
    """Return how the calls are answered that have no room."""
    every = refusals(run, queued(run.turn, range(len(run.turn.calls))))
    return {place: one.result.status for place, one in every.items()}


@pytest.mark.parametrize(
    ("depth", "spent", "reason"),
    [
        (0, NOTHING, None),
        (2, NOTHING, EndReason.ERROR),
        (0, Spent(1, 0, Usage(10, 5)), EndReason.BUDGET),
        (2, Spent(1, 0, Usage(10, 5)), EndReason.ERROR),
    ],
)
def test_no_child_run_begins_too_deep_or_with_nothing_to_spend(
    depth: int, spent: Spent, reason: EndReason | None
) -> None:
    """Whatever node would begin it; the run ends, and says why."""
    run = calling(budget=Budget(tokens=15), spent=spent, depth=depth)

    ending = no_start(run, ["b", "a", "b"])

    assert reason is (None if ending is None else ending.reason)
    if ending is not None and ending.failure is not None:
        assert too_deep(run.setup, ["a", "b"]) == ending.failure
        assert "'a', 'b' would be more than 2 agents deep. Fix: max_agent_depth=3" in (
            ending.failure.message
        )


def test_tools_get_what_there_is_in_request_order() -> None:
    """Beside those that run already; agents take no place of theirs."""
    running = CallTool(1, "c0.9", call())
    run = calling(
        *["read", "ask", "read", "read"],
        budget=Budget(tool_calls=5),
        spent=Spent(0, 2),
        pending=[running],
    )

    assert {3: "not_run"} == refused(run)


@given(
    names=st.lists(st.sampled_from(["read", "ask", "nowhere"]), max_size=6),
    most=st.none() | st.integers(1, 6),
    spent=st.integers(0, 6),
)
def test_no_more_tools_have_room_than_the_budget_has_calls(
    names: list[str], most: int | None, spent: int
) -> None:
    """And none is refused that would fit."""
    run = calling(*names, budget=Budget(tool_calls=most), spent=Spent(0, spent))

    without = [place for place in refused(run) if names[place] != "ask"]
    tools = [place for place, name in enumerate(names) if name != "ask"]

    assert without == ([] if most is None else tools[max(0, most - spent) :])


@pytest.mark.parametrize(
    ("depth", "spent", "status"), [(2, 0, "error"), (2, 9, "error"), (0, 9, "not_run")]
)
def test_an_agent_has_no_room_too_deep_or_with_nothing_to_spend(
    depth: int, spent: int, status: str
) -> None:
    """It would take a turn before it noticed."""
    run = calling("ask", budget=Budget(tokens=9), spent=Spent(usage=Usage(spent)), depth=depth)

    assert {0: status} == refused(run)


CALLED = StartRun(1, "c0.4", "ask", "{}", (), Budget(agent_calls=2))
STARTED = StartRun(1, "node.1", "ask", "", (), Budget(agent_calls=2))


@pytest.mark.parametrize(
    ("pending", "left"), [((), 3), ((CALLED,), 2), ((STARTED,), 3)], ids=["none", "call", "node"]
)
def test_agents_get_what_there_is_in_request_order(pending: Sequence[Effect], left: int) -> None:
    """Beside those that run already; what a node has started is no call."""
    run = calling(
        *["ask", "read", "ask", "ask", "ask"],
        budget=Budget(agent_calls=5),
        spent=Spent(agent_calls=2),
        pending=pending,
    )

    assert dict.fromkeys((0, 2, 3, 4)[left:], "not_run") == refused(run)


@pytest.mark.parametrize(
    ("most", "names", "expected"),
    [
        (1, ["boss", "boss"], {}),
        (1, ["boss", "boss", "ask"], {2: "not_run"}),
        (1, ["ask", "boss", "boss"], {1: "not_run", 2: "not_run"}),
        (2, ["ask", "boss", "boss", "ask"], {3: "not_run"}),
    ],
)
def test_of_agents_that_take_over_only_the_first_takes_room(
    most: int, names: list[str], expected: dict[int, str]
) -> None:
    """The others never run, whatever there is."""
    run = calling(*names, budget=Budget(agent_calls=most))

    assert expected == refused(run)
    assert len([one for one in names if one == "ask"]) + ("boss" in names) == starts(
        queued(run.turn, range(len(names)))
    )


@pytest.mark.parametrize(
    ("budget", "spent", "expected"),
    [
        (Budget(tool_calls=1), Spent(0, 1), {0: ("budget.tool_calls",)}),
        (Budget(agent_calls=1), Spent(agent_calls=1), {1: ("budget.agent_calls",)}),
        (Budget(tokens=1), Spent(usage=Usage(1)), {1: ()}),
    ],
)
def test_what_was_refused_for_want_of_calls_says_so_for_its_turn(
    budget: Budget, spent: Spent, expected: dict[int, tuple[str, ...]]
) -> None:
    """A limit that is looked at between turns is told by them."""
    run = calling("read", "ask", budget=budget, spent=spent)
    found = refusals(run, queued(run.turn, (0, 1)))

    assert set(expected) == set(found)
    for place, limits in expected.items():
        turn = note_limits(run.turn, [found[place]])
        assert limits == turn.beyond_budget == note_limits(turn, [found[place]]).beyond_budget


def test_what_is_reserved_is_not_free() -> None:
    """For children, and for the calls that run or are about to."""
    pending: list[Effect] = [
        CallTool(1, "c0.0", call()),
        StartRun(2, "c0.1", "ask", "{}", (), Budget(tokens=30, tool_calls=4)),
    ]
    run = calling(
        budget=Budget(tokens=100, tool_calls=10), spent=Spent(0, 1, Usage(10)), pending=pending
    )

    assert Budget(tokens=60, tool_calls=2) == budget_remaining(run, 2)


def test_a_call_of_an_agent_takes_room_itself() -> None:
    """What a node starts is no call, and has a share all the same."""

    def left(*pending: Effect, waiting: int = 0) -> int | None:
        run = calling(*["ask"] * 5, budget=Budget(agent_calls=9), pending=pending)
        return budget_remaining(evolve(run, spent=Spent(agent_calls=1)), 0, waiting).agent_calls

    assert (8, 6, 5, 6) == (left(), left(STARTED), left(CALLED), left(waiting=2))


@pytest.mark.parametrize(
    ("most", "waiting", "room"), [(None, (0, 1), True), (2, (0, 1), True), (1, (0, 1), False)]
)
def test_there_is_room_where_nobody_waits_for_it(
    most: int | None, waiting: tuple[int, ...], room: bool
) -> None:
    """Tools wait for their calls, and agents for none."""
    run = calling("read", "ask", budget=Budget(tool_calls=most))

    assert room is has_capacity(
        evolve(run, turn=evolve(run.turn, waiting=queued(run.turn, waiting)))
    )
