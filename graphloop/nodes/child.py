"""child: a node that runs another agent as a child run, and takes its answer as a reply.

The child's answer becomes this turn's reply, which an `append` node adds to the history. If the
child's end brings a new state (`ChildEnded.state`), it becomes the state of this run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast

from ..contract import ChildContract, Contract, Moves
from ..conversation import apply_steering, clear_ending
from ..effects import Effect, Place, StartRun, check_place
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
    """Run an agent with the conversation so far, and take its answer as the turn's reply.

    Args:
        agent: the name of an agent that the run knows.
        name: the node's name; by default the agent's name.
        prompt: a user message that the agent reads after the conversation; empty for none. An
            agent that follows an answer needs a prompt: most models reply only to a user message.
        place: "anywhere" lets any worker drive the child run, while its parent waits parked.

    Raises:
        ConfigError: the place is neither "here" nor "anywhere".
    """

    agent: str
    name: str = ""
    prompt: str = ""
    kind: Literal["graph"] = "graph"
    place: Place = "here"
    outcomes = outcomes_of(ChildOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node opens a turn, and one child run answers it."""
        opened: frozenset[Moves] = frozenset({"turn", "close"})
        return Contract(moves={Answered: opened}, children=(ChildContract(self.agent),))

    def __post_init__(self) -> None:
        """Use the agent's name if the node has no name."""
        super().__post_init__()
        object.__setattr__(self, "name", self.name or self.agent)
        check_place(self.place, f"node {self.name!r}")

    def enter(self, run: Run[S], /) -> Reaction[S, ChildOutcome]:
        """Open a turn, and request the child run with the whole remaining budget."""
        if (ending := no_start(run, [self.agent])) is not None:
            return Leave(ended_by(run, ending), Failed())
        opened = apply_steering(evolve(clear_ending(run), turn=Turn(number=run.turn.number + 1)))
        key = f"{self.name}.{run.next_effect}"
        left, messages = run.setup.budget.remaining(run.spent), opened.messages
        if self.prompt:
            messages = messages.append(UserMessage(self.prompt, origin=self.name))
        start = StartRun(run.next_effect, key, self.agent, "", messages, left, self.place)
        return Wait(opened, (start,))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ChildOutcome]:
        """Store the child's answer as the reply; leave by `Failed` if the child failed."""
        match event:
            case ChildEnded(status="ok"):
                if event.changed:
                    # The driver made the state, and has checked its type.
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
