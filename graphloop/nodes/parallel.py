"""parallel: a node that runs several agents at once, and joins their answers into one reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, cast, final

from ..contract import Contract
from ..effects import Effect, Invoke, Place, check_place
from ..errors import ConfigError
from ..events import CallbackReturned, Event, Failure, ItemsListed
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Answered, Failed
from ..run import Ending, EndReason, Run, ended_by
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
    """A branch of a `Parallel` node: an agent that runs beside those of the other branches.

    Args:
        agent: the name of an agent that the run knows.
        prompt: a user message that the agent reads after the conversation; empty for none.
        name: the heading of its answer; by default the agent's name, with a number if several
            branches have that agent.
        into: the field of the state that gets the result; empty for none. Several branches may
            write into one field only if the field has a `reduce`.
    """

    agent: str
    prompt: str = ""
    name: str = ""
    into: str = ""


@dataclass(frozen=True)
class Parallel(FrozenFields):
    """Run several agents at once, and join their answers into the turn's reply.

    The answers stand in branch order, whatever order they came in. They can be read in
    `run.turn.branches` until the next turn. A branch that waits for a person parks the run; a
    resume does not run the other branches again. Each branch gets an equal share of the remaining
    budget. If no branch succeeds, the node fails.

    Args:
        branches: the names of agents, or `Branch` values.
        into: the field of the state that gets the results of all branches as a list, in branch
            order; empty for none. A `Branch` may name a field of its own instead.
        join: "collect" waits for all branches, and the joined answer lists failed branches;
            "fail_fast" stops the others and fails as soon as one branch fails; "first" takes the
            first successful answer and stops the others; "majority" stops the others once more than
            half of the branches agree. The default is "collect", and "fail_fast" with `into`.
        reducer: "concat", "majority" or "first"; empty for the default of the join.
        callback: the name of a function that joins the answers instead, and returns `Joined`.
        concurrency: the most agents that run at once.
        name: the node's name.
        place: "anywhere" lets any worker drive a child run, while this run waits parked.
        prompts: the name of a function that lists the prompt of each branch, made from the state,
            in branch order; empty for the prompts of the branches.

    Raises:
        ConfigError: there is no branch, two branches have one name, or a join, a reducer, a
            number or the place is not allowed.
    """

    branches: tuple[Branch, ...]
    join: BranchJoin | None = None
    reducer: str = ""
    callback: str = ""
    concurrency: int = 5
    name: str = "parallel"
    kind: Literal["graph"] = "graph"
    into: str = ""
    prompts: str = ""
    place: Place = "here"
    outcomes = outcomes_of(FanOutOutcome)

    def __post_init__(self) -> None:
        """Give each branch a unique name; choose the join and its reducer if none is given."""
        super().__post_init__()
        whole_number("concurrency", self.concurrency)
        check_place(self.place, f"node {self.name!r}")
        object.__setattr__(self, "branches", _name_branches(self.branches))
        fields = [one.into for one in self.branches if one.into]
        if (fields and self.into) or ((fields or self.into) and self.callback):
            raise ConfigError(
                f"node {self.name!r}: expected one place for the results, found `into` of the node "
                f"({self.into!r}), of branches ({fields}) and `callback` ({self.callback!r}). Fix: "
                "give one of them"
            )
        join = self.join or ("fail_fast" if fields or self.into else "collect")
        object.__setattr__(self, "join", join)
        reducer = check_join(join, self.reducer, self.callback)
        object.__setattr__(self, "reducer", "" if self.callback else reducer)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node opens a turn, and starts one run for each branch."""
        promised = self._fan_out.contract(Counter(one.agent for one in self.branches))
        if self.prompts:
            functions = (self.prompts, *promised.functions)
            promised = replace(promised, functions=functions, reads=None)
        fields = frozenset([one.into for one in self.branches if one.into])
        if not fields:
            return (
                replace(promised, writes={Answered: frozenset({self.into})})
                if self.into
                else promised
            )
        known = {child.name: child for child in promised.children}
        # A child for each branch: the proofs ask which of them write into one field.
        children = [
            replace(known[one.agent], runs=1, writes=frozenset({one.into} - {""}))
            for one in self.branches
        ]
        return replace(promised, children=tuple(children), writes={Answered: fields})

    @property
    def _fan_out(self) -> FanOut:
        join: BranchJoin = self.join or "collect"
        reducer = check_join(join, self.reducer, self.callback)
        has_fields = self.into or any(one.into for one in self.branches)
        callback = f"field:into:{self.into}" if has_fields else self.callback
        return FanOut(self.name, join, reducer, callback, self.concurrency, place=self.place)

    def enter(self, run: Run[S], /) -> Reaction[S, FanOutOutcome]:
        """Open a turn, and request the child runs of the first branches."""
        if self.prompts and not run.was_stopped:
            return Wait(run, (Invoke(run.next_effect, self.prompts),))
        return self._start_branches(run, [one.prompt for one in self.branches])

    def _start_branches(self, run: Run[S], prompts: Sequence[str]) -> Reaction[S, FanOutOutcome]:
        """Start the first branches, each with its prompt."""
        if len(prompts) != len(self.branches):
            found = f"node {self.name!r}: expected {len(self.branches)} prompts, found "
            failure = Failure("ConfigError", f"{found}{len(prompts)}")
            return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())
        branches = tuple(
            [
                BranchRun(one.name, one.agent, prompt, into=one.into or self.into)
                for one, prompt in zip(self.branches, prompts, strict=True)
            ]
        )
        return self._fan_out.start(run, branches)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, FanOutOutcome]:
        """Store a branch's answer and start the next branch; after the last, join all answers."""
        if isinstance(event, CallbackReturned) and isinstance(event.answer, ItemsListed):
            return self._start_branches(run, event.answer.items)
        return self._fan_out.on(run, event, answered)


def _name_branches(branches: object) -> tuple[Branch, ...]:
    """Return the branches as `Branch` values, each with a unique name."""
    if not isinstance(branches, tuple | list) or not branches:
        raise ConfigError(
            f"expected `branches` to be names of agents, or Branch, found {branches!r:.80}"
        )
    listed: list[Branch] = []
    for one in cast("Sequence[object]", branches):  # isinstance does not check the items' types.
        branch = Branch(one) if isinstance(one, str) else one
        if not isinstance(branch, Branch) or not branch.agent:
            raise ConfigError(
                f"expected a branch to be the name of an agent, or a Branch, found {one!r:.80}"
            )
        listed.append(branch)
    agents = Counter(one.agent for one in listed if not one.name)
    numbers: Counter[str] = Counter()
    named: list[Branch] = []
    for one in listed:
        numbers[one.agent] += not one.name
        own = one.agent if agents[one.agent] == 1 else f"{one.agent} {numbers[one.agent]}"
        named.append(replace(one, name=one.name or own))
    twice = [name for name, count in Counter(one.name for one in named).items() if count > 1]
    if twice:
        raise ConfigError(f"two branches are named {twice[0]!r}: give one of them another `name`")
    return tuple(named)
