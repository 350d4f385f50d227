"""A chat after a crash or a deployment: nothing asked is lost, and nothing spent is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphloop import Agent, Retries, Timeouts, budget
from graphloop.errors import ConfigError, ProviderError
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest
from tests.strategies import reply
from tests.unit.agent.doubles import to_agent
from tests.wire_server import Answer, WireServer, sse

TEXT = '{"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}]}'


async def test_the_next_question_finishes_an_interrupted_one_with_its_headers(
    tmp_path: Path,
) -> None:
    """Without its header the gateway refuses the request, and the question is lost."""
    answer = Answer(sse(TEXT, "[DONE]"))
    async with WireServer([Answer(status=529), answer, answer]) as server:
        once = Retries(attempts_max=1)
        agent = Agent("openai:m", base_url=f"{server.url}/v1", api_key="k", retries=once)
        async with agent.chat("c", store=str(tmp_path / "c.db")) as chat:
            with pytest.raises(ProviderError):
                await chat.send("first", headers={"X-Gateway": "1"})
            result = await chat.send("second", headers={"X-Gateway": "1"})

    assert ["1"] * 3 == [each.headers.get("x-gateway") for each in server.requests]
    assert ["user", "assistant"] * 2 == [one.role for one in result.conversation]


class Killed(BaseException):
    """The process dies."""


def dying_once() -> Callable[[ModelRequest], str]:
    """Return a reply of a script that kills the process the first time."""
    left = [Killed()]

    def reply_to(_: ModelRequest) -> str:
        if left:
            raise left.pop()
        return "Well."

    return reply_to


@pytest.mark.parametrize("is_named_again", [True, False])
async def test_the_next_question_finishes_an_interrupted_one_with_its_model(
    is_named_again: bool,
) -> None:
    """A caller who names a model for each question could not go on: the error asked for it."""
    strong = ScriptedModel([dying_once()] * 3, label="strong")
    other = ScriptedModel(["other"], label="other")
    agent = Agent(ScriptedModel(["usual"], label="usual"))
    chat = agent.chat("c", store=MemoryStore())
    with pytest.raises(Killed):
        await chat.send("first", model=strong)

    if is_named_again:
        result = await chat.send("second", model=strong)
        assert ["Well."] * 2 == [one.text for one in result.conversation if one.role == "assistant"]
    else:
        with pytest.raises(ConfigError, match="needs model 'strong'"):
            await chat.send("second", model=other)
        assert not other.requests


async def test_a_changed_agent_knows_what_children_have_spent() -> None:
    """A budget of a chat that a deployment forgets is no budget."""
    store = MemoryStore()
    child = Agent(ScriptedModel(["Found."]), name="helper")
    agent = Agent(ScriptedModel([reply(to_agent()), "Done."]), tools=[child.as_tool()])
    chat = agent.chat("c", store=store)
    await chat.send("first")
    spent = await chat.spent()

    changed = agent.with_options(verify=lambda _: True, max_steps=3)
    later = changed.chat("c", store=store, budget=budget(tokens=spent.usage.total_tokens))
    again = await later.spent()

    assert (spent.usage, spent.agent_calls) == (again.usage, again.agent_calls)
    assert (spent.tool_calls, spent.model_calls) == (again.tool_calls, again.model_calls)
    with pytest.raises(ConfigError, match=r"spent \(budget.tokens\)"):
        await later.send("second")


async def test_a_chat_in_a_store_of_its_own_takes_options_for_its_last_question() -> None:
    """The run was looked for in the store of the agent, which has none."""
    chat = Agent(ScriptedModel(["one"])).chat("c", store=MemoryStore())
    await chat.send("first")

    assert "one" == (await chat.send(timeouts=Timeouts(total_s=9))).text
