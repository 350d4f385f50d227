"""The table of stop reasons (CONTRACT §5.7, DESIGN §3), by hand: what each kind of reply means."""

from __future__ import annotations

import pytest

from graphloop.effects import CallModel
from graphloop.replay import replay_steps
from graphloop.run import EndReason as E
from graphloop.testing.sim import Simulation
from graphloop.values import AssistantPart, OpaquePart, ReasoningPart, evolve
from graphloop.values import FinishReason as F
from tests.strategies import Adversary, call, loop, reply

CALL = (call(),)
TEXT = ("text",)
BOTH = ("text", call())
NONE: tuple[str, ...] = ()
BLANK = (" \n",)
THOUGHT = (ReasoningPart("hm"),)
SECRET = (ReasoningPart("", data="redacted"),)
OPAQUE = (OpaquePart("{}"),)

# Finish reason, parts; then how often the model is asked with this reply first and "done" after,
# whether the tool runs, and why the run ends.
TABLE: list[tuple[F, tuple[AssistantPart | str, ...], int, bool, E]] = [
    (F.STOP, TEXT, 1, False, E.COMPLETED),
    (F.STOP, CALL, 2, True, E.COMPLETED),
    (F.STOP, BOTH, 2, True, E.COMPLETED),
    (F.STOP, NONE, 2, False, E.COMPLETED),
    (F.STOP, BLANK, 2, False, E.COMPLETED),
    (F.STOP, THOUGHT, 1, False, E.COMPLETED),
    (F.TOOL_CALLS, CALL, 2, True, E.COMPLETED),
    (F.TOOL_CALLS, BOTH, 2, True, E.COMPLETED),
    (F.TOOL_CALLS, TEXT, 1, False, E.COMPLETED),
    (F.TOOL_CALLS, NONE, 2, False, E.COMPLETED),
    (F.STOP_SEQUENCE, TEXT, 1, False, E.COMPLETED),
    (F.STOP_SEQUENCE, CALL, 2, True, E.COMPLETED),
    (F.OTHER, TEXT, 1, False, E.COMPLETED),
    (F.OTHER, CALL, 2, False, E.COMPLETED),
    (F.OTHER, NONE, 2, False, E.COMPLETED),
    (F.LENGTH, TEXT, 1, False, E.LENGTH),
    (F.LENGTH, CALL, 2, False, E.COMPLETED),
    (F.LENGTH, BOTH, 2, False, E.COMPLETED),
    (F.LENGTH, NONE, 2, False, E.COMPLETED),
    (F.PAUSE, TEXT, 2, False, E.COMPLETED),
    (F.PAUSE, OPAQUE, 2, False, E.COMPLETED),
    (F.PAUSE, NONE, 2, False, E.COMPLETED),
    (F.PAUSE, CALL, 2, True, E.COMPLETED),
    (F.REFUSAL, TEXT, 1, False, E.REFUSAL),
    (F.REFUSAL, CALL, 1, False, E.REFUSAL),
    (F.REFUSAL, BOTH, 1, False, E.REFUSAL),
    (F.REFUSAL, NONE, 1, False, E.REFUSAL),
    (F.CONTENT_FILTER, TEXT, 1, False, E.CONTENT_FILTER),
    (F.CONTENT_FILTER, CALL, 1, False, E.CONTENT_FILTER),
    (F.CONTENT_FILTER, NONE, 1, False, E.CONTENT_FILTER),
    (F.CONTEXT_WINDOW, TEXT, 1, False, E.CONTEXT_WINDOW),
    (F.CONTEXT_WINDOW, CALL, 1, False, E.CONTEXT_WINDOW),
    (F.CONTEXT_WINDOW, NONE, 1, False, E.CONTEXT_WINDOW),
]

# The same reply for ever: what is left when asking again does not help.
STUBBORN: list[tuple[F, tuple[AssistantPart | str, ...], E]] = [
    (F.STOP, NONE, E.EMPTY_RESPONSE),
    (F.STOP, BLANK, E.EMPTY_RESPONSE),
    (F.STOP, SECRET, E.COMPLETED),
    (F.STOP, OPAQUE, E.COMPLETED),
    (F.TOOL_CALLS, NONE, E.EMPTY_RESPONSE),
    (F.LENGTH, NONE, E.LENGTH),
    (F.LENGTH, BLANK, E.LENGTH),
    (F.LENGTH, CALL, E.LENGTH),
    (F.OTHER, CALL, E.INCOMPLETE),
]


def run(*models: AssistantPart | str, first: F) -> Simulation[None]:
    """Simulate a model that says this once, and then is done."""
    # Effect 1 asks first; the other effects of a run never come back to its number.
    done = (reply("done"),) * 60
    return Adversary((done[0], reply(*models, finish=first), *done)).run(loop())


@pytest.mark.parametrize(("finish", "parts", "asked", "ran", "ended"), TABLE)
def test_a_stop_reason_means_what_the_table_says(
    finish: F, parts: tuple[AssistantPart | str, ...], asked: int, ran: bool, ended: E
) -> None:
    """Most loops get one of these rows wrong: a tool that ran, or an answer that was lost."""
    simulation = run(*parts, first=finish)

    result = simulation.run
    assert result.ending is not None
    assert ended == result.ending.reason
    assert asked == result.spent.model_calls
    assert ran == bool(simulation.executions)


@pytest.mark.parametrize(("finish", "parts", "ended"), STUBBORN)
def test_a_reply_that_stays_bad_ends_the_run_by_its_own_reason(
    finish: F, parts: tuple[AssistantPart | str, ...], ended: E
) -> None:
    """A run that said nothing must not look like one that answered."""
    simulation = Adversary((reply(*parts, finish=finish),)).run(loop())

    assert simulation.run.ending is not None
    assert ended == simulation.run.ending.reason


@pytest.mark.parametrize("finish", [F.REFUSAL, F.CONTENT_FILTER, F.CONTEXT_WINDOW])
def test_what_came_before_a_refusal_is_kept(finish: F) -> None:
    """The user has seen the partial text; the history must not deny it."""
    simulation = run(*BOTH, first=finish)

    step = simulation.run.record.steps[0]
    assert "text" == step.text
    assert ["not_run"] == [one.status for one in step.tool_results]


def test_a_cut_call_is_asked_again_with_twice_the_room() -> None:
    """The same limit would cut the same call again."""
    rooms = [
        effect.request.settings.max_tokens
        for taken in replay_steps(loop(), run(*CALL, first=F.LENGTH).events)
        for effect in taken.effects
        if isinstance(effect, CallModel)
    ]

    assert [None, 8192] == rooms


@pytest.mark.parametrize("raw", ["eos", "done", "", "error", "abort"])
def test_a_call_behind_a_finish_reason_that_no_wire_knows_never_runs(raw: str) -> None:
    """It may be a word for a cut: a call of a turn that was cut must never run."""
    odd = evolve(reply(*CALL, finish=F.OTHER), raw_finish_reason=raw)

    simulation = Adversary((reply("done"), odd, *(reply("done"),) * 9)).run(loop())

    assert not simulation.executions
