"""A caller of a remote agent, which tests kill: `python -m tests.remote_caller STORE URL WORD`."""

from __future__ import annotations

import asyncio
import sys

from graphloop import Agent
from graphloop.a2a import remote
from graphloop.testing import ScriptedModel


def caller(store: str, url: str, word: str = "") -> Agent:
    """Return an agent whose model gives the clerk a task, and then answers.

    Without a word for the task, its model only answers.
    """
    calls = [{"name": "clerk", "arguments": {"prompt": word}}]
    script = [{"calls": calls}, "Done."] if word else ["Done."]
    tool = remote(url, name="clerk", description="Does what it is told.")
    return Agent(ScriptedModel(script), tools=[tool], store=store)


if __name__ == "__main__":
    asyncio.run(caller(*sys.argv[1:]).generate("Go on.", run_id="r"))
