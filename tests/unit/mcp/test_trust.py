"""What is believed of a server: nothing that lifts a gate, an approval or a proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent, check, tool
from graphloop.mcp import Definition, Server, ServerOptions, pins_text, stdio
from graphloop.policy import allow, ask, deny
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolContext
from graphloop.values import ToolResult
from tests.mcp_calls import outcome, own, tools_of

pytestmark = pytest.mark.deadline(50)

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}


def pinned(folder: Path, *definitions: Definition, **options: object) -> tuple[Server, Path]:
    """Return a server that is absent, and a file of its definitions."""
    file = folder / "pins.json"
    file.write_text(pins_text(definitions))
    given: ServerOptions = {"prefix": "bank_", "name": "the bank", **options}  # type: ignore[typeddict-item]
    return stdio("no-such-program", **given), file


async def test_a_gate_sees_the_tools_of_a_server_by_their_prefix() -> None:
    """One rule is about all that a server offers, also about what it offers later."""
    server = own(prefix="desk_")
    calls: list[dict[str, object]] = [
        {"name": "desk_pid", "arguments": {}},
        {"name": "desk_add", "arguments": {"a": 1, "b": 2}},
    ]
    gate = deny("desk_p*") | allow("desk_*")
    tools = await server.tools()
    async with Agent(ScriptedModel([{"calls": calls}, "."]), tools=tools, gate=gate) as agent:
        result = await agent.generate("Go.")

    statuses = [each.status for each in result.messages if isinstance(each, ToolResult)]
    assert statuses == ["denied", "ok"]


def test_the_hints_of_a_server_change_no_proof(tmp_path: Path) -> None:
    """A tool that calls itself harmless is proven like one that acts, and like an own tool."""

    def proven(*, hints: bool = False) -> tuple[str, str]:
        pay = Definition("pay", "Pay.", SCHEMA, read_only=hints, idempotent=hints)
        server, file = pinned(tmp_path, pay)
        agent = Agent(ScriptedModel(["."]), tools=server.pinned(file), gate=ask("bank_*"))
        return str(check(agent.graph)), agent.graph.mermaid()

    @tool(name="bank_pay")
    def pay(what: str = "") -> str:
        """Pay."""
        return what

    mine = Agent(ScriptedModel(["."]), tools=[pay], gate=ask("bank_*"))

    assert proven(hints=True) == proven()
    assert proven() == (str(check(mine.graph)), mine.graph.mermaid())


def test_a_rule_about_a_server_holds_for_what_it_calls_harmless(tmp_path: Path) -> None:
    """The rule is about the call, whatever the server says that it does."""
    server, file = pinned(tmp_path, Definition("pay", "Pay.", SCHEMA, read_only=True))
    (pay,) = server.pinned(file)

    assert pay.effect == "at_most_once"
    assert pay.needs_approval is False


async def test_a_harmless_tool_of_a_strange_server_is_not_run_again(tmp_path: Path) -> None:
    """A call that may have run does not run again on the word of a stranger."""
    server, file = pinned(tmp_path, Definition("pay", "Pay.", SCHEMA, read_only=True))
    known, _ = pinned(tmp_path, Definition("pay", "Pay.", SCHEMA, read_only=True), trust=True)
    (strange,), (trusted,) = server.pinned(file), known.pinned(file)

    assert await strange.reconciled("{}", ToolContext()) == "unknown"
    assert await trusted.reconciled("{}", ToolContext()) == "not_done"


async def test_the_approval_question_shows_the_servers_name(tmp_path: Path) -> None:
    """A person who sees `bank_pay` must know whose it is; the store's question says it, too."""
    server, file = pinned(tmp_path, Definition("pay", "Pay.", SCHEMA), needs_approval=True)
    store = str(tmp_path / "runs.db")
    script = [{"calls": [{"name": "bank_pay", "arguments": {"what": "rent"}}]}]
    async with Agent(ScriptedModel(script), tools=server.pinned(file), store=store) as agent:
        parked = await agent.generate("Pay.", run_id="r")
        (record,) = await agent.runs.list()

    assert [each.server for each in parked.pending] == ["the bank"]
    assert [each.server for each in record.asks] == ["the bank"]


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("description", Definition("add", "Ask for a password.", {"type": "object"})),
        ("input_schema", Definition("add", "Add two numbers.", SCHEMA)),
        ("output_schema", Definition("add", "Add two numbers.", {}, {"type": "object"})),
        ("read_only", Definition("add", "Add two numbers.", {}, read_only=True)),
        ("idempotent", Definition("add", "Add two numbers.", {}, idempotent=True)),
    ],
)
def test_each_field_of_a_definition_is_pinned(field: str, changed: Definition) -> None:
    """The schema and the hints are as much the server's word as the description."""
    pinned = Definition("add", "Add two numbers.", {})

    assert changed.fingerprint != pinned.fingerprint
    assert field in pinned.difference(changed)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"kind": "schema"}, "input_schema"),
        ({"kind": "hints"}, "read_only"),
        ({"kind": "gone"}, "no longer has a tool 'add'"),
    ],
)
async def test_a_tool_that_changes_between_list_and_call_is_refused(
    mode: str, change: dict[str, str], found: str
) -> None:
    """The call is not sent, and the model reads which part has changed."""
    async with tools_of(own(mode=mode)) as tools:
        await outcome(tools["change_in_silence"], **change)
        refused = await outcome(tools["add"], a=1, b=2)

    assert refused.status == "error"
    assert found in str(refused.content)
