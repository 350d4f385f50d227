"""fallback: a node, and another one for when the first has failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..contract import Contract
from ..effects import Effect
from ..errors import ConfigError
from ..events import Event
from ..node_protocol import Kind, Leave, Node, Reaction
from ..outcomes import Failed, Outcome
from ..run import Run
from ..turn import Dialogue
from .attempts import attempted, check_attempts, counter_of, either, may_try_again

__all__ = ["Fallback"]

S = TypeVar("S")


@dataclass(frozen=True)
class Fallback(Generic[S]):
    """Enter the second node when the first has failed; both stand in the table as one.

    The run says which of them is at work. The second is not entered once the budget is spent, or
    the run is stopped: then the outcome of the first stands.

    Args:
        first: a model, an agent, a check or a pure node.
        second: another of the same kind.
        after: the outcomes of the first after which the second is entered.
        name: the name in the table; that of both if not given.

    Raises:
        ConfigError: a node must not stand in for another, or the first is never left so.
    """

    first: Node[S, Outcome]
    second: Node[S, Outcome]
    after: frozenset[type[Outcome]] = field(default=frozenset({Failed}))
    name: str = ""

    def __post_init__(self) -> None:
        """Name the pair, and refuse what must not be tried."""
        pair = (self.first, self.second)
        object.__setattr__(self, "after", check_attempts("fallback", pair, self.after))
        if self.first.kind != self.second.kind:
            raise ConfigError(
                f"fallback takes two nodes of one kind; {self.first.name!r} is of the kind "
                f"{self.first.kind!r}, {self.second.name!r} of the kind {self.second.kind!r}"
            )
        name = self.name or f"{self.first.name}_or_{self.second.name}"
        object.__setattr__(self, "name", name)

    @property
    def kind(self) -> Kind:
        """The kind of both."""
        return self.first.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of both: the first one's failure stands where nothing more may be tried."""
        return self.first.outcomes | self.second.outcomes

    @property
    def contract(self) -> Contract | None:
        """The promises of its two nodes together; None if one of them has none."""
        return either(self.first, self.second, self.after)

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the first."""
        return self._settled(self.first.enter(attempted(run, self._counter, 0, None)))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Have the node react that is at work."""
        if run.counters.by_node.get(self._counter, 0):
            return self.second.on(run, event, answered)
        return self._settled(self.first.on(run, event, answered), run.turn.dialogue)

    @property
    def _counter(self) -> str:
        return counter_of("fallback", self.name, self.first, self.second)

    def _settled(
        self, reaction: Reaction[S, Outcome], talked: Dialogue | None = None
    ) -> Reaction[S, Outcome]:
        if not isinstance(reaction, Leave) or type(reaction.outcome) not in self.after:
            return reaction
        if not may_try_again(reaction.run):
            return reaction
        return self.second.enter(attempted(reaction.run, self._counter, 1, self.first, talked))
