"""What a server of OpenAI's chat wire asks of a conversation."""

from __future__ import annotations

import json
import re

from hypothesis import given

from graphloop.values import Message
from tests.property.wires import WIRES, encoded, histories, joined

is_legal = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch


@given(histories(WIRES["openai"]).map(joined))
def test_every_call_is_answered_under_its_own_id_in_order(history: list[Message]) -> None:
    """Whatever comes: the messages pair, names are legal, and arguments are JSON objects."""
    sent = encoded(WIRES["openai"].wire, *history)

    made_up: set[str] = set()
    waiting: list[str] = []
    for message in sent["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        for call in message.get("tool_calls", ()):
            assert call["id"]
            assert call["id"].startswith("call_") or call["id"] not in made_up
            made_up.add(call["id"])
            assert is_legal(call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
    assert not waiting
