"""Agents as tools of other agents: each call is a child run.

The child run has its own journal, and uses the store, the approver and the clock of its parent.
The gates of all its parent runs apply together with its own gate. Its budget is a share of the
parent's remaining budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

from msgspec import Struct

from ..driver import ChildRun, Ports
from ..effects import Place, StartRun
from ..errors import ConfigError
from ..events import ChildEnded
from ..run import EndReason, Run
from ..states import item_text
from ..tools import Tool
from ..values import Message, UserMessage, evolve

if TYPE_CHECKING:
    # The terms of an agent's runs hold its agent tools, and an agent tool holds the terms.
    from .child_runs import ChildOpener

__all__ = [
    "AgentPlan",
    "AgentTool",
    "Brief",
    "NamedAgent",
    "Nesting",
    "Place",
    "Plan",
]


@final
class Brief(Struct, frozen=True):
    """The first messages and the initial state of a new child run.

    With the state None, the child run starts with the default state of its agent or graph.
    """

    messages: tuple[Message, ...]
    state: object = None


@final
class Nesting(Struct, frozen=True):
    """The nesting depth of the child runs of a graph.

    Attributes:
        path: the names of the agents on a longest chain of nodes that run agents, outermost first.
        problem: the error message if a run would be nested too deep; empty otherwise.
        called: the names on a longest chain of agents that nodes run or models call, outermost
            first, cut at the allowed depth.
    """

    path: tuple[str, ...] = ()
    problem: str = ""
    called: tuple[str, ...] = ()


class Plan(Protocol):
    """An entry of a run's `agents` or agent tools: it opens the child runs of its agent."""

    @property
    def opener(self) -> ChildOpener[Any]:
        """The agent or graph that runs as the child."""
        ...

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that the effect starts."""
        ...


@runtime_checkable
class NamedAgent(Protocol):
    """An agent or a graph in the `agents` of a run (`agents={"writer": writer}`)."""

    @property
    def name(self) -> str:
        """The name of the agent or graph, where its user gives no other."""
        ...

    def as_sub_agent(self, name: str, options: Mapping[str, object]) -> AgentTool:
        """Return the agent as a tool for one run; a graph uses the `model` of the run's options."""
        ...


@final
# A Struct would need `ChildOpener` for its signature, and this module cannot import it.
@dataclass(frozen=True, slots=True, repr=False)
class AgentTool:
    """An agent as a tool. Make one with `Agent.as_tool` or `agent_tool`.

    Args:
        tool: the tool as the calling model sees it.
        opener: the agent or graph that runs as the child.
        takes_over: whether a call is a handoff. In a handoff, the child reads the whole
            conversation after the other calls of the turn, and its answer is the run's answer.
            Otherwise the child reads a task, and its answer is the result of the call.
        place: whether workers may drive the child without its parent.
    """

    tool: Tool[..., object]
    opener: ChildOpener[Any]
    takes_over: bool = False
    place: Place = "here"

    def __repr__(self) -> str:
        return f"<AgentTool {self.name!r}{', takes over' if self.takes_over else ''}>"

    @property
    def name(self) -> str:
        """The name by which the model calls the tool."""
        return self.tool.name

    def as_sub_agent(
        self,
        name: str,  # noqa: ARG002 - not needed: the caller keeps it
        options: Mapping[str, object],  # noqa: ARG002 - not needed: an agent has its own
    ) -> AgentTool:
        """Return this object unchanged: an agent has its own name and options."""
        return self

    def renamed(self, name: str) -> AgentTool:
        """Return a copy of the tool under another name."""
        return AgentTool(self.tool.renamed(name), self.opener, self.takes_over, self.place)

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that a call or a node starts.

        A run that a node starts ends with the value of the agent's `output_type`, as JSON.
        """
        if self.place == "anywhere":
            effect = evolve(effect, place=self.place)
        messages = tuple(effect.messages)
        if effect.arguments and not self.takes_over:
            prompt = json.loads(effect.arguments).get("prompt")
            if not isinstance(prompt, str):
                raise ConfigError(
                    f"agent {self.name!r}: expected a text as `prompt`, found {prompt!r:.80}"
                )
            messages = (UserMessage(prompt),)
        brief = Brief(messages)
        opened = self.opener.child(lambda: brief, effect, run, ports)
        answer = self.opener.terms.final
        if effect.arguments or answer is None:
            return opened

        def end(ended: ChildEnded, child: Run[Any]) -> ChildEnded:
            has_value = ended.status == "ok" and ended.end_reason == EndReason.COMPLETED
            return evolve(ended, content=item_text(answer.answer(child))) if has_value else ended

        return evolve(opened, end=end)


@final
@dataclass(frozen=True)
class AgentPlan:
    """An agent that a node carries, under the name that the node has for it.

    Nodes that carry the same agent under one name carry equal plans.
    """

    agent: NamedAgent
    tool: AgentTool = field(compare=False, repr=False)

    @classmethod
    def of(cls, agent: NamedAgent, options: Mapping[str, object] | None = None) -> AgentPlan:
        """Return the plan of an agent; a graph asks the `model` of these options."""
        return cls(agent, agent.as_sub_agent(agent.name, options or {}))

    @property
    def opener(self) -> ChildOpener[Any]:
        """The opener of the child runs."""
        return self.tool.opener

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that the effect starts."""
        return self.tool.open(effect, run, ports)
