"""Questions of running tools, such as of a remote agent, as clients of both protocols meet them."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import mcp_types as types
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_data_parts, get_message_text, new_data_part, new_text_part
from a2a.types import Part, Task
from mcp import Client

from graphloop import END, Agent, Graph, tool
from graphloop.effects import IN_WORDS
from graphloop.nodes import Append, Approve, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Final, Ready
from graphloop.questions import Pending
from graphloop.serve import McpServer, a2a_app
from graphloop.serve.served import question_about
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolAsks, ToolContext
from tests.unit.serve.test_a2a import sent, text
from tests.unit.serve.test_mcp import said

URL = "http://127.0.0.1:8700/"
FORM = {
    "type": "object",
    "properties": {"colour": {"type": "string"}, "coats": {"type": "integer"}},
    "required": ["colour"],
}
NESTED = {"type": "object", "properties": {"colours": {"type": "array"}}, "required": ["colours"]}


def of_text(name: str) -> dict[str, object]:
    """Return a form with one text."""
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def planner() -> Agent:
    """Return an agent whose tool is a graph that shows a person its answer."""
    prepare, model, append, shown = PrepareStep(), ModelCall(), Append(), Approve()
    graph: Graph[None] = Graph(
        "plan",
        prepare,
        {
            prepare: {Ready: model, ...: END},
            model: {Answered: append, ...: END},
            append: {Final: shown, ...: END},
            shown: {...: END},
        },
    )
    plans = graph.as_tool(None, description="Plan.", model=ScriptedModel(["Go."], restart=True))
    script: list[object] = [{"calls": [{"name": "plan", "arguments": {"prompt": "?"}}]}, tells]
    return Agent(ScriptedModel(script, restart=True), tools=[plans], name="planner")


def tells(request: Any) -> str:
    """Return the last result as the model's text."""
    return str(list(request.messages)[-1].content)


def painter(takes: str) -> Agent:
    """Return an agent whose tool asks a person, and which tells what the tool got."""

    @tool
    async def paint(context: ToolContext) -> str:
        """Paint."""
        if context.answer is None:
            raise ToolAsks("Which colour?", takes, "")
        return f"{context.answer.approved} {context.answer.content}".strip()

    script: list[object] = [{"calls": [{"name": "paint"}]}, tells]
    return Agent(ScriptedModel(script, restart=True), tools=[paint], name="painter")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("takes", "fields", "content", "got"),
    [
        (FORM, ["colour", "coats"], {"colour": "red"}, '{"colour": "red"}'),
        (json.loads(IN_WORDS), ["answer"], {"answer": "red"}, '{"answer": "red"}'),
        (NESTED, ["json"], {"json": '{"colours": ["red"]}'}, '{"colours": ["red"]}'),
        ({"type": "object", "properties": {}}, [], {}, "{}"),
        (of_text("json"), ["json"], {"json": "a"}, '{"json": "a"}'),
        (of_text("question"), ["question"], {"question": "a"}, '{"question": "a"}'),
    ],
)
async def test_an_mcp_client_shows_the_questions_own_form(
    mode: str, takes: object, fields: list[str], content: dict[str, Any], got: str
) -> None:
    """A plain yes is no answer to a question, and would fail the run."""
    seen: list[tuple[str, list[str]]] = []

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        seen.append((params.message, list(params.requested_schema["properties"])))
        if len(seen) == 1 and fields:
            return types.ElicitResult(action="accept", content={"wrong": True})
        return types.ElicitResult(action="accept", content=content)

    server = McpServer([painter(IN_WORDS if takes == json.loads(IN_WORDS) else json.dumps(takes))])
    async with Client(server.connection, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("painter", {"prompt": "Paint."})

    assert seen[0] == ("paint asks: Which colour?", fields)
    assert isinstance(result, types.CallToolResult)
    told, _, value = said(result).partition(" ")
    assert told == "True"
    assert json.loads(value) == json.loads(got)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_mcp_client_decides_about_an_answer(mode: str) -> None:
    """An `Approve` node asks no question: it shows an answer, which takes a yes or an edit."""
    seen: list[str] = []

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        seen.append(params.message)
        edit = '{"answer": "Stay."}'
        return types.ElicitResult(action="accept", content={"approve": True, "edit": edit})

    server = McpServer([planner()])
    async with Client(server.connection, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("planner", {"prompt": "Plan."})

    assert seen == ['Run approve with {"answer": "Go."}?']
    assert isinstance(result, types.CallToolResult)
    assert said(result) == "Stay."


async def test_an_a2a_client_decides_about_an_answer() -> None:
    yes = new_data_part({"c0.0/approve.2": {"approved": True}})
    task, (done,) = await _answered(planner(), yes)

    assert get_message_text(task.status.message) == 'Run approve with {"answer": "Go."}?'
    assert text(done) == "Go."


async def _answered(asks: str | Agent, *answers: Part) -> tuple[Task, list[Task]]:
    """Ask a question as a task, and send answers until it is over."""
    agent = painter(asks) if isinstance(asks, str) else asks
    transport = httpx.ASGITransport(a2a_app(agent, URL))
    async with httpx.AsyncClient(transport=transport) as http:
        client = await create_client(URL, ClientConfig(httpx_client=http, streaming=False))
        task = await sent(client, new_text_part("Paint."))
        return task, [await sent(client, answer, task=task) for answer in answers]


async def test_an_a2a_client_answers_a_question_in_words(caplog: pytest.LogCaptureFixture) -> None:
    """So an agent that gives tasks to this server needs no knowledge of it."""
    with caplog.at_level(logging.ERROR):
        task, (done,) = await _answered(IN_WORDS, new_text_part("red, please"))

    assert get_message_text(task.status.message) == "paint asks: Which colour?"
    assert get_message_text(task.history[0]) == "Paint."
    assert text(done) == 'True {"answer": "red, please"}'
    assert not caplog.records


async def test_an_a2a_client_reads_what_a_question_takes() -> None:
    """Its answer is the edit; an answer that does not fit is asked again."""
    yes = {"c0.0#3": {"approved": True}}
    red = {"c0.0#3": {"approved": True, "edit": '{"colour": "red"}'}}
    task, (again, done) = await _answered(json.dumps(FORM), new_data_part(yes), new_data_part(red))

    (asked,) = get_data_parts(task.status.message.parts)[0]["approvals"]
    assert json.loads(asked["takes"]) == FORM
    assert "'colour' is a required property" in get_message_text(again.status.message)
    assert text(done) == 'True {"colour": "red"}'


async def test_words_are_no_answer_to_a_form() -> None:
    """Such a form may ask for an approval of a remote agent."""
    _, (done,) = await _answered(json.dumps(FORM), new_text_part("yes"))

    assert text(done) == "False"


def test_a_question_names_the_foreign_server() -> None:
    asked = Pending("approval", "k", "c", "pay", '{"amount": 5}', server="https://bank.example")

    assert question_about(asked) == 'Run pay of https://bank.example with {"amount": 5}?'
