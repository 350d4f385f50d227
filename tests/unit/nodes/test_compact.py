"""compact: shorter by layers, once a turn, and the end only where nothing helps."""

from __future__ import annotations

import pytest
from msgspec import structs

from graphloop.conversation.compaction import ORIGIN, Compaction
from graphloop.effects import CallModel, Invoke
from graphloop.errors import ContextOverflow
from graphloop.events import (
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    StopRequested,
)
from graphloop.loop import Standard
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes.compact import Compact, CompactOutcome
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.outcomes import Aborted, Cannot, Compacted, Failed, Outcome
from graphloop.run import Ending, EndReason, History, Measured, Run, evolve
from graphloop.spending import Spent
from graphloop.testing.sim import Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.turn import Turn
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    Settings,
    ToolResult,
    Usage,
    UserMessage,
)
from tests.property.test_contract_pairing import assert_paired
from tests.runs import changed
from tests.strategies import QUESTION, SETUP, Adversary, call, fresh, loop, reply, said

WINDOW = Compaction(1_000, keep_recent_turns=1)
LAYERED = Compact(compaction=WINDOW)
MINE = Compact(compaction=WINDOW, callback="mine")
FULL = Ending(EndReason.CONTEXT_WINDOW)


def turn(size: int, key: str = "c0.0") -> tuple[Message, ...]:
    """Return a turn whose tool returned so many characters."""
    return (said(call()), ToolResult(key, "", "read", "x" * size))


TALK = (said("y" * 4_000), said("y" * 4_000), said("z"))
LONG = (*QUESTION, *turn(8_000), *turn(20, "c1.0"))


def entered(
    node: Compact, *messages: Message, asked: bool = False, compacted: bool = False
) -> Leave[None, CompactOutcome] | Wait[None]:
    """Enter in turn 3, before or after its model was asked."""
    number = Turn(number=3, asked=asked, compacted=compacted, usage=Usage(7), reply=reply("half"))
    return node.enter(evolve(fresh(number), messages=History(messages)))


def left(reaction: Reaction[None, Outcome]) -> tuple[Run[None], type[Outcome]]:
    """Return how the node is left."""
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


def summing(*messages: Message, asked: bool = False) -> tuple[Run[None], CallModel]:
    """Return the run that waits for a summary, and the wish for it."""
    reaction = entered(LAYERED, *messages, asked=asked)
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallModel)
    return reaction.run, effect


def test_without_layers_a_full_window_is_the_end() -> None:
    """Nobody said how to make anything shorter."""
    run, outcome = left(entered(Compact(), *LONG, asked=True))

    assert (Cannot, FULL) == (outcome, run.ending)


def test_compacting_twice_before_a_model_call_is_a_table_mistake() -> None:
    """Nobody has said that there is no room, and what says so is believed by the proofs."""
    run, outcome = left(entered(LAYERED, *LONG, compacted=True))

    assert Failed is outcome
    assert run.ending is not None
    assert EndReason.ERROR is run.ending.reason


def test_what_the_run_has_added_stays_whole() -> None:
    """Only what is sent becomes shorter (CONTRACT §9 #33)."""
    run = changed(fresh(), messages=History(LONG), added=History(LONG[1:]))

    after, _ = left(LAYERED.enter(run))

    assert LONG[1:] == tuple(after.record.added)


@pytest.mark.parametrize(("asked", "number", "usage"), [(True, 3, Usage(7)), (False, 3, Usage())])
def test_a_turn_whose_model_found_no_room_is_opened_anew(
    asked: bool, number: int, usage: Usage
) -> None:
    """Its reply is void, what it used stays on its bill; before that, the turn is the last one."""
    run, outcome = left(entered(LAYERED, *LONG, asked=asked))

    assert Compacted is outcome
    assert (number, usage) == (run.turn.number, run.turn.usage)
    assert (True, None, ()) == (run.turn.compacted, run.turn.reply, run.turn.calls)


