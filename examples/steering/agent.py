"""A run in your hands: look at every turn, and have a say before its tools run.

python examples/steering/agent.py        takes one result from a cache, keeps the mail unsent
graphloop run examples/steering          the same agent, left alone
"""

import asyncio
from pathlib import Path

from graphloop import Agent, Model, tool
from graphloop.conversation.transcript import transcript
from graphloop.testing import ScriptedModel

PROMPT = "Mail Ada the sales of last year, Europe and America."

CACHE = {"Europe": "4.1 million"}


@tool
async def look_up_sales(region: str) -> str:
    """Return last year's sales of a region; a slow query."""
    return {"Europe": "4.1 million", "America": "7.3 million"}[region]


@tool
async def send_mail(to: str, body: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {len(body)} characters"


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[look_up_sales, send_mail])


async def main() -> None:
    """Steer a run, and print the conversation that came of it."""
    agent = build(ScriptedModel.from_file(Path(__file__).with_name("script.yaml")))
    run = agent.iter(PROMPT)
    async for turn in run:
        for key, call in turn.calls.items():
            if '"Europe"' in call.arguments:
                turn.override_tool_results({key: CACHE["Europe"]})
            if call.name == "send_mail":
                turn.skip_tools("Not sent: drafts only today.")
                turn.append_messages("Show me the draft instead.")

    result = await run.until_done()
    print(transcript(result.messages, chars_max=2_000))


if __name__ == "__main__":
    asyncio.run(main())
