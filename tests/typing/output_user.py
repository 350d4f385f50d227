"""What a type checker knows about the output of a run. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_type

from pydantic import BaseModel

from graphloop import (
    Agent,
    Graph,
    ObjectResult,
    RunResult,
    Runs,
    RunStream,
    ToolRunner,
    generate_object,
    generate_text,
    generate_text_sync,
    stream_chat,
)
from graphloop.agent import json_output
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.own_nodes.sub_graphs import SubGraph


class Person(BaseModel):
    """The form of an answer."""

    name: str


@dataclass(frozen=True)
class Essay:
    """A state of the user's."""

    topic: str


plain = Agent("openai:x")
typed = Agent("openai:x", output_type=Person, max_steps=3)
assert_type(plain, Agent[None, str])
assert_type(typed, Agent[None, Person])
assert_type(Agent("openai:x", output_type=list[Person]), Agent[None, list[Person]])
assert_type(Agent("openai:x", output_type=int), Agent[None, int])
assert_type(Agent("openai:x", output_type=Person | str), Agent[None, Person | str])
assert_type(Agent("openai:x", output_type=Person | None), Agent[None, Person | None])
assert_type(Agent("openai:x", output_type=Literal["a", "b"]), Agent[None, Literal["a", "b"]])
assert_type(Agent("openai:x", output_type=Essay), Agent[None, Essay])
schema: Mapping[str, object] = {"type": "object"}
assert_type(Agent("openai:x", output_type=json_output(schema)), Agent[None, Any])
assert_type(typed.with_options(max_steps=5), Agent[None, Person])
assert_type(typed.with_options(output_type=Essay), Agent[None, Essay])
assert_type(plain.generate_sync("who?"), RunResult[str])
assert_type(plain.generate_sync("who?").output, str)
assert_type(typed.generate_sync("who?"), RunResult[Person])
assert_type(typed.generate_sync("who?").output, Person)
assert_type(typed.generate_sync("who?").output.name, str)
assert_type(typed.generate_sync("who?").has_output, bool)
assert_type(typed.resume_sync("run").output, Person)
assert_type(typed.runs, Runs[Person])


async def use(essays: Graph[Essay]) -> None:
    assert_type((await typed.generate("who?")).output, Person)
    assert_type(typed.stream("who?"), RunStream[Person])
    assert_type((await typed.stream("who?").result()).output, Person)
    assert_type(typed.iter("who?"), ToolRunner[Person])
    assert_type((await typed.iter("who?").until_done()).output, Person)
    assert_type((await typed.resume("run")).output, Person)
    assert_type(typed.resume_stream("run"), RunStream[Person])
    assert_type(typed.resume_iter("run"), ToolRunner[Person])
    assert_type((await typed.runs.resume("run")).output, Person)
    assert_type((await generate_text("openai:x", "who?")).output, str)
    assert_type((await generate_text("openai:x", "who?", output_type=Person)).output, Person)
    assert_type(generate_text_sync("openai:x", "who?", output_type=list[int]).output, list[int])
    assert_type(stream_chat("openai:x", "who?", output_type=Person), RunStream[Person])
    found = await generate_object("openai:x", Person, "who?")
    assert_type(found, ObjectResult[Person])
    assert_type(found.run.output, Person)
    result = await essays.run(Essay("bees"))
    assert_type(result, RunResult[str, Essay])
    assert_type(result.state, Essay)


def keep(essay: Essay, result: ChildResult[Person]) -> Essay:
    assert_type(result.output, Person)
    assert_type(result.state, None)
    return Essay(result.output.name)


def keep_text(essay: Essay, result: ChildResult) -> Essay:
    assert_type(result.output, str)
    return Essay(result.output)


assert_type(sub_graph(typed, output=keep), SubGraph[Essay])
assert_type(sub_graph(plain, output=keep_text), SubGraph[Essay])


# An agent with a narrower output is good wherever one with a wider output is expected.
wider: Agent[None, BaseModel] = typed
anything: Agent[None, object] = plain

# What is wrong must be said before it is run.
Agent("openai:x", output_type=schema)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
age = typed.generate_sync("who?").output.age  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
wrong: Agent[None, Essay] = typed  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
narrower: RunResult[Person] = plain.generate_sync("who?")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
sub_graph(plain, output=keep)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
