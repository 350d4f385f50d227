"""Telling: a node's words come where a conversation stays whole."""

from __future__ import annotations

from graphloop.telling import told, unanswered
from graphloop.turn import Turn
from graphloop.values import SystemMessage, ToolResult, UserMessage
from tests.strategies import QUESTION, call, fresh, reply, said

NOTE = UserMessage("listen", "node")


def test_words_come_at_the_end_of_the_conversation() -> None:
    """They are new, and somebody has said them."""
    run = told(fresh(), (NOTE, SystemMessage("be brief")))

    assert (*QUESTION, NOTE, SystemMessage("be brief")) == tuple(run.messages)
    assert (NOTE, SystemMessage("be brief")) == tuple(run.record.added)
    assert fresh() == told(fresh(), ())


def test_words_wait_for_the_turn_in_hand() -> None:
    """Its calls and their results come before them, together."""
    run = told(fresh(Turn(0, reply=reply(call("read")))), (NOTE,))

    assert (QUESTION, (NOTE,)) == (tuple(run.messages), run.turn.notes)


def test_a_conversation_with_open_calls_takes_no_words() -> None:
    """The error says which calls, and where to lead the run before."""
    asked = call("read")
    open_run = fresh(messages=(*QUESTION, said(asked)))
    whole = fresh(messages=(*QUESTION, said(asked), ToolResult("c0.0", asked.id, "read", "x")))

    why = unanswered(open_run)

    assert "calls without results ('read')" in why
    assert "Gate, an Execute and an Append" in why
    assert "" == unanswered(whole) == unanswered(fresh())
