"""approve: a node that asks a person to approve the latest answer before the run continues.

The request has the form of a tool approval: a call with the node's name and one argument, the
answer. So it parks the run, survives a restart, expires, is signed and is answered like any
approval of a call. Only an explicit approval in time counts; all else rejects the answer.
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
"""The JSON Schema, as text, of an edit that replaces the model's answer."""


@dataclass(frozen=True)
class Approve(FrozenFields):
    """Ask a person to approve the latest answer, such as a plan.

    Place the node after the node that appended the answer. An approval is added as a user message,
    so that a model can continue from it. The approved text is then the run's answer for the next
    nodes, the caller and a parent run. `edit={"answer": …}` replaces that text.

    Lead `Rejected` to an `append` node, which adds the person's reason as a user message. Lead that
    node to a stop check or a limit.

    Args:
        name: the node's name, and the tool name in the approval request.
        ttl_s: the seconds in which a person may approve; the run's own limit holds as well.

    Raises:
        ConfigError: `name` is empty, or `ttl_s` is not a number above 0.
    """

    name: str = "approve"
    ttl_s: float | None = None
    kind: Literal["human"] = "human"
    outcomes = outcomes_of(ApproveOutcome)

    def __post_init__(self) -> None:
        """Check that the node has a name, and that `ttl_s` is a number above 0."""
        super().__post_init__()
        if not self.name:
            raise ConfigError("an Approve node has a name, by which it asks; found ''")
        if self.ttl_s is not None:
            positive_number(f"ttl_s of {self.name}", self.ttl_s)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node asks a person, and a rejection notes feedback."""
        return Contract(moves={Rejected: frozenset({"note"})}, asks=True)

    def enter(self, run: Run[S], /) -> Reaction[S, ApproveOutcome]:
        """Request a person's approval of the latest answer."""
        limits = [one for one in (self.ttl_s, run.setup.approval_ttl_s) if one is not None]
        expires_at = run.at + min(limits) if limits else None
        arguments = json.dumps({"answer": answer_at_hand(run)}, ensure_ascii=False)
        call = ToolCall("", self.name, arguments)
        key = f"{self.name}.{run.next_effect}"
        return Wait(run, (AskHuman(run.next_effect, key, call, expires_at, takes=EDITED),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ApproveOutcome]:
        """Leave by `Accepted` or `Rejected`; a failed approver rejects the answer."""
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
