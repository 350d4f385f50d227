"""CarryingNode: a node of the library that carries the functions and agents that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast, final

from ..agent import AgentPlan, Bindings, NamedAgent, graph_of
from ..contract import Contract, contract_of
from ..driver import Callback
from ..effects import Effect
from ..errors import ConfigError
from ..events import Event
from ..node_protocol import Kind, Node, Reaction
from ..outcomes import Outcome
from ..run import Run

__all__ = ["CarryingNode", "plans_of"]

S = TypeVar("S")


@final
@dataclass(frozen=True)
class CarryingNode:
    """A node with the functions and agents that it names; a run needs no other names.

    Proofs know the graph of each agent, and each agent keeps its own model and instructions.

    Args:
        kernel: the node that the kernel executes.
        functions: pairs of a name and the function that the node invokes by it.
        agents: pairs of a name and the agent that the node starts by it.
        reads: the fields of the state that the functions read; None if unknown.
    """

    kernel: Node[Any, Outcome]
    functions: tuple[tuple[str, Callback[Any]], ...] = ()
    agents: tuple[tuple[str, AgentPlan], ...] = ()
    reads: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        kernel: Node[Any, Outcome],
        functions: Mapping[str, Callback[Any]],
        agents: Mapping[str, AgentPlan],
        reads: Collection[str] | None = None,
    ) -> CarryingNode:
        """Return a node of the library with these functions and agents, by name."""
        read = None if reads is None else frozenset(reads)
        return cls(kernel, tuple(functions.items()), tuple(agents.items()), read)

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        return self.kernel.name

    @property
    def kind(self) -> Kind:
        """The kind of the kernel's node."""
        return self.kernel.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of the kernel's node."""
        return self.kernel.outcomes

    @property
    def contract(self) -> Contract | None:
        """The contract of the kernel's node, with the graphs of the agents."""
        promised = contract_of(self.kernel)
        if promised is None:
            return None
        graphs = {name: graph_of(plan.opener) for name, plan in self.agents}
        children = [
            replace(child, graph=child.graph or graphs.get(child.name))
            for child in promised.children
        ]
        known, reads = promised.reads or frozenset[str](), promised.reads
        if self.reads is not None:
            reads = self.reads | known
        return replace(promised, children=tuple(children), reads=reads)

    @property
    def carried(self) -> Bindings:
        """The functions and agents that the node contributes to each run of its graph."""
        return Bindings(dict(self.functions), dict(self.agents))

    def renamed(self, name: str) -> CarryingNode:
        """Return the same node under another name."""
        # Each node of the library is a dataclass with the field `name`.
        return replace(self, kernel=cast("Any", replace)(self.kernel, name=name))

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the kernel's node."""
        return self.kernel.enter(run)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Pass the event to the kernel's node."""
        return self.kernel.on(run, event, answered)


def plans_of(node: str, agents: Iterable[str | NamedAgent]) -> dict[str, AgentPlan]:
    """Return the plans of the agents that a node is given as objects, by name.

    Raises:
        ConfigError: two different agents have one name.
    """
    plans: dict[str, AgentPlan] = {}
    for agent in agents:
        if isinstance(agent, str):
            continue
        plan = AgentPlan.of(agent)
        if plans.setdefault(agent.name, plan) != plan:
            raise ConfigError(
                f"node {node!r}: expected agents of different names, found two named "
                f"{agent.name!r}. Fix: Agent(…, name='…') for one of them"
            )
    return plans
