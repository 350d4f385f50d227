"""map_over: a plan that can be read is worked on, any other goes back (see also test_fan_out)."""

from __future__ import annotations

import pytest

from graphloop.effects import StartRun
from graphloop.errors import ConfigError
from graphloop.events import ChildEnded
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes.map_over import MapOver, MapOverOutcome
from graphloop.outcomes import Answered, Unplanned
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.values import UserMessage
from tests.strategies import QUESTION, fresh, said, wrong

WORK = MapOver("worker", 3)


def at(plan: str) -> Run[None]:
    """Return a run whose latest answer is this plan."""
    run = fresh(messages=(*QUESTION, said(plan)))
    return evolve(run, ending=Ending(EndReason.COMPLETED))


def started(reaction: Reaction[None, MapOverOutcome]) -> list[StartRun]:
    """Return the children that are started."""
    assert isinstance(reaction, Wait)
    return [one for one in reaction.effects if isinstance(one, StartRun)]


def test_a_child_may_read_the_conversation_and_what_it_has_to_do() -> None:
    """Where the item alone says too little."""
    node = MapOver("worker", 3, "lines", "Translate:", conversation=True)

    (child,) = started(node.enter(at("- one")))

    prompt = UserMessage("Translate:\n\none", "map_over")
    assert (*QUESTION, said("- one"), prompt) == tuple(child.messages)


@pytest.mark.parametrize("plan", ["Sure!", "[]", '["a", "b", "c", "d"]', ""])
def test_a_plan_that_cannot_be_worked_on_goes_back_with_what_is_wrong(plan: str) -> None:
    """No item is left out in silence."""
    reaction = WORK.enter(at(plan))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Unplanned)
    (note,) = reaction.run.turn.notes
    assert isinstance(note, UserMessage)
    assert "at least 1 and at most 3" in str(note.content)
    assert ("map_over", None) == (note.origin, reaction.run.ending)


def test_the_answers_are_joined_under_their_items() -> None:
    """A long item is named by its beginning."""
    item = "x" * 100
    reaction = WORK.enter(at(f'["{item}\\\\nmore"]'))
    (child,) = started(reaction)

    after = WORK.on(evolve(reaction.run, pending={}), ChildEnded(1.0, 1, "done"), child)

    assert isinstance(after, Leave)
    assert isinstance(after.outcome, Answered)
    assert after.run.turn.reply is not None
    assert f"## {'x' * 79}…\n\ndone" == after.run.turn.reply.message.text


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"agent": "", "max_items": 1}, "`agent` to name the agent"),
        ({"agent": "a", "max_items": 0}, "`max_items` to be a whole number of at least 1"),
        ({"agent": "a", "max_items": 1, "items": "csv"}, "`items` to be 'json' or 'lines'"),
        ({"agent": "a", "max_items": 1, "join": "any"}, "`join` to be one of"),
        ({"agent": "a", "max_items": 1, "concurrency": 0}, "`concurrency` to be a whole number"),
    ],
)
def test_what_could_not_run_is_refused(options: dict[str, object], found: str) -> None:
    """At construction, with what was found."""
    with pytest.raises(ConfigError, match=found):
        MapOver(**wrong(options))


def test_its_promise_is_its_bound() -> None:
    """No visit starts more children."""
    (child,) = WORK.contract.children

    assert ("worker", 3, True) == (child.name, child.runs, child.many)
    assert {"note"} == WORK.contract.moved(Unplanned)
