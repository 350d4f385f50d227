"""A caller of a remote agent, which tests kill: `python -m tests.remote_caller STORE URL WORD`.

With a fourth word, it answers the question of its run by that word.
"""

from __future__ import annotations

import asyncio
import sys

from graphloop import Agent
from graphloop.a2a import remote
from graphloop.policy import approve
from graphloop.testing import ScriptedModel


def caller(store: str, url: str, word: str = "") -> Agent:
    """Return an agent whose model gives the clerk a task, and then answers.

    Without a word for the task, its model only answers.
    """
    calls = [{"name": "clerk", "arguments": {"prompt": word}}]
    script = [{"calls": calls}, "Done."] if word else ["Done."]
    tool = remote(url, name="clerk", description="Does what it is told.")
    return Agent(ScriptedModel(script), tools=[tool], store=store)


async def main(store: str, url: str, word: str, answer: str = "") -> None:
    """Start run `r`, or answer the question that it waits for."""
    agent = caller(store, url, word)
    if not answer:
        await agent.generate("Go on.", run_id="r")
        return
    (question,) = await agent.pending("r")
    await agent.resume("r", approvals={question.key: approve(edit={"answer": answer})})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
