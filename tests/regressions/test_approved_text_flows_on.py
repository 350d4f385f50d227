"""What a person approves at an `Approve` node is the answer of the run from there on.

The draft flowed on: an edit was told to the next model, and read by nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from graphloop import END, Agent, Approval, Edges, Graph, NodeContext, Runs, node
from graphloop.nodes import Append, Approve, Child, MapOver
from graphloop.outcomes import Accepted, Answered, Final, Outcome
from graphloop.own_nodes import map_over
from graphloop.policy.approvals import approve
from graphloop.providers.script import Entry
from graphloop.run import EndReason
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.topology import load
from graphloop.topology.registration import Registry
from graphloop.values import UserMessage

EDITED = approve(edit={"answer": "EDITED"})
HEARD: list[str] = []


class Heard(Outcome):
    """The answer was read."""


@node
def listen(_: None, context: NodeContext) -> Heard:
    """Write down the answer."""
    HEARD.append(context.answer)
    return Heard()


def writer(said: str | Exception = "DRAFT") -> Any:
    """Return an agent that writes a draft."""
    return Agent(ScriptedModel([said], restart=True), name="writer").as_tool(description="writes")


def drafted(then: Any, **rows: Any) -> Graph[None]:
    """Return a graph in which a person approves a draft, and then something follows."""
    write, append, ask = Child("writer"), Append(), Approve()
    edges: Edges[None] = {
        write: {Answered: append, ...: END},
        append: {Final: ask, ...: END},
        ask: {Accepted: then, ...: END},
        **({} if then is END else {then: rows.get("row", {...: END})}),
        **rows.get("more", {}),
    }
    return Graph("drafted", write, edges)


async def told(graph: Graph[None], answer: Approval, agents: Mapping[str, Any]) -> Any:
    """Return the result of a run whose person answers this."""
    store = MemoryStore()
    parked = await graph.run(None, prompt="go", agents=agents, store=store)
    (asked,) = parked.pending
    return await graph.resume(parked, agents=agents, store=store, approvals={asked.key: answer})


@pytest.mark.parametrize(("answer", "text"), [(EDITED, "EDITED"), (approve(), "DRAFT")])
def test_the_next_node_and_the_caller_read_the_approved_text(answer: Approval, text: str) -> None:
    """Edited or not."""
    HEARD.clear()

    result = asyncio.run(told(drafted(listen), answer, {"writer": writer()}))

    assert ([text], text) == (HEARD, result.text)


def test_the_items_of_an_edited_plan_are_worked_on() -> None:
    """Not those of the plan that the person has changed."""
    work: MapOver = map_over("worker", max_items=3)
    after = Append("after")
    graph = drafted(work, row={Answered: after, ...: END}, more={after: {...: END}})
    worker = Agent(ScriptedModel(["done"] * 3), name="worker").as_tool(description="works")

    result = asyncio.run(
        told(
            graph,
            approve(edit={"answer": '["mended"]'}),
            {"writer": writer('["a", "b"]'), "worker": worker},
        )
    )

    assert "## mended\n\ndone" == result.text


def test_a_second_person_is_asked_about_what_the_first_approved() -> None:
    """Both words count, the later one for the text."""
    again = Approve("again")
    graph = drafted(again)
    agents = {"writer": writer()}

    parked = asyncio.run(told(graph, EDITED, agents))

    (asked,) = parked.pending
    assert '{"answer": "EDITED"}' == asked.arguments
    done = asyncio.run(graph.resume(parked, agents=agents, approvals={asked.key: True}))
    assert "EDITED" == done.text


async def test_a_failure_after_an_edit_does_not_return_to_the_draft() -> None:
    """Until another answer comes, the person's stands."""
    fails = Child("broken")
    graph = drafted(fails, row={...: END})
    agents = {"writer": writer(), "broken": writer(OSError("down"))}

    store = MemoryStore()
    parked = await graph.run(None, prompt="go", agents=agents, store=store)
    (asked,) = parked.pending
    with pytest.raises(Exception, match="down"):
        await graph.resume(parked, agents=agents, store=store, approvals={asked.key: EDITED})
    run = await Runs(store, graph).replay(parked.run_id)
    assert run.ending is not None
    assert EndReason.ERROR is run.ending.reason
    assert "EDITED" == NodeContext.of(run, "anywhere").answer


def test_a_later_answer_takes_the_place_of_an_approved_one() -> None:
    """A person's word is about one answer, not about all that come."""
    polish, after = Child("polisher"), Append("after")
    graph = drafted(polish, row={Answered: after, ...: END}, more={after: {...: END}})
    agents = {"writer": writer(), "polisher": writer("POLISHED")}

    assert "POLISHED" == asyncio.run(told(graph, EDITED, agents)).text


def test_an_edited_answer_of_a_child_is_what_its_parent_is_told() -> None:
    """The child ends by the text that a person has approved."""
    below = drafted(END).as_tool(None, name="desk", description="d", agents={"writer": writer()})
    ask, append = Child("desk"), Append()
    graph: Graph[None] = Graph(
        "above", ask, {ask: {Answered: append, ...: END}, append: {...: END}}
    )

    assert "EDITED" == asyncio.run(told(graph, EDITED, {"desk": below})).text


async def test_an_approval_of_a_given_conversation_is_the_answer() -> None:
    """No model of the run has said anything: its answer is the person's."""
    ask = Approve()
    graph: Graph[None] = Graph("ask", ask, {ask: {Accepted: listen, ...: END}, listen: {...: END}})
    HEARD.clear()
    given = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "DRAFT"}]

    parked = await graph.run(None, messages=given, store=MemoryStore())
    assert "" == parked.text
    (asked,) = parked.pending
    assert ("DRAFT", ["DRAFT"]) == (
        (await graph.resume(parked, approvals={asked.key: True})).text,
        HEARD,
    )


FILE = """\
graphloop: 1
name: drafted
start: write
agents: {writer: {graph: {name: writer, start: prepare_step, nodes: {prepare_step: {use: \
prepare_step}, model_call: {use: model_call}, append: {use: append}}, edges: {prepare_step: \
{ready: model_call, else: END}, model_call: {failed: END, else: append}, append: {else: END}}}}}
nodes: {write: {use: child, agent: writer}, append: {use: append}, ask: {use: approve}, \
listen: {use: listen}}
edges:
  write: {answered: append, else: END}
  append: {final: ask, else: END}
  ask: {accepted: listen, else: END}
  listen: {else: END}
"""


async def test_the_same_holds_of_a_file() -> None:
    """Which is the same graph."""
    names = Registry()
    names.node(listen)
    graph = load(FILE, registry=names)
    HEARD.clear()

    script: list[Entry] = ["DRAFT"]
    model, store = ScriptedModel(script), MemoryStore()
    parked = await graph.run(None, model=model, prompt="go", store=store)
    (asked,) = parked.pending
    done = await graph.resume(parked, model=model, store=store, approvals={asked.key: EDITED})
    assert UserMessage("Approved, as follows:\n\nEDITED", "ask") in done.messages
    assert ("EDITED", ["EDITED"]) == (done.text, HEARD)
