"""Routing: a model looks at the question, and the agent for such questions answers it.

graphloop run examples/topologies/routing
"""

from graphloop import END, Graph
from graphloop.nodes import Append, Child, ModelCall, PrepareStep, Router
from graphloop.outcomes import Answered, Ready, Unrouted
from graphloop.own_nodes import route_outcome
from graphloop.topology import with_agents

PROMPT = "I was charged twice in May."

Billing, Technical = route_outcome("billing"), route_outcome("technical")

prepare, model, append = PrepareStep(), ModelCall(), Append()
desk: Graph[None] = Graph(
    "desk",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

router = Router(
    {Billing: "invoices, payments and refunds", Technical: "errors and outages"},
    "Which desk should answer this?",
)
billing = Child("desk", "billing", "You are the billing desk. Answer.")
technical = Child("desk", "technical", "You are the technical desk. Answer.")
general = Child("desk", "general", "You are the front desk. Answer, or ask what is meant.")

routing: Graph[None] = Graph(
    "routing",
    router,
    {
        router: {Billing: billing, Technical: technical, Unrouted: general, ...: END},
        billing: {Answered: append, ...: END},
        technical: {Answered: append, ...: END},
        general: {Answered: append, ...: END},
        append: {...: END},
    },
)
graph = with_agents(routing, {"desk": desk})
