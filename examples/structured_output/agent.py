"""A typed answer from an agent with tools: streamed, checked, sent back if it does not fit.

python examples/structured_output/agent.py      the answer as it grows, and all that was said
graphloop run examples/structured_output        the same agent at the command line
"""

import asyncio
from pathlib import Path

from pydantic import BaseModel, Field

from graphloop import Agent, Model, tool
from graphloop.conversation.transcript import transcript
from graphloop.testing import ScriptedModel

PROMPT = "Plan a day in Lisbon."


class Plan(BaseModel):
    """A day in a city."""

    city: str
    stops: list[str] = Field(min_length=2)
    umbrella: bool


@tool
async def get_forecast(city: str) -> str:
    """Return tomorrow's weather of a city."""
    return f"{city}: showers, 17 °C"


def build(model: Model) -> Agent[None, Plan]:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[get_forecast], output_type=Plan)


async def main() -> None:
    """Print what is written as an answer, the conversation, and the object that came of it."""
    agent = build(ScriptedModel.from_file(Path(__file__).with_name("script.yaml")))
    stream = agent.stream(PROMPT)
    async for answer in stream.object_stream:
        print("…", repr(answer))
    result = await stream.result()
    print(transcript(result.messages, chars_max=2_000))
    print(f"\n{result.output!r}")


if __name__ == "__main__":
    asyncio.run(main())
