"""Nodes that do not only decide: they forget, roll dice, leave the process or never return."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from graphloop import Graph
from graphloop.effects import Effect
from graphloop.events import Event, Setup
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.outcomes import Aborted, Outcome, Settled
from graphloop.run import Run, evolve
from graphloop.turn import Verdict
from tests.unit.fuzz.planted import Around, Hasty, as_it_is, table, twisted

__all__ = [
    "exiting",
    "flaky",
    "interrupting",
    "open_gate",
    "rolling",
    "seldom",
    "two_faults",
]


@dataclass(frozen=True)
class Flaky(Around):
    """Raises at every `every`-th visit that this process makes."""

    every: int = 50
    visits: count[int] = field(default_factory=lambda: count(1), compare=False)

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Raise now and then."""
        if not next(self.visits) % self.every:
            raise RuntimeError("flaky")
        return super().enter(run)


@dataclass(frozen=True)
class Rolling(Around):
    """Rolls a die that no journal knows."""

    odds: float = 0.05
    die: random.Random = field(default_factory=lambda: random.Random(1), compare=False)  # noqa: S311 - not for secrets

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Raise by chance."""
        if self.die.random() < self.odds:
            raise RuntimeError("unlucky")
        return super().enter(run)


@dataclass(frozen=True)
class Learning(Around):
    """Decides once for each run, by how many runs there were, and keeps to that."""

    known: list[Setup] = field(default_factory=list[Setup], compare=False)

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Give the turn a limit of its own."""
        own = [at for at, one in enumerate(self.known) if one is run.setup]
        limit = 1_000 + (own[0] if own else len(self.known))
        if not own:
            self.known.append(run.setup)
        return super().enter(evolve(run, turn=evolve(run.turn, max_tokens=limit)))


@dataclass(frozen=True)
class Leaving(Around):
    """Leaves the process when a model calls many tools at once."""

    leaves: BaseException = field(default_factory=lambda: SystemExit(3))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Leave."""
        if len(run.turn.calls) > 3:
            raise self.leaves
        return super().on(run, event, answered)


@dataclass(frozen=True)
class Interrupting(Around):
    """Does something while it decides about many calls: somebody presses Ctrl-C, for example."""

    press: Callable[[], None] = lambda: None

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Do it."""
        if len(run.turn.calls) > 3:
            self.press()
        return super().on(run, event, answered)


@dataclass(frozen=True)
class OpenGate:
    """A gate of one's own that lets everything pass, and has nothing checked."""

    name: str = "open_gate"
    kind: Kind = "gate"
    outcomes: frozenset[type[Outcome]] = frozenset({Settled, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Let everything pass."""
        verdicts = tuple(Verdict("run") for _ in run.turn.calls)
        return Leave(evolve(run, turn=evolve(run.turn, verdicts=verdicts)), Settled())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Let everything pass."""
        return self.enter(run)


def flaky(every: int = 50) -> Graph[None]:
    """Return a loop whose model node raises at every so many visits."""
    return twisted("model", lambda node: Flaky(node, every))


def rolling() -> Graph[None]:
    """Return a loop whose model node raises by chance."""
    return twisted("model", Rolling)


def seldom() -> Graph[None]:
    """Return a loop that decides otherwise in each run, and the same within one."""
    return twisted("model", Learning)


def two_faults() -> Graph[None]:
    """Return a loop whose model node rolls dice, and whose executing node runs calls again."""
    bugs: dict[str, Callable[[Node[None, Outcome]], Node[None, Outcome]]]
    # A search ends after so many failures: dice that always fall badly would take them all.
    bugs = {"model": lambda node: Rolling(node, odds=0.01), "execute": Hasty}
    return table(lambda node: bugs.get(node.kind, as_it_is)(node))


def exiting(leaves: BaseException) -> Graph[None]:
    """Return a loop whose executing node leaves the process."""
    return twisted("execute", lambda node: Leaving(node, leaves))


def interrupting(press: Callable[[], None]) -> Graph[None]:
    """Return a loop whose executing node does something outside of it."""
    return twisted("execute", lambda node: Interrupting(node, press))


def open_gate() -> Graph[None]:
    """Return a loop with a gate of one's own that asks nothing."""
    return twisted("gate", lambda _: OpenGate())
