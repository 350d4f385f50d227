"""parallel: a node that runs several agents at once, and joins their answers into one reply."""

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
        agent: the name of an agent that the run knows.
        prompt: a user message that the agent reads after the conversation; empty for none.
        name: the heading of its answer; by default the agent's name, with a number if several
            branches have that agent.
    """

    agent: str
    prompt: str = ""
    name: str = ""


@dataclass(frozen=True)
class Parallel(FrozenFields):
    """Run several agents at once, and join their answers into the turn's reply.

    The answers stand in branch order, whatever order they came in. They can be read in
    `run.turn.branches` until the next turn. A branch that waits for a person parks the run; a
    resume does not run the other branches again. Each branch gets an equal share of the remaining
    budget. If no branch succeeds, the node fails.

    Args:
        branches: the names of agents, or `Branch` values.
        join: "collect" waits for all branches, and the joined answer lists failed branches;
            "fail_fast" stops the others and fails as soon as one branch fails; "first" takes the
            first successful answer and stops the others; "majority" stops the others once more than
            half of the branches agree.
        reducer: "concat", "majority" or "first"; empty for the default of the join.
        callback: the name of a function that joins the answers instead, and returns `Joined`.
        concurrency: the most agents that run at once.
        name: the node's name.

    Raises:
        ConfigError: there is no branch, two branches have one name, or a join, a reducer or a
            number is not allowed.
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
        """Give each branch a unique name, and set the join's default reducer if none is given."""
        super().__post_init__()
        whole_number("concurrency", self.concurrency)
        reducer = check_join(self.join, self.reducer, self.callback)
        object.__setattr__(self, "branches", _named(self.branches))
        object.__setattr__(self, "reducer", "" if self.callback else reducer)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node opens a turn, and starts one run for each branch."""
        return self._fan_out.contract(Counter(one.agent for one in self.branches))

    @property
    def _fan_out(self) -> FanOut:
        reducer = check_join(self.join, self.reducer, self.callback)
        return FanOut(self.name, self.join, reducer, self.callback, self.concurrency)

    def enter(self, run: Run[S], /) -> Reaction[S, FanOutOutcome]:
        """Open a turn, and request the child runs of the first branches."""
        branches = tuple([BranchRun(one.name, one.agent, one.prompt) for one in self.branches])
        return self._fan_out.start(run, branches)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, FanOutOutcome]:
        """Store a branch's answer and start the next branch; after the last, join all answers."""
        return self._fan_out.on(run, event, answered)


def _named(branches: object) -> tuple[Branch, ...]:
    """Return the branches as `Branch` values, each with a unique name."""
    if not isinstance(branches, tuple | list) or not branches:
        raise ConfigError(f"`branches` are the names of agents, or Branch; found {branches!r:.80}")
    listed: list[Branch] = []
    for one in cast("Sequence[object]", branches):  # isinstance does not check the items' types.
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
