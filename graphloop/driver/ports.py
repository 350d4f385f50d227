"""Ports: the store, models, tools, callbacks, approver and clock that a run uses."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from math import inf
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar, final

from msgspec import Struct
from typing_extensions import TypeIs

from ..effects import AskHuman, CallTool, Place, StartRun
from ..errors import ConfigError
from ..events import Answering, CallbackAnswer, ChildEnded, Event, Started
from ..graph import NodeGraph
from ..policy import Approval, Policy
from ..providers import LIVE, Live, ModelSession, Provider, why_unfit
from ..run import Run
from ..step import Step
from ..stores import Posted, Store
from ..tools import Toolbox, ToolOutcome, ToolProgress
from ..values import MediaPart, Reply, TextPart, UserPart
from .observers import Observers

__all__ = [
    "SHOWN",
    "Approver",
    "Callback",
    "ChildPlan",
    "ChildRun",
    "ChildStep",
    "DriverState",
    "Elsewhere",
    "Fleet",
    "GivenAnswer",
    "Item",
    "LeftOpen",
    "Pace",
    "Parked",
    "Ports",
    "Price",
    "Resumption",
    "Seen",
    "Shown",
    "Source",
    "as_it_ended",
    "is_shown",
    "is_step",
]

S = TypeVar("S")


Approver: TypeAlias = Callable[[AskHuman, Run[S]], Awaitable[Approval]]
Callback: TypeAlias = Callable[[Run[S]], CallbackAnswer | Awaitable[CallbackAnswer]]
GivenAnswer: TypeAlias = Callable[[AskHuman | CallTool], Approval | ToolOutcome]
Price: TypeAlias = Callable[[Reply, str], float | None]
"""Returns the cost in US dollars of a reply of the model with this label; None if unknown."""


class LeftOpen(Exception):
    """Raised by an approver that does not decide now, so that its question stays pending."""


class DriverState(Enum):
    """States of a driver: its run goes on, is parked, has ended, or was left unfinished.

    A run is `DETACHED` (left) if its caller left or was cancelled, or its event loop was closed.
    """

    RUNNING = auto()
    PARKED = auto()
    ENDED = auto()
    DETACHED = auto()


class Pace(Protocol):
    """Lets the model calls of a run wait for limits that other runs share (`rates.FleetPace`)."""

    def paced(self, label: str, session: ModelSession) -> ModelSession:
        """Return a session of a model whose calls wait; it may raise `Postponed`."""
        ...

    def for_child(self, own: Self | None) -> Self:
        """Return the pace of a child run, which has these limits and its own."""
        ...


class Elsewhere(Protocol):
    """Lets other workers drive child runs: a store that workers share."""

    def place(self, run_id: str) -> Awaitable[None]:
        """Let workers take a child run; its end, and what it asks, wake the run above."""
        ...

    def post(self, run_id: str, key: str, signal_id: str, data: str) -> Awaitable[Posted]:
        """Put an answer or a command into the mailbox of a run, whose worker obeys."""
        ...


class Fleet(Struct, frozen=True):
    """The limits and the child runs that a worker shares with others.

    Args:
        pace: lets model calls wait for limits that the runs of all workers share.
        elsewhere: lets other workers drive child runs.
    """

    pace: Pace | None = None
    elsewhere: Elsewhere | None = None


class Ports(Struct, Generic[S], frozen=True, kw_only=True, eq=False):
    """The store, models, tools and functions that a driver uses for a run.

    Args:
        store: the store of the journal.
        models: the models by label.
        named: the labels of the models that nodes ask first, in place of the run's model.
        toolbox: the tools that can run in this process.
        callbacks: the user's functions, by their names in `Invoke`.
        approve: the function that answers `AskHuman`; None parks the run instead.
        given_answer: returns the caller's answer to an open call of a conversation that the caller
            passed in; None parks the run with these calls.
        children: the agents that can be child runs, by name.
        gates: the policies of the parent runs and of the caller, outermost first, with their
            functions (`gates_of`). They also decide in child runs.
        own: the policy of the graph's own gates, with the functions of its conditions.
        attended: whether `AwaitCaller` waits for the caller, who may steer the run.
        resumable: whether another driver could resume the run after a crash during a tool. If so,
            effects that must not be repeated are journaled before they start. It is False only if
            no other driver can reach the store.
        stoppable: whether a caller may abort the run. If so, even a single tool call runs in a task
            of its own, which can be abandoned. This costs a little time.
        shows_steps: whether the driver yields the steps of the run. It is False only if the
            caller wants the result alone, and the run's stream has no use for the steps.
        state_type: the type of the user's state; None if it is not known.
        kept: whether the store serializes the journal, so that every state must be serializable.
        secret: the key that signs approval tokens; None for unsigned tokens.
        path: the keys of the calls that started the parent agents, outermost first.
        step_s: the time limit of a turn in seconds; None for no limit.
        price: returns the cost of a reply.
        clock: returns the time in seconds since the epoch; the run reads no other clock.
        deps: the caller's object for the user's functions; no journal and no error shows it.
        wrong: warnings about condition functions that raised or did not return a bool, in this run
            and its child runs.
        observers: the observers of the run and of its parents; None for none.
        pace: lets model calls wait for the rates of the fleet; None for no rates.
        elsewhere: lets other workers drive child runs whose `place` is "anywhere"; None drives each
            child run here.
        revision: the revision of the code, if it is another than the last one that the run's
            journal tells; else empty.
    """

    store: Store
    models: Mapping[str, Provider]
    toolbox: Toolbox
    callbacks: Mapping[str, Callback[S]] = {}
    approve: Approver[S] | None = None
    given_answer: GivenAnswer | None = None
    children: Mapping[str, ChildPlan] = {}
    gates: tuple[Policy, ...] = ()
    own: Policy | None = None
    attended: bool = False
    resumable: bool = True
    stoppable: bool = True
    shows_steps: bool = True
    state_type: object = None
    kept: bool = False
    secret: bytes | None = None
    path: tuple[str, ...] = ()
    step_s: float | None = None
    price: Price | None = None
    clock: Callable[[], float] = time.time
    deps: object = None
    wrong: dict[str, None] = {}
    observers: Observers | None = None
    pace: Pace | None = None
    elsewhere: Elsewhere | None = None
    revision: str = ""
    named: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        # Short, because `deps` and the secret must appear in no traceback.
        return f"<Ports of models {', '.join(self.models) or 'none'}>"

    def open_child(self, effect: StartRun, run: Run[Any]) -> ChildRun[Any]:
        """Return the child run that an effect of `run` starts or has started.

        Raises:
            ConfigError: the child's agent is not here, or the arguments do not fit it.
        """
        plan = self.children.get(effect.agent)
        if plan is None:
            raise ConfigError(
                f"run {run.id!r}: expected agent {effect.agent!r}, found "
                f"{', '.join(map(repr, self.children)) or 'no agents'}. Fix: give it the agents "
                "that it was started with."
            )
        return plan.open(effect, run, self)

    def sendable(
        self, content: str | tuple[UserPart, ...], tool: str, run: Run[Any]
    ) -> str | tuple[UserPart, ...]:
        """Return a tool's result with a note for each part that no model of the run takes.

        In the journal, such a part would end the next request, and each resume. A warning of the
        run tells why the model cannot take it. Models that a fallback asks do not count.
        """
        if isinstance(content, str):
            return content
        turn, setup = run.turn, run.setup
        labels = [turn.model] if turn.model else [setup.model, *self.named]
        models = [self.models[label] for label in labels if label in self.models]
        parts = list(content)
        for at, part in enumerate(content):
            if not isinstance(part, MediaPart):
                continue
            whys = [why_unfit(model, part) for model in models]
            if whys and all(whys):
                self.wrong[f"the result of tool {tool!r}: {whys[0]}"] = None
                parts[at] = TextPart(f"[left out: {part.label}, which this model cannot take]")
        return tuple(parts)


@final
class Parked(Struct, frozen=True):
    """The result of an effect that parks the run: its answer has to come from outside.

    A model call that was postponed, or a child run with one, comes again at the monotonic time
    `due`, which is infinite for others.
    """

    effect: int
    due: float = inf


class ChildStep(Struct, frozen=True):
    """A step, delta or report of a child run, as the parent's driver yields it.

    `key` is the child's key in its parent. `seen` is a step, a delta, a tool's report, or the
    `ChildStep` of a child's own child.
    """

    key: str
    agent: str
    graph: NodeGraph[Any]
    seen: Step[Any] | Live | ToolProgress | ChildStep


Shown: TypeAlias = Live | ToolProgress | ChildStep
"""Items that a driver yields and that its run's journal does not have: deltas, reports of tools
and child items."""

SHOWN: Final = LIVE | {ToolProgress, ChildStep}
"""The types of `Shown`."""

Seen: TypeAlias = Step[S] | Shown
"""All items that a driver yields: the run's steps, model deltas and child items."""


