"""Child runs: start a graph as the child of another run, within the limits of the parent.

Proofs and drawings of a graph need the agents that models call, the instructions and the budget.
The graph's own table does not contain these data: `attach_metadata` adds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import Any, Final, Generic, TypeVar, final

import pydantic
from msgspec import Struct

from ..driver import ChildRun, Ports, Price
from ..effects import Place, StartRun, check_place
from ..errors import ConfigError
from ..events import Started
from ..graph import NodeGraph, Surroundings
from ..run import Run
from ..tools import Approval, DepsNeed, Parameters, Tool, model_parameters
from ..values import Message, Reply, SystemMessage, evolve
from .answers import child_approver
from .inherited_limits import beyond_watch, child_gates, child_setup
from .options import Options
from .resources import AgentResources
from .sub_agents import AgentTool, Brief, Plan
from .terms import RunTerms

__all__ = ["ChildOpener", "as_agent_tool", "attach_metadata", "graph_of", "output_types"]

S = TypeVar("S")

TASK: Final = "The task, with everything that is needed to do it."
NOTHING_ELSE: Final[pydantic.ConfigDict] = {"extra": "forbid"}


@final
class ChildOpener(Struct, Generic[S], frozen=True):
    """Creates child runs of one graph for other runs.

    Args:
        terms: the terms on which the graph runs without a parent.
        state: the initial state of a child run whose brief has no state.
        deps: makes the child's `deps` from those of its parent; None hands on the parent's.
    """

    terms: RunTerms[S]
    state: S | None = None
    deps: Callable[[Any], object] | None = None

    @property
    def inherited_deps(self) -> tuple[DepsNeed, ...]:
        """The parts of a child run that read the `deps` of its parent."""
        return self.terms.deps_needs if self.deps is None else ()

    def child(
        self, brief: Callable[[], Brief], effect: StartRun, parent: Run[Any], ports: Ports[Any]
    ) -> ChildRun[Any]:
        """Return the child run that `effect` starts, within the limits of `parent`.

        `brief` returns the initial conversation and state. It is called only if the child run has
        not started yet.
        """
        terms = self.terms.current
        deps = ports.deps
        if self.deps is not None:
            deps = self.deps(deps)
            terms.check_deps({"deps": deps})
        deps = terms.test_deps.get("deps", deps)
        own = terms.ports(ports.store, deps=deps)
        gates = child_gates(effect, parent, ports)
        gates += beyond_watch(parent.setup, gates)
        setup = child_setup(terms.setup, effect, parent, gates)
        child_ports = evolve(
            own,
            approve=child_approver(ports.approve, own.approve, effect.agent, parent, gates),
            gates=(*gates, *own.gates),
            secret=ports.secret,
            path=(*ports.path, effect.key),
            resumable=ports.resumable,
            price=_child_price(terms.options, own.price, ports.price),
            stoppable=ports.stoppable,
            clock=ports.clock,
            wrong=ports.wrong,
            elsewhere=ports.elsewhere,
            pace=own.pace if ports.pace is None else ports.pace.for_child(own.pace),
            observers=own.observers
            if ports.observers is None
            else ports.observers.joined(own.observers),
        )
        run_id = f"{parent.id}/{effect.key}"

        async def begin() -> Started:
            instructions = await terms.resources.instructions(deps)
            messages, state = self._first_messages(brief(), effect.agent, instructions)
            if terms.nesting.problem:
                raise ConfigError(terms.nesting.problem)
            if state is not None or terms.state_type is not None:
                terms.check_state(state, kept=ports.kept)
            return Started(ports.clock(), run_id, terms.graph.name, messages, setup, state)

        return ChildRun(
            graph=terms.graph, ports=child_ports, run_id=run_id, begin=begin, place=effect.place
        )

    def _first_messages(
        self, brief: Brief, agent: str, instructions: str | None
    ) -> tuple[tuple[Message, ...], object]:
        """Return the initial conversation and the initial state of a child run."""
        messages = brief.messages
        if not messages and self.terms.needs_messages:
            raise ConfigError(
                f"agent {agent!r}: expected a message for its model, found none. "
                "Fix: give `prompt=`."
            )
        if instructions:
            rest = [message for message in messages if not isinstance(message, SystemMessage)]
            messages = (SystemMessage(instructions), *rest)
        return messages, self.state if brief.state is None else brief.state


def as_agent_tool(  # noqa: PLR0913 - the options of `Agent.as_tool`
    terms: RunTerms[S],
    *,
    state: S | None = None,
    name: str,
    description: str = "",
    needs_approval: Approval = False,
    takes_over: bool = False,
    deps: Callable[[Any], object] | None = None,
    place: Place = "here",
) -> AgentTool:
    """Return a tool that starts a child run of a graph at each call; see `Agent.as_tool`."""
    if deps is not None and not callable(deps):  # pyright: ignore[reportUnnecessaryComparison] - a caller may pass the object itself.
        raise ConfigError(
            f"`deps` of agent {name!r}: expected a function of the parent's deps, found an object "
            f"of type {type(deps).__name__}. Fix: deps=lambda parent: …"
        )
    check_place(place, f"agent {name!r}")
    tool: Tool[..., object] = Tool(
        name=name,
        description=description,
        parameters=_tool_parameters(takes_over=takes_over),
        kind="agent",
        needs_approval=needs_approval,
        ends_run=takes_over,
    )
    return AgentTool(tool, ChildOpener(terms, state, deps), takes_over, place)


@cache
def _tool_parameters(*, takes_over: bool) -> Parameters:
    """Return the tool parameters of an agent: `prompt`, or no parameter if the agent takes over.

    The parameters come from a pydantic model: a JSON Schema would import the slow schema checker.
    """
    model: type[pydantic.BaseModel] = (
        pydantic.create_model("Nothing", __config__=NOTHING_ELSE)
        if takes_over
        else pydantic.create_model(
            "Task", __config__=NOTHING_ELSE, prompt=(str, pydantic.Field(description=TASK))
        )
    )
    read = model_parameters(model, "an agent as a tool")

    def parse(arguments: str) -> object:
        task = read.parse(arguments)
        assert isinstance(task, pydantic.BaseModel), "a model's parser makes models"
        return task.model_dump()

    return Parameters.of(read.schema, parse)


def attach_metadata(graph: NodeGraph[Any], resources: AgentResources) -> None:
    """Store the tool names, sub-agents and options of an agent on the agent's graph."""
    graph.surroundings = _surroundings(graph, resources, resources.children)


