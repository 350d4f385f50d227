"""prepare_step: begin a turn and settle what the model is offered in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..effects import Effect, Invoke
from ..events import CallbackReturned, Changes, EffectFailed, Event, Failure
from ..history import History
from ..node import Kind, Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Failed, Ready
from ..run import Ending, EndReason, Run, Turn, evolve
from ..values import ToolChoice, ToolSpec

__all__ = ["PrepareStep", "PrepareStepOutcome"]

S = TypeVar("S")

PrepareStepOutcome: TypeAlias = Ready | Failed | Aborted

AUTO = ToolChoice()


@dataclass(frozen=True)
class PrepareStep:
    """Open the next turn; let the user's `prepare_step` function change it first.

    Args:
        active_tools: the only tools offered, in every turn; None offers all.
        tool_choice: how freely the model may choose, in every turn.
        callback: the name of the function to invoke before each turn; empty for none.
    """

    name: str = "prepare_step"
    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice = AUTO
    callback: str = ""
    kind: Kind = "prepare"
    outcomes = outcomes_of(PrepareStepOutcome)

    def enter(self, run: Run[S], /) -> Reaction[S, PrepareStepOutcome]:
        """Open a turn, and ask the user's function if there is one."""
        turn = Turn(
            number=run.turn.number + 1,
            tools=_offered(run.setup.tools, self.active_tools),
            tool_choice=self.tool_choice,
        )
        opened = evolve(run, turn=turn)
        if self.callback:
            return Wait(opened, (Invoke(run.next_effect, self.callback),))
        return Leave(opened, Ready())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, PrepareStepOutcome]:
        """Apply what the user's function changed."""
        match event:
            case CallbackReturned(answer=Changes() as changes):
                return Leave(_changed(run, changes), Ready())
            case CallbackReturned(answer=answer):
                found = f"{self.callback!r} answers with Changes; found {type(answer).__name__}"
                failure = Failure("ConfigError", found)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(evolve(run, ending=Ending(EndReason.ERROR, failure=failure)), Failed())


def _offered(tools: tuple[ToolSpec, ...], active: tuple[str, ...] | None) -> tuple[ToolSpec, ...]:
    if active is None:
        return tools
    return tuple(tool for tool in tools if tool.name in active)


def _changed(run: Run[S], changes: Changes) -> Run[S]:
    turn = run.turn
    if changes.active_tools is not None:
        turn = evolve(turn, tools=_offered(run.setup.tools, changes.active_tools))
    if changes.tool_choice is not None:
        turn = evolve(turn, tool_choice=changes.tool_choice)
    if changes.model is not None:
        turn = evolve(turn, model=changes.model)
    if changes.messages is not None:
        run = evolve(run, messages=History(changes.messages))
    return evolve(run, turn=turn)
