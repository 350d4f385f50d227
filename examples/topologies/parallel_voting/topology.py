"""Parallel voting: three judges at once, each with its own eyes; what most of them say counts.

The run goes on as soon as two agree: the third is stopped.

graphloop run examples/topologies/parallel_voting
"""

from graphloop import END, Graph
from graphloop.nodes import Append, Branch, ModelCall, Parallel, PrepareStep
from graphloop.outcomes import Answered, Ready
from graphloop.topology import with_agents

PROMPT = "May this be shown to children? 'The knight sleeps, and the dragon does, too.'"

prepare, model, append = PrepareStep(), ModelCall(), Append()
judge: Graph[None] = Graph(
    "judge",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

vote = Parallel(
    (
        Branch("judge", "You are a parent. Say yes or no.", "parent"),
        Branch("judge", "You are a teacher. Say yes or no.", "teacher"),
        Branch("judge", "You are a lawyer. Say yes or no.", "lawyer"),
    ),
    join="majority",
    name="vote",
)
voting: Graph[None] = Graph(
    "parallel-voting",
    vote,
    {vote: {Answered: append, ...: END}, append: {...: END}},
)
graph = with_agents(voting, {"judge": judge})
