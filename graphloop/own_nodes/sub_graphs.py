"""sub_graph: a whole graph, or an agent, as one node of another graph, by an explicit contract.

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
from typing import Any, Generic, TypeVar, cast, final, overload

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
from ..tools import is_async
from .sub_plan import ChildResult, SubPlan

__all__ = ["SubGraph", "sub_graph"]

S = TypeVar("S")
C = TypeVar("C")

Prompt = Callable[[S], "str | Sequence[MessageInput]"]


@final
@dataclass(frozen=True)
class SubGraph(Generic[S]):
    """A node that runs a graph or an agent. Make one with `sub_graph`.

    It is left by `Answered`, by `Failed` when the child failed, and by `Aborted`. The answer is
    this turn's reply too: lead `Answered` to an `Append` to add it to the conversation.

    Args:
        kernel: the node as the kernel knows it.
        plan: how its child runs are opened.
        graph: the child's graph.
        reads: the fields of the parent's state that the functions read; None if that is not known.
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
        """It is a graph."""
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
        reads = self.reads if any(one is not None for one in mapped) else frozenset[str]()
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
        """The type of the parent's state, as the annotations of the functions tell it."""
        plan = self.plan
        for function in (plan.output, plan.prompt, plan.state):
            told = Any if function is None else _first_annotation(function)
            if told is not Any:
                return told
        return Any

    @property
    def carried(self) -> Bindings:
        """The child, so that runs need not be given it."""
        return Bindings(agents={self.name: self.plan})

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Start the child with all that remains of the budget."""
        return self.kernel.enter(run)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Take the answer, and the state that was made of it."""
        return self.kernel.on(run, event, answered)


@overload
def sub_graph(
    child: Agent, *, name: str = "", gate: Policy | None = None, budget: Budget | None = None
) -> SubGraph[Any]: ...
@overload
def sub_graph(
    child: Graph[None],
    *,
    name: str = "",
    model: Model | None = None,
    gate: Policy | None = None,
    budget: Budget | None = None,
    options: RunOptions | None = None,
) -> SubGraph[Any]: ...
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
    """Return a node that runs an agent, or a whole graph, as a child run.

        def ask(essay: Essay) -> str:
            return f"Write about {essay.topic}."

        def keep(essay: Essay, result: ChildResult[None]) -> Essay:
            return replace(essay, draft=result.text)

        draft = sub_graph(writer, prompt=ask, output=keep)

    The functions map values and do nothing else. They are called once for each child run; what
    they raise ends the run.

    Args:
        child: an agent, or a graph.
        name: the node's name; the child's if not given.
        model: the model of a graph's nodes that name none.
        prompt: what the child is asked, by the parent's state; it reads the parent's conversation
            if not given.
        state: the state that a graph begins with, by the parent's.
        output: the parent's new state, by its old one and the child's result; it stays as it is if
            not given.
        gate: rules that each call of the child has to pass as well.
        budget: what one child run may spend at most; never more than the parent has left.
        reads: the fields of the parent's state that the functions read, for the proofs.
        writes: the fields that `output` may change; it is held to them.
        options: further options of a graph's runs, such as `tools`; see `RunOptions`.

    Raises:
        ConfigError: an option cannot work, or has no effect.
    """
    opener, graph = _opened(child, model, state, options)
    title = name or (child.name if isinstance(child, Agent) else graph.name)
    for option, function in (("prompt", prompt), ("state", state), ("output", output)):
        if function is not None and is_async(function):
            raise ConfigError(
                f"`{option}` of node {title!r} maps values, and does nothing else; found an "
                "asynchronous function. Fix: write a plain `def`; what takes time is for a node"
            )
    if gate is not None:
        _check_gate(title, gate, graph, opener)
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
        for option, given in (("model", model), ("state", state), ("options", options)):
            if given is not None:
                raise ConfigError(
                    f"`{option}` is for a graph; agent {child.name!r} has its own. Fix: leave it "
                    "out, or make another agent with `with_options`"
                )
        return child.as_tool(name="child").opener, child.graph
    if not isinstance(child, Graph):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not checked.
        raise ConfigError(f"a sub-graph is an Agent or a Graph; found {child!r:.80}")
    if state is None and child.state_type is not None:
        raise ConfigError(
            f"graph {child.name!r} carries a state: say how a child run's begins, with "
            "`state=` (a function of the parent's state)"
        )
    given = options or {}
    for option in ("gate", "budget"):
        if option in given:
            raise ConfigError(f"`{option}` has a place of its own: sub_graph(…, {option}=…)")
    opener = child.as_tool(None, model=model, description="", name="child", **given).opener
    return opener, graph_of(opener) or child


def _check_gate(name: str, gate: Policy, graph: NodeGraph[Any], opener: Opener) -> None:
    refuse_idle_gate(graph, f"`gate` of node {name!r}")
    check_gate(gate, opener.terms.tool_names)


def _first_annotation(function: Callable[..., object]) -> object:
    """Return the annotation of a function's first parameter; `Any` where it tells none."""
    try:
        hints = typing.get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters))
    except (NameError, TypeError, ValueError, StopIteration):
        return Any
    told = cast("object", hints.get(first, Any))
    return None if told is NoneType else told
