"""Ask about the weather: at once, word by word, and part by part."""

import asyncio

from graphloop import Agent, tool
from graphloop.parts import Finish, ToolCallPart, ToolResultPart
from graphloop.testing import ScriptedModel

SKY = {"Oslo": "rain, 9 °C", "Cairo": "sun, 31 °C"}


@tool
async def sky(city: str) -> str:
    """Return the weather of a city."""
    return SKY[city]


def build(*cities: str) -> Agent:
    """Return an agent whose model looks up some cities."""
    calls = [{"name": "sky", "arguments": {"city": city}} for city in cities]
    script = [{"calls": calls}, {"deltas": ["Take ", "an ", "umbrella."]}]
    return Agent(ScriptedModel(script), tools=[sky], max_steps=4)


async def main() -> None:
    """Print the same answer in three ways, then run into a bug of the tool."""
    stream = build("Oslo").stream("What do I need in Oslo?")
    async for text in stream.text_stream:
        print(text, end="|")
    print((await stream.result()).end_reason)

    async for part in build("Oslo", "Cairo").stream("Oslo or Cairo?").full_stream:
        match part:
            case ToolCallPart():
                print("→", part.tool_name, part.arguments)
            case ToolResultPart():
                print("✓", part.result.content)
            case Finish():
                print(part.end_reason)
            case _:
                pass

    result = await build("Paris").generate("What about Paris?")
    print(result.steps[0].tool_results[0].status)


if __name__ == "__main__":
    print(build("Oslo").generate_sync("What do I need in Oslo?").text)
    asyncio.run(main())