def test_what_is_still_too_long_is_summarised() -> None:
    """By the run's own model, or by another."""
    run, effect = summing(*QUESTION, *TALK)
    other = Compact(compaction=Compaction(1_000, keep_recent_turns=1, summary_model="small"))
    reaction = entered(other, *QUESTION, *TALK)

    assert ("model", ()) == (effect.model, effect.request.tools)
    assert isinstance(reaction, Wait)
    assert ["small"] == [getattr(one, "model", "") for one in reaction.effects]

    summary = reply("it was about y")
    after, outcome = left(LAYERED.on(run, ModelReplied(1.0, 1, summary), effect))

    assert Compacted is outcome
    assert (*QUESTION, TALK[-1]) == (after.messages[0], after.messages[-1])
    note = after.messages[1]
    assert isinstance(note, UserMessage)
    assert (ORIGIN, True) == (note.origin, "it was about y" in str(note.content))
    assert summary.usage == after.turn.usage


POOR: list[Event] = [
    ModelReplied(1.0, 1, reply(" ")),
    ModelReplied(1.0, 1, reply("half of it", finish=FinishReason.LENGTH)),
    ModelReplied(1.0, 1, reply("I will not", finish=FinishReason.REFUSAL)),
    EffectFailed(1.0, 1, Failure("Overloaded", "busy"), Spent(1, 0, Usage(10, 5))),
]


def test_a_server_without_room_is_not_asked_the_same_again() -> None:
    """Nothing has become shorter, so the answer would be the same."""
    run, effect = summing(*QUESTION, *TALK, asked=True)
    measured = changed(run, measured=Measured(1, 900))

    after, outcome = left(LAYERED.on(measured, POOR[0], effect))

    assert (Cannot, FULL) == (outcome, after.ending)


@pytest.mark.parametrize(("asked", "outcome"), [(True, Cannot), (False, Compacted)])
def test_a_function_that_shortens_nothing_is_not_believed_after_a_no(
    asked: bool, outcome: type[Outcome]
) -> None:
    """An estimate must not end a run."""
    reaction = entered(MINE, *LONG, asked=asked)
    assert isinstance(reaction, Wait)

    _, found = left(MINE.on(reaction.run, CallbackReturned(1.0, 1, Changes()), Invoke(1, "mine")))

    assert outcome is found


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (EffectFailed(1.0, 1, Failure("ValueError", "bug")), "bug"),
        (
            CallbackReturned(1.0, 1, StopRequested()),
            "callback 'mine': expected Changes, found StopRequested",
        ),
    ],
)
def test_a_function_that_fails_ends_the_run(event: Event, message: str) -> None:
    """Nobody knows what it has left out."""
    run, outcome = left(MINE.on(fresh(), event, Invoke(1, "mine")))

    assert Failed is outcome
    assert run.ending is not None
    assert run.ending.failure is not None
    assert message == run.ending.failure.message


def test_an_abort_is_passed_on() -> None:
    """Whoever stops the run stops the summary."""
    _, outcome = left(LAYERED.on(fresh(), Cancelled(1.0), None))

    assert Aborted is outcome


# Whole runs.

HUGE = ToolOutcome("x" * 8_000, "ok")
LOOP = loop(Standard(prepare=PrepareStep(compaction=WINDOW), compact=Compact(compaction=WINDOW)))


def told(*models: Reply | Exception) -> Simulation[None]:
    """Return a run whose tool returns too much."""
    return Adversary(models, (HUGE,)).run(LOOP)


