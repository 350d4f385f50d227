"""prepare_step: what a turn begins with."""

from __future__ import annotations

import pytest

from graphloop.conversation.compaction import Compaction
from graphloop.effects import Invoke
from graphloop.events import (
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Failure,
    StopRequested,
)
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.outcomes import Aborted, Calls, Failed, Outcome, Overflow, Ready
from graphloop.run import EndReason, History, Measured, Run, evolve
from graphloop.turn import Turn
from graphloop.values import (
    FinishReason,
    Message,
    Reply,
    ToolChoice,
    Usage,
    UserMessage,
)
from tests.runs import changed as with_facts
from tests.strategies import QUESTION, SETUP, call, fresh, replied, reply, said, spec

ASKING = PrepareStep(callback="mine")


def changed(changes: Changes) -> Run[None]:
    """Return the run after the user's function answered."""
    opened = ASKING.enter(fresh())
    assert isinstance(opened, Wait)
    reaction = ASKING.on(opened.run, CallbackReturned(1.0, 1, changes), opened.effects[0])
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Ready)
    return reaction.run


def test_a_new_turn_remembers_nothing_of_the_last() -> None:
    """Verdicts of one turn that counted in the next would run what nobody approved."""
    reaction = PrepareStep().enter(replied(reply("old"), retries=1))

    assert isinstance(reaction, Leave)
    turn = reaction.run.turn
    assert (1, None, (), 0) == (turn.number, turn.reply, turn.verdicts, turn.retries)
    assert ["read", "write", "client"] == [tool.name for tool in turn.tools]


def test_nothing_changed_is_nothing_changed() -> None:
    """None leaves a thing as it is."""
    run = changed(Changes())

    assert fresh().messages == run.messages
    assert 3 == len(run.turn.tools)
    assert (ToolChoice(), "") == (run.turn.tool_choice, run.turn.model)


def test_what_the_function_changes_holds() -> None:
    """Messages for good, everything else for this turn."""
    messages = (UserMessage("shorter"),)

    run = changed(Changes(messages, ("write",), ToolChoice("required"), "other"))

    assert messages == tuple(run.messages)
    assert ["write"] == [tool.name for tool in run.turn.tools]
    assert (ToolChoice("required"), "other") == (run.turn.tool_choice, run.turn.model)
    assert 0 == len(run.record.added)


def test_no_tool_at_all_can_be_offered() -> None:
    """An empty list is not "all"."""
    assert () == changed(Changes(active_tools=())).turn.tools


def test_a_function_that_fails_ends_the_run() -> None:
    """A turn that could not be prepared must not be paid for."""
    failure = Failure("ValueError", "bug")

    reaction = ASKING.on(fresh(), EffectFailed(1.0, 1, failure), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert failure == reaction.run.ending.failure


def test_an_answer_of_another_kind_ends_the_run_in_an_error() -> None:
    """A callback under the wrong name must not look like a completed run."""
    reaction = ASKING.on(fresh(), CallbackReturned(1.0, 1, StopRequested()), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert EndReason.ERROR is reaction.run.ending.reason


READ = said(call("read", "a"), call("write", "b"))


def test_a_turn_that_was_settled_is_not_settled_again() -> None:
    """Its results are there: the model is asked next."""
    result = UserMessage("anything new")
    run = with_facts(fresh(Turn(), messages=(*QUESTION, READ)), added=History((result,)))

    reaction = PrepareStep().enter(run)

    assert isinstance(reaction, Leave)
    assert (Ready, 0) == (type(reaction.outcome), reaction.run.turn.number)


def test_calls_that_wait_for_a_turn_get_one_of_their_own() -> None:
    """So that no two calls share a key, and the bound on turns holds."""
    waiting = Turn(
        3, retries=1, reply=Reply(READ, FinishReason.TOOL_CALLS), calls=READ.calls, usage=Usage(5)
    )

    reaction = PrepareStep().enter(fresh(waiting))

    assert isinstance(reaction, Leave)
    turn = reaction.run.turn
    assert (Calls, 4, READ.calls) == (type(reaction.outcome), turn.number, turn.calls)
    assert (0, Usage(), SETUP.tools) == (turn.retries, turn.usage, turn.tools)


SMALL = Compaction(1_000)
LONG = (UserMessage("x" * 4_000),)


@pytest.mark.parametrize(
    ("messages", "measured", "outcome"),
    [
        (LONG, Measured(), Overflow),
        (QUESTION, Measured(), Ready),
        (QUESTION, Measured(1, 950), Overflow),
        (QUESTION, Measured(1, 900), Ready),
        (LONG, Measured(1, 100), Ready),
        (QUESTION, Measured(9, 950), Ready),
    ],
    ids=["long", "short", "counted", "just", "counted short", "counted before it was replaced"],
)
def test_a_conversation_about_to_overflow_is_made_shorter_first(
    messages: tuple[Message, ...], measured: Measured, outcome: type[Outcome]
) -> None:
    """By what a model counted, where it did, else by an estimate."""
    run = with_facts(fresh(messages=messages), measured=measured)

    reaction = PrepareStep(compaction=SMALL).enter(run)

    assert isinstance(reaction, Leave)
    assert outcome is type(reaction.outcome)


def test_it_is_made_shorter_once_a_turn_and_the_bill_stays() -> None:
    """Then the model must say whether there is room."""
    run = fresh(Turn(number=2, compacted=True, usage=Usage(5)), messages=LONG)

    reaction = PrepareStep(compaction=SMALL).enter(run)

    assert isinstance(reaction, Leave)
    turn = reaction.run.turn
    assert (Ready, 3, True, Usage(5)) == (
        type(reaction.outcome),
        turn.number,
        turn.compacted,
        turn.usage,
    )


def test_the_bill_of_one_turn_is_not_the_next_one_s() -> None:
    """Only a turn that is opened anew goes on with what it has spent."""
    reaction = PrepareStep().enter(fresh(Turn(number=2, usage=Usage(5))))

    assert Usage() == reaction.run.turn.usage


@pytest.mark.parametrize(
    ("node", "own", "number", "expected"),
    [
        (ToolChoice("required", scope="first_step"), None, -1, "required"),
        (ToolChoice("required", scope="first_step"), None, 0, "auto"),
        (ToolChoice("required"), None, 5, "required"),
        (ToolChoice("required"), ToolChoice("none"), 5, "none"),
        (ToolChoice(), ToolChoice("tool", "read", "first_step"), -1, "tool"),
        (ToolChoice(), ToolChoice("tool", "read", "first_step"), 0, "auto"),
    ],
)
def test_a_tool_choice_holds_within_its_scope(
    node: ToolChoice, own: ToolChoice | None, number: int, expected: str
) -> None:
    """`required` in every turn lets no run end of itself (CONTRACT §9 #40)."""
    run = evolve(fresh(Turn(number=number)), setup=evolve(SETUP, tool_choice=own))

    reaction = PrepareStep(tool_choice=node).enter(run)

    assert expected == reaction.run.turn.tool_choice.mode


def test_tools_that_are_added_can_be_chosen_at_once() -> None:
    """The list of active tools is about all there are now."""
    run = changed(Changes(add_tools=(spec("more"),), active_tools=("more", "read")))

    assert ["read", "more"] == [tool.name for tool in run.turn.tools]


def test_an_abort_is_passed_on() -> None:
    """The turn is never begun."""
    reaction = ASKING.on(fresh(), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)
