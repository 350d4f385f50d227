"""Programs that type checkers must not find fault with. Checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pydantic import BaseModel

from graphloop import END, Agent, Graph, RunResult, node
from graphloop.outcomes import Outcome
from graphloop.testing import ScriptedModel, assert_safe, fuzz
from graphloop.topology import Topology, with_agents
from graphloop.values import ModelRequest, Reply


@dataclass(frozen=True)
class Article:
    """A state of the user's."""

    topic: str


class Person(BaseModel):
    """The form of an answer."""

    name: str


class Done(Outcome):
    """The work is done."""


@node
async def publish(article: Article) -> Done:
    return Done()


def later(request: ModelRequest) -> str:
    return str(len(request.messages))


def scripts(ready: Reply) -> None:
    ScriptedModel(["a", {"calls": [{"name": "x", "arguments": {}}]}, ValueError("down")])
    ScriptedModel(["a", later, lambda request: "b", ready, {"text": "c", "usage": {}}])
    mixed = ["a", {"calls": [{"name": "x", "arguments": {"q": 1}}]}]
    ScriptedModel(mixed)
    replies = [ready, "a"]
    ScriptedModel(replies)


base = Graph("base", publish, {publish: {...: END}})
typed = Agent(ScriptedModel([]), output_type=Person)
whole = with_agents(base, {"writer": typed, "editor": typed.graph, "desk": base})
assert_type(base, Graph[Article])
assert_type(whole, Topology[Article])
assert_safe(typed)
assert_safe(whole)
fuzz(typed)


async def run() -> None:
    assert_type(await whole.run(Article("bees")), RunResult[str, Article])
    await base.run(Article("bees"), agents={"writer": typed, "desk": base})
