"""sub_graph: a graph or an agent as one node of another graph.

The child's question, its first state and the parent's next state are functions of the parent's
state. Its gate and its budget hold beside its parents'. Each visit is a child run: it is journaled,
parks and is resumed like any other, and it can do nothing that its parent may not.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Generic, cast, final, overload

from typing_extensions import TypeVar

from ..agent import (
    Agent,
    Bindings,
    Graph,
    MessageInput,
    Model,
    Opener,
    RunOptions,
    check_gate,
    graph_of,
    refuse_idle_gate,
)
from ..contract import ChildContract, Contract
from ..effects import Effect
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

__all__ = ["SubGraph", "sub_graph"]

S = TypeVar("S", default=Any)
C = TypeVar("C")

Prompt = Callable[[S], "str | Sequence[MessageInput]"]


@final
@dataclass(frozen=True)
class SubGraph(Generic[S]):
    """A node that runs a graph or an agent: see `sub_graph`.

    It is left by `Answered`, by `Failed` when the child failed, and by `Aborted`. The answer is
    also the reply of this turn: lead `Answered` to an `Append` to add it to the conversation.

    Args:
        kernel: the node as the kernel knows it.
        plan: the terms of its child runs.
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
        """Always "graph"."""
        return "graph"

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """`Answered`, `Failed` and `Aborted`."""
        return self.kernel.outcomes

    @property
    def contract(self) -> Contract:
        """The node's promises, with the child's graph, to be proven as well."""
        plan = self.plan
        mapped = (plan.prompt, plan.state, plan.output)
        reads = self.reads if any(function is not None for function in mapped) else frozenset[str]()
        writes = frozenset[str]() if plan.output is None else plan.writes
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
    def state_type(self) -> object:
        """The type of the parent's state in the annotations of the functions."""
        plan = self.plan
        for function in (plan.output, plan.prompt, plan.state):
            annotation = Any if function is None else _first_annotation(function)
            if annotation is not Any:
                return annotation
        return Any

    @property
    def carried(self) -> Bindings:
        """The child, so that a run does not have to bring it."""
        return Bindings(agents={self.name: self.plan})

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Start the child with all that remains of the budget."""
        return self.kernel.enter(run)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Take the answer, and the new state."""
        return self.kernel.on(run, event, answered)


@overload
def sub_graph(
    child: Agent,
    *,
    name: str = "",
    prompt: Prompt[S] | None = None,
    output: Callable[[S, ChildResult[None]], S] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
) -> SubGraph[S]: ...
@overload
def sub_graph(
    child: Graph[C],
    *,
    name: str = "",
    model: Model | None = None,
    prompt: Prompt[S] | None = None,
    state: Callable[[S], C] | None = None,
    output: Callable[[S, ChildResult[C]], S] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    options: RunOptions | None = None,
) -> SubGraph[S]: ...
def sub_graph(  # noqa: PLR0913 - the contract of a child, term by term
    child: Agent | Graph[Any],
    *,
    name: str = "",
    model: Model | None = None,
    prompt: Prompt[Any] | None = None,
    state: Callable[[Any], Any] | None = None,
    output: Callable[[Any, ChildResult[Any]], Any] | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    options: RunOptions | None = None,
) -> SubGraph[Any]:
    """Return a node that runs an agent or a graph as a child.

        def ask(essay: Essay) -> str:
            return f"Write about {essay.topic}."

        def keep(essay: Essay, result: ChildResult[None]) -> Essay:
            return replace(essay, draft=result.text)

        draft = sub_graph(writer, prompt=ask, output=keep)

    The functions map values and do nothing else. They are called once for each child run; an
    exception ends the run.

    Args:
        child: an agent, or a graph.
        name: the node's name; the child's if not given.
        model: the model of a graph's nodes that name none.
        prompt: makes the child's question of the parent's state; by default, the child reads the
            parent's conversation.
        state: makes the first state of a graph of the parent's.
        output: makes the parent's new state of its old one and the child's result; by default, the
            state stays as it is.
        gate: rules that each call of the child has to pass as well.
        budget: the most that one child run may spend, within the rest of the parent's budget.
        reads: the fields of the parent's state that the functions read, for the proofs.
        writes: the fields that `output` may change; a change of another is an error.
        options: further options of a graph's runs, such as `tools`; see `RunOptions`.

    Raises:
        ConfigError: an option cannot work, or has no effect.
    """
    opener, graph = _opened(child, model, state, options)
    title = name or (child.name if isinstance(child, Agent) else graph.name)
    if gate is not None:
        refuse_idle_gate(graph, f"`gate` of node {title!r}")
        check_gate(gate, opener.terms.tool_names)
    written = None if writes is None else frozenset(writes)
    plan = SubPlan(title, opener, prompt, state, output, gate, budget, written)
    read = None if reads is None else frozenset(reads)
    return SubGraph(Child(title), plan, graph, read)


def _opened(
    child: Agent | Graph[Any],
    model: Model | None,
    state: Callable[[Any], Any] | None,
    options: RunOptions | None,
) -> tuple[Opener, NodeGraph[Any]]:
    # The name of a tool is needed to make one; a node has a name of its own.
    if isinstance(child, Agent):
        return child.as_tool(name="child").opener, child.graph
    if state is None and child.state_type is not None:
        raise ConfigError(
            f"graph {child.name!r} carries a state: say how a child run's begins, with "
            "`state=` (a function of the parent's state)"
        )
    run_options = options or {}
    for option in ("gate", "budget"):
        if option in run_options:
            raise ConfigError(f"`{option}` has a place of its own: sub_graph(…, {option}=…)")
    opener = child.as_tool(None, model=model, description="", name="child", **run_options).opener
    return opener, graph_of(opener) or child


def _first_annotation(function: Callable[..., object]) -> object:
    """Return the annotation of a function's first parameter; `Any` without one."""
    try:
        hints = typing.get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters))
    except (NameError, TypeError, ValueError, StopIteration):
        return Any
    annotation = cast("object", hints.get(first, Any))
    return None if annotation is NoneType else annotation