def is_shown(item: object) -> TypeIs[Shown]:
    """Whether the driver yields an item to its caller, and does not journal it."""
    return type(item) in SHOWN


def is_step(item: object) -> bool:
    """Whether an item is, or shows, a step of a run, and not a delta or a report."""
    while isinstance(item, ChildStep):
        item = item.seen
    return not is_shown(item)


Item: TypeAlias = Shown | Answering | Parked
"""All that an effect in flight delivers: items to show and, last, its answer."""


class Source(Protocol):
    """The items of a model call or child run; the last item is the answer of the effect."""

    def __anext__(self) -> Awaitable[Item]: ...

    def aclose(self) -> Awaitable[None]:
        """Cancel the effect, unless the effect has ended."""
        ...


class Resumption(Struct, Generic[S], frozen=True):
    """A run to resume: its journaled state, answers to its pending effects, and its child runs.

    `seen` is the number of signals that were read from the run's mailbox, whatever they say.
    `cancelled` is the reason of a cancellation in the mailbox; None if there is none. A run with
    `is_placed` is a child run that workers drive without its parent.
    """

    run: Run[S]
    answers: tuple[Event, ...] = ()
    children: Mapping[str, Resumption[Any]] = {}
    seen: int = 0
    cancelled: str | None = None
    is_placed: bool = False

    @property
    def descendants(self) -> dict[str, Run[Any]]:
        """The child runs that were read, at any depth, by run id."""
        found: dict[str, Run[Any]] = {}
        for child in self.children.values():
            found |= {child.run.id: child.run, **child.descendants}
        return found


