"""The newcomer's chat server, asked as browsers ask it: over HTTP on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from graphloop.values import UserMessage
from tests.newcomer.programs import p08_chat_server
from tests.newcomer.programs.p08_chat_server import CANCELLED, MODEL, app


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the chats of each test apart."""
    monkeypatch.chdir(tmp_path)


def parts(browser: TestClient, user: str, text: str) -> Iterator[dict[str, object]]:
    """Yield the parts of an answer as a browser reads them."""
    with browser.stream("POST", "/ask", json={"user": user, "text": text}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def text_of(found: Iterator[dict[str, object]]) -> str:
    """Return the text that a browser shows for some parts."""
    return "".join(str(part["text"]) for part in found if part["type"] == "text-delta")


def test_a_chat_remembers_over_a_restart_of_the_server() -> None:
    """The second server finds the chat in the store; another user has another chat."""
    with TestClient(app) as browser:
        assert "It is in Ulm." == text_of(parts(browser, "ada", "Where is P-7?"))
    with TestClient(app) as browser:
        assert "Yes, in Ulm." == text_of(parts(browser, "ada", "Still?"))
        assert "Which parcel?" == text_of(parts(browser, "bob", "Still?"))
        history = json.loads(browser.get("/history/ada").json())

    roles = [message["role"] for message in history["messages"]]
    assert ["user", "assistant", "tool", "assistant", "user", "assistant"] == roles


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Hello"},
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]},
    ],
    ids=["OpenAI", "AI SDK"],
)
def test_messages_of_other_libraries_are_read(message: dict[str, object]) -> None:
    """A browser that keeps its conversation sends what its own library wrote."""
    with TestClient(app) as browser:
        assert "Which parcel?" == browser.post("/stateless", json=[message]).json()


def test_a_screened_message_reaches_no_model() -> None:
    """Not in its own run, and not with the next question of the chat."""
    with TestClient(app) as browser:
        blocked = [*parts(browser, "eve", "My password is tulip.")]
        assert "Please keep that to yourself." == text_of(iter(blocked))
        assert "refusal" == blocked[-1]["end_reason"]
        assert "Which parcel?" == text_of(parts(browser, "eve", "And now?"))

    said = [
        message.content
        for request in MODEL.requests
        for message in request.messages
        if isinstance(message, UserMessage)
    ]
    assert "And now?" in said
    assert not any("tulip" in str(content) for content in said)


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self) -> None:
        super().__init__(uvicorn.Config(app, port=0, log_level="error"))
        self.ready = asyncio.Event()

    async def startup(self, sockets: object = None) -> None:
        """Listen."""
        await super().startup()
        self.ready.set()

    @property
    def url(self) -> str:
        """The address of the server."""
        port = self.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"


async def test_nothing_works_for_a_browser_that_has_gone() -> None:
    """The tool in progress is cancelled as soon as the connection is closed."""
    CANCELLED.clear()
    server = _Server()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve())
        await server.ready.wait()
        question = {"user": "gone", "text": "Where is P-0?"}
        async with (
            httpx.AsyncClient() as browser,
            browser.stream("POST", f"{server.url}/ask", json=question) as answer,
        ):
            async for line in answer.aiter_lines():
                if '"tool-state"' in line:
                    break
        server.should_exit = True
        await serving

    assert ["P-0"] == CANCELLED
    assert p08_chat_server.agent.runs is not None
