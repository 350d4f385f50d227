"""Servers that ask: people through the run, and models within its budget."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.agent import RunResult
from graphloop.driver import Pending
from graphloop.effects import ToolAnswer
from graphloop.errors import ToolError
from graphloop.mcp import Server, stdio
from graphloop.mcp.server_questions import HeldCall, question, response_to
from graphloop.parts.kinds import ToolApprovalRequest
from graphloop.policy import Approval, approve, decline
from graphloop.spending import budget
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolAsks
from graphloop.values import ToolResult
from tests.mcp_calls import CONTEXT, Make, outcome, own, tools_of, until
from tests.warm_python import warm_python

pytestmark = pytest.mark.deadline(50)


def model(name: str, *more: object) -> ScriptedModel:
    """Return a model that calls a tool about shoes, and then answers."""
    return ScriptedModel([{"calls": [{"name": name, "arguments": {"what": "shoes"}}]}, *more, "."])


def never(_: Pending) -> Approval:
    """Decline."""
    return decline()


def contents(result: RunResult[str]) -> list[str]:
    """Return the contents of the tool results."""
    return [str(each.content) for each in result.messages if isinstance(each, ToolResult)]


async def test_a_question_parks_the_run_and_its_answer_ends_the_call(make: Make) -> None:
    """The person sees who asks, and the tool has run once, on both protocols."""
    server = make(ask=True, name="the desk")
    async with Agent(model("book"), tools=await server.tools()) as agent:
        parked = await agent.generate("Book shoes.")
        (question,) = parked.pending
        done = await agent.resume(parked, approvals={question.key: approve(edit={"size": 42})})

    assert json.loads(question.arguments)["question"] == "the desk asks: Which size of shoes?"
    assert json.loads(question.parameters)["required"] == ["size"]
    assert contents(done)[0].startswith("shoes: size 42, ")


async def test_two_questions_are_asked_one_after_another(make: Make) -> None:
    """An approver in the process answers them while the run goes on."""
    asked: list[str] = []

    async def decide(pending: Pending) -> Approval:
        asked.append(json.loads(pending.arguments)["question"].partition("asks: ")[2])
        return approve(edit={"size": 7} if len(asked) == 1 else {"sure": False})

    server = make(ask=True)
    tools = await server.tools()
    async with Agent(model("book_surely"), tools=tools, approve_tool_call=decide) as agent:
        result = await agent.generate("Book shoes.")

    assert asked == ["Which size of shoes?", "Really 7?"]
    assert contents(result) == ["shoes: size 7, sure False"]


def test_a_field_with_a_default_may_be_left_out() -> None:
    """A server may name it as required as well: the form's default is the answer."""
    fields = {"size": {"type": "integer", "default": 40}, "name": {"type": "string"}}
    form = {"type": "object", "properties": fields, "required": ["size", "name"]}

    asked = question("shop", {"requestedSchema": form}, HeldCall("1")).question
    said = ToolAnswer(asked, approved=True, content='{"name":"a"}')

    assert json.loads(asked.takes) == {**form, "required": ["name"]}
    assert response_to(said) == {"action": "accept", "content": {"size": 40, "name": "a"}}


@pytest.mark.parametrize("form", [{"properties": {"a": 5}}, {"properties": {"a": {"enum": 7}}}])
def test_a_form_that_is_none_ends_the_call(form: object) -> None:
    """No person could be shown it; the model reads what its server did."""
    with pytest.raises(ToolError, match="'shop' asks by a form"):
        question("shop", {"requestedSchema": form}, HeldCall("1"))


async def test_a_declined_question_is_told_to_the_server(make: Make) -> None:
    """The server decides what its tool does without the answer."""
    server = make(ask=True)
    tools = await server.tools()
    async with Agent(model("book"), tools=tools, approve_tool_call=never) as agent:
        result = await agent.generate("Book shoes.")

    assert contents(result)[0].startswith("shoes: decline, ")


