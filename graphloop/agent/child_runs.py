"""Child runs: start a graph as the child of another run, within the limits of the parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Generic, TypeVar, final

import pydantic
from pydantic import BaseModel, ConfigDict

from ..driver import ChildRun, Ports
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Started
from ..run import Run
from ..tools import Approval, Parameters, Tool, model_parameters
from ..values import Message, SystemMessage
from .answers import approver_below
from .inherited_limits import beyond_watch, gates_below, setup_below
from .resources import price_below
from .sub_agents import AgentTool, Brief
from .terms import RunTerms

__all__ = ["ChildOpener", "as_agent_tool"]

S = TypeVar("S")

TASK: Final = "The task, with everything that is needed to do it."
NOTHING_ELSE: Final = ConfigDict(extra="forbid")


@final
@dataclass(frozen=True)
class ChildOpener(Generic[S]):
    """Creates child runs of one graph for other runs.

    Args:
        terms: the terms on which the graph runs without a parent.
        state: the initial state of a child run whose brief has no state.
    """

    terms: RunTerms[S]
    state: S | None = None

    def child(
        self, brief: Callable[[], Brief], effect: StartRun, parent: Run[Any], ports: Ports[Any]
    ) -> ChildRun[Any]:
        """Return the child run that `effect` starts, within the limits of `parent`.

        `brief` returns the initial conversation and state. It is called only if the child run has
        not started yet.
        """
        terms = self.terms
        own = terms.ports(ports.store)
        above = gates_below(effect, parent, ports)
        above += beyond_watch(parent.setup, above)
        setup = setup_below(terms.setup, effect, parent, above)
        child_ports = replace(
            own,
            approve=approver_below(ports.approve, terms.approver, effect.agent, parent, above),
            gates=(*above, *own.gates),
            secret=ports.secret,
            path=(*ports.path, effect.key),
            resumable=ports.resumable,
            price=price_below(terms.options, own.price, ports.price),
            stoppable=ports.stoppable,
            clock=ports.clock,
            wrong=ports.wrong,
            observers=own.observers
            if ports.observers is None
            else ports.observers.joined(own.observers),
        )
        run_id = f"{parent.id}/{effect.key}"

        def begin() -> Started:
            messages, state = self._briefed(brief(), effect.agent)
            terms.check_start(state, kept=ports.kept)
            return Started(ports.clock(), run_id, terms.graph.name, messages, setup, state)

        return ChildRun(graph=terms.graph, ports=child_ports, run_id=run_id, begin=begin)

    def _briefed(self, brief: Brief, agent: str) -> tuple[tuple[Message, ...], object]:
        """Return the initial conversation and the initial state of a child run."""
        messages, instructions = brief.messages, self.terms.options.instructions
        if not messages and self.terms.needs_messages:
            raise ConfigError(
                f"agent {agent!r} is given no message, and a model needs one. Fix: give `prompt=`."
            )
        if instructions:
            rest = [message for message in messages if not isinstance(message, SystemMessage)]
            messages = (SystemMessage(instructions), *rest)
        return messages, self.state if brief.state is None else brief.state


def as_agent_tool(
    terms: RunTerms[S],
    *,
    state: S | None = None,
    name: str,
    description: str = "",
    needs_approval: Approval = False,
    takes_over: bool = False,
) -> AgentTool:
    """Return a tool that starts a child run of a graph at each call; see `Agent.as_tool`."""
    tool: Tool[..., object] = Tool(
        name=name,
        description=description,
        parameters=_parameters(takes_over=takes_over),
        kind="agent",
        needs_approval=needs_approval,
        ends_run=takes_over,
    )
    return AgentTool(tool, ChildOpener(terms, state), takes_over)


@cache
def _parameters(*, takes_over: bool) -> Parameters:
    """Return the tool parameters of an agent: `prompt`, or no parameter if the agent takes over.

    The parameters come from a pydantic model: a JSON Schema would import the slow schema checker.
    """
    model: type[BaseModel] = (
        pydantic.create_model("Nothing", __config__=NOTHING_ELSE)
        if takes_over
        else pydantic.create_model(
            "Task", __config__=NOTHING_ELSE, prompt=(str, pydantic.Field(description=TASK))
        )
    )
    read = model_parameters(model, "an agent as a tool")

    def parse(arguments: str) -> object:
        task = read.parse(arguments)
        assert isinstance(task, BaseModel), "a model's parser makes models"
        return task.model_dump()

    return Parameters(read.schema, parse)
