"""Everything that a run can ask of the world: imperative, frozen, performed by a driver.

Each effect has an `id`, unique in its run and counted up from 1; the event that answers it names
that id. An effect whose answer is in the journal is never performed again.

A node's generator makes requests (`AskModel`, `AskPerson`, `AskAgent`, `Tell`). The driver journals
each request, the kernel makes its effect, and the answer is fed to the generator when it runs
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from .spending import Budget
from .values import Message, ModelRequest, Reply, SystemMessage, ToolCall, UserMessage

__all__ = [
    "ASKS",
    "IN_WORDS",
    "Answer",
    "Ask",
    "AskAgent",
    "AskHuman",
    "AskModel",
    "AskPerson",
    "AwaitCaller",
    "CallModel",
    "CallTool",
    "CheckCalls",
    "Effect",
    "Invoke",
    "Note",
    "PersonSaid",
    "StartRun",
    "Tell",
]

IN_WORDS: Final = (
    '{"additionalProperties":false,"properties":{"answer":{"type":"string"},'
    '"question":{"type":"string"}},"required":["answer"],"type":"object"}'
)
"""The form of a person's answer in words, as JSON Schema text; the question may stand by it."""


class CallModel(Struct, frozen=True, gc=False):
    """Ask the model registered under `model`. Answered by `ModelReplied`."""

    id: int
    model: str
    request: ModelRequest


class CheckCalls(Struct, frozen=True, gc=False):
    """Validate the arguments of calls, and say which need a human. Answered by `CallsChecked`.

    Validation and approval predicates are user code, so their answer is a fact of the journal:
    a replay never asks them again. `calls` are those of the turn at these `places`, as they would
    run; or, with a `key`, the one of that key with the arguments that a human has put in place of
    its own.
    """

    id: int
    turn: int
    calls: tuple[ToolCall, ...]
    places: tuple[int, ...]
    key: str = ""


class CallTool(Struct, frozen=True, gc=False):
    """Run one tool that its gate has let through. Answered by `ToolReturned`.

    `client` tools have no executor in this process: the run parks until the answer arrives.
    """

    id: int
    key: str
    call: ToolCall
    client: bool = False


class AskHuman(Struct, frozen=True, gc=False):
    """Ask whether one call may run. Answered by `Decided`; parks where no approver is at hand.

    From `expires_at` on (seconds since the epoch) an approval comes too late. `unknown` asks once
    more about a call that was approved, and may have run. `takes` is the form of an edit of a
    node's own question, as JSON Schema text; an edit of a call has the form of its tool.
    """

    id: int
    key: str
    call: ToolCall
    expires_at: float | None = None
    unknown: bool = False
    takes: str = ""


class Invoke(Struct, frozen=True, gc=False):
    """Call the user's own function registered as `callback`. Answered by `CallbackReturned`."""

    id: int
    callback: str


class StartRun(Struct, frozen=True, gc=False):
    """Run a child to its end: a run of its own, with a journal of its own. `ChildEnded` answers.

    `agent` names the child among those the driver knows, `key` the child in its parent (a call's
    key, or a node's). It is told `arguments` (JSON text) and may read the parent's conversation;
    it may spend `budget` at most. A parked child parks its parent.
    """

    id: int
    key: str
    agent: str
    arguments: str
    messages: Sequence[Message]
    budget: Budget = Budget()


class AwaitCaller(Struct, frozen=True, gc=False):
    """Let the caller of an iterated run have a look, and a say. Answered by `Steered`.

    Asked once the model has replied and, if `tools_ran`, once more when the results are there.
    """

    id: int
    tools_ran: bool = False


Effect: TypeAlias = CallModel | CheckCalls | CallTool | AskHuman | Invoke | StartRun | AwaitCaller


Note: TypeAlias = UserMessage | SystemMessage
"""A message that a node may add to the conversation: for people, never for the model."""


class AskModel(Struct, frozen=True, tag_field="kind", tag="model", gc=False):
    """Ask a model, which is offered no tools. Answered with its `Reply`.

    `model` is the label of the model; empty for the run's own. The model reads the run's
    conversation before the prompt only if `conversation` says so. `max_tokens` limits the reply
    beside the run's own limit: the stricter of the two holds.
    """

    prompt: str
    system: str = ""
    model: str = ""
    conversation: bool = False
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    kind: ClassVar[Literal["model"]] = "model"


class AskPerson(Struct, frozen=True, tag_field="kind", tag="person", gc=False):
    """Ask a person. Answered with `PersonSaid`; parks where no approver is at hand."""

    question: str
    kind: ClassVar[Literal["person"]] = "person"


class AskAgent(Struct, frozen=True, tag_field="kind", tag="agent", gc=False):
    """Have an agent answer, in a child run. Answered with the text that it ends with."""

    agent: str
    prompt: str
    conversation: bool = False
    kind: ClassVar[Literal["agent"]] = "agent"


class Tell(Struct, frozen=True, tag_field="kind", tag="tell", gc=False):
    """Add a message to the conversation. Answered with nothing, at once."""

    message: Note
    kind: ClassVar[Literal["tell"]] = "tell"


class PersonSaid(Struct, frozen=True, gc=False):
    """The answer of a person: yes or no, a reason, and perhaps words.

    Attributes:
        approved: whether it was a yes, in time.
        reason: what they gave as the reason.
        answer: the answer in words: `approve(edit={"answer": …})`.
    """

    approved: bool
    reason: str = ""
    answer: str = ""


Ask: TypeAlias = AskModel | AskPerson | AskAgent | Tell
Answer: TypeAlias = Reply | PersonSaid | str | None
"""Answers of asks; the helpers give each its own type."""

ASKS: Final[frozenset[type[Ask]]] = frozenset({AskModel, AskPerson, AskAgent, Tell})
