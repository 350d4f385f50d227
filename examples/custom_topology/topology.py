"""A topology of one's own: an answer counts only when a critic accepts it.

The nodes are those of the standard loop and one more, Critique; the table is all there is to it.

graphloop run examples/custom_topology
graphloop draw examples/custom_topology -o topology.svg
graphloop check examples/custom_topology
"""

from graphloop import END, Graph, tool
from graphloop.nodes import (
    Append,
    Critique,
    Execute,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from graphloop.outcomes import (
    Aborted,
    AnsweredCalls,
    Calls,
    Failed,
    Final,
    Go,
    Ready,
    Rejected,
    Resend,
    Settled,
)

PROMPT = "Write a slogan for graphloop, in our house style."


@tool
async def house_style() -> str:
    """Return the rules that every slogan must follow."""
    return "At most eight words. No exclamation mark."


TOOLS = [house_style]

prepare, draft, gate, execute = PrepareStep(), ModelCall(), Gate(), Execute()
append, critique, stop = Append(), Critique("Does it follow every rule?"), StopCheck(max_steps=6)

graph: Graph[None] = Graph(
    "draft-and-critique",
    start=prepare,
    edges={
        prepare: {Ready: draft, Calls: gate, ...: END},
        draft: {Calls: gate, Failed: END, Aborted: END, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {Final: critique, AnsweredCalls: stop, Resend: stop, ...: END},
        critique: {Rejected: append, ...: END},
        stop: {Go: prepare, ...: END},
    },
)
