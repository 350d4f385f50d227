"""What generators ask with: each yields one ask, and returns the answer as what it is."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from graphloop.effects import Answer, Ask, AskAgent, AskModel, AskPerson, PersonSaid, Tell
from graphloop.errors import ConfigError
from graphloop.own_nodes.asking import ask_agent, ask_model, ask_person, tell
from graphloop.values import SystemMessage, UserMessage
from tests.strategies import reply, wrong


def asked(helper: Generator[Ask, Answer, object], answer: Answer) -> tuple[Ask, object]:
    """Return what a helper asks, and what it makes of an answer."""
    ask = next(helper)
    with pytest.raises(StopIteration) as stop:
        helper.send(answer)
    return ask, stop.value.value


def test_a_helper_asks_once_and_gives_the_answer_back() -> None:
    """With the type that goes with it."""
    heard = reply("yes")
    model = ask_model("?", system="s", model="m", conversation=True, max_tokens=5)

    assert (AskModel("?", "s", "m", True, 5), heard) == asked(model, heard)
    said = PersonSaid(approved=True)
    assert (AskPerson("?"), said) == asked(ask_person("?"), said)
    assert (AskAgent("a", "?", True), "x") == asked(ask_agent("a", "?", conversation=True), "x")
    assert (Tell(UserMessage("n")), None) == asked(tell("n"), None)
    assert (Tell(SystemMessage("n")), None) == asked(tell(SystemMessage("n")), None)


def test_a_reply_has_a_length() -> None:
    """What cannot work is said where it is written."""
    with pytest.raises(ConfigError, match="max_tokens"):
        next(ask_model("?", max_tokens=wrong(0)))
