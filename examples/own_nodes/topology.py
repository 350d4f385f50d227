"""Nodes of one's own: a function decides, an agent writes, one typed state goes through both.

graphloop run examples/own_nodes
graphloop check examples/own_nodes      the cap of `judge` bounds the cycle
"""

from dataclasses import dataclass, replace

from graphloop import END, Agent, Graph, node
from graphloop.nodes import Append
from graphloop.outcomes import Answered, Outcome
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest


@dataclass(frozen=True)
class Slogan:
    """What the run works on."""

    words_max: int
    draft: str = ""


class TooLong(Outcome):
    """It has more words than there may be."""


class Fine(Outcome):
    """It is short enough, or has been tried often enough."""


@node(cap={TooLong: 2}, capped=Fine, reads={"draft", "words_max"})
async def judge(slogan: Slogan) -> TooLong | Fine:
    """Count words; a replay never counts them again."""
    return TooLong() if len(slogan.draft.split()) > slogan.words_max else Fine()


def ask(slogan: Slogan) -> str:
    """Tell the writer what to do."""
    return f"Write it in {slogan.words_max} words. So far: {slogan.draft or 'nothing'}"


def keep(slogan: Slogan, result: ChildResult) -> Slogan:
    """Take the writer's answer into the state."""
    return replace(slogan, draft=result.text)


def reply(request: ModelRequest) -> str:
    """Answer for the writer's model."""
    first = "So far: nothing" in str(request.messages[-1])
    return "The agent loop that you can finally see!" if first else "A loop you can see."


writer = Agent(ScriptedModel([reply], restart=True), name="writer")
write = sub_graph(writer, prompt=ask, output=keep, reads={"draft", "words_max"}, writes={"draft"})
append, STATE = Append(), Slogan(words_max=6)
row = judge.row({TooLong: write, Fine: append, ...: END})
graph = Graph("slogan", write, {write: {Answered: judge, ...: END}, judge: row, append: {...: END}})
