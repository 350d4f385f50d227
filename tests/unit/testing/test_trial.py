"""Trials: a run is a function of choices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphloop.events import Setup, Started
from graphloop.stores.codec import Codec
from graphloop.testing.choices import Choices
from graphloop.testing.subject import Subject, invented_tools
from graphloop.testing.trace_text import trace_lines
from graphloop.testing.trial import tried
from tests.strategies import loop

GRAPH = loop()
SUBJECT = Subject(GRAPH, None, Setup("model", invented_tools(GRAPH)), iterated=True)


@given(seed=st.integers(0, 500))
def test_the_choices_of_a_seed_make_the_same_run_byte_for_byte(seed: int) -> None:
    """A token that brings back something else would be worth nothing."""
    first = tried(SUBJECT, Choices.seeded(seed), 5_000)
    second = tried(SUBJECT, Choices.replayed(first.choices), 5_000)

    codec = Codec()
    assert [codec.encode(1, one) for one in first.events] == [
        codec.encode(1, one) for one in second.events
    ]
    assert first.choices == second.choices
    assert first.error is None


def test_crashes_aborts_callers_and_late_approvals_come() -> None:
    """What never comes is never tried."""
    kinds = set[str]()
    late = False
    ends = set[str]()
    for seed in range(300):
        trial = tried(SUBJECT, Choices.seeded(seed), 5_000)
        started, run = trial.events[0], trial.trace.run
        assert isinstance(started, Started)
        assert run is not None
        ends |= {run.ending.reason} if run.ending else set()
        ends |= {"handed in"} if len(started.messages) > 1 else set()
        ends |= {"stopping"} if run.inbox.stopping else set()
        ends |= (
            {"follow up"}
            if any(getattr(one, "follow_up", False) for one in trial.events)
            else set()
        )
        kinds |= {type(one).__name__ for one in trial.events}
        late = late or any("too late" in line for line in trace_lines(trial.trace))

    assert {
        *("Started", "ModelReplied", "CallsChecked", "EffectsStarted", "ToolReturned", "Decided"),
        *("Resumed", "Cancelled", "ChildEnded", "EffectFailed", "Steered", "Queued"),
    } <= kinds
    assert {"budget", "handed in", "stopping", "follow up"} <= ends
    assert late


def test_a_run_that_goes_on_is_given_up_and_its_journal_is_there() -> None:
    """It is what has to be looked at."""
    trial = tried(SUBJECT, Choices.replayed([0] * 9 + [1] * 40), 5)

    assert trial.endless
    assert 5 == len(trial.events) == len(trial.trace.steps)
