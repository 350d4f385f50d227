"""Contract 4, 14 and 16: the journal is the run; it survives any crash and repeats to the byte."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.effects import CallTool
from graphloop.errors import IllegalEvent
from graphloop.events import (
    CallCheck,
    Cancelled,
    EffectsStarted,
    Event,
    Resumed,
    Started,
    ToolReturned,
)
from graphloop.policy.approvals import Approval
from graphloop.replay import replay, replay_steps
from graphloop.run import Run
from graphloop.step import step
from graphloop.stores.codec import Codec
from graphloop.testing.sim import Simulation
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import evolve
from tests.for_each import for_each
from tests.runs import changed
from tests.strategies import (
    Adversary,
    adversaries,
    answers_of,
    call,
    events,
    failing,
    loop,
    reply,
)

MIXED = Adversary(
    (
        reply("done"),
        reply(call(), call("write"), call("nowhere")),
        reply(call("client"), call("read")),
        reply(" "),
    ),
    (ToolOutcome("a", "ok"), ToolOutcome("b", "error"), OSError("c")),
    (CallCheck(), CallCheck(needs_approval=True), CallCheck("bad")),
    (Approval(True), Approval(False, "no"), ValueError("?")),
    repeatable=True,
)
"""Every kind of effect but a callback, every kind of answer."""

HELD = Adversary(
    (reply(call()),), checks=(CallCheck(needs_approval=True),), decisions=(None,), repeatable=True
)
"""A question that nobody answers: since when it is open depends on when things happened."""


def lasting(run: Run[None]) -> object:
    """Return what must not depend on when things happened."""
    spent = evolve(run.spent, seconds=0.0)
    verdicts = [
        None if one is None else evolve(one, asked_at=None, took_s=None)
        for one in run.turn.verdicts
    ]
    turn = evolve(run.turn, verdicts=tuple(verdicts))
    return changed(
        run, at=0.0, seq=0, pending={}, next_effect=0, spent=spent, started=frozenset(), turn=turn
    )


def told(simulation: Simulation[None]) -> int:
    """Return how many events there are, without those of a process's own life."""
    return sum(not isinstance(one, EffectsStarted | Resumed) for one in simulation.events)


@given(adversary=failing, seed=st.integers(0, 99))
def test_each_prefix_of_a_journal_replays_to_the_run_at_that_point(
    adversary: Adversary, seed: int
) -> None:
    """Resume, fork and time travel are all this one sentence."""
    simulation = adversary.run(loop(), seed=seed)

    live: Run[None] | None = None
    for count, event in enumerate(simulation.events, 1):
        if live is not None:
            live = step(loop(), live, event).run
        folded = replay(loop(), simulation.events[:count])
        assert live is None or live == folded
        assert count == folded.seq
        live = folded
    assert simulation.run == live


def crashed(adversary: Adversary, crashes: tuple[int, ...], calm: Simulation[None]) -> None:
    """Assert that a run with these crashes comes to the same as a calm one."""
    simulation = adversary.run(loop(), seed=7, crash_after=crashes)

    assert not simulation.repeated
    assert lasting(calm.run) == lasting(simulation.run)
    assert calm.run.pending == simulation.run.pending
    assert told(calm) == told(simulation)


@for_each("pair", list(combinations(range(1, 30), 2)))
def test_any_two_crashes_come_to_the_same_history(pair: tuple[int, int]) -> None:
    """The second crash, while recovering from the first, is the one nobody tests."""
    calm = MIXED.run(loop(), seed=7)

    crashed(MIXED, pair, calm)


@given(adversary=adversaries)
@example(adversary=HELD)
def test_a_crash_after_each_event_comes_to_the_same_history(adversary: Adversary) -> None:
    """Nothing is lost, and no tool whose result was journaled runs again."""
    adversary = dataclasses.replace(adversary, repeatable=True)
    calm = adversary.run(loop(), seed=7)

    crashed(adversary, tuple(range(1, len(calm.events) + 1)), calm)


@given(adversary=adversaries, crashes=st.lists(st.integers(1, 20), max_size=4))
def test_without_a_crash_no_call_runs_twice(adversary: Adversary, crashes: list[int]) -> None:
    """An effect that was started again had no answer in the journal; all others run once."""
    adversary = dataclasses.replace(adversary, repeatable=True)
    simulation = adversary.run(loop(), crash_after=crashes)

    assert not simulation.repeated
    for count in simulation.executions.values():
        assert 1 + len(set(crashes)) >= count


