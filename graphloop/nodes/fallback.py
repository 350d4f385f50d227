"""fallback: a node that enters its first node, and its second node if the first fails."""

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
    """Enter `first`, and enter `second` if `first` fails; the table holds the pair as one node.

    A counter in the run records which of them is active. `second` is not entered once the budget is
    spent or the run is stopped; then the pair leaves by the outcome of `first`.

    Args:
        first: a model, an agent, a check or a pure node.
        second: another node of the same kind.
        after: the outcomes of `first` after which `second` is entered.
        name: the name in the table; by default both nodes' names, joined by `_or_`.

    Raises:
        ConfigError: a node must not be tried again, the kinds of both differ, or `after` names an
            outcome that `first` does not have.
    """

    first: Node[S, Outcome]
    second: Node[S, Outcome]
    after: frozenset[type[Outcome]] = field(default=frozenset({Failed}))
    name: str = ""
    _counter: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check both nodes and `after`, and make the default name."""
        pair = (self.first, self.second)
        object.__setattr__(self, "after", check_attempts("fallback", pair, self.after))
        if self.first.kind != self.second.kind:
            raise ConfigError(
                f"fallback takes two nodes of one kind; {self.first.name!r} is of the kind "
                f"{self.first.kind!r}, {self.second.name!r} of the kind {self.second.kind!r}"
            )
        name = self.name or f"{self.first.name}_or_{self.second.name}"
        object.__setattr__(self, "name", name)
        counter = counter_of("fallback", self.name, self.first, self.second)
        object.__setattr__(self, "_counter", counter)

    @property
    def kind(self) -> Kind:
        """The kind that both nodes have."""
        return self.first.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of both nodes; `first` may also fail when `second` must not be entered."""
        return self.first.outcomes | self.second.outcomes

    @property
    def contract(self) -> Contract | None:
        """The combined contract of both nodes; None if either has none."""
        return either(self.first, self.second, self.after)

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the first node, and the second at once if the first fails at once."""
        return self._try_second(self.first.enter(attempted(run, self._counter, 0, None)))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Pass the event to the active node; enter the second node if the first fails."""
        if run.counters.by_node.get(self._counter, 0):
            return self.second.on(run, event, answered)
        return self._try_second(self.first.on(run, event, answered), run.turn.dialogue)

    def _try_second(
        self, reaction: Reaction[S, Outcome], talked: Dialogue | None = None
    ) -> Reaction[S, Outcome]:
        if not isinstance(reaction, Leave) or type(reaction.outcome) not in self.after:
            return reaction
        if not may_try_again(reaction.run):
            return reaction
        return self.second.enter(attempted(reaction.run, self._counter, 1, self.first, talked))
