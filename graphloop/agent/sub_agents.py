"""Agents as tools of other agents: each call is a child run.

The child has a journal of its own, the store, the approver and the clock of its parent, the gates
of all agents above it as well as its own, and a share of what the parent's budget has left: it can
do nothing that its parent may not (DESIGN §6, GL9).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..driver import ChildRun, Ports
from ..effects import StartRun
from ..errors import ConfigError
from ..limits import ModelPrice
from ..run import Run
from ..tools import Approval, Parameters, Tool, model_parameters
from ..values import Message, UserMessage
from .hooks import Model
from .resources import SharedResources

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = ["AgentTool", "Brief", "NamedAgent", "Nesting", "Opener", "Plan", "as_agent_tool"]

TASK: Final = "The task, with everything that is needed to do it."
NOTHING_ELSE: Final = ConfigDict(extra="forbid")


@final
@dataclass(frozen=True)
class Brief:
    """What a child run begins with: a conversation, and a state; None for the opener's own."""

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


class Opener(Protocol):
    """What can begin a child run with a conversation: an agent's runner."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that may be called in such a run, or in those below it."""
        ...

    @property
    def is_signed(self) -> bool:
        """Whether approvals in such a run were meant to be signed."""
        ...

    @property
    def reply_max(self) -> int | None:
        """How many tokens one reply may have, in such a run or in those below it."""
        ...

    @property
    def nesting(self) -> Nesting:
        """How deep the nodes of such a run begin runs."""
        ...

    def bound(self, *, context_window: int | None, price: ModelPrice | None) -> Bound:
        """Return the most that such a run can come to."""
        ...

    def child(
        self,
        brief: Callable[[], Brief],
        effect: StartRun,
        parent: Run[Any],
        ports: Ports[Any],
    ) -> ChildRun[Any]:
        """Return the child run; `brief` is asked only for one that has not begun."""
        ...

    @property
    def resources(self) -> Collection[SharedResources]:
        """What the agent, and the agents that it may call, share among their runs."""
        ...

    @property
    def own_resources(self) -> Collection[SharedResources]:
        """Those of the agent itself, and of the agents that were made for its runs only."""
        ...


class Plan(Protocol):
    """What a run knows by an agent's name: how to open its child runs, and what they may do."""

    @property
    def opener(self) -> Opener:
        """What begins the child runs."""
        ...

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that is wished for."""
        ...


class NamedAgent(Protocol):
    """An agent or a graph, as runs are given it by a name (`agents={"writer": writer}`)."""

    def as_sub_agent(
        self, name: str, model: Model | None, options: Mapping[str, object]
    ) -> AgentTool:
        """Return it for one run; a graph is asked with the model and the access of that run."""
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
        model: Model | None,  # noqa: ARG002 - an agent has its own
        options: Mapping[str, object],  # noqa: ARG002 - the same
    ) -> AgentTool:
        """Return the agent itself."""
        return self

    def renamed(self, name: str) -> AgentTool:
        """Return the same agent under another name."""
        return AgentTool(self.tool.renamed(name), self.opener, self.takes_over)

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that a call, or a `Child` node, wishes for."""
        messages = tuple(effect.messages)
        if effect.arguments and not self.takes_over:
            prompt = json.loads(effect.arguments).get("prompt")
            if not isinstance(prompt, str):
                raise ConfigError(f"agent {self.name!r} is told a `prompt`; found {prompt!r:.80}")
            messages = (UserMessage(prompt),)
        brief = Brief(messages)
        return self.opener.child(lambda: brief, effect, run, ports)


def as_agent_tool(
    opener: Opener,
    *,
    name: str,
    description: str,
    needs_approval: Approval = False,
    takes_over: bool = False,
) -> AgentTool:
    """Return an agent as a tool; the arguments are those of `Agent.as_tool`."""
    tool: Tool[..., object] = Tool(
        name=name,
        description=description,
        parameters=_parameters(takes_over=takes_over),
        kind="agent",
        needs_approval=needs_approval,
        ends_run=takes_over,
    )
    return AgentTool(tool, opener, takes_over)


@cache
def _parameters(*, takes_over: bool) -> Parameters:
    """Return what an agent is told: nothing, where it reads the conversation; else its task.

    A model, not a schema of our own: that would load the checker of schemas, which is slow.
    """
    model: type[BaseModel] = (
        create_model("Nothing", __config__=NOTHING_ELSE)
        if takes_over
        else create_model("Task", __config__=NOTHING_ELSE, prompt=(str, Field(description=TASK)))
    )
    told = model_parameters(model, "an agent as a tool")

    def parse(arguments: str) -> object:
        task = told.parse(arguments)
        assert isinstance(task, BaseModel), "a model's parser makes models"
        return task.model_dump()

    return Parameters(told.schema, parse)
