"""Serve many users with one agent: what a request brings reaches tools, gates and prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphloop import Agent, ToolContext, allow, ask, tool
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel
from graphloop.values import SystemMessage


@dataclass
class Request:
    """What a web framework hands over; no journal holds it."""

    user: str
    limit_cents: int
    database: dict[str, int]
    session: str = "canary"
    paid: list[str] = field(default_factory=list[str])


@tool
async def pay(invoice: str, context: ToolContext[Request]) -> str:
    """Pay an invoice of the user."""
    request = context.deps
    request.paid.append(invoice)
    return f"{request.user} paid {request.database[invoice]} cents"


def too_much(arguments: Mapping[str, str], context: ToolContext[Request]) -> bool:
    """Return whether a person has to agree."""
    return context.deps.database[arguments["invoice"]] > context.deps.limit_cents


def instructions(request: Request) -> str:
    """Return the system message for a user."""
    return f"You serve {request.user}."


MODEL = ScriptedModel(
    [{"calls": [{"name": "pay", "arguments": {"invoice": "R-1"}}]}, "Paid."], restart=True
)
agent = Agent(
    MODEL,
    deps_type=Request,
    tools=[pay],
    gate=ask("pay", when=too_much) | allow("pay"),
    instructions=instructions,
    store="bank.db",
)


def main() -> None:
    """Serve two users, resume one of them, and change the settings of a single request."""
    ada, bob = Request("Ada", 500, {"R-1": 120}), Request("Bob", 100, {"R-1": 120})
    print(agent.generate_sync("Pay R-1.", deps=ada).text, ada.paid)
    [system, _] = MODEL.requests[0].messages
    print(system.content if isinstance(system, SystemMessage) else system)

    parked = agent.generate_sync("Pay R-1.", deps=bob)
    print(parked.end_reason, bob.paid)
    answers = {call.key: call.approve() for call in parked.pending}
    try:
        agent.resume_sync(parked, approvals=answers)
    except ConfigError as error:
        print(error)
    print(agent.resume_sync(parked, deps=bob, approvals=answers).text, bob.paid)

    other = ScriptedModel(["Good day."])
    print(agent.generate_sync("Hi!", deps=ada, model=other, temperature=0.1, max_steps=1).text)
    print(other.requests[0].settings.temperature)


if __name__ == "__main__":
    main()
