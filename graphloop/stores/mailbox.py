"""Mailbox: what it holds beside answers: commands to a run's driver, and news of child runs.

A command is what a caller without the code of a run tells its driver. The key of an answer begins
with a name, and the key of a command with a slash, so no command takes the place of an answer. A
run has one cancellation: of several, the first counts.

News tells that a child run, which other workers drive, has ended or asks something. It says nothing
more: it wakes the run above, whose driver reads the child's journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, cast

from msgspec import Struct

from .base import OVER, RunStatus

__all__ = [
    "COMMANDS_FROM",
    "COMMANDS_UPTO",
    "CommandKind",
    "RunCommand",
    "commands_in",
    "is_command",
    "news_key",
    "tells_parent",
]

CommandKind: TypeAlias = Literal["cancel", "steer", "follow_up"]

COMMANDS_FROM: Final = "/"
COMMANDS_UPTO: Final = chr(ord(COMMANDS_FROM) + 1)
"""All keys of commands and of news are in this range, in the order of code points; no other is."""

NEWS: Final = "/child/"
"""The beginning of the keys of news about child runs."""


class RunCommand(Struct, frozen=True, gc=False):
    """A command to the driver of a run.

    Attributes:
        kind: whether the driver ends the run, or adds a message for its next turn or its end.
        text: the reason of a cancellation, or the message.
        signal_id: an id of the command; sending the same id twice counts as one command.
    """

    kind: CommandKind
    text: str
    signal_id: str

    @property
    def key(self) -> str:
        """The key under which a mailbox keeps the command."""
        return "/cancel" if self.kind == "cancel" else f"/{self.kind}/{self.signal_id}"


def is_command(key: str) -> bool:
    """Whether a mailbox keeps a command or news under this key, rather than an answer."""
    return key.startswith(COMMANDS_FROM)


def commands_in(posted: Mapping[str, str]) -> Iterator[RunCommand]:
    """Yield the commands in a mailbox, in the order in which they came."""
    for key, text in posted.items():
        if is_command(key) and not key.startswith(NEWS):
            kind, _, signal_id = key[1:].partition("/")
            yield RunCommand(cast("CommandKind", kind), text, signal_id)  # As `key` wrote it.


def news_key(run_id: str, epoch: int) -> str:
    """Return the key of the news that a child run's driver leaves when it ends this claim."""
    return f"{NEWS}{run_id}:{epoch}"


def tells_parent(standing: tuple[RunStatus, object], found: tuple[RunStatus, object]) -> bool:
    """Whether the run above has to know how a driver has left a child run.

    Args:
        standing: the child's status now, and its questions.
        found: the same from before the driver.
    """
    if standing[0] in OVER:
        return found[0] not in OVER
    return standing[0] == "parked" and standing[1] != found[1]
