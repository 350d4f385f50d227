"""Trial: one simulated run, as a function of choices."""

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
from .trace import Decision, Recording, Trace, lived, parted, recorded_graph, traced
from .violation import Violation

__all__ = ["Trial", "tried"]

S = TypeVar("S")

CRASHES: Final = (0, 0, 0, 1, 1, 2, 3)
CUTS: Final = (4, 8, 16, 64)
"""Within how many events a crash or an abort comes: most runs are short."""
TTLS: Final = (None, None, None, 5.0)
"""A simulated answer takes up to ten seconds: some come too late."""
INTERJECTIONS: Final = (0, 0, 0, 1, 2)
SAID: Final[tuple[Queued | Cancelled, ...]] = (
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
EXCHANGES: Final = 6
"""How many exchanges a long conversation had before the run."""


@final
@dataclass(frozen=True)
class Trial(Generic[S]):
    """A simulated run: its choices, its journal and its trace.

    `simulation` is None if the simulation raised `error`; `endless` is set if it was given up.
    `decisions` are those of the simulation; `parted` tells where the replay of the journal
    differs.
    """

    choices: tuple[int, ...]
    events: tuple[Event, ...]
    trace: Trace[S]
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    endless: bool = False
    decisions: tuple[Decision, ...] = ()
    parted: Violation | None = None


def tried(
    subject: Subject[S], choices: Choices, events_max: int, recording: Recording | None = None
) -> Trial[S]:
    """Return the run of a subject in the world that the choices make.

    Args:
        subject: the graph, with the input of its runs.
        choices: make the world.
        events_max: after how many events the run is given up.
        recording: filled while the run goes on, to be read also after Ctrl-C.
    """
    journal = list[Event]()
    recording = recording or Recording()
    recording.journal = journal
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
    said = [(_event(choices), choices.pick(SAID)) for _ in range(choices.pick(INTERJECTIONS))]
    messages = _conversation(subject, choices)
    adversary = Adversary(
        subject.graph,
        choices,
        stubborn=stubborn,
        wordy=mood == 6,
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
            meanwhile=dict(said),
            events_max=events_max,
            journal=journal,
        )
    except Exception as raised:  # noqa: BLE001 - a node is the user's own, and under test.
        error = raised
    endless = isinstance(error, GraphloopError) and len(journal) >= events_max
    trace, taken = traced(subject, journal), tuple(choices.taken)
    decisions = tuple(recording.decisions)
    trial = Trial(taken, tuple(journal), trace, simulation, error, endless, decisions)
    differs = simulation is None or simulation.run != trace.run or trace.broken is not None
    if endless or not differs:
        return trial
    reason = "a node depends on more than its run"
    return replace(trial, parted=parted(decisions, lived(trace, crashes), reason))


def _event(choices: Choices) -> int:
    """Return after which event something happens."""
    return 1 + choices.draw(choices.pick(CUTS))


def _conversation(subject: Subject[S], choices: Choices) -> tuple[Message, ...]:
    """Return the input of a run: now and then with unanswered calls, or a long past."""
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
    """Yield a long conversation that is over, for nodes that shorten it."""
    name = next((one.name for one in tools if one.kind == "function"), "gone")
    for at in range(EXCHANGES):
        call = ToolCall(f"old_{at}", name, "{}")
        yield UserMessage(f"Question {at}.")
        yield AssistantMessage((ReasoningPart("Hm. " * 100), call))
        yield ToolResult(f"c-9{at}.0", call.id, name, "found " * 400)
        yield AssistantMessage((TextPart("said " * 100),))