@given(adversary=failing, crashes=st.lists(st.integers(1, 20), max_size=4), seed=st.integers(0, 9))
@example(adversary=MIXED, crashes=list(range(1, 60)), seed=7)
def test_a_tool_that_may_not_be_repeated_never_starts_twice_unasked(
    adversary: Adversary, crashes: list[int], seed: int
) -> None:
    """Whatever process dies when: the second payment is the one that nobody forgives."""
    nobody = dataclasses.replace(adversary, decisions=(None,), repeatable=False)

    simulation = nobody.run(loop(), seed=seed, crash_after=crashes)

    assert not simulation.repeated
    assert all(count == 1 for count in simulation.executions.values())


@given(adversary=failing, crashes=st.lists(st.integers(1, 20), max_size=4), seed=st.integers(0, 9))
def test_no_tool_starts_before_its_beginning_is_in_the_journal(
    adversary: Adversary, crashes: list[int], seed: int
) -> None:
    """Otherwise a crash between the two would make it run again."""
    simulation = adversary.run(loop(), seed=seed, crash_after=crashes)

    begun: set[str] = set()
    before: Run[None] | None = None
    for taken in replay_steps(loop(), simulation.events):
        if before is not None and isinstance(taken.event, EffectsStarted):
            wishes = [before.pending[one] for one in taken.event.effects]
            begun |= {one.key for one in wishes if isinstance(one, CallTool)}
        if before is not None and isinstance(taken.event, ToolReturned):
            answered = before.pending[taken.event.effect]
            assert isinstance(answered, CallTool)
            assert answered.client or answered.id in before.started
        before = taken.run
    ours = {key for key in simulation.executions if key not in client_keys(simulation)}
    assert ours <= begun


def client_keys(simulation: Simulation[None]) -> set[str]:
    """Return the keys of all calls of client tools."""
    wishes = [one for taken in replay_steps(loop(), simulation.events) for one in taken.effects]
    return {one.key for one in wishes if isinstance(one, CallTool) and one.client}


@given(adversary=failing, seed=st.integers(0, 9))
def test_the_same_seed_gives_the_same_bytes(adversary: Adversary, seed: int) -> None:
    """A red simulation that cannot be repeated is a rumour."""
    first, second = (journal_of(adversary.run(loop(), seed=seed)) for _ in range(2))

    assert first == second


def journal_of(simulation: Simulation[None]) -> list[bytes]:
    """Return the journal as it would stand in a file."""
    codec = Codec()
    return [codec.encode(seq, event) for seq, event in enumerate(simulation.events, 1)]


@given(adversary=failing, seed=st.integers(0, 9))
def test_a_run_read_back_from_its_journal_is_the_run(adversary: Adversary, seed: int) -> None:
    """What another process reads must lead where this process went."""
    simulation = adversary.run(loop(), seed=seed)
    codec = Codec()

    decoded = [codec.decode(line)[1] for line in journal_of(simulation)]

    assert simulation.run == replay(loop(), decoded)


@given(event=events, seq=st.integers(1, 10**6))
def test_any_event_survives_the_journal(event: Event, seq: int) -> None:
    """An event that changes on the way to the disk rewrites history."""
    codec = Codec()

    line = codec.encode(seq, event)

    assert b"\n" not in line
    assert (seq, event) == codec.decode(line)
    assert line == codec.encode(seq, event)


@given(adversary=failing, seed=st.integers(0, 9))
@example(adversary=MIXED, seed=3)
def test_events_that_answer_nothing_are_illegal_at_every_point(
    adversary: Adversary, seed: int
) -> None:
    """A late, repeated or foreign answer that counted would be a second result of one call."""
    graph = loop()
    journal = adversary.run(graph, seed=seed).events
    for taken in replay_steps(graph, journal):
        run = taken.run
        wrong: list[Event] = [journal[0]]
        answered = getattr(taken.event, "effect", None)
        if answered is not None:
            wrong.append(taken.event)
        for effect in run.pending.values():
            wrong += foreign(type(effect).__name__, answers_of(effect))
            stranger = evolve(effect, id=run.next_effect + 1)
            wrong += answers_of(stranger).values()
        if run.ended:
            wrong.append(Cancelled(0.0))
        for event in wrong:
            with pytest.raises(IllegalEvent):
                step(graph, run, event)


OWN = {
    "CallModel": "ModelReplied",
    "CallTool": "ToolReturned",
    "CheckCalls": "CallsChecked",
    "AskHuman": "Decided",
    "Invoke": "CallbackReturned",
    "StartRun": "ChildEnded",
    "AwaitCaller": "Steered",
}


def foreign(effect: str, answers: dict[str, Event]) -> list[Event]:
    """Return the events that name an effect which they cannot answer."""
    return [event for kind, event in answers.items() if kind not in {OWN[effect], "EffectFailed"}]


def test_a_journal_begins_with_exactly_one_start() -> None:
    """Two runs in one journal are no run."""
    simulation = MIXED.run(loop())

    assert [True] == [isinstance(one, Started) for one in simulation.events[:1]]
    assert not any(isinstance(one, Started) for one in simulation.events[1:])
