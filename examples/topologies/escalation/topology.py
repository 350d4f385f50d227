"""Escalation: what a model can settle it settles; the rest waits for a person.

A person agrees to the draft, or puts an answer of their own in its place, or says what to change.

graphloop run examples/topologies/escalation      asks at the terminal; parks where there is none
"""

from graphloop import END, Graph
from graphloop.nodes import Append, Approve, Child, Limit, ModelCall, PrepareStep, Router
from graphloop.outcomes import Answered, Final, Go, Ready, Rejected, Resend, Unrouted
from graphloop.own_nodes import route_outcome
from graphloop.topology import with_agents

PROMPT = "My flight was cancelled. I want my 400 euros back."

Harmless, Delicate = route_outcome("harmless"), route_outcome("delicate")

prepare, model, append = PrepareStep(), ModelCall(), Append()
desk: Graph[None] = Graph(
    "desk",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

answer, answered = Child("desk", "answer", "Answer the customer."), Append("answered")
sort = Router(
    {Harmless: "an answer that promises nothing", Delicate: "money, law, or an angry customer"},
    "What kind of case is this?",
    name="sort",
)
person, again = Approve("person", ttl_s=86_400), Limit(2, "again")

escalation: Graph[None] = Graph(
    "escalation",
    answer,
    {
        answer: {Answered: answered, ...: END},
        answered: {Final: sort, Resend: again, ...: END},
        sort: {Delicate: person, Unrouted: person, ...: END},
        person: {Rejected: answered, ...: END},
        again: {Go: answer, ...: END},
    },
)
graph = with_agents(escalation, {"desk": desk})
