"""opening: where what was said before a leg comes, in the leg's first events."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from graphloop import Agent
from graphloop.drivers.opening import not_before, opening
from graphloop.events import (
    Cancelled,
    Decided,
    Event,
    Queued,
    Resumed,
    Setup,
    Started,
    ToolReturned,
)
from graphloop.replay import replay
from graphloop.run import Run
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools import Tool
from graphloop.values import UserMessage, evolve
from tests.strategies import call, loop, reply

STARTED = Started(1.0, "r", "g", (UserMessage("go"),), Setup("m"))
STEERED = Queued(0.0, UserMessage("hurry"))
LATER = Queued(0.0, UserMessage("and then?"), follow_up=True)
STOP = Cancelled(0.0, "enough", after_step=True)
DECIDED = Decided(1.0, 1, True)


def test_the_very_first_event_has_with_it_what_is_to_be_read() -> None:
    """It asks a model already; what comes later may be told later."""
    started, *rest = opening((STARTED,), (STEERED, LATER, STEERED, STOP))

    assert isinstance(started, Started)
    assert (STEERED.message, STEERED.message) == started.steering
    assert [LATER, STOP] == rest


def test_what_was_said_comes_before_the_answers_that_open_a_turn() -> None:
    """Else it would be read one turn late."""
    answers: tuple[Event, ...] = (DECIDED, DECIDED)

    assert [STEERED, STOP, DECIDED, DECIDED] == list(opening(answers, (STEERED, STOP)))
    assert [STEERED] == list(opening((), (STEERED,)))
    assert [DECIDED] == list(opening((DECIDED,), ()))
    assert STARTED == next(opening((STARTED,), ()))


@pytest.mark.parametrize("event", [STEERED, STOP, ToolReturned(0.0, 1, "x")])
def test_what_came_before_a_leg_is_stamped_when_it_is_taken_up(event: Event) -> None:
    """Time in a journal goes on, and nobody worked while nobody drove."""
    assert 5.0 == not_before(begun_at(5.0), event).at
    assert event is not_before(begun_at(0.0), event)
    assert event is not_before(None, event)


def test_when_a_decision_was_made_is_kept() -> None:
    """It may have been in time, and been taken up too late."""
    told = [not_before(begun_at(5.0), evolve(DECIDED, given_at=at)) for at in (None, 0.5)]

    assert [evolve(DECIDED, at=5.0, given_at=at) for at in (1.0, 0.5)] == told


@pytest.mark.parametrize("approved", [True, False])
def test_the_answers_of_a_leg_are_no_earlier_than_its_beginning(*, approved: bool) -> None:
    """They are read before a driver takes the run up."""
    ticks = count()
    store = MemoryStore()

    async def scenario() -> list[Event]:
        pay = Tool(name="pay", parameters={"type": "object"}, execute=fine, needs_approval=True)
        agent = Agent(
            ScriptedModel([reply(call("pay")), "done"]),
            tools=[pay],
            store=store,
            clock=lambda: float(next(ticks)),
        )
        await agent.generate("go", run_id="r")
        stream = agent.resume_stream("r", approvals={"c0.0": approved})
        stream.steer("hurry")
        await stream.result()
        return list(await store.load("r"))

    events = asyncio.run(scenario())
    kinds = [type(one) for one in events]
    assert [Resumed, Queued, Decided] == kinds[3:6]
    assert sorted(one.at for one in events) == [one.at for one in events]


async def fine(arguments: dict[str, object]) -> str:
    return f"fine{len(arguments)}"


def begun_at(at: float) -> Run[None]:
    """Return a run whose last event was at that time."""
    graph = loop()
    return replay(graph, [evolve(STARTED, at=at, graph=graph.name)])
