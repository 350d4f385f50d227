"""Reflexion: after a try that fails its test, a lesson is drawn in words, and the next try has it.

The test is plain code; what it says is not fed back as it is, but thought about first.

graphloop run examples/topologies/reflexion
"""

from graphloop import END, Graph, NodeContext, node
from graphloop.nodes import Append, Child, Limit, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Final, Go, Outcome, Ready, Resend
from graphloop.topology import registry, with_agents

PROMPT = "Write a haiku about a compiler: three lines."


class Passed(Outcome):
    """The test is passed."""


class Missed(Outcome):
    """It is not."""


@registry.node
@node(kind="check")
def has_three_lines(_: None, context: NodeContext) -> Passed | Missed:
    """Count the lines."""
    return Passed() if len(context.answer.splitlines()) == 3 else Missed()


prepare, model, append = PrepareStep(), ModelCall(), Append()
poet: Graph[None] = Graph(
    "poet",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

attempt = Child("poet", "attempt", "Do it. Heed the lessons, if there are any.")
reflect = Child("poet", "reflect", "It failed its test. What is the lesson, in one line?")
tried, learned, again = Append("tried"), Append("learned"), Limit(3, "again")

reflexion: Graph[None] = Graph(
    "reflexion",
    attempt,
    {
        attempt: {Answered: tried, ...: END},
        tried: {Final: has_three_lines, ...: END},
        has_three_lines: has_three_lines.row({Passed: END, Missed: again, ...: END}),
        again: {Go: reflect, ...: END},
        reflect: {Answered: learned, ...: END},
        learned: {Final: attempt, Resend: attempt, ...: END},
    },
)
graph = with_agents(reflexion, {"poet": poet})
