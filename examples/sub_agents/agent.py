"""An orchestrator: agents called like tools, side by side; one of them needs a human's consent.

python examples/sub_agents/agent.py      parks inside an agent, and goes on from there
graphloop run examples/sub_agents        the same; asks at the terminal
"""

from collections.abc import Mapping

from graphloop import Agent, agent_tool, tool
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest

PROMPT = "Compare the sales of Europe and America, and publish the winner."


@tool(needs_approval=True)
async def publish(text: str) -> str:
    """Put a text on the website."""
    return f"published: {text}"


def call(name: str, **arguments: str) -> dict[str, object]:
    """Return a call in the form of a script."""
    return {"name": name, "arguments": arguments}


def find(request: ModelRequest) -> str:
    """Answer for the model of a researcher: what it was told is all that it knows."""
    return "7.3 million" if "America" in str(request.messages[-1]) else "4.1 million"


def talk(label: str, *turns: Mapping[str, object] | str) -> ScriptedModel:
    """Return a model of an agent: a script, by the conversation alone, whatever the process."""

    def reply(request: ModelRequest) -> Mapping[str, object] | str:
        return turns[sum(message.role == "assistant" for message in request.messages)]

    return ScriptedModel([reply] * len(turns), label=f"script:{label}", restart=True)


RESEARCH = ScriptedModel([find], label="script:research", restart=True)
PUBLISH = talk("publish", {"calls": [call("publish", text="America leads.")]}, "Online.")
LEAD = talk(
    "lead",
    {"calls": [call("researcher", prompt=f"Sales of {one}?") for one in ("Europe", "America")]},
    {"calls": [call("publisher", prompt="Publish that America leads.")]},
    "America leads with 7.3 million, and the website says so.",
)

researcher = agent_tool(RESEARCH, name="researcher", description="Finds a number.")
publisher = agent_tool(PUBLISH, name="publisher", description="Publishes.", tools=[publish])
agent = Agent(LEAD, tools=[researcher, publisher], name="lead")


if __name__ == "__main__":
    parked = agent.generate_sync(PROMPT)
    for one in parked.pending:
        print(f"{' > '.join(one.agents)} waits: {one.name}{one.arguments} ({one.key})")
    result = agent.resume_sync(parked, approvals={one.key: True for one in parked.pending})
    print(result.text, f"({result.run.spent.usage.total_tokens} tokens, all agents together)")
