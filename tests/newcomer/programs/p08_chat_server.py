"""A web server for chats: events for the browser, memory in a store, and no work for the gone."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from graphloop import Agent, dump_messages, load_messages, tool
from graphloop.testing import ScriptedModel

CANCELLED: list[str] = []


@tool
async def track(parcel: str) -> str:
    """Return where a parcel is."""
    if parcel == "P-0":
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            CANCELLED.append(parcel)
            raise
    return f"{parcel} is in Ulm"


def no_passwords(text: str) -> bool | str:
    """Let nothing through that looks like a password."""
    return "Please keep that to yourself." if "password" in text else True


MODEL = ScriptedModel(
    [
        {"to": "P-0", "calls": [{"name": "track", "arguments": {"parcel": "P-0"}}]},
        {"to": ["is in Ulm", "Still?"], "text": "Yes, in Ulm."},
        {"to": "is in Ulm", "deltas": ["It is ", "in Ulm."]},
        {"to": "P-7", "calls": [{"name": "track", "arguments": {"parcel": "P-7"}}]},
        {"text": "Which parcel?"},
    ]
)
agent = Agent(MODEL, tools=[track], screen=no_passwords, store="chats.db")


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    """Close the store with the server."""
    async with agent:
        yield


app = FastAPI(lifespan=lifespan)


class Question(BaseModel):
    """What a browser sends."""

    user: str
    text: str


async def events(question: Question) -> AsyncGenerator[bytes, None]:
    """Yield the parts of an answer as server-sent events."""
    stream = agent.chat(question.user).stream(question.text)
    try:
        async for part in stream.full_stream:
            yield b"data: " + msgspec.json.encode(part) + b"\n\n"
    finally:
        await stream.aclose()


@app.post("/ask")
async def ask(question: Question) -> StreamingResponse:
    """Stream an answer, in the chat of a user."""
    return StreamingResponse(events(question), media_type="text/event-stream")


@app.get("/history/{user}")
async def history(user: str) -> str:
    """Return the whole chat of a user as JSON."""
    return dump_messages(await agent.chat(user).messages())


@app.post("/stateless")
async def stateless(messages: list[dict[str, object]]) -> str:
    """Answer a conversation that the browser keeps, in the form of the AI SDK or of OpenAI."""
    return (await agent.generate(messages=load_messages(messages))).text
