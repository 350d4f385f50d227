"""Everything a run can wish of the world: imperative, frozen, performed by a driver.

Each effect has an `id`, unique in its run and counted up from 1; the event that answers it names
that id. A wish whose answer has been journaled is never performed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from .spending import Budget
from .values import Message, ModelRequest, ToolCall

__all__ = [
    "IN_WORDS",
    "AskHuman",
    "CallModel",
    "CallTool",
    "CheckCalls",
    "Effect",
    "HandOver",
    "Invoke",
    "StartRun",
]


IN_WORDS: Final = (
    '{"additionalProperties":false,"properties":{"answer":{"type":"string"},'
    '"question":{"type":"string"}},"required":["answer"],"type":"object"}'
)
"""What a person's answer in words is, as JSON Schema text; whose question it is may stand by it."""


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
    """Ask whether one call may run. Answered by `Decided`; parks where nobody can be asked.

    From `expires_at` on (seconds since the epoch) an approval comes too late. `unknown` asks once
    more about a call that was approved, and may have run: nobody knows. `takes` is what an edit of
    a node's own question has to be, as JSON Schema text; one of a call is what its tool takes.
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


class HandOver(Struct, frozen=True, gc=False):
    """Let the caller of an iterated run have a look, and a say. Answered by `Steered`.

    Asked once the model has replied and, if `tools_ran`, once more when the results are there.
    """

    id: int
    tools_ran: bool = False


Effect: TypeAlias = CallModel | CheckCalls | CallTool | AskHuman | Invoke | StartRun | HandOver
