"""Plan, approve, execute: no tool is on offer before a person has agreed to the plan.

graphloop run examples/topologies/plan_approve_execute      asks at the terminal
"""

from graphloop import END, Graph, nodes, outcomes, tool
from graphloop.rules import only_after
from graphloop.topology import registry, with_agents

PROMPT = "Free some space in /backup."


@registry.tool
@tool
async def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


TOOLS = [delete]

# An agent has no tools but its own: the planner can only plan.
prepare, model, append = nodes.PrepareStep(), nodes.ModelCall(), nodes.Append()
planner: Graph[None] = Graph(
    "planner",
    prepare,
    {
        prepare: {outcomes.Ready: model, outcomes.Calls: append, ...: END},
        model: {outcomes.Failed: END, ...: append},
        append: {...: END},
    },
)

plan, planned = nodes.Child("planner", "plan", "Make a plan."), nodes.Append("planned")
approve, replan = nodes.Approve(), nodes.Limit(3, "replan")
gate, execute, stop = nodes.Gate(), nodes.Execute(), nodes.StopCheck(max_steps=10)

steps: Graph[None] = Graph(
    "plan-approve-execute",
    plan,
    {
        plan: {outcomes.Answered: planned, ...: END},
        planned: {outcomes.Final: approve, outcomes.Resend: replan, ...: END},
        approve: {outcomes.Accepted: prepare, outcomes.Rejected: planned, ...: END},
        replan: {outcomes.Go: plan, ...: END},
        prepare: {outcomes.Ready: model, outcomes.Calls: gate, ...: END},
        model: {outcomes.Calls: gate, outcomes.Failed: END, ...: append},
        gate: {outcomes.Settled: execute, ...: append},
        execute: {...: append},
        append: {outcomes.AnsweredCalls: stop, outcomes.Resend: stop, ...: END},
        stop: {outcomes.Go: prepare, ...: END},
    },
)
graph = with_agents(
    steps, {"planner": planner}, rules=only_after("tool:*", "outcome:approve.accepted")
)
