"""A served agent for tests: `python -m tests.served_desk FOLDER stdio`, or `FOLDER http PORT`.

The folder holds the store and a ledger with a line for each payment.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvicorn

from graphloop import Agent, tool
from graphloop.serve import McpServer
from graphloop.testing import ScriptedModel

SECRET = "a secret of the desk"  # noqa: S105 - of a test
PAYS = {"text": "I will pay.", "calls": [{"name": "pay", "arguments": {"amount": 5}}]}


def served(folder: Path) -> McpServer:
    """Return a server whose agent pays after an approval."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        print("a tool prints")  # noqa: T201 - it must not reach the client
        with (folder / "ledger").open("a") as ledger:
            ledger.write(f"{amount}\n")
        return f"paid {amount}"

    @tool
    async def wait() -> str:
        """Wait for ever."""
        (folder / "waiting").touch()
        await asyncio.Event().wait()
        return "never"

    desk = Agent(ScriptedModel([PAYS, "Paid."], restart=True), tools=[pay], name="desk")
    sleeper = Agent(
        ScriptedModel([{"calls": [{"name": "wait", "arguments": {}}]}, "Up."], restart=True),
        tools=[wait],
        name="sleeper",
    )
    return McpServer([desk, sleeper], store=folder / "runs.db", secret=SECRET)


async def main(folder: Path, transport: str, port: int) -> None:
    """Serve until the client leaves, or the process is killed."""
    if transport == "stdio":
        await served(folder).stdio()
        return
    config = uvicorn.Config(served(folder).app(), port=port, log_level="info")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int((*sys.argv, "0")[3])))
