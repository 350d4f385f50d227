"""retrying: a node that is entered again after it has failed, a bounded number of times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..contract import Contract, contract_of
from ..effects import Effect
from ..errors import ConfigError
from ..events import Event
from ..node_protocol import Kind, Leave, Node, Reaction
from ..outcomes import Failed, Outcome
from ..run import Run
from ..spending import whole_number
from ..turn import Dialogue
from .attempts import attempted, check_attempts, counter_of, may_try_again, repeated

__all__ = ["Retrying"]

S = TypeVar("S")


@dataclass(frozen=True)
class Retrying(Generic[S]):
    """Try a node again when it has failed; it stands in the table in that node's place.

    The attempts are counted in the run, from its arrival here; those that a process made before
    it died count, too. When the last has failed, or the budget is spent, or the run is stopped, the
    node's own outcome stands. The notes of a generator that failed are taken back before it is
    tried again. A generator that asks for something else when it is run again is not tried again.

    Args:
        node: a model, an agent, a check or a pure node. A node that runs tools, adds to the history
            or asks a person is never tried again. An agent is, as a new run: the effects of its
            tools stay, and the new run may call them again, through its gates.
        times: how often it is tried again at most.
        after: the outcomes after which it is tried again.
        name: the name in the table; the node's own if not given.

    Raises:
        ConfigError: the node must not be tried again, or is never left so, or `times` is not a
            whole number of at least 1.
    """

    node: Node[S, Outcome]
    times: int
    after: frozenset[type[Outcome]] = field(default=frozenset({Failed}))
    name: str = ""

    def __post_init__(self) -> None:
        """Take the node's name, and refuse what must not be tried again."""
        whole_number("times", self.times)
        if isinstance(self.node, Retrying):
            raise ConfigError(f"{self.node.name!r} is tried again already: raise its `times`")
        object.__setattr__(self, "after", check_attempts("retry", (self.node,), self.after))
        object.__setattr__(self, "name", self.name or self.node.name)

    @property
    def kind(self) -> Kind:
        """The node's own kind."""
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The node's own outcomes."""
        return self.node.outcomes

    @property
    def contract(self) -> Contract | None:
        """The promise of its node, so many times; None if it has none."""
        promised = contract_of(self.node)
        return (
            None if promised is None else repeated(promised, self.node, self.times + 1, self.after)
        )

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Try for the first time."""
        return self._settled(self.node.enter(attempted(run, self._counter, 0, None)))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Have the node react, and try again if that was its end."""
        return self._settled(self.node.on(run, event, answered), run.turn.dialogue)

    @property
    def _counter(self) -> str:
        return counter_of("retry", self.name, self.node)

    def _settled(
        self, reaction: Reaction[S, Outcome], talked: Dialogue | None = None
    ) -> Reaction[S, Outcome]:
        # A node may fail without waiting for anything, each time.
        for _ in range(self.times):
            if not isinstance(reaction, Leave) or type(reaction.outcome) not in self.after:
                break
            run = reaction.run
            count = run.counters.by_node.get(self._counter, 0)
            if count >= self.times or not may_try_again(run):
                break
            run = attempted(run, self._counter, count + 1, self.node, talked)
            reaction, talked = self.node.enter(run), None
        return reaction
