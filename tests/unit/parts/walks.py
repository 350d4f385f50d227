"""Runs for the tests of parts: walked by hand, event by event, to exactly where a view is hard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphloop.effects import Effect
from graphloop.events import (
    CallbackAnswer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    Queued,
    Setup,
    Started,
    Steered,
    ToolReturned,
)
from graphloop.graph import NodeGraph
from graphloop.parts.kinds import Part
from graphloop.parts.parts import PartView
from graphloop.run import Run
from graphloop.spending import Spent
from graphloop.step import Step, begin, step
from graphloop.values import (
    AssistantPart,
    FinishReason,
    Message,
    ResultStatus,
    ToolResult,
    Usage,
    UserMessage,
    evolve,
)
from tests.strategies import QUESTION, SETUP, reply

__all__ = [
    "Next",
    "answered",
    "asked",
    "checked",
    "child",
    "decided",
    "failed",
    "kinds",
    "parts",
    "queued",
    "returned",
    "said",
    "steered",
    "told",
    "walk",
]

Next: TypeAlias = Callable[[Run[None]], Event]
"""The event that comes next, given the run as it stands; it answers the oldest pending effect."""


def walk(
    graph: NodeGraph[None],
    *events: Next,
    setup: Setup = SETUP,
    messages: Sequence[Message] = QUESTION,
    run_id: str = "r",
) -> list[Step[None]]:
    """Return the steps of a run that goes exactly this way."""
    steps = [begin(graph, Started(0.0, run_id, graph.name, tuple(messages), setup), None)]
    for event in events:
        run = steps[-1].run
        steps.append(step(graph, run, event(run)))
    return steps


def told(graph: NodeGraph[None], steps: Sequence[Step[None]]) -> list[list[Part]]:
    """Return the parts of each step; a view taken up after any of them must tell the same."""
    view = PartView(graph)
    every = [list(view.see(taken)) for taken in steps]
    for cut in range(1, len(steps)):
        later = PartView(graph, steps[cut - 1].run)
        assert every[cut:] == [list(later.see(taken)) for taken in steps[cut:]]
    return every


def parts(graph: NodeGraph[None], steps: Sequence[Step[None]]) -> list[Part]:
    """Return the parts of a run."""
    return [part for some in told(graph, steps) for part in some]


def kinds(some: Sequence[Part]) -> list[str]:
    """Return the parts' names."""
    return [part.type for part in some]


def asked(run: Run[None]) -> Effect:
    """Return the oldest effect that a run waits for."""
    return run.pending[min(run.pending)]


def said(
    *content: AssistantPart | str, finish: FinishReason | None = None, tokens: int = 10
) -> Next:
    """Have the model say this to so many tokens, for half a dollar."""
    answer = evolve(reply(*content, finish=finish), usage=Usage(tokens, 5))
    return lambda run: ModelReplied(1.0, asked(run).id, answer, 0.5)


def checked(*checks: CallCheck) -> Next:
    """Check the calls."""
    return lambda run: CallsChecked(1.0, asked(run).id, checks)


def returned(content: str = "fine", status: ResultStatus = "ok") -> Next:
    """Have the oldest tool end."""
    return lambda run: ToolReturned(1.0, asked(run).id, content, status)


def decided(*, approved: bool) -> Next:
    """Decide about the oldest question."""
    return lambda run: Decided(1.0, asked(run).id, approved)


def answered(answer: CallbackAnswer) -> Next:
    """Have a function of the user's answer."""
    return lambda run: CallbackReturned(1.0, asked(run).id, answer)


def failed(error: str, *, retryable: bool = False, content_seen: bool = False) -> Next:
    """Have the oldest effect fail."""
    failure = Failure(error, "no", retryable=retryable)
    return lambda run: EffectFailed(1.0, asked(run).id, failure, content_seen=content_seen)


def child(content: str, status: ResultStatus = "ok") -> Next:
    """Have the oldest child end, for a quarter of a dollar."""
    spent = Spent(1, 0, Usage(7, 3), 0.25)
    return lambda run: ChildEnded(1.0, asked(run).id, content, status, spent)


def steered(
    *append: Message,
    messages: tuple[Message, ...] | None = None,
    results: tuple[ToolResult, ...] = (),
) -> Callable[[Run[None]], Steered]:
    """Let the caller have its say."""
    return lambda run: Steered(1.0, asked(run).id, messages, append, results)


def queued(text: str, *, follow_up: bool = False) -> Next:
    """Say something while the run goes on."""
    return lambda _: Queued(1.0, UserMessage(text), follow_up)
