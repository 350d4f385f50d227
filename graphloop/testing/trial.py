"""Trial: simulates one run of a subject, as a list of choices decides, and replays its journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar, final

from ..contract import contract_of
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
from .replies import unanswered_calls
from .sim import Simulation, simulate
from .subject import Subject
from .trace import Recording, Trace, difference, raised_text, recorded_graph, traced
from .violation import Violation

__all__ = ["Trial", "tried"]

S = TypeVar("S")

CRASHES: Final = (0, 0, 0, 1, 1, 2, 3)
CUTS: Final = (4, 8, 16, 64)
"""The options for the last event at which a crash or an abort may come; most runs are short."""
TTLS: Final = (None, None, None, 5.0)
"""Options for how long an approval is valid, in seconds.

Simulated answers take up to ten seconds, so some approvals come too late.
"""
INTERJECTIONS: Final = (0, 0, 0, 1, 2)
MEANWHILE: Final[tuple[Queued | Cancelled, ...]] = (
    Queued(0.0, UserMessage("Wait.")),
    Queued(0.0, UserMessage("One more thing."), follow_up=True),
    Cancelled(0.0, "enough", after_step=True),
)
NO_BUDGET: Final = Budget()
BUDGETS: Final = (
    *(NO_BUDGET, NO_BUDGET, NO_BUDGET, NO_BUDGET),
    *(Budget(tool_calls=2), Budget(tool_calls=7), Budget(tokens=60), Budget(seconds=30.0)),
    Budget(agent_calls=1),
    *(Budget(usd=0.5), Budget(tokens=900, usd=2.0, seconds=90.0, tool_calls=3)),
)
MOODS: Final = ("", "", "", "", "", "", "wordy", "stubborn")
"""Options for the model's behaviour in a run; most runs have neither of `Adversary`'s moods."""
EXCHANGES: Final = 6
"""The number of questions and answers in a long earlier conversation of the input."""


@final
@dataclass(frozen=True)
class Trial(Generic[S]):
    """A simulated run and the replay of its journal.

    Attributes:
        choices: the choices that the run drew.
        events: the journal.
        trace: the replay of the journal.
        recording: the node reactions recorded during the simulation.
        simulation: the result of the simulation; None if it raised an error.
        error: the error that the simulation raised, if any.
        endless: whether the run exceeded the maximum number of events.
        difference: a violation if the replay differs from the run; else None.
    """

    choices: tuple[int, ...]
    events: tuple[Event, ...]
    trace: Trace[S]
    recording: Recording
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    endless: bool = False
    difference: Violation | None = None


def tried(
    subject: Subject[S], choices: Choices, events_max: int, recording: Recording | None = None
) -> Trial[S]:
    """Simulate one run of a subject, as the choices decide, and replay its journal.

    Args:
        subject: the graph, with the input of its runs.
        choices: the numbers that decide the input, the answers, the crashes and the stops.
        events_max: the number of events after which the run counts as endless.
        recording: a recording to fill during the run; the caller can still read it after Ctrl-C.
    """
    recording = recording or Recording()
    journal = recording.journal
    seed = choices.draw(256)
    mood = choices.pick(MOODS)
    stubborn = mood == "stubborn"
    crashes = [_draw_event_number(choices) for _ in range(choices.pick(CRASHES))]
    abort = _draw_event_number(choices) if not stubborn and choices.chance(5) else None
    own = subject.setup.budget
    setup = evolve(
        subject.setup,
        approval_ttl_s=subject.setup.approval_ttl_s or choices.pick(TTLS),
        attended=subject.iterated and choices.chance(8),
        budget=choices.pick(BUDGETS) if own == NO_BUDGET else own,
    )
    meanwhile = {
        _draw_event_number(choices): choices.pick(MEANWHILE)
        for _ in range(choices.pick(INTERJECTIONS))
    }
    messages = _draw_messages(subject, choices)
    adversary = Adversary(
        subject.graph,
        choices,
        stubborn=stubborn,
        wordy=mood == "wordy",
        repeatable=choices.chance(3),
        askers=recording.askers,
        outer=setup.rules,
        approvals=subject.approvals,
    )
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    try:
        simulation = simulate(
            recorded_graph(subject.graph, recording),
            messages,
            adversary.world,
            subject.state,
            setup=setup,
            seed=seed,
            crash_after=crashes,
            abort_after=abort,
            meanwhile=meanwhile,
            events_max=events_max,
            journal=journal,
        )
    except Exception as raised:  # noqa: BLE001 - a node is the user's own, and under test.
        error = raised
    endless = isinstance(error, GraphloopError) and len(journal) >= events_max
    trace, taken = traced(subject, journal), tuple(choices.taken)
    trial = Trial(taken, tuple(journal), trace, recording, simulation, error, endless)
    same = simulation is not None and simulation.run == trace.run and trace.broken is None
    return trial if endless or same else replace(trial, difference=_first_difference(trial))


def _first_difference(trial: Trial[S]) -> Violation | None:
    """Return a violation at the first difference between a run and its replay, or None."""
    reason, trace = "a node depends on more than its run", trial.trace
    went_on = trial.simulation is not None or len(trial.events) > len(trace.steps) + 1
    if trace.broken is not None and went_on:
        text = f"{reason}: the replay raised {raised_text(trace.broken)}"
        return Violation("replay", text, len(trace.steps) + 1)
    return difference(trace, trial.recording.reactions, reason)


def _draw_event_number(choices: Choices) -> int:
    """Return a random event number, after which a crash, an abort or a message comes."""
    return 1 + choices.draw(choices.pick(CUTS))


def _draw_messages(subject: Subject[S], choices: Choices) -> tuple[Message, ...]:
    """Return the input messages of a run; some inputs have calls without results or a long past."""
    start = contract_of(subject.graph.nodes[subject.graph.start])
    if start is None or not start.takes_up_calls:
        return subject.messages
    match choices.draw(8):
        case 6:
            return (*_long_ago(subject.setup.tools), *subject.messages)
        case 7:
            unanswered = unanswered_calls(subject.setup.tools, choices)
            return (*subject.messages, *((unanswered,) if unanswered.calls else ()))
        case _:
            return subject.messages


def _long_ago(tools: Sequence[ToolSpec]) -> Iterator[Message]:
    """Yield a conversation that is long enough for compaction nodes to shorten it."""
    name = next((tool.name for tool in tools if tool.kind == "function"), "gone")
    for number in range(EXCHANGES):
        call = ToolCall(f"old_{number}", name, "{}")
        yield UserMessage(f"Question {number}.")
        yield AssistantMessage((ReasoningPart("Hm. " * 100), call))
        yield ToolResult(f"c-9{number}.0", call.id, name, "found " * 400)
        yield AssistantMessage((TextPart("said " * 100),))
