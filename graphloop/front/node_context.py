"""NodeContext: what a function that is a node may know of the run it decides in."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, final

from msgspec import Struct

from ..effects import Invoke
from ..run import Run
from ..values import Message, Usage

__all__ = ["NodeContext"]


@final
class NodeContext(Struct, frozen=True):
    """What a node's function may know of its run; its second parameter receives it.

    Attributes:
        run_id: the run's id; that of a child run begins with its parent's.
        key: this visit of the node's own key, unique in its run.
        turn: the number of the latest turn; -1 before the first.
        messages: the conversation.
        answer: what was answered last; empty before anything was.
        usage: tokens so far.
    """

    run_id: str
    key: str
    turn: int
    messages: Sequence[Message]
    answer: str
    usage: Usage

    @classmethod
    def of(cls, run: Run[Any], node: str) -> NodeContext:
        """Return the context of the visit of `node` that waits for its function."""
        waiting = (one.id for one in run.pending.values() if isinstance(one, Invoke))
        return cls(
            run_id=run.id,
            key=f"{node}.{next(waiting, run.next_effect)}",
            turn=run.turn.number,
            messages=run.messages,
            answer=_answer(run),
            usage=run.spent.usage,
        )

    @property
    def idempotency_key(self) -> str:
        """The same for each attempt at this visit, and for no other: for services that ask."""
        return sha256(f"{self.run_id}\0{self.key}".encode()).digest()[:16].hex()


def _answer(run: Run[Any]) -> str:
    reply = run.turn.reply
    if reply is not None:
        return reply.message.text
    return run.steps[-1].text if run.steps else ""
