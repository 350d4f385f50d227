"""A worker whose runs have many turns; the tests kill it in the midst of them.

Run as `python -m tests.unit.workers.stream_process STORE` by the tests.
"""

from __future__ import annotations

import asyncio
import sys

from graphloop import Agent, tool
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker

__all__ = ["TURNS", "agent"]

TURNS = 12


def agent() -> Agent:
    """Return the agent of the runs."""

    @tool
    async def look() -> str:
        """Look."""
        await asyncio.sleep(0.05)
        return "nothing"

    looks: dict[str, object] = {"text": "Looking.", "calls": [{"name": "look", "arguments": {}}]}
    model = ScriptedModel([*[looks] * TURNS, "Done."], restart=True)
    return Agent(model, tools=[look], max_steps=TURNS + 1)


if __name__ == "__main__":
    asyncio.run(Worker([agent()], sys.argv[1], poll_s=0.02).serve())
