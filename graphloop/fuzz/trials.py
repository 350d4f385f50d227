"""Trials: one simulated run, as a function of choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ..contract import contract_of
from ..drivers.sim import Simulation, simulate
from ..errors import GraphloopError
from ..events import Cancelled, Event, Queued
from ..spending import Budget
from ..values import (
    AssistantMessage,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    evolve,
)
from .adversary import Adversary
from .choices import Choices
from .differences import within_run
from .oracle import Trial
from .replies import unanswered_calls
from .story import told
from .subject import Subject
from .watching import Notes, watched_graph

__all__ = ["tried"]

S = TypeVar("S")

CRASHES: Final = (0, 0, 0, 1, 1, 2, 3)
CUTS: Final = (4, 8, 16, 64)
"""Within how many events a crash or an abort comes: most runs are short."""
TTLS: Final = (None, None, None, 5.0)
"""A simulated answer takes up to ten seconds: some come too late."""
INTERJECTIONS: Final = (0, 0, 0, 1, 2)
NO_BUDGET: Final = Budget()
BUDGETS: Final = (
    *(NO_BUDGET, NO_BUDGET, NO_BUDGET, NO_BUDGET),
    *(Budget(tool_calls=2), Budget(tool_calls=7), Budget(tokens=60), Budget(seconds=30.0)),
    Budget(agent_calls=1),
    *(Budget(usd=0.5), Budget(tokens=900, usd=2.0, seconds=90.0, tool_calls=3)),
)
EXCHANGES: Final = 6
"""How many times a long conversation went to and fro before the run."""


def tried(
    subject: Subject[S], choices: Choices, events_max: int, notes: Notes | None = None
) -> Trial[S]:
    """Return the run of a subject in the world that these choices make.

    Args:
        subject: what runs.
        choices: what makes the world.
        events_max: after how many events it is given up.
        notes: taken while it runs, to be read also if somebody ends it.
    """
    journal = list[Event]()
    notes = Notes() if notes is None else notes
    notes.journal = journal
    graph = watched_graph(subject.graph, notes)
    seed = choices.draw(256)
    mood = choices.draw(8)
    stubborn = mood == 7
    crashes = [_event(choices) for _ in range(choices.pick(CRASHES))]
    abort = _event(choices) if not stubborn and choices.chance(5) else None
    own = subject.setup.budget
    setup = evolve(
        subject.setup,
        approval_ttl_s=subject.setup.approval_ttl_s or choices.pick(TTLS),
        attended=subject.iterated and choices.chance(8),
        budget=choices.pick(BUDGETS) if own == NO_BUDGET else own,
    )
    said = [_interjection(choices) for _ in range(choices.pick(INTERJECTIONS))]
    messages = _conversation(subject, choices)
    adversary = Adversary(
        subject.graph,
        choices,
        stubborn=stubborn,
        wordy=mood == 6,
        repeatable=choices.chance(3),
        wishers=notes.wishers,
        outer=setup.rules,
        approvals=subject.approvals,
    )
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    try:
        simulation = simulate(
            graph,
            messages,
            adversary.world,
            subject.state,
            setup=setup,
            seed=seed,
            crash_after=crashes,
            abort_after=abort,
            meanwhile=dict(said),
            events_max=events_max,
            journal=journal,
        )
    except Exception as raised:  # noqa: BLE001 - a node is the user's own, and what is tested.
        error = raised
    endless = isinstance(error, GraphloopError) and len(journal) >= events_max
    again = Notes(interrupts=notes.interrupts)
    story = told(subject, journal, again)
    taken, events, deeds = tuple(choices.taken), tuple(journal), tuple(notes.deeds)
    trial = Trial(taken, events, story, simulation, error, endless, deeds)
    parts = simulation is None or simulation.run != story.run
    if not (parts or story.broken) or endless:
        return trial
    return replace(trial, difference=within_run(notes.deeds, again.deeds, crashes))


def _event(choices: Choices) -> int:
    """Return after which event something happens."""
    return 1 + choices.draw(choices.pick(CUTS))


def _interjection(choices: Choices) -> tuple[int, Queued | Cancelled]:
    """Return what somebody says or wants while the run goes on, and after which event."""
    said: tuple[Queued | Cancelled, ...] = (
        Queued(0.0, UserMessage("Wait.")),
        Queued(0.0, UserMessage("One more thing."), follow_up=True),
        Cancelled(0.0, "enough", after_step=True),
    )
    return _event(choices), choices.pick(said)


def _conversation(subject: Subject[S], choices: Choices) -> tuple[Message, ...]:
    """Return what a run begins with: also calls of before that nobody has answered."""
    start = contract_of(subject.graph.nodes[subject.graph.start])
    if start is None or not start.settles:
        return subject.messages
    before = choices.draw(8)
    if before == 6:
        return (*_long_ago(subject.setup.tools), *subject.messages)
    if before != 7:
        return subject.messages
    unanswered = unanswered_calls(subject.setup.tools, choices)
    return (*subject.messages, unanswered) if unanswered.calls else subject.messages


def _long_ago(tools: Sequence[ToolSpec]) -> Iterator[Message]:
    """Yield a long conversation that is over: what is made shorter where it has to be."""
    name = next((one.name for one in tools if one.kind == "function"), "gone")
    for at in range(EXCHANGES):
        call = ToolCall(f"old_{at}", name, "{}")
        yield UserMessage(f"Question {at}.")
        yield AssistantMessage((ReasoningPart("Hm. " * 100), call))
        yield ToolResult(f"c-9{at}.0", call.id, name, "found " * 400)
        yield AssistantMessage((TextPart("said " * 100),))