def test_a_run_goes_on_in_a_window_that_its_tools_overfill() -> None:
    """Its history stays paired, and its record whole."""
    simulation = told(*[reply("done")] * 16, *[reply(call())] * 5)
    big = Adversary((reply(call()),), (HUGE,)).run(LOOP)

    assert EndReason.COMPLETED is getattr(simulation.run.ending, "reason", None)
    run = big.run
    assert run.ending is not None
    assert EndReason.MAX_STEPS is run.ending.reason
    assert_paired(tuple(run.messages))
    assert_paired(tuple(run.record.added))
    assert list(range(6)) == [step.index for step in run.record.steps]
    assert any("[pruned" in str(getattr(one, "content", "")) for one in run.messages)
    assert all("[pruned" not in str(getattr(one, "content", "")) for one in run.record.added)


def test_a_model_without_room_is_asked_twice_a_turn_and_no_more() -> None:
    """Then the run ends, and says why."""
    long = ContextOverflow("too long")
    turn: Reply | Exception = reply(call())
    models = (long, turn, long, long, turn, *[long] * 9)

    simulation = Adversary(models, (HUGE,)).run(loop(Standard(compact=LAYERED)))

    assert FULL == simulation.run.ending
    assert 2 == len(simulation.run.record.steps)
    assert 2 == sum(
        isinstance(one, EffectFailed) and one.failure.error == "ContextOverflow"
        for one in simulation.events
    )


def test_the_bills_of_all_steps_are_the_bill_of_the_run() -> None:
    """Summaries and attempts without room included (CONTRACT, appendix 5)."""
    talk = evolve(reply("y" * 3_000, call()), usage=Usage(950, 5))

    def model(effect: CallModel) -> Reply:
        if effect.id == 7:
            raise ContextOverflow("too long")
        return talk if effect.request.tools else reply("short")

    world = World(model=model, tool=lambda _: ToolOutcome("", "ok"))

    run = simulate(LOOP, QUESTION, world, None, setup=SETUP).run

    total = Usage()
    for step in run.record.steps:
        total += step.usage
    assert run.spent.usage == total
    assert run.spent.model_calls > len(run.record.steps)
    assert isinstance(run.messages[1], AssistantMessage | UserMessage)


def asked_with(settings: Settings, window: int) -> Settings:
    """Return the settings that a summary is asked for with, in a run with these."""
    number = Turn(number=3, asked=True, reply=reply("half"))
    setup = structs.replace(SETUP, settings=settings)
    talk = (said("y" * 4 * window), said("y" * 4 * window), said("z"))
    node = Compact(compaction=Compaction(window, keep_recent_turns=1))
    reaction = node.enter(evolve(fresh(number), messages=History(talk), setup=setup))
    assert isinstance(reaction, Wait)
    (wish,) = reaction.effects
    assert isinstance(wish, CallModel)
    return wish.request.settings


@pytest.mark.parametrize(("limit", "room"), [(None, None), (10, 4_096), (9_000, 9_000)])
def test_a_summary_has_a_limit_where_replies_have_one(limit: int | None, room: int | None) -> None:
    """What a run costs at most is told before it begins; a short summary is worth nothing."""
    assert room == asked_with(Settings(max_tokens=limit), 100_000).max_tokens


@pytest.mark.parametrize("limit", [None, 10, 9_000])
def test_a_summary_is_asked_for_in_the_room_there_is(limit: int | None) -> None:
    """A request for more than the window holds is refused."""
    room = asked_with(Settings(max_tokens=limit), 2_000).max_tokens

    assert room is not None
    assert 500 < room < 1_000


@pytest.mark.parametrize(("poor", "found"), [(1, "it ended by 'length'"), (3, "busy")])
def test_a_summary_that_was_cut_or_failed_is_told_as_a_warning(poor: int, found: str) -> None:
    """It was paid for, and stands for nothing."""
    run, effect = summing(*QUESTION, *TALK)
    whole, _ = left(LAYERED.on(run, ModelReplied(1.0, 1, reply("it was about y")), effect))

    after, _ = left(LAYERED.on(run, POOR[poor], effect))

    assert () == whole.record.warnings
    told = f"'compact' had no summary to put in place of old messages: {found}"
    assert (told,) == after.record.warnings
