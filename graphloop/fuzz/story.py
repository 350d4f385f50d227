"""Story: what a journal tells of a run: for each event what was heard, passed and wished for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from ..effects import AskHuman, CallModel, CallTool, Effect, Invoke, StartRun
from ..events import (
    Begun,
    CallbackReturned,
    CallsChecked,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Left,
    ModelReplied,
    Resumed,
    Started,
    ToolReturned,
)
from ..run import Run
from ..step import begin, step
from .subject import Subject
from .watching import Deed, Notes, Passage, watched_graph

__all__ = ["Chapter", "Story", "told"]

S = TypeVar("S")

WIDE: Final = 100
PASSAGES_MAX: Final = 8


@final
@dataclass(frozen=True)
class Chapter(Generic[S]):
    """One event: the effect it `answered`, the node that heard it, and what came of it.

    `node` is empty for the beginning. `deeds` are what nodes decided of it, one after another;
    `run` is the run afterwards.
    """

    event: Event
    answered: Effect | None
    node: str
    deeds: tuple[Deed, ...]
    effects: tuple[Effect, ...]
    run: Run[S]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The ways by which nodes were left."""
        return tuple([one.passage for one in self.deeds if one.passage is not None])


@final
@dataclass(frozen=True)
class Story(Generic[S]):
    """The chapters of a journal; `broken` is what a node, or the kernel, raised after them."""

    chapters: tuple[Chapter[S], ...]
    broken: Exception | None = None
    last: Event | None = None

    @property
    def run(self) -> Run[S] | None:
        """The run as the chapters leave it."""
        return self.chapters[-1].run if self.chapters else None

    def lines(self) -> Iterator[str]:
        """Yield the story for people, a line an event."""
        for number, chapter in enumerate(self.chapters, 1):
            ways = _ways(chapter.passages)
            wishes = ", ".join(map(_wish, chapter.effects))
            yield f"{number:>3} {_event(chapter.event, chapter.answered)}{ways}" + (
                f"; wants {wishes}" if wishes else ""
            )
        if self.broken is not None and self.last is not None:
            yield f"{len(self.chapters) + 1:>3} {_event(self.last, None)}"


def told(subject: Subject[S], events: Sequence[Event], notes: Notes | None = None) -> Story[S]:
    """Return the story of a journal, which is replayed: nothing is performed.

    Args:
        subject: whose journal it is.
        events: the journal.
        notes: taken of what the nodes decide.
    """
    notes = Notes() if notes is None else notes
    so_far = list[Event]()
    notes.journal = so_far
    graph = watched_graph(subject.graph, notes)
    chapters: list[Chapter[S]] = []
    run: Run[S] | None = None
    for event in events:
        so_far.append(event)
        known, answered, node = len(notes.deeds), None, ""
        try:
            if run is None:
                assert isinstance(event, Started), "a simulation begins with it"
                made = begin(graph, event, subject.state)
            else:
                answered, node = run.pending.get(getattr(event, "effect", 0)), run.node
                made = step(graph, run, event)
        except Exception as error:  # noqa: BLE001 - a node is the user's own, and what is tested.
            return Story(tuple(chapters), error, event)
        deeds, run = tuple(notes.deeds[known:]), made.run
        chapters.append(Chapter(event, answered, node, deeds, made.effects, run))
    return Story(tuple(chapters))


def _event(  # noqa: C901, PLR0911 - one way out for each event
    event: Event, answered: Effect | None
) -> str:
    match event:
        case Started():
            return "started"
        case ModelReplied(reply=reply):
            calls = ", ".join(f"{one.name}({_short(one.arguments)})" for one in reply.message.calls)
            said = f"calls {calls}" if calls else _short(repr(reply.message.text))
            return f"model: {reply.finish_reason}, {said}"
        case ToolReturned(status=status):
            return f"{_name(answered)}: {status}"
        case CallsChecked(checks=checks):
            words = [one.problem or ("ask" if one.needs_approval else "valid") for one in checks]
            return f"checked: {', '.join(words)}"
        case Decided():
            return _decision(event, answered)
        case CallbackReturned(answer=answer):
            word = answer.outcome if isinstance(answer, Left) else type(answer).__name__
            return f"{_name(answered)}: {word}"
        case EffectFailed(failure=failure):
            return f"{_name(answered)}: failed with {failure.error}"
        case ChildEnded(status=status):
            return f"{_name(answered)}: ended {status}"
        case Begun(effects=effects):
            return f"begun: {', '.join(map(str, effects))}"
        case Resumed():
            return "the process died; taken up again"
        case Cancelled():
            return "cancelled"
        case _:
            return type(event).__name__


def _decision(event: Decided, answered: Effect | None) -> str:
    limit = answered.expires_at if isinstance(answered, AskHuman) else None
    late = " too late" if limit is not None and event.at >= limit else ""
    edited = f", with {_short(event.arguments)}" if event.arguments else ""
    return f"decided: {'approved' if event.approved else 'denied'}{late}{edited}"


def _ways(passages: tuple[Passage, ...]) -> str:
    shown = [f"; {one}" for one in passages[:PASSAGES_MAX]]
    more = len(passages) - len(shown)
    return "".join(shown) + (f"; {more} more" if more else "")


def _name(effect: Effect | None) -> str:
    match effect:
        case CallTool(key=key, call=call):
            return f"tool {call.name} ({key})"
        case StartRun(agent=agent, key=key):
            return f"agent {agent} ({key})"
        case Invoke(callback=callback):
            return f"function {callback}"
        case CallModel():
            return "model"
        case None:
            return "answer"
        case _:
            return type(effect).__name__


def _wish(effect: Effect) -> str:
    return f"{effect.id}={_name(effect)}"


def _short(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[: WIDE - 1]}…"
