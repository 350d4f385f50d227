"""Call ids: an id for each tool call that the server accepts, unique in a conversation.

Servers repeat ids, in later turns and within a turn, and refuse the ids of other services. So an
encoder gives each call an id of its own where it must, and pairs results with the calls of the turn
before them by position, never by id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from ..errors import ConfigError
from ..values import AssistantMessage, ToolCall, ToolResult

__all__ = ["CallIds"]


@final
class CallIds:
    """The ids of a conversation's calls, as sent to one server.

    Args:
        is_legal: whether the server accepts an id.
    """

    def __init__(self, is_legal: Callable[[str], object]) -> None:
        self._is_legal = is_legal
        self._used: set[str] = set()
        self._turn: Sequence[str] = ()
        self._answered = 0

    def of_turn(self, message: AssistantMessage, position: int) -> Sequence[str]:
        """Return the ids of the calls of the message at index `position`, in order."""
        self._turn = [self._sent_id(call, position, at) for at, call in enumerate(message.calls)]
        self._answered = 0
        return self._turn

    def of_result(self, result: ToolResult, position: int) -> str:
        """Return the id of the call that the message at index `position` answers.

        Raises:
            ConfigError: all calls of the turn before it have their results.
        """
        if self._answered == len(self._turn):
            raise ConfigError(
                f"messages[{position}]: expected a tool result to answer a call of the turn before "
                f"it, found {result.name!r} ({result.call_id!r}) after all "
                f"{len(self._turn)} call(s) were answered. Keep turns and results together."
            )
        self._answered += 1
        return self._turn[self._answered - 1]

    def _sent_id(self, call: ToolCall, position: int, index: int) -> str:
        call_id = call.id
        if call_id in self._used or not self._is_legal(call_id):
            call_id = f"call_{position}_{index}"
            while call_id in self._used:
                call_id += "_"
        if call_id:  # A server that accepts an empty id finds the result by its position.
            self._used.add(call_id)
        return call_id