async def test_another_process_answers_what_a_new_server_can_take_up(tmp_path: Path) -> None:
    """Since 2026-07-28 the store has all that the call needs: both processes have ended."""
    store, pins = str(tmp_path / "runs.db"), tmp_path / "desk.json"
    async with own() as first:
        await first.pin(pins)
    async with Agent(model("book"), tools=own(ask=True).pinned(pins), store=store) as agent:
        (question,) = (await agent.generate("Book shoes.", run_id="r")).pending

    again = own(ask=True).pinned(pins)
    async with Agent(ScriptedModel(["Booked."]), tools=again, store=store) as agent:
        done = await agent.resume("r", approvals={question.key: approve(edit={"size": 42})})

    assert contents(done) == ["shoes: size 42, 1 booked"]
    assert done.text == "Booked."


async def test_a_held_call_ends_with_its_process(tmp_path: Path) -> None:
    """Until 2025-11-25 the answer can reach nobody else; the call is not sent again."""
    store, pins = str(tmp_path / "runs.db"), tmp_path / "desk.json"
    async with own(mode="legacy") as first:
        await first.pin(pins)

    def server() -> Server:
        return own(ask=True, mode="legacy", name="the desk")

    async with Agent(model("book"), tools=server().pinned(pins), store=store) as agent:
        (question,) = (await agent.generate("Book shoes.", run_id="r")).pending

    async with Agent(ScriptedModel(["Lost."]), tools=server().pinned(pins), store=store) as agent:
        done = await agent.resume("r", approvals={question.key: approve(edit={"size": 42})})

    (result,) = [each for each in done.messages if isinstance(each, ToolResult)]
    assert result.status == "error"
    assert "'the desk' held the call open" in str(result.content)
    assert "Whether the call took effect is not known." in str(result.content)


async def test_a_held_call_ends_with_its_run(tmp_path: Path) -> None:
    """The person never answers; the server learns that the call is cancelled."""
    note = tmp_path / "note"
    server = own(ask=True, mode="legacy")
    calls = [{"name": "hold", "arguments": {"note": str(note)}}]
    async with Agent(ScriptedModel([{"calls": calls}]), tools=await server.tools()) as agent:
        parked = await agent.generate("Hold.")
        assert note.read_text() == "started"
        stream = agent.resume_stream(parked)
        stream.abort("enough")
        await stream.consume()
        await until(lambda: note.read_text() == "ended")

    assert (await stream.result()).end_reason == "aborted"


@pytest.mark.parametrize("tool", ["book", "add"])
async def test_a_page_that_reads_the_stream_can_answer(tool: str) -> None:
    """The part has the key that the answer needs, the form, and the name of the server."""
    server = own(ask=True, name="the shop", needs_approval=["add"])
    calls = [{"name": tool, "arguments": {"what": "shoes"} if tool == "book" else {"a": 1, "b": 2}}]
    async with Agent(ScriptedModel([{"calls": calls}]), tools=await server.tools()) as agent:
        stream = agent.stream("Go.")
        parts = [each async for each in stream.full_stream]
        (pending,) = (await stream.result()).pending

    (asked,) = [each for each in parts if isinstance(each, ToolApprovalRequest)]
    assert (asked.key, asked.server) == (pending.key, "the shop")
    assert asked.takes == (pending.parameters if tool == "book" else "")


async def test_a_call_whose_question_reaches_no_person_is_withdrawn(tmp_path: Path) -> None:
    """A program that calls is no run, and a run may end before it has noted the question."""
    by_program, by_run = tmp_path / "program", tmp_path / "run"
    server = own(ask=True, mode="legacy")
    async with server:
        asked = await server.call("hold", {"note": str(by_program)})
        await until(lambda: by_program.read_text() == "ended")
        tools = {tool.name: tool for tool in await server.tools()}
        with pytest.raises(ToolAsks):
            await outcome(tools["hold"], note=str(by_run))
        await server.withdraw(CONTEXT)
        await until(lambda: by_run.read_text() == "ended")

    assert asked.status == "error"


