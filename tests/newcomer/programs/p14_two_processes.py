"""Runs as JSON lines in a folder: two processes never drive the same run, on any system.

python p14_two_processes.py            starts a run, and a second process in the middle of it
python p14_two_processes.py resume     is that second process
"""

import asyncio
import sys

from graphloop import Agent, tool
from graphloop.errors import RunBusy
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest


@tool(effect="idempotent")
async def bake(cake: str) -> str:
    """Bake a cake; meanwhile another process tries to bake the same one."""
    other = await asyncio.create_subprocess_exec(sys.executable, __file__, "resume")
    return f"{cake} is ready, the other baker left with {await other.wait()}"


def reply(request: ModelRequest) -> dict[str, object] | str:
    """Answer by the conversation, in whatever process."""
    call = {"name": "bake", "arguments": {"cake": "Linzer"}}
    return {"calls": [call]} if len(request.messages) == 1 else "Enjoy!"


agent = Agent(ScriptedModel([reply, reply], restart=True), tools=[bake], store="runs/")


def main() -> None:
    """Start the run; look at it when it is over."""
    result = agent.generate_sync("A cake!", run_id="cake")
    print(result.steps[0].tool_results[0].content)
    print(result.text, agent.resume_sync("cake").end_reason)


def resume() -> None:
    """Try to go on with the run of the first process."""
    try:
        agent.resume_sync("cake")
    except RunBusy as error:
        print(error)
        sys.exit(7)


if __name__ == "__main__":
    resume() if sys.argv[1:] else main()
