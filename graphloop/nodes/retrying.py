"""retrying: a node that enters another node again after a failure, a bounded number of times."""

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
    """Try a node again when it has failed; the table holds this wrapper in the node's place.

    The run counts the attempts of a visit, including attempts before a crash. After the last
    attempt, or once the budget is spent or the run is stopped, the wrapper leaves by the node's own
    outcome. A failed generator's notes are removed before the next attempt. A generator that makes
    different requests when it is run again is not tried again.

    Args:
        node: a model, an agent, a check or a pure node. A node that runs tools, adds to the history
            or asks a person is refused. An agent is tried again as a new run: the effects of its
            tools stay, and the new run may call the tools again, through its gates.
        times: the most attempts after the first one.
        after: the outcomes after which the node is tried again.
        name: the name in the table; by default the node's own name.

    Raises:
        ConfigError: the node must not be tried again, `after` names an outcome that it does not
            have, or `times` is not a whole number of at least 1.
    """

    node: Node[S, Outcome]
    times: int
    after: frozenset[type[Outcome]] = field(default=frozenset({Failed}))
    name: str = ""
    _counter: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the fields, and use the node's name if none is given."""
        whole_number("times", self.times)
        if isinstance(self.node, Retrying):
            raise ConfigError(f"{self.node.name!r} is tried again already: raise its `times`")
        object.__setattr__(self, "after", check_attempts("retry", (self.node,), self.after))
        object.__setattr__(self, "name", self.name or self.node.name)
        counter = counter_of("retry", self.name, self.node)
        object.__setattr__(self, "_counter", counter)

    @property
    def kind(self) -> Kind:
        """The kind of the wrapped node."""
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of the wrapped node."""
        return self.node.outcomes

    @property
    def contract(self) -> Contract | None:
        """The wrapped node's contract for all attempts together; None if the node has none."""
        promised = contract_of(self.node)
        return (
            None if promised is None else repeated(promised, self.node, self.times + 1, self.after)
        )

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the wrapped node for the first attempt."""
        return self._try_again(self.node.enter(attempted(run, self._counter, 0, None)))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Pass the event to the wrapped node, and start another attempt if it fails."""
        return self._try_again(self.node.on(run, event, answered), run.turn.dialogue)

    def _try_again(
        self, reaction: Reaction[S, Outcome], talked: Dialogue | None = None
    ) -> Reaction[S, Outcome]:
        # A loop, because each attempt may fail at once, without waiting for an effect.
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
