"""The floors: what a careful person writes by hand, with nothing but pydantic, httpx and asyncio.

Replies and arguments are validated, for a loop that believes whatever comes is no alternative to
anything. There are no events, records, limits, approvals or error results: that is the difference.
The durable loop keeps each message in SQLite, and nothing that a resume could go by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from sqlite3 import Connection, connect
from typing import Any, Literal, TypeAlias

import httpx
from pydantic import BaseModel
from pydantic_core import from_json, to_json

__all__ = [
    "RawModel",
    "TextOf",
    "anthropic_text",
    "chat_text",
    "raw_durable_loop",
    "raw_journal",
    "raw_loop",
    "raw_replies",
    "raw_stream",
]


class _Call(BaseModel):
    id: str
    name: str
    arguments: str


class _Reply(BaseModel):
    role: str = "assistant"
    content: str = ""
    tool_calls: list[_Call] = []


class _Result(BaseModel):
    role: str = "tool"
    tool_call_id: str
    content: str


class _Arguments(BaseModel):
    a: int
    b: int


RawModel: TypeAlias = Callable[[int], Awaitable[dict[str, object]]]
"""Gives the reply of this number."""

Tool: TypeAlias = Callable[[int, int], Awaitable[object]]


def raw_replies(turns: int, calls: int = 1) -> list[dict[str, object]]:
    """Return a script: `turns` replies with calls of `add`, then the answer."""
    asking: list[dict[str, object]] = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": f"call_{turn}_{at}", "name": "add", "arguments": f'{{"a":{turn},"b":{at}}}'}
                for at in range(calls)
            ],
        }
        for turn in range(turns)
    ]
    return [*asking, {"role": "assistant", "content": "done"}]


async def raw_loop(model: RawModel, tool: Tool, concurrency: int = 1) -> str:
    """Run the loop everyone writes: ask, run the calls, append, ask again."""
    messages: list[object] = [{"role": "user", "content": "x"}]
    asked = 0
    while True:
        reply = _Reply.model_validate(await model(asked))
        asked += 1
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        if concurrency == 1:
            messages += [await _answer(tool, call) for call in reply.tool_calls]
        else:
            messages += await _answers(tool, reply.tool_calls, concurrency)


def raw_journal(path: Path, synchronous: Literal["NORMAL", "FULL"]) -> Connection:
    """Open a database with one table of messages, as SQLite's own advice is for such a journal."""
    journal = connect(path, isolation_level=None)
    journal.execute("PRAGMA journal_mode=WAL")
    journal.execute(f"PRAGMA synchronous={synchronous}")
    journal.execute("CREATE TABLE IF NOT EXISTS message(id INTEGER PRIMARY KEY, data BLOB)")
    return journal


async def raw_durable_loop(model: RawModel, tool: Tool, journal: Connection) -> str:
    """Run the loop with two commits a turn: the reply before its calls run, and their results."""
    messages: list[BaseModel] = []
    asked = 0
    while True:
        reply = _Reply.model_validate(await model(asked))
        asked += 1
        messages.append(reply)
        _keep(journal, [reply])
        if not reply.tool_calls:
            return reply.content
        results = [await _answer(tool, call) for call in reply.tool_calls]
        messages += results
        _keep(journal, results)


def _keep(journal: Connection, messages: Sequence[BaseModel]) -> None:
    journal.execute("BEGIN IMMEDIATE")
    for message in messages:
        journal.execute("INSERT INTO message(data) VALUES(?)", (to_json(message),))
    journal.execute("COMMIT")


async def _answer(tool: Tool, call: _Call) -> _Result:
    arguments = _Arguments.model_validate_json(call.arguments)
    value = await tool(arguments.a, arguments.b)
    return _Result(tool_call_id=call.id, content=to_json(value).decode())


async def _answers(tool: Tool, calls: Sequence[_Call], concurrency: int) -> list[_Result]:
    # `gather` and a semaphore are not this project's style: they are what people write.
    places = asyncio.Semaphore(concurrency)

    async def placed(call: _Call) -> _Result:
        async with places:
            return await _answer(tool, call)

    return await asyncio.gather(*map(placed, calls))


TextOf: TypeAlias = Callable[[bytes], str]


async def raw_stream(client: httpx.AsyncClient, url: str, body: bytes, text_of: TextOf) -> str:
    """Read a stream of events as fast as httpx and jiter go, and return its text."""
    texts: list[str] = []
    rest = b""
    async with client.stream("POST", url, content=body) as response:
        async for chunk in response.aiter_bytes():
            *blocks, rest = (rest + chunk).split(b"\n\n")
            texts += map(text_of, blocks)
    return "".join(texts)


def chat_text(block: bytes) -> str:
    """Return the text of one event of the OpenAI chat wire."""
    data = block[6:]
    if data == b"[DONE]":
        return ""
    chunk: dict[str, Any] = from_json(data)
    choices = chunk["choices"]
    return (choices[0]["delta"].get("content") or "") if choices else ""


def anthropic_text(block: bytes) -> str:
    """Return the text of one event of the Anthropic wire."""
    event: dict[str, Any] = from_json(block.partition(b"\ndata: ")[2])
    if event["type"] != "content_block_delta":
        return ""
    delta = event["delta"]
    return delta["text"] if delta["type"] == "text_delta" else ""
