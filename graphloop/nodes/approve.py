"""approve: a node that asks a person to approve the latest answer before the run continues.

The request has the form of a tool approval: a call with the node's name and one argument, the
answer. So it parks the run, survives a restart, expires, is signed and is answered like any
approval of a call. Only an explicit approval in time counts; all else rejects the answer.

With `field`, the person sees a field of the user's state in place of the answer. The journal keeps
what the person saw, and the state that an edit made.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, cast

from ..contract import Contract
from ..conversation import answer_at_hand, clear_ending, reject_answer
from ..effects import AskHuman, Effect, Invoke
from ..errors import ConfigError
from ..events import (
    CallbackReturned,
    Decided,
    EffectFailed,
    Event,
    Failure,
    ItemsListed,
    NodeReturned,
)
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Accepted, Rejected
from ..run import Ending, EndReason, Run, ended_by, evolve, with_messages
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
    """Ask a person to approve the latest answer, such as a plan, or a field of the state.

    Place the node after the node that appended the answer. An approval is added as a user message,
    so that a model can continue from it. The approved text is then the run's answer for the next
    nodes, the caller and a parent run. `edit={"answer": …}` replaces that text.

    With `field`, the person approves what that field holds: a text as it is, every other value as
    JSON. An edit is such a text, too; it becomes the field's new value, and must fit its type.

    Lead `Rejected` to an `append` node, which adds the person's reason as a user message. Lead that
    node to a stop check or a limit.

    Args:
        name: the node's name, and the tool name in the approval request.
        ttl_s: the seconds in which a person may approve; the run's own limit holds as well.
        field: the field of the state to approve; empty for the latest answer.

    Raises:
        ConfigError: `name` is empty, or `ttl_s` is not a number above 0.
    """

    name: str = "approve"
    ttl_s: float | None = None
    field: str = ""
    kind: Literal["human"] = "human"
    outcomes = outcomes_of(ApproveOutcome)

    def __post_init__(self) -> None:
        """Check that the node has a name, and that `ttl_s` is a number above 0."""
        super().__post_init__()
        if not self.name:
            raise ConfigError("expected an Approve node to have a name, by which it asks, found ''")
        if self.ttl_s is not None:
            positive_number(f"ttl_s of {self.name}", self.ttl_s)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node asks a person, and a rejection notes feedback."""
        fields = frozenset({self.field} if self.field else ())
        return Contract(
            moves={Rejected: frozenset({"note"})},
            asks=True,
            reads=fields,
            writes={Accepted: fields} if fields else {},
            functions=(self._shown_field, self._edited_field) if fields else (),
        )

    @property
    def _shown_field(self) -> str:
        return f"field:shown:{self.field}"

    @property
    def _edited_field(self) -> str:
        return f"field:edited:{self.field}"

    def enter(self, run: Run[S], /) -> Reaction[S, ApproveOutcome]:
        """Request a person's approval of the latest answer or of the field."""
        if self.field:
            return Wait(run, (Invoke(run.next_effect, self._shown_field),))
        return self._ask_person(run, answer_at_hand(run))

    def _ask_person(self, run: Run[S], answer: str) -> Wait[S]:
        limits = [one for one in (self.ttl_s, run.setup.approval_ttl_s) if one is not None]
        expires_at = run.at + min(limits) if limits else None
        arguments = json.dumps({"answer": answer}, ensure_ascii=False)
        call = ToolCall("", self.name, arguments)
        key = f"{self.name}.{run.next_effect}"
        return Wait(run, (AskHuman(run.next_effect, key, call, expires_at, takes=EDITED),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ApproveOutcome]:
        """Leave by `Accepted` or `Rejected`; a failed approver rejects the answer."""
        match event, answered:
            case Decided(), AskHuman():
                return self._take_decision(run, event, answered)
            case CallbackReturned(answer=ItemsListed(items=(shown, *_))), _:
                return self._ask_person(run, shown)
            case CallbackReturned(answer=NodeReturned(state=state)), _:
                # A callback of this graph made the state; only the journal types it as `object`.
                return self._approve(evolve(run, state=cast("S", state)), edited=True)
            case EffectFailed(failure=failure), _:
                return self._fail(run, failure, answered)
            case _:
                return Leave(run, Aborted())

    def _fail(
        self, run: Run[S], failure: Failure, answered: Effect | None
    ) -> Leave[S, ApproveOutcome]:
        match answered:
            case Invoke(callback=name) if name == self._shown_field:
                return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Aborted())
            case Invoke():
                run = evolve(run, record=evolve(run.record, approved=None))
                return self._decline(run, f"The edit does not fit: {failure.message}")
            case _:
                return self._decline(run, f"The approver failed: {failure.message}")

    def _take_decision(
        self, run: Run[S], decided: Decided, asked: AskHuman
    ) -> Reaction[S, ApproveOutcome]:
        person = person_said(decided, asked)
        if not person.approved:
            return self._decline(run, person.reason)
        edited = decided.arguments not in {"", asked.call.arguments}
        shown: str = json.loads(asked.call.arguments)["answer"]
        answer = person.answer if edited else shown
        if edited and not answer.strip():
            return self._decline(run, "An edited answer has words.")
        run = evolve(run, record=evolve(run.record, approved=(run.turn.number, answer)))
        if edited and self.field:
            return Wait(run, (Invoke(run.next_effect, self._edited_field),))
        return self._approve(run, edited=edited)

    def _approve(self, run: Run[S], *, edited: bool) -> Leave[S, ApproveOutcome]:
        assert run.record.approved is not None, "a person has approved"
        said = f"Approved, as follows:\n\n{run.record.approved[1]}" if edited else APPROVED
        run = with_messages(run, UserMessage(said, origin=self.name))
        return Leave(clear_ending(run), Accepted())

    def _decline(self, run: Run[S], reason: str) -> Leave[S, ApproveOutcome]:
        feedback = f"{REJECTED} {reason}" if reason else REJECTED
        return Leave(reject_answer(run, feedback, self.name), Rejected())
