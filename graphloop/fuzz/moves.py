"""Moves: the decisions of a story, one after another, each with what stood before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from ..effects import Effect
from ..events import Event, Started
from ..history import History
from ..node_protocol import Leave, Node, Wait
from ..outcomes import Outcome
from ..run import Run, evolve
from ..turn import Turn
from ..values import Message
from .story import Story
from .subject import Subject

__all__ = ["Move", "moves", "new_in"]

S = TypeVar("S")


@final
@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """One decision of a node.

    Args:
        number: the event, counted from 1.
        event: the event that the node heard; None if it was entered.
        node: who decided.
        before: the run that the decision before left behind; at first, one with what it was given.
        entered: the run when the node was entered, which may be some events ago.
        run: the run that the node left behind.
        outcome: by what it was left; None if it waits.
        effects: what it asks for if it waits.
    """

    number: int
    event: Event | None
    node: Node[S, Outcome]
    before: Run[S]
    entered: Run[S]
    run: Run[S]
    outcome: Outcome | None = None
    effects: tuple[Effect, ...] = ()


def moves(subject: Subject[S], story: Story[S]) -> Iterator[Move[S]]:
    """Yield the decisions of a story in order."""
    before: Run[S] | None = None
    entered = before
    for number, chapter in enumerate(story.chapters, 1):
        heard: Event | None = chapter.event
        for deed in chapter.deeds:
            if not isinstance(deed.decision, Leave | Wait):
                continue  # What a node raises ends the story, which has no such chapter.
            run: Run[S] = deed.decision.run
            if isinstance(heard, Started):
                given, heard = History(heard.messages), None
                record = evolve(run.record, added=History[Message]())
                before = evolve(run, messages=given, record=record, turn=Turn())
            entered = before if heard is None else entered
            assert before is not None and entered is not None, "a story begins with a start"  # noqa: PT018
            node, done = subject.graph.nodes[deed.node], deed.decision
            outcome = done.outcome if isinstance(done, Leave) else None
            effects = done.effects if isinstance(done, Wait) else ()
            yield Move(number, heard, node, before, entered, run, outcome, effects)
            before, heard = run, None


def new_in(now: History[Message], before: History[Message]) -> tuple[Message, ...] | None:
    """Return what a history has grown by; None if it is not the same any more."""
    if now is before:
        return ()
    return now[len(before) :] if now.starts_with(before) else None
