"""Start a refund in one process, find it in another, correct it, and let it go on.

python p03_refunds.py ask       parks
python p03_refunds.py answer    lists what waits, and corrects the amount
"""

import asyncio
import sys
from pathlib import Path

from graphloop import Agent, approve, tool
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest


@tool(needs_approval=True, effect="idempotent")
def refund(order: str, cents: int) -> str:
    """Pay an order back."""
    with Path("ledger.txt").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{order} {cents}\n")
    return f"{cents} cents paid back"


def reply(request: ModelRequest) -> dict[str, object] | str:
    """Answer for the model by the conversation alone, in whatever process."""
    call = {"name": "refund", "arguments": {"order": "K-7", "cents": 9900}}
    return {"calls": [call]} if len(request.messages) == 1 else "The money is on its way."


agent = Agent(ScriptedModel([reply]), tools=[refund], store="desk.db")


async def ask() -> None:
    """Start the run, which waits for a person."""
    parked = await agent.generate("My kettle K-7 is broken.", run_id="k7")
    print(parked.end_reason, *(call.name for call in parked.pending))


async def answer() -> None:
    """Show the questions of all runs, and answer them; no run is driven by looking."""
    for record in await agent.runs.list():
        for question in await agent.pending(record.run_id):
            print(record.status, question.name, question.arguments)
            edited = approve(edit={"order": "K-7", "cents": 990})
            print(await agent.runs.approve(record.run_id, question.key, edited))
    print((await agent.resume("k7")).text)


if __name__ == "__main__":
    asyncio.run(ask() if sys.argv[1] == "ask" else answer())
