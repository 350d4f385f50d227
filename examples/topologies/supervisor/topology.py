"""Supervisor: it talks to the user, and hands the conversation over to whoever should have it.

graphloop run examples/topologies/supervisor
"""

from graphloop import Agent, Model, tool
from graphloop.topology import registry

PROMPT = "Where is my parcel A-17?"


@registry.tool
@tool
async def track(parcel: str) -> str:
    """Return where a parcel is."""
    return f"{parcel} is on its way: it comes on Friday."


def build(model: Model) -> Agent:
    """Return the supervisor and those it may hand over to, all asking `model`."""
    shipping = Agent(
        model, name="shipping", tools=[track], instructions="You know of parcels.", max_steps=4
    )
    billing = Agent(model, name="billing", instructions="You know of invoices.", max_steps=4)
    return Agent(
        model,
        name="supervisor",
        tools=[
            shipping.as_tool(description="Answers about parcels.", takes_over=True),
            billing.as_tool(description="Answers about invoices.", takes_over=True),
        ],
        max_steps=4,
    )
