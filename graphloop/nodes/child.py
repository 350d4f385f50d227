"""child: another agent's whole run, as one node of this graph.

The child answers in the model's place: what it says becomes this turn's reply, to be appended, and
what was made of it outside becomes the state of this run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast

from ..contract import ChildContract, Contract, Moves
from ..conversation import apply_steering, clear_ending
from ..effects import Effect, StartRun
from ..events import ChildEnded, EffectFailed, Event, Failure
from ..limits import no_start
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Answered, Failed
from ..run import Ending, EndReason, Run, ended_by, evolve
from ..turn import Turn
from ..values import AssistantMessage, FinishReason, Reply, TextPart, UserMessage
from .frozen_fields import FrozenFields

__all__ = ["Child", "ChildOutcome"]

S = TypeVar("S")

ChildOutcome: TypeAlias = Answered | Failed | Aborted


@dataclass(frozen=True)
class Child(FrozenFields):
    """Hand the conversation to an agent, and take its answer as the turn's.

    Args:
        agent: the name of the agent among those that the run knows.
        name: the node's name; the agent's if not given.
        prompt: what it is told after the conversation; nothing if empty. An agent that comes after
            an answer needs one: most models reply to a person, not to a model.
    """

    agent: str
    name: str = ""
    prompt: str = ""
    kind: Literal["graph"] = "graph"
    outcomes = outcomes_of(ChildOutcome)

    @property
    def contract(self) -> Contract:
        """It opens a turn, which the agent answers; what the agent does is its own."""
        opened: frozenset[Moves] = frozenset({"turn", "close"})
        child = ChildContract(name=self.agent)
        return Contract(
            moves=opened, surely={Answered: opened}, agents=(self.agent,), children=(child,)
        )

    def __post_init__(self) -> None:
        """Take the agent's name."""
        super().__post_init__()
        object.__setattr__(self, "name", self.name or self.agent)

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Start the child with all that is left of the budget."""
        if (ending := no_start(run, [self.agent])) is not None:
            return Leave(ended_by(run, ending), Failed())
        opened = apply_steering(evolve(clear_ending(run), turn=Turn(number=run.turn.number + 1)))
        key = f"{self.name}.{run.next_effect}"
        left, messages = run.setup.budget.left(run.spent), opened.messages
        if self.prompt:
            messages = messages.append(UserMessage(self.prompt, origin=self.name))
        return Wait(opened, (StartRun(run.next_effect, key, self.agent, "", messages, left),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Take the answer."""
        match event:
            case ChildEnded(status="ok"):
                if event.changed:
                    # What made it, outside, has seen to its type.
                    run = evolve(run, state=cast("S", event.state))
                message = AssistantMessage((TextPart(event.content),))
                reply = Reply(message, FinishReason.STOP, model=self.agent)
                turn = evolve(run.turn, reply=reply, usage=event.spent.usage)
                return Leave(evolve(run, turn=turn), Answered())
            case ChildEnded():
                failure = Failure("RunFailed", event.content)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())
