"""Orchestrator and workers: a plan is made, its parts are worked on at once, and put together.

graphloop run examples/topologies/orchestrator_workers
"""

from graphloop import END, Graph
from graphloop.nodes import Append, Child, Limit, MapOver, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Final, Go, Ready, Resend, Unplanned
from graphloop.topology import with_agents

PROMPT = "Compare Lisbon, Porto and Faro for a week in March."

prepare, model, append = PrepareStep(), ModelCall(), Append()
helper: Graph[None] = Graph(
    "helper",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

plan = Child("helper", "plan", "Cut the task into parts: a JSON array of texts, at most four.")
work = MapOver("helper", max_items=4, prompt="Do this part, in one line.", name="work")
report = Child("helper", "report", "Put the parts together to one answer.")
planned, worked, reported = Append("planned"), Append("worked"), Append("reported")
replan = Limit(2, "replan")

orchestra: Graph[None] = Graph(
    "orchestrator-workers",
    plan,
    {
        plan: {Answered: planned, ...: END},
        planned: {Final: work, Resend: replan, ...: END},
        work: {Answered: worked, Unplanned: planned, ...: END},
        replan: {Go: plan, ...: END},
        worked: {Final: report, Resend: report, ...: END},
        report: {Answered: reported, ...: END},
        reported: {...: END},
    },
)
graph = with_agents(orchestra, {"helper": helper})
