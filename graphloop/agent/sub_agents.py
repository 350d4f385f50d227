"""Agents as tools of other agents: each call is a child run.

The child has a journal of its own, and the store, the approver and the clock of its parent. The
gates of all its parents hold beside its own, and its budget is a share of the parent's remaining
one: it can do nothing that its parent may not.
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
    """The conversation and the state of a new child run; None is the opener's own state."""

    messages: tuple[Message, ...]
    state: object = None


@final
@dataclass(frozen=True)
class Nesting:
    """How deep a graph's nodes begin runs.

    Attributes:
        path: the agents of one of the deepest ways, outermost first.
        problem: why a run would go too deep, in words; empty if none would.
        called: the agents of one of the deepest ways by nodes and by calls, outermost first.
    """

    path: tuple[str, ...] = ()
    problem: str = ""
    called: tuple[str, ...] = ()


class ChildTerms(Protocol):
    """The facts of an agent's runs that a parent needs before it starts one."""

    tool_names: tuple[str, ...]
    """The tools that may be called in such a run, or in those below it."""
    is_signed: bool
    """Whether approvals in such a run have to be signed."""
    reply_max: int | None
    """How many tokens one reply may have, in such a run or in those below it."""
    nesting: Nesting
    """How deep the nodes of such a run begin runs."""
    resources: tuple[SharedResources, ...]
    """The resources that the agent, and the agents that it may call, share among their runs."""
    own_resources: tuple[SharedResources, ...]
    """The resources of the agent itself, and of the agents made for its runs only."""

    def bound(self, context_window: int | None = None, price: ModelPrice | None = None, /) -> Bound:
        """Return the most that such a run can come to."""
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
    """An agent as a run knows it by its name: how to open its child runs."""

    @property
    def opener(self) -> Opener:
        """The opener of the child runs."""
        ...

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that the effect starts."""
        ...


class NamedAgent(Protocol):
    """An agent or a graph, as runs are given it by a name (`agents={"writer": writer}`)."""

    def as_sub_agent(self, name: str, options: Mapping[str, object]) -> AgentTool:
        """Return it for one run; a graph asks the `model` of that run's options, as they say."""
        ...


@final
@dataclass(frozen=True)
class AgentTool:
    """An agent as a tool. Make one with `Agent.as_tool` or `agent_tool`.

    Args:
        tool: the tool as the calling model sees it.
        opener: begins the child runs.
        takes_over: whether the child reads the whole conversation and gives its last answer
            (a handoff, once the other calls of the turn are answered; one a turn); otherwise it is
            told a task and answers its caller.
    """

    tool: Tool[..., object]
    opener: Opener
    takes_over: bool = False

    @property
    def name(self) -> str:
        """The name that the calling model calls it by."""
        return self.tool.name

    def as_sub_agent(
        self,
        name: str,  # noqa: ARG002 - a node runs it by the name that it is given by
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
                raise ConfigError(f"agent {self.name!r} is told a `prompt`; found {prompt!r:.80}")
            messages = (UserMessage(prompt),)
        brief = Brief(messages)
        return self.opener.child(lambda: brief, effect, run, ports)
