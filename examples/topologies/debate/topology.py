"""Debate: two sides answer one another for some rounds, then a judge decides.

graphloop run examples/topologies/debate
"""

from graphloop import END, Graph, node
from graphloop.nodes import Append, Child, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Final, Outcome, Ready, Resend
from graphloop.topology import registry, with_agents

PROMPT = "Should a small team write its own agent loop?"


class Another(Outcome):
    """There is time for another round."""


class Over(Outcome):
    """All has been said."""


@registry.node
@node(kind="stop", cap={Another: 1}, capped=Over)
def next_round(_: None) -> Another | Over:
    """Ask for another round, as often as the cap allows; then it is over."""
    return Another()


prepare, model, append = PrepareStep(), ModelCall(), Append()
speaker: Graph[None] = Graph(
    "speaker",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

for_it = Child("speaker", "for_it", "Speak for it. Answer what was said last.")
against = Child("speaker", "against", "Speak against it. Answer what was said last.")
judge = Child("speaker", "judge", "You are the judge. Decide, and say why in one line.")
first, second, verdict = Append("first"), Append("second"), Append("verdict")

debate: Graph[None] = Graph(
    "debate",
    for_it,
    {
        for_it: {Answered: first, ...: END},
        first: {Final: against, Resend: against, ...: END},
        against: {Answered: second, ...: END},
        second: {Final: next_round, Resend: next_round, ...: END},
        next_round: next_round.row({Another: for_it, Over: judge, ...: END}),
        judge: {Answered: verdict, ...: END},
        verdict: {...: END},
    },
)
graph = with_agents(debate, {"speaker": speaker})
