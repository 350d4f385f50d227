"""Trials: one simulated run, as a function of choices."""

from __future__ import annotations

from typing import Final, TypeVar

from ..drivers.sim import Simulation, simulate
from ..errors import GraphloopError
from ..events import Event
from ..values import evolve
from .adversary import Adversary
from .choices import Choices
from .oracle import Trial
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


def tried(subject: Subject[S], choices: Choices, events_max: int) -> Trial[S]:
    """Return the run of a subject in the world that these choices make."""
    notes, journal = Notes(), list[Event]()
    graph = watched_graph(subject.graph, notes)
    seed = choices.draw(256)
    stubborn = choices.chance(8)
    crashes = [_event(choices) for _ in range(choices.pick(CRASHES))]
    abort = _event(choices) if not stubborn and choices.chance(5) else None
    setup = evolve(
        subject.setup,
        approval_ttl_s=subject.setup.approval_ttl_s or choices.pick(TTLS),
        attended=subject.iterated and choices.chance(8),
    )
    adversary = Adversary(
        subject.graph,
        choices,
        stubborn=stubborn,
        repeatable=choices.chance(3),
        wishers=notes.wishers,
        outer=setup.rules,
    )
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    try:
        simulation = simulate(
            graph,
            subject.messages,
            adversary.world,
            subject.state,
            setup=setup,
            seed=seed,
            crash_after=crashes,
            abort_after=abort,
            events_max=events_max,
            journal=journal,
        )
    except Exception as raised:  # noqa: BLE001 - a node is the user's own, and what is tested.
        error = raised
    endless = isinstance(error, GraphloopError) and len(journal) >= events_max
    story = told(subject, journal)
    taken, events = tuple(choices.taken), tuple(journal)
    return Trial(taken, events, story, simulation, error, endless)


def _event(choices: Choices) -> int:
    """Return after which event something happens."""
    return 1 + choices.draw(choices.pick(CUTS))
