"""@node: a function as a node; its annotations are its outcomes.

    @node
    async def route(ticket: Ticket) -> Billing | Technical:
        return Billing() if "invoice" in ticket.text else Technical()

Its answer is journaled before the run goes on: a replay never calls it again. A generator
(`-> Asking[Billing | Technical]`) asks for several effects in a row; each answer is journaled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, final, overload

from ..agent import Bindings
from ..contract import Contract
from ..effects import Ask, Effect
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

Body: TypeAlias = Callable[[S], R] | Callable[[S, NodeContext], R]
Mixed: TypeAlias = Out | tuple[Out, S]
Asks: TypeAlias = Generator[Ask, Any, R]


@final
@dataclass(frozen=True)
class OwnNode(Generic[S, Out]):
    """A node made of a function. Make one with `@node`.

    It is left by the outcomes of the function's annotation, by `Failed` when the function raises,
    and by `Aborted`; `...: END` in its row covers these two.

    Args:
        kernel: the node as the kernel knows it.
        call: the function, and the terms of its calls.
    """

    kernel: Function
    call: NodeCall

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        return self.kernel.name

    @property
    def kind(self) -> Kind:
        """The kind of the node."""
        return self.kernel.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of the annotation, `Failed` and `Aborted`."""
        return self.kernel.outcomes

    @property
    def contract(self) -> Contract:
        """The node's caps, and the fields that it reads and writes."""
        return self.kernel.contract

    @property
    def function(self) -> Callable[..., object]:
        """The function itself, to be called in a test of its own."""
        return self.call.function

    @property
    def state_type(self) -> object:
        """The type of the function's state; None for no state."""
        return self.call.signature.state

    @property
    def carried(self) -> Bindings:
        """The function, so that runs need not be given it."""
        return Bindings(callbacks={self.kernel.callback: self.call})

    def renamed(self, name: str, /) -> OwnNode[S, Out]:
        """Return a node of the same function under another name."""
        return replace(self, kernel=replace(self.kernel, name=name))

    def enter(self, run: Run[S], /) -> Reaction[S, Out | Failed | Aborted]:
        """Call the function."""
        # The kernel leaves by `outcomes` only, and those are the annotation's.
        return cast("Reaction[S, Out]", self.kernel.enter(run))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, Out | Failed | Aborted]:
        """Leave by what the function answered."""
        return cast("Reaction[S, Out]", self.kernel.on(run, event, answered))

    def row(
        self,
        row: Mapping[
            type[Out] | type[Failed] | type[Aborted] | EllipsisType,
            Node[S, Outcome] | Literal[EndType.END],
        ],
        /,
    ) -> Row[S]:
        """Return this node's row; a type checker checks its outcomes."""
        return cast("Row[S]", row)


class NodeMaker(Protocol):
    """What `node(…)` with options returns: a decorator."""

    @overload
    def __call__(self, function: Body[S, Awaitable[Out]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Awaitable[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Asks[Out]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Asks[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Out], /) -> OwnNode[S, Out]: ...
    @overload
    def __call__(self, function: Body[S, Mixed[Out, S]], /) -> OwnNode[S, Out]: ...
    def __call__(self, function: Callable[..., object], /) -> OwnNode[Any, Any]:
        """Make a node of a function."""
        ...


@overload
def node(function: Body[S, Awaitable[Out]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Awaitable[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Asks[Out]], /) -> OwnNode[S, Out]: ...
@overload
def node(function: Body[S, Asks[Mixed[Out, S]]], /) -> OwnNode[S, Out]: ...
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
def node(  # noqa: PLR0913 - what a function cannot say of itself
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
    """Make a node of a function: `@node`, or `@node(cap={Rejected: 3})`.

    The function takes the graph's state, and perhaps a `NodeContext`. It returns an outcome of its
    annotation (`-> Billing | Technical`), or, to change the state, an outcome and the new state
    (`-> tuple[Billing | Technical, Ticket]`). It never changes the state in place. It may be
    asynchronous. It is called once for each visit, and once more only if its process dies before
    the journal holds its answer (`NodeContext.idempotency_key`).

    Args:
        function: the function.
        name: the node's name; by default, the function's.
        kind: the node's purpose: `"pure"`, `"check"`, `"prepare"`, `"stop"`; or `"act"` for a
            function that changes the world: it publishes, pays, sends. The proofs want an approval,
            or a gate, before it.
        reads: the fields of the state that it reads, for the proofs.
        writes: the fields that it writes; a change of another field ends the run in an error.
        timeout_s: the time limit of an asynchronous function in seconds; then it raises
            TimeoutError.
        cap: how often it leaves by an outcome at most, in a whole run.
        capped: the outcome that takes the place of one whose cap is reached; without it, the run
            ends in an error.
        raises: the outcomes of exceptions; any other exception ends the run in an error.
        model_calls: how many models a visit of a generator asks at most; one more is not asked.
            Without it, no bound can be proven, and a run needs a model.
        agents: the agents that it may ask, and how often one visit asks each at most.

    Raises:
        NodeDefinitionError: an annotation is missing, or an option does not fit the annotations.
    """

    def make(function: Callable[..., object], /) -> OwnNode[Any, Any]:
        signature = signature_of(function)
        options = NodeOptions(signature)
        caps = options.caps(cap or {}, capped)
        caught, written = options.caught(raises or {}), options.written(writes)
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
            asks=options.asks(model_calls, agents or {}),
            stateless=stateless,
        )
        options.check_outcomes()
        limit = options.limit(timeout_s, function)
        return OwnNode(kernel, NodeCall(function, signature, written, limit, caught))

    return make if function is None else make(function)
