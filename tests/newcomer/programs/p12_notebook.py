"""What a notebook shows: each value below is the last line of a cell."""

from collections.abc import Iterator

from graphloop import Agent, tool
from graphloop.testing import ScriptedModel


@tool
async def square(number: int) -> str:
    """Return the square of a number."""
    return str(number * number)


def cells() -> Iterator[object]:
    """Yield what the cells of a notebook end with: an agent, its graph, proofs, a run, a change."""
    script = [{"calls": [{"name": "square", "arguments": {"number": 12}}]}, "144."]
    agent = Agent(ScriptedModel(script), name="maths", tools=[square], max_steps=3)
    yield agent
    yield agent.graph
    yield agent.graph.check()
    yield agent.bound()
    yield agent.generate_sync("What is 12 squared?", run_id="squares")
    yield agent.graph.diff(agent.with_options(max_steps=30).graph)


if __name__ == "__main__":
    for value in cells():
        print(repr(value))