async def test_other_calls_go_on_while_a_call_is_held() -> None:
    """A person may take days; the server is not blocked for other runs."""
    server = own(ask=True, mode="legacy")
    tools = await server.tools()
    asking = Agent(model("book"), tools=tools)
    parked = await asking.generate("Book shoes.")
    other = {tool.name: tool for tool in tools}

    added = await outcome(other["add"], a=1, b=2)
    both = await asyncio.gather(outcome(other["add"], a=2, b=2), outcome(other["add"], a=3, b=3))
    (question,) = parked.pending
    done = await asking.resume(parked, approvals={question.key: approve(edit={"size": 1})})
    await asking.aclose()

    assert [each.content for each in (added, *both)] == ["3", "4", "6"]
    assert contents(done) == ["shoes: size 1, 1 booked"]


async def test_a_server_that_is_not_offered_people_is_told_so(make: Make) -> None:
    """Nothing parks by surprise: questions are off by default."""
    async with tools_of(make()) as tools:
        refused = await outcome(tools["book"], what="shoes")

    assert refused.status == "error"


async def test_a_call_from_a_program_asks_nobody() -> None:
    """`Server.call` and the command line have no run that could wait."""
    async with own(ask=True, name="the desk") as server:
        refused = await server.call("book", {"what": "shoes"})

    assert refused.status == "error"
    assert "the desk asks: Which size of shoes?" in str(refused.content)


async def test_a_model_answers_the_server_within_the_budget(make: Make) -> None:
    """The server's use of the model is the run's, by the same budget and the same count."""
    server = make(sampling=ScriptedModel(["short"] * 9))
    tools = await server.tools()
    async with Agent(model("shorten"), tools=tools) as agent:
        result = await agent.generate("Shorten shoes.")

    usage = result.run.spent
    assert contents(result)[0].endswith(": short")
    assert usage.model_calls == 3
    assert usage.usage.total_tokens > sum([step.usage.total_tokens for step in result.steps])


async def test_a_spent_budget_refuses_the_server(make: Make) -> None:
    """A server cannot spend what the run may not."""
    asked = ScriptedModel(["short"])
    server = make(sampling=asked)
    tools = await server.tools()
    limit = budget(tokens=1)
    async with Agent(model("shorten"), tools=tools, budget=limit) as agent:
        result = await agent.generate("Shorten shoes.")

    (refused,) = [each for each in result.messages if isinstance(each, ToolResult)]
    assert refused.status == "error"
    assert "budget.tokens" in str(refused.content)
    assert result.run.spent.model_calls == 1


async def test_a_server_is_told_the_folders_of_its_options(make: Make, tmp_path: Path) -> None:
    async with tools_of(make(roots=[tmp_path])) as tools:
        told = await outcome(tools["folders"])

    assert told.content == tmp_path.as_uri()


async def test_no_folders_are_told_by_default(make: Make) -> None:
    """A server must not read where the caller works."""
    async with tools_of(make()) as tools:
        refused = await outcome(tools["folders"])

    assert refused.status == "error"


async def test_no_model_answers_by_default(make: Make) -> None:
    """Sampling is somebody's money."""
    async with tools_of(make()) as tools:
        refused = await outcome(tools["shorten"], what="shoes")

    assert refused.status == "error"


@pytest.mark.parametrize("name", ["ask", "think", "wait"])
async def test_a_server_that_asks_for_ever_is_left_after_ten_times(name: str) -> None:
    """No person, model or run serves it without end; the model reads why."""
    asked: list[str] = []

    async def decide(pending: Pending) -> Approval:
        asked.append(pending.key)
        return approve(edit={"size": len(asked)})

    endless = str(Path(__file__).parents[2] / "mcp_endless_server.py")
    thinker = ScriptedModel(["Hm."], restart=True)
    server = stdio(*warm_python(), endless, name="endless", ask=True, sampling=thinker)
    caller = ScriptedModel([{"calls": [{"name": name, "arguments": {}}]}, "."])
    async with Agent(caller, tools=await server.tools(), approve_tool_call=decide) as agent:
        result = await agent.generate("Go.")

    assert contents(result) == [
        "MCP server 'endless' has asked for more inputs 10 times, and does not end the call."
    ]
    assert len(asked) == (10 if name == "ask" else 0)
    assert len(thinker.requests) == (10 if name == "think" else 0)
