"""sub_graph: use a graph or an agent as one node of another graph.

Functions compute the child's prompt and first state, and the parent's next state, from the parent's
state. The child's gate and budget apply in addition to those of its parents. Each visit of the node
is a child run, which is journaled, parks and is resumed like any other run. A child run can do
nothing that its parent may not do.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Generic, Protocol, cast, final, overload

from typing_extensions import TypeVar

from ..agent import (
    Agent,
    Bindings,
    ChildOpener,
    Graph,
    MessageInput,
    Model,
    RunOptions,
    check_gate,
    graph_of,
    refuse_idle_gate,
)
from ..contract import ChildContract, Contract
from ..effects import Effect, Place
from ..errors import ConfigError
from ..events import Event
from ..graph import NodeGraph
from ..node_protocol import Kind, Reaction
from ..nodes import Child, ChildOutcome
from ..outcomes import Answered, Outcome
from ..policy import Policy
from ..run import Run
from ..spending import Budget
from .sub_plan import ChildResult, SubPlan

__all__ = ["StatelessSubGraph", "SubGraph", "sub_graph"]

S = TypeVar("S", default=Any)
C = TypeVar("C")
DepsT = TypeVar("DepsT", default=None)
OutputT = TypeVar("OutputT", default=str)

Prompt = str | Callable[[S], "str | Sequence[MessageInput]"]


@final
@dataclass(frozen=True)
class SubGraph(Generic[S]):
    """A node that runs a graph or an agent as a child run; `sub_graph` makes it.

    The node leaves by `Answered`, by `Failed` if the child run failed, or by `Aborted`. The child's
    answer is also the reply of the current turn. To add the answer to the conversation, let
    `Answered` lead to an `Append` node.

    Args:
        kernel: the node that the kernel executes.
        plan: the functions, gate and budget for each child run.
        graph: the child's graph.
        reads: the fields of the parent's state that the functions read; None if unknown.
    """

    kernel: Child
    plan: SubPlan
    graph: NodeGraph[Any]
    reads: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        return self.kernel.name

    @property
    def kind(self) -> Kind:
        """The node's kind, which is always "graph"."""
        return "graph"

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The node's outcomes: `Answered`, `Failed` and `Aborted`."""
        return self.kernel.outcomes

    @property
    def contract(self) -> Contract:
        """The node's contract, with the child's graph, so that the checker proves both graphs."""
        plan = self.plan
        mapped = (plan.prompt, plan.state, plan.output)
        reads = self.reads if any(callable(each) for each in mapped) else frozenset[str]()
        writes = frozenset[str]() if plan.output is None else plan.writes
        if plan.into:
            writes = frozenset({plan.into})
        child = ChildContract(
            name=self.name,
            graph=self.graph,
            reads=reads,
            writes=writes,
            gate_rules=None if plan.gate is None else plan.gate.rules,
            budget=plan.budget,
        )
        return replace(
            self.kernel.contract,
            children=(child,),
            reads=reads,
            writes=writes if writes is None else {Answered: writes} if writes else {},
        )

    @property
    def into(self) -> str:
        """The field of the parent's state that gets the child's answer; empty for none."""
        return self.plan.into

    @property
    def state_type(self) -> object:
        """The type of the parent's state, from the functions' annotations; `Any` without one."""
        plan = self.plan
        for function in (plan.output, plan.prompt, plan.state):
            annotation = _first_annotation(function) if callable(function) else Any
            if annotation is not Any:
                return annotation
        return Any

    @property
    def carried(self) -> Bindings:
        """The child as an agent that the node contributes to each run of its graph."""
        return Bindings(agents={self.name: self.plan})

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Request a child run, which may spend the remaining budget of the parent."""
        return self.kernel.enter(run)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Handle the end of the child run: take its answer, and the parent's new state."""
        return self.kernel.on(run, event, answered)


class StatelessSubGraph(Protocol):
    """The type of a `SubGraph` without functions of the state: it fits a graph of any state."""

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        ...

    @property
    def kind(self) -> Kind:
        """The node's kind, which is always "graph"."""
        ...

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The node's outcomes: `Answered`, `Failed` and `Aborted`."""
        ...

    @property
    def contract(self) -> Contract:
        """The node's contract, with the child's graph."""
        ...

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Request a child run."""
        ...

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Handle the end of the child run."""
        ...


