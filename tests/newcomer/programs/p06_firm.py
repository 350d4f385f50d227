"""A director, two departments and a clerk: three levels of agents under one budget."""

from graphloop import Agent, budget, tool
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel


@tool
async def count_stock(item: str) -> str:
    """Return how many pieces are in the cellar."""
    return f"12 {item}"


def asks(name: str, **arguments: str) -> dict[str, object]:
    """Return a turn in which a model calls a tool or an agent."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def firm() -> Agent:
    """Return the director, who asks the store, which asks the clerk."""
    clerk = Agent(
        ScriptedModel([asks("count_stock", item="kettles"), "12 kettles."], restart=True),
        name="clerk",
        tools=[count_stock],
    )
    store = Agent(
        ScriptedModel([asks("clerk", prompt="How many kettles?"), "Enough."], restart=True),
        name="store",
        tools=[clerk.as_tool(description="counts")],
    )
    turns = [asks("store", prompt="Kettles?"), asks("store", prompt="Really?"), "We can deliver."]
    return Agent(
        ScriptedModel(turns, restart=True),
        name="director",
        tools=[store.as_tool(description="knows the stock")],
        budget=budget(tool_calls=10, agent_calls=8),
        max_steps=3,
    )


def main() -> None:
    """Print what a tree of agents did, where it was stopped, and what it could have cost."""
    result = firm().generate_sync("Can we deliver ten kettles?")
    spent = result.run.spent
    print(result.text, spent.agent_calls, "agents,", spent.tool_calls, "tool calls")
    print(*(run_id.removeprefix(result.run_id) for run_id in result.children))

    limited = firm().with_options(budget=budget(agent_calls=2))
    stopped = limited.generate_sync("Can we deliver ten kettles?")
    print(stopped.end_reason, *stopped.stopped_by)

    print(firm().bound().model_calls, "model calls at most")
    try:
        Agent(ScriptedModel([]), name="owner", tools=[firm().as_tool(description="delivers")])
    except ConfigError as error:
        print(error)


if __name__ == "__main__":
    main()
