"""Evaluator and optimizer: a critic sends the answer back until it is good, a few times at most.

graphloop run examples/topologies/evaluator_optimizer
"""

from graphloop import END, Graph
from graphloop.nodes import Append, Child, Critique, ModelCall, PrepareStep
from graphloop.outcomes import Ready
from graphloop.own_nodes import loop_until
from graphloop.topology import with_agents

PROMPT = "Write a slogan for graphloop."

prepare, model, append = PrepareStep(), ModelCall(), Append()
writer: Graph[None] = Graph(
    "writer",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

write, critique = Child("writer"), Critique("Has it at most six words, and no exclamation mark?")
loop: Graph[None] = Graph("evaluator-optimizer", write, loop_until(write, critique, 3))
graph = with_agents(loop, {"writer": writer})
