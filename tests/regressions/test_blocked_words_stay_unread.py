"""A screen that blocks a message blocks it for good: no later turn or run of a model reads it.

The next question of a chat would otherwise hand the blocked message to the model, behind a refusal
that the user can answer with "go on".
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, RunResult, dump_messages
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply
from tests.unit.agent.doubles import read

CARD = "4111 1111"


async def no_cards(text: str) -> bool:
    """Let the model answer first, so that its reply waits for the verdict."""
    await asyncio.sleep(0)
    return CARD not in text


def read_by(model: ScriptedModel, at: int = 0) -> str:
    """Return all that the model read from its request `at` on."""
    return "".join(dump_messages(request.messages) for request in model.requests[at:])


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_later_question_of_a_chat_does_not_read_it(parallel: bool, tmp_path: Path) -> None:
    model = ScriptedModel(["never shown", "I do not know it."] if parallel else ["I do not know."])
    place = str(tmp_path / "c.db")
    agent = Agent(model, screen=no_cards, screen_in_parallel=parallel)

    async with agent.chat("c", store=place) as chat:
        blocked = await chat.send(f"My card is {CARD}.")
        seen = len(model.requests)
    async with agent.chat("c", store=place) as chat:
        second = await chat.send("Repeat what I said.")
        said = dump_messages(await chat.messages())

    assert ("refusal", "completed") == (blocked.end_reason, second.end_reason)
    assert CARD not in read_by(model, seen)
    assert "I cannot help with that." in read_by(model, seen)
    assert CARD in said  # The user still sees what the user wrote.


def unchanged(_: object) -> None:
    """Change nothing."""


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("by_agent", [False, True])
@pytest.mark.parametrize("changes", [{"name": "renamed"}, {"prepare_step": unchanged}])
async def test_an_agent_that_has_changed_does_not_read_it(
    parallel: bool, by_agent: bool, changes: Any
) -> None:
    """A deployment after a refusal: the new agent cannot replay the run that was blocked."""
    verdict = call("final_answer", arguments='{"value": false}')
    judge = Agent(ScriptedModel([reply(verdict)]), name="judge", output_type=bool)
    model, store = ScriptedModel(["never shown"]), MemoryStore()
    screen = judge if by_agent else no_cards
    old = Agent(model, screen=screen, screen_in_parallel=parallel)
    assert "refusal" == (await old.chat("c", store=store).send(f"Card {CARD}.")).end_reason

    later = ScriptedModel(["ok"])
    new = Agent(later, **changes).chat("c", store=store)
    result = await new.send("Go on.")

    assert "completed" == result.end_reason
    assert CARD not in read_by(later)
    assert "never shown" not in read_by(later)
    assert CARD in dump_messages(await new.messages())


def test_a_conversation_that_is_passed_on_does_not_hold_it() -> None:
    model = ScriptedModel(["ok"])
    agent = Agent(model, screen=no_cards)

    blocked = agent.generate_sync(f"My card is {CARD}.")
    assert CARD not in dump_messages(blocked.conversation)
    passed = agent.generate_sync("Go on.", messages=blocked.conversation)

    assert "completed" == passed.end_reason
    assert CARD not in read_by(model)


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_message_in_the_middle_leaves_the_rest_as_it_was(parallel: bool) -> None:
    model = ScriptedModel([reply(call()), "never shown" if parallel else "unused"])
    stream = Agent(model, tools=[read], screen=no_cards, screen_in_parallel=parallel).stream("Hi.")
    async for part in stream.full_stream:
        if part.type == "tool-call":
            stream.steer(f"My card is {CARD}.")
    result: RunResult[str] = await stream.result()

    held = dump_messages(result.conversation)
    assert ("refusal", ("screen:no_cards",)) == (result.end_reason, result.stopped_by)
    assert CARD not in held
    assert "Hi." in held
    assert 5 == len(result.conversation)
    # Programs that say `history += result.messages` send these messages to a model, too.
    assert CARD not in dump_messages(result.messages)
