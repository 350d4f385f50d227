"""approve: a person agrees to the latest answer before the graph goes on.

The question is asked as about a call of a tool with the node's name, whose one argument is the
answer, so it parks, survives, expires, is signed and is answered like any approval of a call. It
fails closed: only a clear yes in time is a yes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from ..contract import Contract
from ..conversation import answer_at_hand, clear_ending, reject_answer
from ..effects import AskHuman, Effect
from ..errors import ConfigError
from ..events import Decided, EffectFailed, Event
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Accepted, Rejected
from ..run import Run, evolve, with_messages
from ..spending import positive_number
from ..values import ToolCall, UserMessage
from .dialogue import person_said
from .frozen_fields import FrozenFields

__all__ = ["Approve", "ApproveOutcome"]

S = TypeVar("S")

ApproveOutcome: TypeAlias = Accepted | Rejected | Aborted

APPROVED: Final = "This was approved."
REJECTED: Final = "This was not approved."
EDITED: Final = (
    '{"additionalProperties":false,"properties":{"answer":{"pattern":"\\\\S","type":"string"}},'
    '"required":["answer"],"type":"object"}'
)
"""What the answer in place of the model's is, as JSON Schema text."""


@dataclass(frozen=True)
class Approve(FrozenFields):
    """Have a person approve the latest answer, a plan perhaps.

    Stands after the node that appended the answer. An approval is a user message, so that a model
    can go on from it. The text that the person approves is the run's answer from there on: with
    `edit={"answer": …}` that text, for the next nodes, the caller and a parent alike. A rejection
    goes to an `append` node, which adds the person's reason as a user message, and from there to a
    bound.

    Args:
        name: the node's name, and the name by which the question is asked.
        ttl_s: for how many seconds an approval may be given; None for what the run says.

    Raises:
        ConfigError: there is no name, or `ttl_s` is no number above 0.
    """

    name: str = "approve"
    ttl_s: float | None = None
    kind: Literal["human"] = "human"
    outcomes = outcomes_of(ApproveOutcome)

    def __post_init__(self) -> None:
        """Refuse an approval that no person could give."""
        super().__post_init__()
        if not self.name:
            raise ConfigError("an Approve node has a name, by which it asks; found ''")
        if self.ttl_s is not None:
            positive_number(f"ttl_s of {self.name}", self.ttl_s)

    @property
    def contract(self) -> Contract:
        """It asks a person, whose text may become the run's answer; no state is changed."""
        return Contract(moves={Rejected: frozenset({"note"})}, asks=True)

    def enter(self, run: Run[S], /) -> Reaction[S, ApproveOutcome]:
        """Ask about the latest answer."""
        limits = [one for one in (self.ttl_s, run.setup.approval_ttl_s) if one is not None]
        expires_at = run.at + min(limits) if limits else None
        arguments = json.dumps({"answer": answer_at_hand(run)}, ensure_ascii=False)
        call = ToolCall("", self.name, arguments)
        key = f"{self.name}.{run.next_effect}"
        return Wait(run, (AskHuman(run.next_effect, key, call, expires_at, takes=EDITED),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ApproveOutcome]:
        """Take the person's word."""
        match event, answered:
            case Decided(), AskHuman():
                return self._decided(run, event, answered)
            case EffectFailed(failure=failure), _:
                return self._rejected(run, f"The approver failed: {failure.message}")
            case _:
                return Leave(run, Aborted())

    def _decided(self, run: Run[S], decided: Decided, asked: AskHuman) -> Leave[S, ApproveOutcome]:
        person = person_said(decided, asked)
        if not person.approved:
            return self._rejected(run, person.reason)
        said, answer = APPROVED, answer_at_hand(run)
        if decided.arguments not in {"", asked.call.arguments}:
            said, answer = f"Approved, as follows:\n\n{person.answer}", person.answer
        if said is not APPROVED and not answer.strip():
            return self._rejected(run, "An edited answer has words.")
        told = UserMessage(said, origin=self.name)
        run = with_messages(run, told)
        record = evolve(run.record, approved=(run.turn.number, answer))
        run = evolve(run, record=record)
        return Leave(clear_ending(run), Accepted())

    def _rejected(self, run: Run[S], reason: str) -> Leave[S, ApproveOutcome]:
        feedback = f"{REJECTED} {reason}" if reason else REJECTED
        return Leave(reject_answer(run, feedback, self.name), Rejected())
