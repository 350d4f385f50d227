"""SubPlan: the functions that convert between a parent's state and its child run.

The functions are pure. The child's journal stores its prompt, and the parent's journal stores the
new state. A replay or a resumed run therefore does not call the functions again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, cast, final

from typing_extensions import TypeVar

from ..agent import Brief, ChildOpener, MessageInput, answers_of, messages_of, output_from
from ..driver import ChildRun, Ports
from ..effects import StartRun
from ..errors import ConfigError
from ..events import ChildEnded
from ..policy import Policy
from ..run import EndReason, Run
from ..spending import Budget
from ..states import changed_fields, item_text, lent, with_result
from ..stores import check_state
from ..values import Message, Usage, UserMessage, evolve

__all__ = ["ChildResult", "SubPlan"]

OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)
C = TypeVar("C", default=None)


@final
@dataclass(frozen=True)
class ChildResult(Generic[OutputT_co, C]):
    """The result of a child run, which is passed to the `output` function of `sub_graph`.

    Attributes:
        text: the child run's answer; empty if there is none.
        state: the child run's last state.
        end_reason: the reason why the child run ended.
        messages: the messages that the child run added to its conversation.
        usage: the tokens used by the child run and by its own children.
        answers: the answer as a value of the child's `output_type`, in a tuple that is empty if the
            child has no such answer; None for a child without an `output_type`.
    """

    text: str
    state: C
    end_reason: EndReason
    messages: Sequence[Message]
    usage: Usage
    answers: tuple[OutputT_co, ...] | None = None

    @property
    def output(self) -> OutputT_co:
        """The child run's answer: a value of its `output_type`; without one, the `text`.

        Raises:
            OutputInvalid: the child run ended before it had an answer of its `output_type`.
        """
        return output_from(self.answers, self.text, self.end_reason)


@final
@dataclass(frozen=True)
class SubPlan:
    """The functions and limits for the child runs of a `sub_graph` node.

    Args:
        name: the node's name.
        opener: starts the child runs.
        prompt: the child's prompt, or a function that computes it from the parent's state; None if
            the child gets the parent's conversation.
        state: computes the child's first state from the parent's state.
        output: computes the parent's new state from its old state and the child's result.
        gate: rules that apply to the child's calls, in addition to the existing gates.
        budget: the most that one child run may spend.
        writes: the fields of the parent's state that `output` may change; None for all fields.
        into: the field of the parent's state that gets the child's answer; empty for none.
    """

    name: str
    opener: ChildOpener[Any]
    prompt: str | Callable[[Any], str | Sequence[MessageInput]] | None = None
    state: Callable[[Any], object] | None = None
    output: Callable[[Any, ChildResult[Any, Any]], object] | None = None
    gate: Policy | None = None
    budget: Budget | None = None
    writes: frozenset[str] | None = None
    into: str = ""

    def open(self, effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
        """Open the child run for a `StartRun` effect, with this plan's functions and limits."""
        if self.gate is not None:
            ports = evolve(ports, gates=(*ports.gates, self.gate))
        if self.budget is not None:
            effect = evolve(effect, budget=self.budget.tightened(effect.budget))
        opened = self.opener.child(lambda: self._make_brief(effect, run), effect, run, ports)

        def end(ended: ChildEnded, child: Run[Any]) -> ChildEnded:
            return self._with_new_state(ended, child, run, ports)

        return evolve(opened, end=end)

    def _make_brief(self, effect: StartRun, run: Run[Any]) -> Brief:
        messages = tuple(effect.messages)
        if self.prompt is not None:
            asked = self.prompt(lent(run.state)) if callable(self.prompt) else self.prompt
            messages = self._as_messages(asked)
        if self.state is None:
            return Brief(messages)
        begun = self.state(lent(run.state))
        check_state(begun, None, f"`state` of node {self.name!r} returns")
        return Brief(messages, begun)

    def _as_messages(self, asked: str | Sequence[MessageInput]) -> tuple[Message, ...]:
        """Return the result of `prompt` as messages; a string becomes one user message."""
        check_state(asked, None, f"`prompt` of node {self.name!r} returns")
        try:
            return (UserMessage(asked),) if isinstance(asked, str) else messages_of(asked)
        except ConfigError as error:
            raise ConfigError(
                f"`prompt` of node {self.name!r} returns a text or messages: {error}"
            ) from error

    def _with_new_state(
        self, ended: ChildEnded, child: Run[Any], run: Run[Any], ports: Ports[Any]
    ) -> ChildEnded:
        assert child.ending is not None, "a run that is over has an ending"
        if child.ending.reason is EndReason.COMPLETED and ended.status == "error":
            # A child graph that completes without an answer has succeeded: its state is the result.
            ended = evolve(ended, content="", status="ok")
        if ended.status != "ok":
            return ended
        if self.into:
            return self._into_field(ended, child, run, ports)
        if self.output is None:
            return ended
        result = ChildResult(
            ended.content,
            lent(child.state),
            child.ending.reason,
            tuple(child.record.added),
            child.spent.usage,
            answers_of(self.opener.terms.final, child),
        )
        old: object = run.state
        new, made = self.output(lent(old), result), f"`output` of node {self.name!r} returns"
        if new is None and old is not None:
            raise ConfigError(f"expected that {made} the new state, found None")
        check_state(new, ports.state_type, made, kept=ports.kept)
        writes, kind = self.writes, cast("object", type(old))
        if writes is not None and (changed := changed_fields(kind, old, new, writes)):
            raise ConfigError(
                f"node {self.name!r} writes {', '.join(sorted(writes)) or 'nothing'}, as it "
                f"declares; its `output` changed {', '.join(changed)}: add it to `writes=`"
            )
        return evolve(ended, state=new, changed=True)

    def _into_field(
        self, ended: ChildEnded, child: Run[Any], run: Run[Any], ports: Ports[Any]
    ) -> ChildEnded:
        """Return the event with the child's answer in a field of the parent's state."""
        old, final = lent(run.state), self.opener.terms.final
        kind = cast("object", type(old)) if ports.state_type in {None, Any} else ports.state_type
        content = ended.content if final is None else item_text(final.answer(child))
        new = with_result(old, kind, self.into, content, self.name)
        check_state(new, ports.state_type, f"node {self.name!r} returns", kept=ports.kept)
        return evolve(ended, state=new, changed=True)
