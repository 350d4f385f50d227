"""Nodes that do not only decide: they forget, roll dice, leave the process or never return."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from graphloop import Graph
from graphloop.effects import Effect
from graphloop.events import Event, Setup
from graphloop.node_protocol import Kind, Leave, Reaction
from graphloop.outcomes import Aborted, Outcome, Settled
from graphloop.run import Run, evolve
from graphloop.turn import CallVerdict
from tests.unit.testing.planted import (
    Bug,
    Decision,
    Hasty,
    as_it_is,
    deciding,
    entering,
    table,
    twisted,
)

__all__ = ["exiting", "flaky", "interrupting", "open_gate", "rolling", "seldom", "two_faults"]


@dataclass(frozen=True)
class OpenGate:
    """A gate of one's own that lets everything pass, and has nothing checked."""

    name: str = "open_gate"
    kind: Kind = "gate"
    outcomes: frozenset[type[Outcome]] = frozenset({Settled, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Let everything pass."""
        verdicts = tuple(CallVerdict("run") for _ in run.turn.calls)
        return Leave(evolve(run, turn=evolve(run.turn, verdicts=verdicts)), Settled())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Let everything pass."""
        return self.enter(run)


def flaky(every: int = 50) -> Graph[None]:
    """Return a loop whose model node raises at every so many visits of this process."""
    visits = count(1)

    def raising(run: Run[None]) -> Run[None]:
        if not next(visits) % every:
            raise RuntimeError("flaky")
        return run

    return twisted("model", entering(raising))


def dice(odds: float) -> Bug:
    """Return the bug of a node that raises by chance."""
    die = random.Random(1)  # noqa: S311 - not for secrets

    def raising(run: Run[None]) -> Run[None]:
        if die.random() < odds:
            raise RuntimeError("unlucky")
        return run

    return entering(raising)


def rolling() -> Graph[None]:
    """Return a loop whose model node raises by chance."""
    return twisted("model", dice(0.05))


def seldom() -> Graph[None]:
    """Return a loop that decides otherwise in each run, and the same within one."""
    known: list[Setup] = []

    def learning(run: Run[None]) -> Run[None]:
        own = [at for at, one in enumerate(known) if one is run.setup]
        limit = 1_000 + (own[0] if own else len(known))
        if not own:
            known.append(run.setup)
        return evolve(run, turn=evolve(run.turn, max_tokens=limit))

    return twisted("model", entering(learning))


def two_faults() -> Graph[None]:
    """Return a loop whose model node rolls dice, and whose executing node runs calls again."""
    # A search ends after so many failures: dice that always fall badly would take them all.
    bugs: dict[str, Bug] = {"model": dice(0.01), "execute": Hasty}
    return table(lambda node: bugs.get(node.kind, as_it_is)(node))


def exiting(leaves: BaseException) -> Graph[None]:
    """Return a loop whose executing node leaves the process when there are many calls."""

    def leave() -> None:
        raise leaves

    return interrupting(leave)


def interrupting(press: Callable[[], None]) -> Graph[None]:
    """Return a loop whose executing node does something else while it decides on many calls."""

    def pressing(run: Run[None], event: Event | None, reaction: Decision) -> Decision:
        if event is not None and len(run.turn.calls) > 3:
            press()
        return reaction

    return twisted("execute", deciding(pressing))


def open_gate() -> Graph[None]:
    """Return a loop with a gate of one's own that asks nothing."""
    return twisted("gate", lambda _: OpenGate())