@overload
def sub_graph(
    child: Agent[DepsT, Any],
    *,
    name: str = "",
    prompt: str | None = None,
    deps: Callable[[Any], DepsT] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    into: str = "",
    place: Place = "here",
) -> StatelessSubGraph: ...
@overload
def sub_graph(
    child: Graph[Any],
    *,
    name: str = "",
    model: Model | None = None,
    prompt: str | None = None,
    deps: Callable[[Any], object] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    into: str = "",
    options: RunOptions[Any] | None = None,
    place: Place = "here",
) -> StatelessSubGraph: ...
@overload
def sub_graph(
    child: Agent[DepsT, OutputT],
    *,
    name: str = "",
    prompt: Prompt[S] | None = None,
    output: Callable[[S, ChildResult[OutputT]], S] | None = None,
    deps: Callable[[Any], DepsT] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    into: str = "",
    place: Place = "here",
) -> SubGraph[S]: ...
@overload
def sub_graph(
    child: Graph[C],
    *,
    name: str = "",
    model: Model | None = None,
    prompt: Prompt[S] | None = None,
    state: Callable[[S], C] | None = None,
    output: Callable[[S, ChildResult[str, C]], S] | None = None,
    deps: Callable[[Any], object] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    into: str = "",
    options: RunOptions[Any] | None = None,
    place: Place = "here",
) -> SubGraph[S]: ...
def sub_graph(  # noqa: PLR0913 - the contract of a child, term by term
    child: Agent[Any, Any] | Graph[Any],
    *,
    name: str = "",
    model: Model | None = None,
    prompt: Prompt[Any] | None = None,
    state: Callable[[Any], Any] | None = None,
    output: Callable[[Any, ChildResult[Any, Any]], Any] | None = None,
    deps: Callable[[Any], object] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    into: str = "",
    options: RunOptions[Any] | None = None,
    place: Place = "here",
) -> SubGraph[Any] | StatelessSubGraph:
    """Return a node that runs an agent or a graph as a child.

        def ask(essay: Essay) -> str:
            return f"Write about {essay.topic}."

        def keep(essay: Essay, result: ChildResult) -> Essay:
            return replace(essay, draft=result.output)

        draft = sub_graph(writer, prompt=ask, output=keep)
        draft = sub_graph(writer, prompt=ask, into="draft")

    The functions must be pure: they compute values and have no side effects. Each function is
    called once for each child run. An exception in a function ends the run.

    Args:
        child: an agent, or a graph.
        name: the node's name; by default, the child's name.
        model: the model for a child graph's nodes that do not name a model.
        prompt: the child's prompt: a text, or a function that computes it from the parent's state;
            by default, the child gets the parent's conversation.
        state: computes a child graph's first state from the parent's state.
        output: computes the parent's new state from its old state and the child's result; by
            default, the parent's state does not change.
        deps: makes the child's `deps` from those of the parent; by default, the child gets the
            parent's.
        gate: rules that apply to each call of the child, in addition to the existing gates.
        budget: the most that one child run may spend; the parent's remaining budget limits it, too.
        reads: the fields of the parent's state that the functions read; the checker uses them.
        writes: the state fields that `output` may change; a change of another field is an error.
        into: the field of the parent's state that gets the child's answer, instead of `output`: a
            value of the agent's `output_type`, or a text. A field's `reduce` combines it.
        options: further options for runs of a child graph, such as `tools`; see `RunOptions`.
        place: "anywhere" lets any worker drive the child run, while its parent waits parked.

    Raises:
        ConfigError: an option is invalid or would have no effect.
    """
    opener, graph = _opener_of(child, model, state, deps, options)
    title = name or (child.name if isinstance(child, Agent) else graph.name)
    if gate is not None:
        refuse_idle_gate(graph, f"`gate` of node {title!r}")
        check_gate(gate, opener.terms.tool_names)
    if into and (output is not None or writes is not None):
        raise ConfigError(
            f"node {title!r}: `into` {into!r} says where the answer goes, and `output` or `writes` "
            "would, too. Fix: give `into` alone, or leave it out"
        )
    written = None if writes is None else frozenset(writes)
    plan = SubPlan(title, opener, prompt or None, state, output, gate, budget, written, into)
    read = None if reads is None else frozenset(reads)
    return SubGraph(Child(title, place=place), plan, graph, read)


def _opener_of(
    child: Agent[Any, Any] | Graph[Any],
    model: Model | None,
    state: Callable[[Any], Any] | None,
    deps: Callable[[Any], object] | None,
    options: RunOptions[Any] | None,
) -> tuple[ChildOpener[Any], NodeGraph[Any]]:
    # `as_tool` requires a name; "child" is never shown, because the node's name is used.
    if isinstance(child, Agent):
        return child.as_tool(name="child", deps=deps).opener, child.graph
    if state is None and child.state_type is not None:
        raise ConfigError(
            f"graph {child.name!r} carries a state: say how a child run's begins, with "
            "`state=` (a function of the parent's state)"
        )
    run_options: dict[str, Any] = {**(options or {})}
    for option in ("gate", "budget"):
        if option in run_options:
            raise ConfigError(f"`{option}` has a place of its own: sub_graph(…, {option}=…)")
    tool = child.as_tool(None, model=model, description="", name="child", deps=deps, **run_options)
    opener = tool.opener
    return opener, graph_of(opener)


def _first_annotation(function: Callable[..., object]) -> object:
    """Return the annotation of a function's first parameter; `Any` if there is no annotation."""
    try:
        hints = typing.get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters))
    except (NameError, TypeError, ValueError, StopIteration):
        return Any
    annotation = cast("object", hints.get(first, Any))
    return None if annotation is NoneType else annotation
