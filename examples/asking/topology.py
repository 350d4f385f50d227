"""A node that asks for several things in a row: a generator, written as it happens.

graphloop run examples/asking
graphloop check examples/asking       `model_calls=2` bounds what the node asks
"""

from dataclasses import dataclass, replace

from graphloop import END, Graph, NodeContext, node
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Outcome, Ready
from graphloop.own_nodes import Asking, ask_model, ask_person, tell


@dataclass(frozen=True)
class Ticket:
    """What the run works on."""

    team: str = ""


class Sorted(Outcome):
    """It is known whose it is."""


@node(model_calls=2, reads={"team"}, writes={"team"})
def triage(ticket: Ticket, context: NodeContext) -> Asking[tuple[Sorted, Ticket]]:
    """Ask one model, ask another in doubt, ask a person at last; a resumed run asks none twice."""
    first = yield from ask_model("Which team is it for? One word.", conversation=True)
    team = first.message.text
    second = yield from ask_model(f"Is {team!r} right? {context.messages[-1]}", max_tokens=9)
    if second.message.text != "yes":
        said = yield from ask_person("Which team is it for?")
        team = said.answer or "support"
    yield from tell(f"Answer for the {team} team.")
    return Sorted(), replace(ticket, team=team)


prepare, answer, append = PrepareStep(), ModelCall(), Append()
PROMPT = "My invoice is wrong."
STATE = Ticket()
graph = Graph(
    "asking",
    triage,
    {
        triage: {Sorted: prepare, ...: END},
        prepare: {Ready: answer, ...: append},
        answer: {...: append},
        append: {...: END},
    },
)
