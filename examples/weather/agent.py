"""A tool, an agent, a question: two calls at once, one answer.

graphloop run examples/weather
graphloop draw examples/weather -o loop.svg
"""

from graphloop import Agent, Model, tool

PROMPT = "What's the weather in NYC and London?"

WEATHER = {"NYC": "72°F and sunny", "London": "55°F and rainy"}


@tool
async def get_weather(city: str) -> str:
    """Return the current weather of a city."""
    return WEATHER.get(city, f"no weather station in {city}")


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[get_weather], max_steps=5)
