"""A remote agent for tests, on the SDK's own server: `python -m tests.a2a_agent FOLDER PORT`.

Its tasks do what the first word of their message says. The folder gets a line in `ledger` for each
start, answer and cancellation.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvicorn
from a2a.helpers import new_data_part, new_task, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Part, TaskState
from starlette.applications import Starlette


class Clerk(AgentExecutor):
    """Does what the first word of a message says."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, line: str) -> None:
        """Add a line to the ledger."""
        with (self._folder / "ledger").open("a") as ledger:
            ledger.write(f"{line}\n")

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Start a task, or go on with one that has asked."""
        message, said = context.message, context.get_user_input()
        assert message is not None
        updater = TaskUpdater(event_queue, message.task_id, message.context_id)
        if context.current_task is not None:
            self.note(f"answer {said}")
            if said == "slow":
                await updater.add_artifact([new_text_part("size ")], "a")
                await self._until("end")
                await updater.add_artifact([new_text_part(said)], "a", append=True)
                self.note("sized")
            else:
                await updater.add_artifact([new_text_part(f"size {said}")])
            await updater.complete()
            return
        word = said.partition(" ")[0]
        self.note(f"start {said}")
        if word == "late":
            await self._until("go")
        state = TaskState.TASK_STATE_SUBMITTED
        await event_queue.enqueue_event(
            new_task(message.task_id, message.context_id, state, history=[message])
        )
        await updater.start_work()
        if word == "late":
            self.note("begun late")
        await self._work(updater, word)

    async def _work(self, updater: TaskUpdater, word: str) -> None:
        said = updater.new_agent_message
        match word:
            case "ask":
                await updater.requires_input(said([new_text_part("Which size?")]))
            case "mute":
                await updater.requires_input()
            case "login":
                await updater.requires_auth(said([new_text_part("Open the page.")]))
                await self._until("logged-in")
                await updater.add_artifact([new_text_part("in")])
                await updater.complete()
            case "fail":
                await updater.failed(said([new_text_part("no paper")]))
            case "reject":
                await updater.reject(said([new_text_part("not mine")]))
            case "parts":
                link = Part(url="https://else.example/a.pdf", filename="a.pdf")
                picture = Part(raw=b"\x89PNG\r\n\x1a\n", media_type="image/png", filename="p.png")
                await updater.add_artifact(
                    [new_text_part("three"), new_data_part({"rows": 3}), link, picture]
                )
                await updater.complete()
            case _:
                await updater.add_artifact([new_text_part("one ")], "a")
                if word in {"wait", "late"}:
                    await self._until("end")
                await updater.add_artifact([new_text_part("two")], "a", append=True)
                await updater.complete(said([new_text_part("done")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel a task."""
        assert context.task_id is not None
        assert context.context_id is not None
        self.note("cancel")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _until(self, name: str) -> None:
        while not (self._folder / name).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)


def app(folder: Path, url: str) -> Starlette:
    """Return the application."""
    card = AgentCard(
        name="clerk",
        description="Does what it is told.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
    )
    handler = DefaultRequestHandler(Clerk(folder), InMemoryTaskStore(), card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])


if __name__ == "__main__":
    port = int(sys.argv[2])
    served = app(Path(sys.argv[1]), f"http://127.0.0.1:{port}/")
    uvicorn.run(served, host="127.0.0.1", port=port, log_level="info")
