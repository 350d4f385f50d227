"""What a type checker knows about conversations. Checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import assert_type

from graphloop import (
    Agent,
    Pending,
    RunResult,
    Runs,
    RunStream,
    budget,
    dump_messages,
    load_messages,
)
from graphloop.agent import Chat
from graphloop.stores import Ask
from graphloop.values import Message


async def a_talk_goes_on(
    agent: Agent, saved: bytes, body: dict[str, object], rows: list[dict[str, str]]
) -> None:
    """A conversation is continued, saved and loaded."""
    result = await agent.generate("Hello")
    assert_type(result.conversation, tuple[Message, ...])
    await agent.generate("And now?", messages=result.conversation)

    assert_type(dump_messages(result.conversation), str)
    assert_type(load_messages(saved), tuple[Message, ...])
    load_messages(body)
    load_messages(rows)
    load_messages(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def runs_are_looked_at(agent: Agent) -> None:
    """A look at stored runs drives none of them."""
    assert_type(await agent.pending("r", store=Path("runs.db")), tuple[Pending, ...])
    assert_type(agent.runs("runs.db"), Runs[str])
    for record in await agent.runs.list():
        assert_type(record.asks, tuple[Ask, ...])


async def a_chat_is_had(agent: Agent) -> None:
    """Each question has a result, or a stream, as one of the agent's own has."""
    chat = agent.chat("user-42", store="chats.db", budget=budget(usd=1))
    assert_type(chat, Chat[None, str])
    assert_type(await chat.send("Hello"), RunResult[str])
    assert_type(chat.stream("Hello"), RunStream[str])
    assert_type(await chat.messages(), tuple[Message, ...])
    assert_type(await chat.pending(), tuple[Pending, ...])
    assert_type(await chat.fork(at=1), Chat[None, str])
    await chat.send(approvals={"c0.0": True})
    agent.chat("user-42", storage="chats.db")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    typed = Agent("anthropic:claude-opus-4-8", output_type=int).chat()
    assert_type((await typed.send("How many?")).output, int)


@dataclass
class Deps:
    """What the tools of an agent work with."""

    user: str


async def a_chat_hands_its_deps_on(deps: Deps) -> None:
    """Each question has the `deps` of its caller, who may be another one each time."""
    chat = Agent("anthropic:claude-opus-4-8", deps_type=Deps).chat()
    assert_type(chat, Chat[Deps, str])
    await chat.send("Hello", deps=deps)
    await chat.send("Hello", deps=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