def as_it_ended(ended: ChildEnded, _: Run[Any]) -> ChildEnded:
    """Return the event of a child's end unchanged: the default of `ChildRun.end`."""
    return ended


class ChildRun(Struct, Generic[S], frozen=True, kw_only=True):
    """A child run, ready to start or resume.

    Args:
        graph: the graph that the child run executes.
        ports: the store, models, tools and functions that the child run uses.
        run_id: the id of the child run, which is also the id of its journal.
        begin: returns the child's `Started` event; not called for a child that has started.
        end: converts the `ChildEnded` event of the ended child run for its parent.
        place: whether workers may drive the child run without its parent, if there are any.
    """

    graph: NodeGraph[S]
    ports: Ports[S]
    run_id: str
    begin: Callable[[], Awaitable[Started]]
    end: Callable[[ChildEnded, Run[S]], ChildEnded] = as_it_ended
    place: Place = "here"

    @property
    def is_placed(self) -> bool:
        """Whether workers drive the child run without its parent."""
        return self.place == "anywhere" and self.ports.elsewhere is not None


class ChildPlan(Protocol):
    """An agent that can run as the child of another run."""

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that `effect` asks for.

        Args:
            effect: the effect, with the child's arguments and budget.
            run: the parent run.
            ports: the parent's ports, from which the child gets the store, the approver, the clock
                and the gates.

        Raises:
            ConfigError: the arguments do not fit the agent.
        """
        ...
