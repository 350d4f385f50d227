"""NodeContext: what a function that is a node may know of the run it decides in."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, final

from msgspec import Struct, field

from ..asks import Note
from ..effects import Invoke
from ..errors import ConfigError
from ..latest_answer import latest_answer
from ..run import Run
from ..values import Message, SystemMessage, Usage, UserMessage

__all__ = ["NodeContext"]


@final
class NodeContext(Struct, frozen=True):
    """What a node's function may know of its run; its second parameter receives it.

    Attributes:
        run_id: the run's id; that of a child run begins with its parent's.
        key: this visit of the node's own key, unique in its run.
        turn: the number of the latest turn; -1 before the first.
        messages: the conversation.
        answer: what was answered last, as a person approved it; empty before any answer.
        usage: tokens so far.
        notes: what the function has told; None for a generator, which tells by asking.
    """

    run_id: str
    key: str
    turn: int
    messages: Sequence[Message]
    answer: str
    usage: Usage
    notes: list[Note] | None = field(default_factory=list[Note])

    @classmethod
    def of(cls, run: Run[Any], node: str) -> NodeContext:
        """Return the context of the visit of `node` that waits for its function.

        A generator is told the same each time that it is run again: how things were at first.
        """
        waiting = (one.id for one in run.pending.values() if isinstance(one, Invoke))
        begun = run.turn.dialogue
        at = next(waiting, run.next_effect) if begun is None else begun.at
        is_longer = begun is not None and begun.messages < len(run.messages)
        return cls(
            run_id=run.id,
            key=f"{node}.{at}",
            turn=run.turn.number,
            messages=run.messages[: begun.messages] if begun and is_longer else run.messages,
            answer=latest_answer(run),
            usage=run.spent.usage if begun is None else begun.usage,
            notes=[] if begun is None else None,
        )

    def tell(self, *messages: str | Note) -> None:
        """Add messages to the conversation, once the node is left; a string is a user's message.

        While a turn is in hand, they come after the reply and the results of its calls.

        Raises:
            ConfigError: it is no user's or system message; or the function is a generator.
        """
        if self.notes is None:
            raise ConfigError(
                "a generator tells by asking: write `yield from tell(…)` in place of "
                "`context.tell(…)`"
            )
        for one in messages:
            if not isinstance(one, str | UserMessage | SystemMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(
                    "a node tells texts, UserMessage and SystemMessage: what models and tools said "
                    f"is theirs to say; found {type(one).__name__}"
                )
        node = self.key.rpartition(".")[0]
        self.notes.extend(
            UserMessage(one, node) if isinstance(one, str) else one for one in messages
        )

    @property
    def idempotency_key(self) -> str:
        """The same for each attempt at this visit, and for no other: for services that ask."""
        return sha256(f"{self.run_id}\0{self.key}".encode()).digest()[:16].hex()
