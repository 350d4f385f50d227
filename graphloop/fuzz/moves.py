"""Moves: the decisions of a story, one after another, each with what stood before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar, final

from ..effects import Effect
from ..events import Event, Started
from ..history import History
from ..node_protocol import Leave, Node, Wait
from ..outcomes import Outcome
from ..run import Run, Turn
from ..values import Message
from .story import Story
from .subject import Subject

__all__ = ["Conversation", "Move", "moves", "new_in"]

S = TypeVar("S")


@final
@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model is sent, and what the run has added."""

    messages: History[Message] = field(default_factory=History[Message])
    added: History[Message] = field(default_factory=History[Message])


@final
@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """One decision of a node.

    Args:
        number: the event, counted from 1.
        event: the event that the node heard; None if it was entered.
        node: who decided.
        before: what stood before.
        entered: what stood when the node was entered, which may be some events ago.
        turn: the turn before.
        run: the run that the node left behind.
        outcome: by what it was left; None if it waits.
        effects: what it asks for if it waits.
    """

    number: int
    event: Event | None
    node: Node[S, Outcome]
    before: Conversation
    entered: Conversation
    turn: Turn
    run: Run[S]
    outcome: Outcome | None = None
    effects: tuple[Effect, ...] = ()


def moves(subject: Subject[S], story: Story[S]) -> Iterator[Move[S]]:
    """Yield the decisions of a story in order."""
    before, turn = Conversation(), Turn()
    entered = before
    for number, chapter in enumerate(story.chapters, 1):
        heard: Event | None = chapter.event
        if isinstance(heard, Started):
            before, heard = Conversation(History(heard.messages)), None
        for deed in chapter.deeds:
            if not isinstance(deed.decision, Leave | Wait):
                continue  # What a node raises ends the story, which has no such chapter.
            run: Run[S] = deed.decision.run
            entered = before if heard is None else entered
            node = subject.graph.nodes[deed.node]
            effects = deed.decision.effects if isinstance(deed.decision, Wait) else ()
            outcome = deed.decision.outcome if isinstance(deed.decision, Leave) else None
            yield Move(number, heard, node, before, entered, turn, run, outcome, effects)
            before, turn, heard = Conversation(run.messages, run.added), run.turn, None


def new_in(now: History[Message], before: History[Message]) -> tuple[Message, ...] | None:
    """Return what a history has grown by; None if it is not the same any more."""
    if now is before:
        return ()
    return now[len(before) :] if now.starts_with(before) else None
