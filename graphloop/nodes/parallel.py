"""parallel: several agents at once, whose joined answer takes the model's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast, final

from ..contract import Contract
from ..effects import Effect
from ..errors import ConfigError
from ..events import Event
from ..node_protocol import Reaction, outcomes_of
from ..run import Run
from ..spending import whole_number
from ..turn import BranchRun
from .fan_out import FanOut, FanOutOutcome
from .frozen_fields import FrozenFields
from .joins import BranchJoin, check_join

__all__ = ["Branch", "Parallel"]

S = TypeVar("S")


@final
@dataclass(frozen=True, slots=True)
class Branch:
    """An agent that a `Parallel` node runs beside others.

    Args:
        agent: the name of the agent among those that the run knows.
        prompt: what it is told after the conversation; nothing if empty.
        name: what its answer is called; the agent's name if not given, numbered where several
            branches have it.
    """

    agent: str
    prompt: str = ""
    name: str = ""


@dataclass(frozen=True)
class Parallel(FrozenFields):
    """Run several agents side by side, and join their answers to the turn's.

    The answers stand in the order of the branches, whatever order they came in, and can be read
    in `run.turn.branches` until the next turn. A branch that waits for a person parks the run; the
    others are not run again when it is resumed. Each gets an equal share of the remaining budget.
    Without any good answer the node fails.

    Args:
        branches: agents by their names, or with a prompt of their own.
        join: "collect" waits for all of them, and what failed says so in the answer; "fail_fast"
            fails, and stops the others, as soon as one fails; "first" takes the first good answer
            and stops the others; "majority" stops once more than half of them agree.
        reducer: "concat", "majority" or "first"; if empty, the one that goes with the join.
        callback: the name of a function that joins the answers instead, and returns `Joined`.
        concurrency: how many agents may run at once.
        name: the node's name.

    Raises:
        ConfigError: there is no branch, or a join, a reducer or a number that cannot work, or two
            branches have one name.
    """

    branches: tuple[Branch, ...]
    join: BranchJoin = "collect"
    reducer: str = ""
    callback: str = ""
    concurrency: int = 5
    name: str = "parallel"
    kind: Literal["graph"] = "graph"
    outcomes = outcomes_of(FanOutOutcome)

    def __post_init__(self) -> None:
        """Give each branch a name, and choose the reducer."""
        super().__post_init__()
        whole_number("concurrency", self.concurrency)
        reducer = check_join(self.join, self.reducer, self.callback)
        object.__setattr__(self, "branches", _named(self.branches))
        object.__setattr__(self, "reducer", "" if self.callback else reducer)

    @property
    def contract(self) -> Contract:
        """It opens a turn, which the agents answer; what they do is their own."""
        return self._fan_out.contract(Counter(one.agent for one in self.branches))

    @property
    def _fan_out(self) -> FanOut:
        reducer = check_join(self.join, self.reducer, self.callback)
        return FanOut(self.name, self.join, reducer, self.callback, self.concurrency)

    def enter(self, run: Run[S], /) -> Reaction[S, FanOutOutcome]:
        """Start the first branches."""
        branches = tuple([BranchRun(one.name, one.agent, one.prompt) for one in self.branches])
        return self._fan_out.start(run, branches)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, FanOutOutcome]:
        """Keep an answer, and start the next branch; or join them."""
        return self._fan_out.on(run, event, answered)


def _named(branches: object) -> tuple[Branch, ...]:
    """Return the branches, each with a name of its own."""
    if not isinstance(branches, tuple | list) or not branches:
        raise ConfigError(f"`branches` are the names of agents, or Branch; found {branches!r:.80}")
    listed: list[Branch] = []
    for one in cast("Sequence[object]", branches):  # isinstance cannot tell what is in it.
        branch = Branch(one) if isinstance(one, str) else one
        if not isinstance(branch, Branch) or not branch.agent:
            raise ConfigError(f"a branch is the name of an agent, or a Branch; found {one!r:.80}")
        listed.append(branch)
    agents = Counter(one.agent for one in listed if not one.name)
    numbers: Counter[str] = Counter()
    named: list[Branch] = []
    for one in listed:
        numbers[one.agent] += not one.name
        own = one.agent if agents[one.agent] == 1 else f"{one.agent} {numbers[one.agent]}"
        named.append(Branch(one.agent, one.prompt, one.name or own))
    twice = [name for name, count in Counter(one.name for one in named).items() if count > 1]
    if twice:
        raise ConfigError(f"two branches are named {twice[0]!r}: give one of them another `name`")
    return tuple(named)
