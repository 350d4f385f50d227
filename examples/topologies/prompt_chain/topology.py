"""Prompt chain: one step after the other, and a check in plain code between two of them.

graphloop run examples/topologies/prompt_chain
"""

from graphloop import END, Graph, NodeContext, node
from graphloop.nodes import Append, Child, Limit, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Final, Go, Outcome, Ready, Resend
from graphloop.topology import registry, with_agents

PROMPT = "Explain to a child why the sky is blue."


class Complete(Outcome):
    """The outline has what the text needs."""


class Lacking(Outcome):
    """Something is missing in it."""


@registry.node
@node(kind="check")
def has_three_points(_: None, context: NodeContext) -> Complete | Lacking:
    """Count the dashes of the outline; no model is needed for that."""
    return Complete() if context.answer.count("- ") == 3 else Lacking()


prepare, model, append = PrepareStep(), ModelCall(), Append()
writer: Graph[None] = Graph(
    "writer",
    prepare,
    {prepare: {Ready: model, ...: append}, model: {...: append}, append: {...: END}},
)

outline = Child("writer", "outline", "Write an outline: three points, each on a line with a dash.")
draft = Child("writer", "draft", "Write the text that the outline describes.")
polish = Child("writer", "polish", "Polish it: short words, one picture, nothing that is wrong.")
outlined, drafted, polished = Append("outlined"), Append("drafted"), Append("polished")
again = Limit(2, "again")

chain: Graph[None] = Graph(
    "prompt-chain",
    outline,
    {
        outline: {Answered: outlined, ...: END},
        outlined: {Final: has_three_points, Resend: again, ...: END},
        has_three_points: has_three_points.row({Complete: draft, Lacking: again, ...: END}),
        again: {Go: outline, ...: END},
        draft: {Answered: drafted, ...: END},
        drafted: {Final: polish, Resend: polish, ...: END},
        polish: {Answered: polished, ...: END},
        polished: {...: END},
    },
)
graph = with_agents(chain, {"writer": writer})
