"""A chat does what a list of messages does, whatever fails, waits, and is opened anew."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop import Agent, tool
from graphloop.agent import Chat
from graphloop.errors import ConfigError, Overloaded
from graphloop.providers.base import StreamItem
from graphloop.stores.jsonl import JsonlStore
from graphloop.values import AssistantMessage, Message, ModelRequest, UserMessage
from tests.planned_model import call, line
from tests.sizes import sized

Operation: TypeAlias = Literal[
    "say", "pay", "goes down", "comes up", "approve", "decline", "resume", "reopen", "fork"
]
State: TypeAlias = Literal["", "waits", "interrupted", "decided"]
"""The run of the last question is over, waits for a person, or is interrupted: before or after the
person's decision."""

OPERATIONS: tuple[Operation, ...] = (
    *("say", "pay", "goes down", "comes up"),
    *("approve", "decline", "resume", "reopen", "fork"),
)


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


@dataclass
class Server:
    """A model that may be down; it pays when it is told to, and says what came of it."""

    is_up: bool = True
    label: str = "server"

    def session(self) -> Server:
        """Return itself: it remembers nothing."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Answer the last question by what follows it."""
        if not self.is_up:
            raise Overloaded("down")
        last = request.messages[-1]
        if isinstance(last, UserMessage) and last.content == "pay":
            yield line([call("pay")])
        else:
            yield line("done")


@dataclass(frozen=True)
class Expected:
    """What a chat is expected to hold: the questions, how many are answered, and what is open."""

    asked: tuple[str, ...] = ()
    open: State = ""

    @property
    def is_interrupted(self) -> bool:
        """Whether the run of the last question waits for a driver only."""
        return self.open in ("interrupted", "decided")

    def after(self, prompt: str, *, is_up: bool) -> Expected:
        """Return the chat after one more question."""
        state: State = "waits" if prompt == "pay" else ""
        return Expected((*self.asked, prompt), state if is_up else "interrupted")

    def resumed(self, *, is_up: bool) -> Expected:
        """Return the chat after its open question was taken up."""
        waits = self.open == "interrupted" and self.asked[-1] == "pay"
        return replace(self, open="waits" if waits else "") if is_up else self


@dataclass
class Trial:
    """A chat, what is expected of it, and of the chats that it was forked from."""

    directory: Path
    server: Server = field(default_factory=Server)
    expected: Expected = Expected()
    others: list[tuple[str, Expected]] = field(default_factory=list[tuple[str, Expected]])

    def opened(self, chat_id: str) -> Chat[None, str]:
        """Return a chat, as a new process opens it."""
        return Agent(self.server, tools=[pay], store=JsonlStore(self.directory)).chat(chat_id)

    async def run(self, operations: Sequence[Operation]) -> None:
        """Do the operations, and look at the chat after each."""
        chat = self.opened("c")
        for operation in operations:
            chat = await self.do(chat, operation)
            await self.look(chat, self.expected)
        for chat_id, expected in self.others:
            await self.look(self.opened(chat_id), expected)

    async def do(self, chat: Chat[None, str], operation: Operation) -> Chat[None, str]:
        """Do one operation, and return the chat that goes on."""
        known, is_up = self.expected, self.server.is_up
        match operation:
            case "say" | "pay":
                await self.send(chat, operation)
            case "goes down" | "comes up":
                self.server.is_up = operation == "comes up"
            case "approve" | "decline":
                await self.answer(chat, approved=operation == "approve")
            case "resume" if not known.asked:
                with pytest.raises(ConfigError, match="expected its first question"):
                    await chat.send()
            case "resume" if known.is_interrupted and not is_up:
                with pytest.raises(Overloaded):
                    await chat.send()
            case "resume":
                result = await chat.send()
                if known.is_interrupted:
                    self.expected = known.resumed(is_up=is_up)
                assert (self.expected.open == "waits") == bool(result.pending)
            case "reopen":
                return self.opened(chat.id)
            case "fork":
                fork = await chat.fork()
                self.others.append((chat.id, known))
                self.expected = Expected(known.asked[: len(known.asked) - bool(known.open)])
                return fork
        return chat

    async def send(self, chat: Chat[None, str], prompt: str) -> None:
        """Ask a question, which an open question may keep back."""
        known, is_up = self.expected, self.server.is_up
        if known.is_interrupted:
            known = known.resumed(is_up=is_up)
        if known.open == "waits":
            self.expected = known
            with pytest.raises(ConfigError, match="waits for pay"):
                await chat.send(prompt)
            return
        if known.open == "":
            self.expected = known.after(prompt, is_up=is_up)
        if is_up:
            await chat.send(prompt)
        else:
            with pytest.raises(Overloaded):
                await chat.send(prompt)

    async def answer(self, chat: Chat[None, str], *, approved: bool) -> None:
        """Answer the call that waits; without one, nothing happens."""
        known, is_up = self.expected, self.server.is_up
        if known.open != "waits":
            assert () == (await chat.pending() if known.asked else ())
            return
        (waits,) = await chat.pending()
        answers = {waits.key: waits.approve() if approved else waits.decline()}
        self.expected = Expected(known.asked, "" if is_up else "decided")
        if is_up:
            assert "done" == (await chat.send(approvals=answers)).text
        else:
            with pytest.raises(Overloaded):
                await chat.send(approvals=answers)

    async def look(self, chat: Chat[None, str], expected: Expected) -> None:
        """Compare the messages of a chat with what is expected of it."""
        messages = await chat.messages()
        assert expected.asked == tuple(
            [str(one.content) for one in messages if isinstance(one, UserMessage)]
        )
        assert len(expected.asked) == len(await chat.run_ids())
        assert len(expected.asked) - bool(expected.open) == answered(messages)


def answered(messages: Sequence[Message]) -> int:
    """Return how many questions have their last answer."""
    replies = [one for one in messages if isinstance(one, AssistantMessage)]
    return sum(not one.calls for one in replies)


@given(st.lists(st.sampled_from(OPERATIONS), max_size=sized(12, 40)))
@example(["pay", "goes down", "approve", "comes up", "say"])
@example(["goes down", "pay", "comes up", "say", "approve", "say"])
@example(["say", "pay", "fork", "say", "reopen", "pay", "decline", "fork", "say"])
def test_a_chat_does_what_a_list_of_messages_does(operations: Sequence[Operation]) -> None:
    """Each question is in the chat once, in order, and each gets its answer in the end."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(Trial(Path(directory)).run(operations))
