"""prepare_step: what a turn begins with."""

from __future__ import annotations

from graphloop.effects import Invoke
from graphloop.events import CallbackReturned, Cancelled, Changes, EffectFailed, Failure, Tripped
from graphloop.node import Leave, Wait
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.outcomes import Aborted, Failed, Ready
from graphloop.run import EndReason, Run
from graphloop.values import ToolChoice, UserMessage
from tests.strategies import fresh, replied, reply

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


def test_only_active_tools_are_offered() -> None:
    """In the order of the tools, whatever the order of the list."""
    reaction = PrepareStep(active_tools=("client", "read")).enter(fresh())

    assert ["read", "client"] == [tool.name for tool in reaction.run.turn.tools]


def test_the_user_s_function_is_asked_before_the_model() -> None:
    """As an effect: a replay never asks it again."""
    reaction = ASKING.enter(fresh())

    assert isinstance(reaction, Wait)
    assert (Invoke(1, "mine"),) == reaction.effects


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
    assert 0 == len(run.added)


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
    reaction = ASKING.on(fresh(), CallbackReturned(1.0, 1, Tripped()), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert EndReason.ERROR is reaction.run.ending.reason


def test_an_abort_is_passed_on() -> None:
    """The turn is never begun."""
    reaction = ASKING.on(fresh(), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)
