"""@node: make a node from a function; its return annotation lists the node's outcomes.

    @node
    async def route(ticket: Ticket) -> Billing | Technical:
        return Billing() if "invoice" in ticket.text else Technical()

The function's answer is journaled before the run continues, so a replay does not call the function.
A generator (`-> Asking[Billing | Technical]`) can request several effects, one after another; each
answer is journaled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, final, overload

from ..agent import Bindings
from ..contract import Contract
from ..effects import Effect, Request
from ..events import Event
from ..graph import EndType, Row
from ..node_protocol import Kind, Node, OwnKind, Reaction
from ..nodes import Function
from ..outcomes import Aborted, Failed, Outcome
from ..run import Run
from .node_call import NodeCall
from .node_options import NodeOptions
from .node_signature import NodeContext, signature_of

__all__ = [
    "NodeMaker",
    "OwnNode",
    "node",
]

S = TypeVar("S")
R = TypeVar("R")
Out = TypeVar("Out", bound=Outcome)

Body: TypeAlias = Callable[[S], R] | Callable[[S, NodeContext[Any]], R]
Mixed: TypeAlias = Out | tuple[Out, S]
Requests: TypeAlias = Generator[Request, Any, R]


@final
@dataclass(frozen=True)
class OwnNode(Generic[S, Out]):
    """A node made from a function by `@node`.

    The node leaves by an outcome of the function's return annotation, by `Failed` if the function
    raises an exception, or by `Aborted`. In the node's row, `...: END` covers the last two.

    Args:
        kernel: the node that the kernel executes.
        call: the function, with the options that apply to each call.
    """

    kernel: Function
    call: NodeCall

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        return self.kernel.name

    @property
    def kind(self) -> Kind:
        """The node's kind, such as `pure` or `check`."""
        return self.kernel.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes in the function's return annotation, plus `Failed` and `Aborted`."""
        return self.kernel.outcomes

    @property
    def contract(self) -> Contract:
        """The node's caps, and the state fields that the function reads and writes."""
        return self.kernel.contract

    @property
    def function(self) -> Callable[..., object]:
        """The undecorated function, which a unit test can call directly."""
        return self.call.function

    @property
    def state_type(self) -> object:
        """The annotated type of the function's state parameter; None for no state."""
        return self.call.signature.state

    @property
    def carried(self) -> Bindings:
        """The function as a callback that the node contributes to each run of its graph."""
        return Bindings(callbacks={self.kernel.callback: self.call})

    def renamed(self, name: str, /) -> OwnNode[S, Out]:
        """Return a node with the same function and another name."""
        return replace(self, kernel=replace(self.kernel, name=name))

    def enter(self, run: Run[S], /) -> Reaction[S, Out | Failed | Aborted]:
        """Request the effect that calls the function."""
        # The cast is safe: the kernel node leaves only by the outcomes of the annotation.
        return cast("Reaction[S, Out]", self.kernel.enter(run))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, Out | Failed | Aborted]:
        """Leave by the outcome that the function returned, or pass on a generator's request."""
        return cast("Reaction[S, Out]", self.kernel.on(run, event, answered))

    def row(
        self,
        row: Mapping[
            type[Out] | type[Failed] | type[Aborted] | EllipsisType,
            Node[S, Outcome] | Literal[EndType.END],
        ],
        /,
    ) -> Row[S]:
        """Return the row unchanged; the annotation lets a type checker check its outcomes."""
        return cast("Row[S]", row)


class NodeMaker(Protocol):
    """The decorator that `node(…)` returns if it is called with options only."""

    @overload
    def __call__(self, function: Body[S, Awaitable[Out]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Awaitable[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Requests[Out]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Requests[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Out], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Mixed[Out, S]], /) -> OwnNode[S, Out]: ...
    def __call__(self, function: Callable[..., object], /) -> OwnNode[Any, Any]:
        """Make a node from the decorated function."""
        ...


@overload
def node(function: Body[S, Awaitable[Out]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Awaitable[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Requests[Out]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Requests[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Out], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Mixed[Out, S]], /) -> OwnNode[S, Out]: ...
@overload
def node(
    *,
    name: str = "",
    kind: OwnKind = "pure",
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    timeout_s: float | None = None,
    cap: Mapping[type[Outcome], int] | None = None,
    capped: type[Outcome] | None = None,
    raises: Mapping[type[Exception], type[Outcome]] | None = None,
    model_calls: int | None = None,
    agents: Mapping[str, int] | None = None,
) -> NodeMaker: ...
def node(  # noqa: PLR0913 - options that annotations cannot express
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    kind: OwnKind = "pure",
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    timeout_s: float | None = None,
    cap: Mapping[type[Outcome], int] | None = None,
    capped: type[Outcome] | None = None,
    raises: Mapping[type[Exception], type[Outcome]] | None = None,
    model_calls: int | None = None,
    agents: Mapping[str, int] | None = None,
) -> OwnNode[Any, Any] | NodeMaker:
    """Make a node from a function: `@node`, or `@node(cap={Rejected: 3})`.

    The function takes the graph's state and, optionally, a `NodeContext`. It returns an outcome of
    its return annotation (`-> Billing | Technical`). To change the state, it returns an outcome
    and the new state (`-> tuple[Billing | Technical, Ticket]`); it must not change the state in
    place. The function may be asynchronous. It is called once in each visit of the node, and again
    only if its process dies before the journal holds the answer (`NodeContext.idempotency_key`).

    Args:
        function: the function.
        name: the node's name; by default, the function's name.
        kind: the node's purpose: `"pure"`, `"check"`, `"prepare"`, `"stop"`; or `"act"` for a
            function that changes the outside world, such as a payment. The checker requires an
            approval, or a gate, before an `"act"` node.
        reads: the state fields that the function reads; the checker uses them.
        writes: the state fields that the function may change; a change of another field ends the
            run in an error.
        timeout_s: the time limit of an asynchronous function in seconds; a longer call raises
            TimeoutError.
        cap: for each outcome, the largest number of times that the node leaves by it in one run.
        capped: the outcome that replaces an outcome whose cap is reached; without `capped`, the
            run ends in an error.
        raises: for each exception type, the node's outcome; any other exception ends the run in an
            error.
        model_calls: the largest number of model calls of a generator in one visit; a further call
            is not made. Without this limit, no bound can be proven, and a run needs a model.
        agents: for each agent that a generator may ask, the largest number of times in one visit.

    Raises:
        NodeDefinitionError: an annotation is missing, or an option does not fit the annotations.
    """

    def make(function: Callable[..., object], /) -> OwnNode[Any, Any]:
        signature = signature_of(function)
        options = NodeOptions(signature)
        caps = options.caps(cap, capped)
        caught, written = options.caught(raises), options.written(writes)
        stateless = signature.stateless | {outcome for _, outcome in caught}
        if capped is not None and not stateless.isdisjoint(outcome for outcome, _ in caps):
            stateless |= {capped}
        kernel = Function(
            name or signature.name,
            signature.outcomes,
            kind=kind,
            caps=caps,
            capped=capped,
            reads=options.known("reads", reads),
            writes=written,
            asks=options.asks(model_calls, agents),
            stateless=stateless,
        )
        options.check_outcomes()
        limit = options.limit(timeout_s, function)
        return OwnNode(kernel, NodeCall(function, signature, written, limit, caught))

    return make if function is None else make(function)
