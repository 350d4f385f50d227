"""ReAct: think, act, look at what came of it, and again until there is an answer.

The loop of every agent, written out: graphloop's own has nodes for long conversations besides.

graphloop run examples/topologies/react
"""

from graphloop import END, Graph, tool
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import AnsweredCalls, Calls, Failed, Go, Ready, Resend, Settled
from graphloop.topology import registry

PROMPT = "How many people live in the capital of Portugal?"

KNOWN = {"capital of Portugal": "Lisbon", "people in Lisbon": "575,739 (2024)"}


@registry.tool
@tool
async def look_up(term: str) -> str:
    """Look a term up."""
    return KNOWN.get(term, "nothing found")


TOOLS = [look_up]

think, act, observe = ModelCall("think"), Execute("act"), Append("observe")
prepare, gate, stop = PrepareStep(), Gate(), StopCheck(max_steps=8)

graph: Graph[None] = Graph(
    "react",
    prepare,
    {
        prepare: {Ready: think, Calls: gate, ...: END},
        think: {Calls: gate, Failed: END, ...: observe},
        gate: {Settled: act, ...: observe},
        act: {...: observe},
        observe: {AnsweredCalls: stop, Resend: stop, ...: END},
        stop: {Go: prepare, ...: END},
    },
)
