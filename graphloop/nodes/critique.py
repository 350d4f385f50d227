"""critique: a node that asks a model to judge the latest answer before the run accepts it.

The judge must call the tool `verdict`, because free text would have to be interpreted. A missing
or unreadable verdict rejects the answer: a judge that fails must not accept anything. The judge's
call counts against the run's limits like any other model call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import Contract
from ..conversation import reject_answer
from ..effects import Effect
from ..events import EffectFailed, Event, ModelReplied
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Accepted, Failed, Rejected
from ..run import Ending, EndReason, Run, ended_by
from ..values import Reply, ToolSpec
from .forced_choice import CUT_SHORT, choices, forced_choice
from .frozen_fields import FrozenFields

__all__ = ["Critique", "CritiqueOutcome"]

S = TypeVar("S")

CritiqueOutcome: TypeAlias = Accepted | Rejected | Failed | Aborted

VERDICT = ToolSpec(
    name="verdict",
    description="Give your verdict on the answer.",
    parameters=json.dumps(
        {
            "type": "object",
            "properties": {
                "accepted": {"type": "boolean", "description": "Whether the answer is good."},
                "feedback": {"type": "string", "description": "What to change, if it is not."},
            },
            "required": ["accepted", "feedback"],
            "additionalProperties": False,
        }
    ),
)


@dataclass(frozen=True)
class Critique(FrozenFields):
    """Ask a model to accept or reject the latest answer; note its feedback for the next turn.

    Place the node after the node that appended the answer. Lead `Rejected` to an `append` node,
    which adds the feedback as a user message. Lead that node to a stop check, which bounds the
    cycle.

    The model answers by calling the tool `verdict` with `accepted` and `feedback`; a script of the
    model says so: `{"calls": [{"name": "verdict", "arguments": {…}}]}`.

    Args:
        prompt: the judge's instruction, sent as a user message after the conversation.
        model: the label of the judging model; empty for the run's own model.
    """

    prompt: str
    name: str = "critique"
    model: str = ""
    kind: Literal["check"] = "check"
    outcomes = outcomes_of(CritiqueOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: a visit asks one model, and may reject any number of times."""
        return Contract(moves={Rejected: frozenset({"note"})}, model_calls=1)

    def enter(self, run: Run[S], /) -> Reaction[S, CritiqueOutcome]:
        """Request the judge's verdict from the model."""
        asked = forced_choice(run, VERDICT, self.prompt, origin=self.name, model=self.model)
        return Wait(run, (asked,))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, CritiqueOutcome]:
        """Leave by `Accepted` or `Rejected`, as the judge decided; a failed call ends the run."""
        if isinstance(event, EffectFailed):
            ending = Ending(EndReason.ERROR, failure=event.failure)
            return Leave(ended_by(run, ending), Failed())
        if not isinstance(event, ModelReplied):
            return Leave(run, Aborted())
        feedback = _feedback_of(event.reply)
        if feedback is None:
            return Leave(run, Accepted())
        return Leave(reject_answer(run, feedback, self.name), Rejected())


def _feedback_of(reply: Reply) -> str | None:
    """Return the judge's feedback on a rejected answer, or None if the judge accepted it."""
    if reply.finish_reason in CUT_SHORT:
        return "The answer was not accepted: its judge was cut short. Improve it."
    match choices(reply, VERDICT)[:1]:
        case ():
            return "The answer was not accepted: its judge gave no verdict. Improve it."
        case ({"accepted": True},):
            return None
        case ({"accepted": False, "feedback": str(feedback)},) if feedback.strip():
            return feedback
        case _:
            return "The answer was not accepted, without a reason. Improve it."
