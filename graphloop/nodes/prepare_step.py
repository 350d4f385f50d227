"""prepare_step: a node that opens the next turn, and chooses the tools that the model is offered.

The caller's queued messages enter the conversation here. Limits that end the run are checked
before, so the model answers each message that it reads. A conversation that the caller passed in
with open calls goes to the gate first. A conversation that is about to exceed the context window is
shortened first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import BROKEN, Cap, Contract
from ..conversation import Compaction, adopt_open_calls, apply_steering, clear_ending, estimate
from ..effects import Effect, Invoke
from ..events import CallbackReturned, Changes, EffectFailed, Event
from ..limits import CountedLimit
from ..node_protocol import Leave, Reaction, Wait, outcomes_of, wrong_answer
from ..outcomes import Aborted, Calls, Failed, Overflow, Ready
from ..run import Ending, EndReason, Run, ended_by, evolve, with_conversation
from ..turn import Turn
from ..values import NO_USAGE, ToolChoice, ToolSpec, ToolSpecs, UserMessage
from .frozen_fields import FrozenFields

__all__ = ["PrepareStep", "PrepareStepOutcome"]

S = TypeVar("S")

PrepareStepOutcome: TypeAlias = Ready | Overflow | Calls | Failed | Aborted

AUTO = ToolChoice()
READY = Ready()


@dataclass(frozen=True)
class PrepareStep(FrozenFields):
    """Open the next turn, and let the user's `prepare_step` function change it.

    Args:
        active_tools: the names of the tools to offer in every turn; None offers all tools.
        tool_choice: the tool choice for the turns in its `scope`; the run's own choice replaces it.
        callback: the name of the user's function to invoke before each turn; empty for none.
        compaction: the options that say when a conversation is too long; None for never.
    """

    name: str = "prepare_step"
    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice = AUTO
    callback: str = ""
    compaction: Compaction | None = None
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(PrepareStepOutcome)

    def __post_init__(self) -> None:
        """Freeze the fields, and refuse a compaction without a context window."""
        super().__post_init__()
        if self.compaction is not None:
            _ = self.compaction.window

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node opens a turn, also for calls that are still open.

        It leaves by `Overflow` only with a `compaction`.
        """
        return Contract(
            caps={} if self.compaction is not None else {Overflow: Cap(0)},
            moves={
                Ready: frozenset({"turn"}),
                Calls: frozenset({"turn", "close"}),
                Failed: BROKEN,
                Aborted: BROKEN,
            },
            functions=(self.callback,) if self.callback else (),
        )

    @property
    def counted_limits(self) -> tuple[CountedLimit, ...]:
        """The context window of the compaction, if there is one: a limit on tokens."""
        if self.compaction is None:
            return ()
        return ((False, f"Compaction(context_window={self.compaction.window})"),)

    def enter(self, run: Run[S], /) -> Reaction[S, PrepareStepOutcome]:
        """Open a turn, and invoke the user's function if there is one."""
        last, setup = run.turn, run.setup
        tools: ToolSpecs = setup.tools  # type: ignore[assignment]  # A setup makes them so.
        if self.active_tools is not None:
            tools = _offer(tools, self.active_tools)
        # A conversation that ends in a user message has no open calls.
        may_resume = last.calls or (
            last.number < 0 and run.messages and not isinstance(run.messages[-1], UserMessage)
        )
        if may_resume and (resumed := _turn_for_open_calls(run)):
            return Leave(evolve(resumed, turn=evolve(resumed.turn, tools=tools)), Calls())
        if self.compaction is not None and not last.compacted and self._overflows(run):
            return Leave(run, Overflow())
        # A turn whose model found the window full is opened again, with its own number.
        number = last.number if last.compacted and last.asked else last.number + 1
        choice = self.tool_choice if setup.tool_choice is None else setup.tool_choice
        turn = Turn(
            number=number,
            tools=tools,
            tool_choice=AUTO if number and choice.scope == "first_step" else choice,
            compacted=last.compacted,
            # A turn that is opened again keeps its usage.
            usage=last.usage if last.compacted else NO_USAGE,
        )
        opened = evolve(run if run.ending is None else clear_ending(run), turn=turn)
        if opened.inbox.steering:
            opened = apply_steering(opened)
        if self.callback:
            return Wait(opened, (Invoke(run.next_effect, self.callback),))
        return Leave(opened, READY)

    def _overflows(self, run: Run[S]) -> bool:
        """Whether the conversation is too long, by the last count plus an estimate of the rest."""
        assert self.compaction is not None, "it was looked at before"
        known = run.measured
        tokens = known.tokens + estimate(run.messages[known.messages :])
        return self.compaction.due(tokens)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, PrepareStepOutcome]:
        """Apply the changes that the user's function returned, and leave by `Ready`."""
        match event:
            case CallbackReturned(answer=Changes() as changes):
                return Leave(_apply_changes(run, changes, self.active_tools), Ready())
            case CallbackReturned(answer=answer):
                failure = wrong_answer(self.callback, Changes, answer)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())


def _turn_for_open_calls(run: Run[S]) -> Run[S] | None:
    """Return the run with a turn for the open calls of its conversation; None without any."""
    last = run.turn
    if last.calls:
        # The caller put these calls in place of a turn whose own calls had run.
        turn = Turn(
            number=last.number + 1,
            reply=last.reply,
            calls=last.calls,
            results=last.results,
            given=last.given,
        )
        return evolve(run, turn=turn)
    if last.number < 0 and not run.record.added:
        return adopt_open_calls(run, run.messages)
    return None


def _offer(tools: tuple[ToolSpec, ...], active: tuple[str, ...] | None) -> ToolSpecs:
    return ToolSpecs([tool for tool in tools if active is None or tool.name in active])


def _apply_changes(run: Run[S], changes: Changes, every_turn: tuple[str, ...] | None) -> Run[S]:
    turn, setup = run.turn, run.setup
    if changes.add_tools or changes.withdraw_tools:
        gone = {*changes.withdraw_tools, *(tool.name for tool in changes.add_tools)}
        kept = tuple(tool for tool in setup.tools if tool.name not in gone)
        setup = evolve(setup, tools=(*kept, *changes.add_tools))
    if changes.add_tools or changes.withdraw_tools or changes.active_tools is not None:
        active = every_turn if changes.active_tools is None else changes.active_tools
        turn = evolve(turn, tools=_offer(setup.tools, active))
    if changes.tool_choice is not None:
        turn = evolve(turn, tool_choice=changes.tool_choice)
    if changes.model is not None:
        turn = evolve(turn, model=changes.model)
    if changes.messages is not None:
        run = with_conversation(run, changes.messages)
    return evolve(run, turn=turn, setup=setup)
