"""The table in a file, and what it names in Python: nodes, an agent, the type of the state."""

import operator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from graphloop import Agent, node
from graphloop.outcomes import Accepted, Outcome, Rejected
from graphloop.own_nodes import Asking, ask_person
from graphloop.states import reduce
from graphloop.testing import ScriptedModel
from graphloop.topology import load, registry, with_agents


class Wish(BaseModel):
    """What a letter asks for."""

    what: str
    urgent: bool


@dataclass(frozen=True)
class Post:
    """What the graph works on."""

    letters: list[str]
    wishes: Annotated[list[Wish], reduce(operator.add)] = field(default_factory=list[Wish])
    sent: str = ""


class Urgent(Outcome):
    """A letter cannot wait."""


class Calm(Outcome):
    """All letters can wait."""


class Sent(Outcome):
    """The answer is in the post."""


@registry.node
@node(reads={"wishes"})
async def sort(post: Post) -> Urgent | Calm:
    """Look for a letter that cannot wait."""
    return Urgent() if any(wish.urgent for wish in post.wishes) else Calm()


@registry.node
@node(reads={"wishes"}, model_calls=0)
def ask(post: Post) -> Asking[Accepted | Rejected]:
    """Ask a person about all wishes at once."""
    said = yield from ask_person(", ".join(wish.what for wish in post.wishes))
    return Accepted() if said.approved else Rejected()


@registry.node
@node(kind="act", reads={"letters"}, writes={"sent"})
async def answer(post: Post) -> tuple[Sent, Post]:
    """Send the answer."""
    return Sent(), replace(post, sent=f"{len(post.letters)} answers")


def wish(letter: str, *, urgent: bool) -> dict[str, object]:
    """Return the typed answer of the reader to a letter."""
    arguments = {"what": letter.lower(), "urgent": urgent}
    return {"to": letter, "calls": [{"name": "final_answer", "arguments": arguments}]}


MODEL = ScriptedModel([wish("Kettle", urgent=True), wish("Spoon", urgent=False)])
reader = Agent(MODEL, name="reader", output_type=Wish, max_steps=2)
STATE = Post(["Kettle", "Spoon"])
table = load(Path(__file__).with_name("p05_letters.yaml"), state_type=Post)
graph = with_agents(table, {"reader": reader})


def main() -> None:
    """Run the file to its question, and answer it."""
    parked = graph.run_sync(STATE)
    [question] = parked.pending
    print(parked.end_reason, question.arguments)
    result = graph.resume_sync(parked, approvals={question.key: True})
    print(result.state.sent, [each.what for each in result.state.wishes])


if __name__ == "__main__":
    main()
