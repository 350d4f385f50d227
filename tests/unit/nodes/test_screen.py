"""The nodes that screen, in the kernel: verdicts, failures, and answers that wait."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop.effects import CallModel, Effect, Invoke, StartRun
from graphloop.events import (
    AnswerChecked,
    CallbackAnswer,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    Setup,
    Started,
    StopRequested,
)
from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import ModelCall, Screen, Screened
from graphloop.own_nodes import retry
from graphloop.run import EndReason, Run
from graphloop.spending import Spent
from graphloop.step import Step, begin, step
from graphloop.values import Usage, UserMessage
from tests.strategies import reply

FAILED = Failure("ServerError", "down", retryable=True)


def loop(nodes: Standard) -> NodeGraph[None]:
    """Return the standard loop with these nodes."""
    return NodeGraph("agent", nodes.start, standard_edges(nodes))


BEFORE = loop(Standard(screen=Screen(("polite",), ("guard",))))
BESIDE = loop(Standard(model=Screened(ModelCall(fallbacks=("b",)), ("polite",), ("guard",))))


def started(graph: NodeGraph[None], **setup: Any) -> Step[None]:
    """Begin a run with a question."""
    opened = Setup("a", **setup)
    return begin(graph, Started(0.0, "r", graph.name, (UserMessage("go"),), opened), None)


def effect_of(run: Run[None], kind: type[Effect]) -> int:
    """Return the id of the pending effect of this kind."""
    return next(number for number, one in run.pending.items() if isinstance(one, kind))


def told(graph: NodeGraph[None], run: Run[None], answer: CallbackAnswer) -> Run[None]:
    """Answer the pending function."""
    return step(graph, run, CallbackReturned(1.0, effect_of(run, Invoke), answer)).run


def guarded(graph: NodeGraph[None], run: Run[None], content: str, status: Any = "ok") -> Run[None]:
    """Answer the pending agent."""
    spent = Spent(usage=Usage(3, 4))
    ended = ChildEnded(2.0, effect_of(run, StartRun), content, status, spent)
    return step(graph, run, ended).run


def failure_of(run: Run[None]) -> str:
    """Return the failure that ended a run."""
    assert run.ended
    assert run.ending is not None
    assert run.ending.failure is not None
    return f"{run.ending.failure.error}: {run.ending.failure.message}"


@pytest.mark.parametrize("graph", [BEFORE, BESIDE])
@pytest.mark.parametrize(
    "content", ["true", '{"passed": true}', '{"passed": true, "answer": null}']
)
def test_the_agent_judges_after_the_function(graph: NodeGraph[None], content: str) -> None:
    run = started(graph).run
    assert not any(isinstance(one, StartRun) for one in run.pending.values())

    run = guarded(graph, told(graph, run, AnswerChecked(accepted=True)), content)

    assert [CallModel] == [type(one) for one in run.pending.values()]
    assert "model_call" == run.node


@pytest.mark.parametrize("graph", [BEFORE, BESIDE])
@pytest.mark.parametrize(
    ("content", "status", "found"),
    [
        ("yes", "ok", "ConfigError: screen 'guard': expected an answer of True or False"),
        ("[1]", "ok", "ConfigError"),
        ("no answer", "error", "RunFailed: screen 'guard': no answer"),
    ],
)
def test_an_agent_without_a_verdict_lets_nothing_pass(
    graph: NodeGraph[None], content: str, status: str, found: str
) -> None:
    run = told(graph, started(graph).run, AnswerChecked(accepted=True))
    run = guarded(graph, run, content, status)
    if graph is BESIDE:
        assert run.abandoned, "the driver ends the model call"
        run = step(graph, run, EffectFailed(3.0, effect_of(run, CallModel), FAILED)).run

    assert failure_of(run).startswith(found)


@pytest.mark.parametrize("graph", [BEFORE, BESIDE])
def test_a_function_that_gives_another_answer_is_an_error(graph: NodeGraph[None]) -> None:
    run = told(graph, started(graph).run, StopRequested())
    if graph is BESIDE:
        run = step(graph, run, ModelReplied(3.0, effect_of(run, CallModel), reply("x"))).run

    assert "'polite': expected AnswerChecked, found StopRequested" in failure_of(run)


@pytest.mark.parametrize("graph", [BEFORE, BESIDE])
def test_a_stop_ends_a_run_whose_screens_judge(graph: NodeGraph[None]) -> None:
    run = step(graph, started(graph).run, Cancelled(1.0, "enough")).run

    assert run.ending is not None
    assert (True, EndReason.ABORTED) == (run.ended, run.ending.reason)
    assert run.turn.screening is None


def test_a_failed_model_call_waits_for_the_verdict_before_another_is_asked() -> None:
    run = started(BESIDE).run
    run = step(BESIDE, run, EffectFailed(1.0, effect_of(run, CallModel), FAILED)).run
    assert [Invoke] == [type(one) for one in run.pending.values()]

    run = guarded(BESIDE, told(BESIDE, run, AnswerChecked(accepted=True)), "true")

    (asked,) = run.pending.values()
    assert isinstance(asked, CallModel)
    assert "b" == asked.model


def test_a_wrapped_model_is_tried_again_after_the_verdict() -> None:
    graph = loop(Standard(model=Screened(retry(ModelCall(), 1), ("polite",))))
    run = started(graph).run
    run = step(graph, run, EffectFailed(1.0, effect_of(run, CallModel), FAILED)).run

    run = told(graph, run, AnswerChecked(accepted=True))

    assert [CallModel] == [type(one) for one in run.pending.values()]


@pytest.mark.parametrize("first", ["reply", "verdict"])
def test_a_blocked_turn_counts_what_the_dropped_reply_used(first: str) -> None:
    run = started(BESIDE).run
    said, used = AnswerChecked(accepted=False, feedback="No."), Usage(10, 5)

    def replied(run: Run[None]) -> Run[None]:
        event: Event = ModelReplied(1.0, effect_of(run, CallModel), reply("x"), 0.5)
        return step(BESIDE, run, event).run

    later = first == "verdict"
    run = told(BESIDE, run if later else replied(run), said)
    run = replied(run) if later else run

    (turn,) = run.record.steps
    assert ("No.", used) == (turn.text, turn.usage)
    assert 0.5 == run.spent.cost_usd
    assert run.ending is not None
    assert ("screen:polite",) == run.ending.stopped_by


@pytest.mark.parametrize(
    "nodes",
    [
        Standard(screen=Screen((), ("guard",))),
        Standard(model=Screened(ModelCall(), (), ("guard",))),
    ],
)
def test_a_run_that_is_nested_too_deep_lets_no_agent_judge(nodes: Standard) -> None:
    run = started(loop(nodes), depth=2).run

    assert "more than 2 agents deep" in failure_of(run)