def graph_of(opener: ChildOpener[Any]) -> NodeGraph[Any]:
    """Return a copy of an opener's graph with metadata; the graph itself if nothing is missing."""
    terms = opener.terms
    graph, resources, known = terms.graph, terms.resources, terms.graph.surroundings
    # Agents that nodes carry are listed in the contracts of these nodes.
    more = {
        name: plan
        for name, plan in resources.children.items()
        if isinstance(plan, AgentTool) and name not in known.agents
    }
    if not more and {**known.options, **resources.run_options} == known.options:
        return graph
    copied = copy(graph)
    copied.surroundings = _surroundings(graph, resources, more)
    return copied


def output_types(plans: Mapping[str, Plan]) -> dict[str, object]:
    """Return the types of agents' answers by name: `str` for a text, `Any` if it is unknown."""
    return {name: _output_type(plan.opener.terms) for name, plan in plans.items()}


def _output_type(terms: RunTerms[Any]) -> object:
    if terms.final is not None:
        return terms.final.kind
    # An agent without tools that end its run answers with text; a graph may answer anything.
    is_text = terms.recast is not None and not any(tool.ends for tool in terms.setup.tools)
    return str if is_text else Any


def _surroundings(
    graph: NodeGraph[Any], resources: AgentResources, plans: Mapping[str, Plan]
) -> Surroundings:
    """Return the surroundings of a graph with the resources and agents of its runs."""
    known, specs = graph.surroundings, {spec.name for spec in resources.toolbox.specs}
    # The agents that only screen are run by a node; no model can call them.
    called = {name: plan for name, plan in plans.items() if name in specs}
    tools = {name: plan for name, plan in called.items() if isinstance(plan, AgentTool)}
    return Surroundings(
        resources.callable_names,
        {**{name: graph_of(plan.opener) for name, plan in plans.items()}, **known.agents},
        known.called.union(called),
        known.handoffs | {name for name, tool in tools.items() if tool.takes_over},
        known.placed | {name for name, tool in tools.items() if tool.place == "anywhere"},
        {**known.options, **resources.run_options},
    )


def _child_price(options: Options, own: Price | None, parent: Price | None) -> Price | None:
    """Return the function that prices the replies of a child run.

    The child's own `price` or `prices` come first, then the parent's price, then the price table
    for the child's model.
    """
    if parent is None or options.price is not None or options.prices:
        return own
    if own is None:
        return parent

    def price(reply: Reply, label: str) -> float | None:
        cost_usd = parent(reply, label)
        return own(reply, label) if cost_usd is None else cost_usd

    return price
