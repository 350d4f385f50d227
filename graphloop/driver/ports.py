"""Ports: the world of a run in one value: models, tools, callbacks, a human, a clock."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import AskHuman, CallTool, StartRun
from ..events import Answer, ChildEnded, Event, Started
from ..graph import NodeGraph
from ..policy import Approval, Policy
from ..providers import Live, Provider
from ..run import Run
from ..step import Step
from ..stores import Store
from ..tools import Toolbox, ToolOutcome
from ..values import Reply

__all__ = [
    "Approver",
    "Callback",
    "ChildPlan",
    "ChildRun",
    "ChildStep",
    "LeftOpen",
    "Parked",
    "Ports",
    "Price",
    "Resumption",
    "Seen",
    "Settler",
    "Shown",
    "as_it_ended",
]

S = TypeVar("S")


Approver: TypeAlias = Callable[[AskHuman, Run[S]], Awaitable[Approval]]
Callback: TypeAlias = Callable[[Run[S]], Answer | Awaitable[Answer]]
Settler: TypeAlias = Callable[[AskHuman | CallTool], Approval | ToolOutcome]
Price: TypeAlias = Callable[[Reply], float | None]


class LeftOpen(Exception):
    """Raised by an approver who decides nothing now: the question stays open, as if unasked."""


@dataclass(frozen=True, kw_only=True)
class Ports(Generic[S]):
    """Everything a run reaches through its driver.

    Args:
        store: where the journal goes.
        models: the models by label.
        toolbox: the tools that can run here.
        callbacks: the user's functions, by the name that `Invoke` gives them.
        approve: who answers `AskHuman`; None parks the run instead.
        settle: answers for the open calls of a conversation that was handed in, with what the
            caller gave; None parks the run with them.
        children: the agents that can be run as children, by name.
        gates: the gates above, and the one that is given with the run, outermost first, as this
            process knows them (`gates_of`). They hold in child runs as well.
        own: the rules of the graph's own gates, for the functions of their conditions.
        attended: whether `AwaitCaller` waits for the caller of the run, who may steer it.
        resumable: whether a driver could resume a run that was left in the middle of a tool: then
            effects that must not repeat are journaled before they start. False only where no other
            driver can reach the store.
        stoppable: whether a caller may abort the run: a lone tool has a task of its own then, to be
            left behind in, which costs a little.
        state_type: the type of the graph's state; None where it is not known.
        kept: whether the journal is written down, so that every state in it has to be readable.
        secret: signs the tokens of approvals.
        path: the call keys of the agents above the run.
        step_s: after how many seconds a turn is given up; None for never.
        price: returns the cost of a reply in US dollars; None where no price is known.
        clock: seconds since the epoch; the only time a run ever sees.
        wrong: which functions answered neither yes nor no, in the run and in those below it.
    """

    store: Store
    models: Mapping[str, Provider]
    toolbox: Toolbox
    callbacks: Mapping[str, Callback[S]] = field(default_factory=dict[str, Callback[S]])
    approve: Approver[S] | None = None
    settle: Settler | None = None
    children: Mapping[str, ChildPlan] = field(default_factory=dict[str, "ChildPlan"])
    gates: tuple[Policy, ...] = ()
    own: Policy | None = None
    attended: bool = False
    resumable: bool = True
    stoppable: bool = True
    state_type: object = None
    kept: bool = False
    secret: bytes | None = None
    path: tuple[str, ...] = ()
    step_s: float | None = None
    price: Price | None = None
    clock: Callable[[], float] = time.time
    wrong: dict[str, None] = field(default_factory=dict[str, None], compare=False)


class Parked(Struct, frozen=True):
    """The end of an effect that this driver cannot answer: it waits for an outside answer."""

    effect: int


class ChildStep(Struct, frozen=True):
    """Something seen in a child run: `key` is the child's key in its parent.

    `seen` is a step, a delta, or something seen in a child of the child.
    """

    key: str
    agent: str
    graph: NodeGraph[Any]
    seen: Step[Any] | Live | ChildStep


Shown: TypeAlias = Live | ChildStep
"""Deltas of a model, and the same of child runs: no journal has them."""

Seen: TypeAlias = Step[S] | Shown
"""All that a driver shows of its run."""


@dataclass(frozen=True)
class Resumption(Generic[S]):
    """A run to resume: where it stands, the answers that came for it, and its own children."""

    run: Run[S]
    answers: tuple[Event, ...] = ()
    children: Mapping[str, Resumption[Any]] = field(default_factory=dict[str, "Resumption[Any]"])


def as_it_ended(ended: ChildEnded, _: Run[Any]) -> ChildEnded:
    """Tell the parent how its child ended, and nothing more."""
    return ended


@dataclass(frozen=True, kw_only=True)
class ChildRun(Generic[S]):
    """A child run, ready to start or resume.

    Args:
        graph: what to run.
        ports: its world.
        run_id: its id, by which its journal is found.
        begin: makes its first event; not called for a child that has started.
        end: makes the event that tells its parent of its end.
    """

    graph: NodeGraph[S]
    ports: Ports[S]
    run_id: str
    begin: Callable[[], Started]
    end: Callable[[ChildEnded, Run[S]], ChildEnded] = as_it_ended


class ChildPlan(Protocol):
    """An agent that can be run as a child."""

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that `effect` asks for.

        Args:
            effect: the effect, with the child's arguments and its budget.
            run: the parent's run.
            ports: the parent's world, of which the child gets the store, the approver, the clock
                and the rules of its gates.

        Raises:
            ConfigError: the arguments are no question.
        """
        ...
