"""Everything a run can wish of the world: imperative, frozen, performed by a driver.

Each effect has an `id`, unique in its run and counted up from 1; the event that answers it names
that id. A wish whose answer has been journaled is never performed again.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .values import ModelRequest, ToolCall

__all__ = ["AskHuman", "CallModel", "CallTool", "CheckCalls", "Effect", "Invoke"]


class CallModel(Struct, frozen=True, gc=False):
    """Ask the model registered under `model`. Answered by `ModelReplied`."""

    id: int
    model: str
    request: ModelRequest


class CheckCalls(Struct, frozen=True, gc=False):
    """Validate the arguments of calls, and say which need a human. Answered by `CallsChecked`.

    Validation and approval predicates are user code, so their answer is a fact of the journal:
    a replay never asks them again.
    """

    id: int
    turn: int
    calls: tuple[ToolCall, ...]


class CallTool(Struct, frozen=True, gc=False):
    """Run one tool that its gate has let through. Answered by `ToolReturned`.

    `client` tools have no executor in this process: the run parks until the answer arrives.
    """

    id: int
    key: str
    call: ToolCall
    client: bool = False


class AskHuman(Struct, frozen=True, gc=False):
    """Ask whether one call may run. Answered by `Decided`; parks where nobody can be asked."""

    id: int
    key: str
    call: ToolCall


class Invoke(Struct, frozen=True, gc=False):
    """Call the user's own function registered as `callback`. Answered by `CallbackReturned`."""

    id: int
    callback: str


Effect: TypeAlias = CallModel | CheckCalls | CallTool | AskHuman | Invoke
