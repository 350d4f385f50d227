"""Pairing: what a wire would refuse."""

from __future__ import annotations

import pytest

from graphloop.fuzz.pairing import unpaired
from graphloop.values import Message, ToolResult, UserMessage
from tests.strategies import call, said

ASKED = said(call("read", "1"), call("write", "2"))
FIRST, SECOND = ToolResult("c0.0", "1", "read", "a"), ToolResult("c0.1", "2", "write", "b")
USER = UserMessage("Go.")


@pytest.mark.parametrize(
    "history", [(), (USER,), (USER, ASKED, FIRST, SECOND), (ASKED, FIRST, SECOND, USER, said("x"))]
)
def test_a_paired_history_is_in_order(history: tuple[Message, ...]) -> None:
    """Nothing is found where nothing is wrong."""
    assert [] == list(unpaired(history))


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ((ASKED,), "call 1 of 'read' has no result"),
        ((ASKED, FIRST), "call 2 of 'write' has no result"),
        ((ASKED, FIRST, USER, SECOND), "call 2 of 'write' has no result"),
        ((ASKED, SECOND, FIRST), "a result of 'write' answers a call of 'read'"),
        ((ASKED, FIRST, SECOND, SECOND), "message 4: the result of 'write' answers no call"),
        ((FIRST,), "the result of 'read' answers no call"),
    ],
)
def test_every_way_to_be_unpaired_is_found(history: tuple[Message, ...], found: str) -> None:
    """One orphan, and providers refuse the whole conversation for ever."""
    assert found in "\n".join(unpaired(history))
