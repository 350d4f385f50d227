"""Agents as tools of other agents: each call is a child run.

The child has a journal of its own, and the store, the approver and the clock of its parent. The
gates of all its parents hold beside its own gate. Its budget is a share of what the parent's budget
has remaining.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

from ..driver import ChildRun, Ports
from ..effects import StartRun
from ..errors import ConfigError
from ..limits import ModelPrice
from ..run import Run
from ..tools import Tool
from ..values import Message, UserMessage

if TYPE_CHECKING:
    from ..proofs import Bound
    from .terms import SharedResources

__all__ = [
    "AgentTool",
    "Brief",
    "ChildTerms",
    "NamedAgent",
    "Nesting",
    "Opener",
    "Plan",
]


@final
@dataclass(frozen=True)
class Brief:
    """The conversation and the state of a new child run; None means the opener's state."""

    messages: tuple[Message, ...]
    state: object = None


@final
@dataclass(frozen=True)
class Nesting:
    """How deep the child runs of a graph go.

    Attributes:
        path: the agents that nodes run, along one of the deepest ways, outermost first.
        problem: why a run would go too deep, in words; empty if it would not.
        called: the agents that nodes run or models call, along one of the deepest ways.
    """

    path: tuple[str, ...] = ()
    problem: str = ""
    called: tuple[str, ...] = ()


class ChildTerms(Protocol):
    """The facts of an agent's runs that a parent needs before it starts one."""

    tool_names: tuple[str, ...]
    """The tools that such a run, or its child runs, may call."""
    is_signed: bool
    """Whether approvals in such a run have to be signed."""
    reply_max: int | None
    """How many tokens one reply may have, in such a run or in its child runs."""
    nesting: Nesting
    """How deep the child runs of such a run go."""
    resources: tuple[SharedResources, ...]
    """The resources that the agent, and the agents that it may call, share among their runs."""
    own_resources: tuple[SharedResources, ...]
    """The resources of the agent itself, and of the agents that were made only for its runs."""

    def bound(self, context_window: int | None = None, price: ModelPrice | None = None, /) -> Bound:
        """Return the worst case of such a run."""
        ...


class Opener(Protocol):
    """An agent whose runs can be opened as children of other runs."""

    @property
    def terms(self) -> ChildTerms:
        """The terms of such a run."""
        ...

    def child(
        self, brief: Callable[[], Brief], effect: StartRun, parent: Run[Any], ports: Ports[Any]
    ) -> ChildRun[Any]:
        """Return the child run; `brief` is called only for a run that has not started."""
        ...


class Plan(Protocol):
    """An agent under the name that a run knows it by: how to open its child runs."""

    @property
    def opener(self) -> Opener:
        """The opener of the child runs."""
        ...

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that the effect starts."""
        ...


class NamedAgent(Protocol):
    """An agent or a graph that a run is given under a name (`agents={"writer": writer}`)."""

    def as_sub_agent(self, name: str, options: Mapping[str, object]) -> AgentTool:
        """Return the agent for one run; a graph asks the `model` of the run's options."""
        ...


@final
@dataclass(frozen=True)
class AgentTool:
    """An agent as a tool. Make one with `Agent.as_tool` or `agent_tool`.

    Args:
        tool: the tool as the calling model sees it.
        opener: opens the child runs.
        takes_over: whether a call is a handoff: once the other calls of the turn are answered, the
            child reads the whole conversation and gives the run's answer. Otherwise the child
            reads a task and answers the call.
    """

    tool: Tool[..., object]
    opener: Opener
    takes_over: bool = False

    def __repr__(self) -> str:
        return f"<AgentTool {self.name!r}{', takes over' if self.takes_over else ''}>"

    @property
    def name(self) -> str:
        """The tool's name for the calling model."""
        return self.tool.name

    def as_sub_agent(
        self,
        name: str,  # noqa: ARG002 - the caller keeps the name
        options: Mapping[str, object],  # noqa: ARG002 - an agent has its own
    ) -> AgentTool:
        """Return the agent itself."""
        return self

    def renamed(self, name: str) -> AgentTool:
        """Return the same agent under another name."""
        return AgentTool(self.tool.renamed(name), self.opener, self.takes_over)

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that a call, or a `Child` node, starts."""
        messages = tuple(effect.messages)
        if effect.arguments and not self.takes_over:
            prompt = json.loads(effect.arguments).get("prompt")
            if not isinstance(prompt, str):
                raise ConfigError(f"agent {self.name!r} takes a `prompt`; found {prompt!r:.80}")
            messages = (UserMessage(prompt),)
        brief = Brief(messages)
        return self.opener.child(lambda: brief, effect, run, ports)
