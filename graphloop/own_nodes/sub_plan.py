"""SubPlan: a child run made of its parent's state, and the parent's state made of its result.

The functions are pure mappings: what the child was asked is kept in its journal, what became of
the parent's state in the parent's, so that neither a replay nor a resumed run calls them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, final

from ..agent import Brief, MessageInput, Opener, changed_fields, lent, messages_of
from ..driver import ChildRun, Ports, check_state, refuse_awaitable
from ..effects import StartRun
from ..errors import ConfigError
from ..events import ChildEnded
from ..policy import Policy
from ..run import EndReason, Run
from ..spending import Budget
from ..values import Message, Usage, UserMessage, evolve

__all__ = ["ChildResult", "SubPlan"]

C = TypeVar("C")


@final
@dataclass(frozen=True)
class ChildResult(Generic[C]):
    """The outcome of a child run, as an `output` function receives it.

    Attributes:
        text: its answer; empty if it gave none.
        state: its state in the end.
        end_reason: why it ended.
        messages: those that it added.
        usage: the tokens that it and its own children used.
    """

    text: str
    state: C
    end_reason: EndReason
    messages: Sequence[Message]
    usage: Usage


@final
@dataclass(frozen=True)
class SubPlan:
    """How child runs are opened, and what they come back with.

    Args:
        name: the node's name.
        opener: begins the child runs.
        prompt: what the child is asked, by the parent's state; None for the parent's conversation.
        state: the state that the child begins with, by the parent's.
        output: the parent's new state, by its old one and the child's result.
        gate: rules that the child's calls pass as well.
        budget: what the child may spend at most.
        writes: the fields of the parent's state that `output` may change; None for any.
    """

    name: str
    opener: Opener
    prompt: Callable[[Any], str | Sequence[MessageInput]] | None = None
    state: Callable[[Any], object] | None = None
    output: Callable[[Any, ChildResult[Any]], object] | None = None
    gate: Policy | None = None
    budget: Budget | None = None
    writes: frozenset[str] | None = None

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Return the child run that the node starts."""
        if self.gate is not None:
            ports = replace(ports, gates=(*ports.gates, self.gate))
        if self.budget is not None:
            effect = evolve(effect, budget=self.budget.tightened(effect.budget))
        opened = self.opener.child(lambda: self._brief(effect, run), effect, run, ports)

        def end(ended: ChildEnded, child: Run[Any]) -> ChildEnded:
            return self._ended(ended, child, run, ports)

        return replace(opened, end=end)

    def _brief(self, effect: StartRun, run: Run[Any]) -> Brief:
        messages = tuple(effect.messages)
        if self.prompt is not None:
            messages = self._asked(self.prompt(lent(run.state)))
        if self.state is None:
            return Brief(messages)
        begun = self.state(lent(run.state))
        refuse_awaitable(begun, f"`state` of node {self.name!r} returns")
        return Brief(messages, begun)

    def _asked(self, asked: str | Sequence[MessageInput]) -> tuple[Message, ...]:
        """Return what the child is asked, as messages."""
        refuse_awaitable(asked, f"`prompt` of node {self.name!r} returns")
        try:
            return (UserMessage(asked),) if isinstance(asked, str) else messages_of(asked)
        except ConfigError as error:
            raise ConfigError(
                f"`prompt` of node {self.name!r} returns a text or messages: {error}"
            ) from error

    def _ended(
        self, ended: ChildEnded, child: Run[Any], run: Run[Any], ports: Ports[Any]
    ) -> ChildEnded:
        assert child.ending is not None, "a run that is over has an ending"
        if child.ending.reason is EndReason.COMPLETED and ended.status == "error":
            # Not every graph ends by saying something: its state may be its answer.
            ended = evolve(ended, content="", status="ok")
        if self.output is None or ended.status != "ok":
            return ended
        result = ChildResult(
            ended.content,
            lent(child.state),
            child.ending.reason,
            tuple(child.record.added),
            child.spent.usage,
        )
        new, made = self.output(lent(run.state), result), f"`output` of node {self.name!r} returns"
        if new is None and run.state is not None:
            raise ConfigError(f"{made} the new state; found None")
        check_state(new, ports.state_type, made, kept=ports.kept)
        self._check_writes(run.state, new)
        return evolve(ended, state=new, changed=True)

    def _check_writes(self, old: object, new: object) -> None:
        if self.writes is None:
            return
        changed = changed_fields(type(old), old, new, self.writes)
        if changed:
            raise ConfigError(
                f"node {self.name!r} writes {', '.join(sorted(self.writes)) or 'nothing'}, as it "
                f"declares; its `output` changed {', '.join(changed)}: add it to `writes=`"
            )
