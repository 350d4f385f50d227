"""MCP servers of a topology file: pinned for checks and drawings, registered for runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphloop import check
from graphloop.errors import ConfigError
from graphloop.mcp import Definition, Server, pins_of, pins_text, stdio
from graphloop.testing import ScriptedModel
from graphloop.topology import Registry, Topology, TopologyError, dump, fingerprint, load
from tests.mcp_calls import until
from tests.topology_forms import is_valid
from tests.warm_python import warm_python

SERVER = str(Path(__file__).parents[2] / "mcp_server.py")
TABLE = """\
graphloop: 1
name: desk
start: prepare_step
mcp:
  desk: {MCP}
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate: {use: gate, rules: [{RULE}]}
  execute: {use: execute}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 8}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {approval_needed: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
rules: [{at_most: desk_add, times: 3}]
"""
PINNED = "{pinned: desk.mcp.json, prefix: desk_}"
RULE = '{deny: "desk_l*"}, {allow: "desk_*"}'


def written(mcp: str = PINNED, rule: str = RULE) -> str:
    """Return the text of a topology with a server and with a rule of its gate."""
    return TABLE.replace("{MCP}", mcp).replace("{RULE}", rule)


def the_server(**options: Any) -> Server:
    """Return the server of the tests."""
    return stdio(*warm_python(), SERVER, "stdio", **options)


@pytest.fixture(scope="module")
def definitions() -> tuple[Definition, ...]:
    """Return definitions as `graphloop mcp pin` writes them."""
    number = {"type": "integer"}
    schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    return (
        Definition("add", "Add two numbers.", schema),
        Definition("pid", "Return the process.", {"type": "object"}, read_only=True),
        Definition("learn", "Change.", {"type": "object"}),
    )


@pytest.fixture
def folder(tmp_path: Path, definitions: tuple[Definition, ...]) -> Path:
    """Return a folder with a topology and a file of pins."""
    (tmp_path / "desk.mcp.json").write_text(pins_text(definitions))
    (tmp_path / "desk.yaml").write_text(written())
    return tmp_path


def refusal(folder: Path, mcp: str, rule: str = RULE) -> str:
    """Return the only problem of a file with this server."""
    (folder / "desk.yaml").write_text(written(mcp, rule))
    with pytest.raises(TopologyError) as refused:
        load(folder / "desk.yaml", registry=Registry())
    (problem,) = refused.value.problems
    return str(problem)


def test_the_proofs_are_equal_with_and_without_the_server(folder: Path) -> None:
    """A reviewer and a test have no server; the file alone says what models may call."""
    with_server = Registry()
    with_server.server(the_server(), name="desk")

    absent = load(folder / "desk.yaml", registry=Registry())
    present = load(folder / "desk.yaml", registry=with_server)

    assert absent.surroundings.tool_names == ("desk_add", "desk_pid", "desk_learn")
    assert absent == present
    assert absent.mermaid() == present.mermaid()
    assert str(check(absent)) == str(check(present))
    assert check(absent).ok


async def test_a_run_calls_the_registered_server(tmp_path: Path) -> None:
    """The gate's rules see the tools by their prefix, and the file's approvals hold."""
    names = Registry()
    async with the_server() as server:
        names.server(server, name="desk")
        await server.pin(tmp_path / "desk.mcp.json")
        mcp = "{pinned: desk.mcp.json, prefix: desk_, needs_approval: [pid]}"
        (tmp_path / "desk.yaml").write_text(written(mcp))
        model = ScriptedModel(
            [
                {
                    "calls": [
                        {"name": "desk_add", "arguments": {"a": 1, "b": 2}},
                        {"name": "desk_learn", "arguments": {"description": "x"}},
                    ]
                },
                {"calls": [{"name": "desk_pid", "arguments": {}}]},
            ]
        )
        graph: Topology[None] = load(tmp_path / "desk.yaml", registry=names)
        result = await graph.run(None, model=model, prompt="Add.")

    added, denied = [message for message in result.messages if message.role == "tool"]
    assert added.content == "3"
    assert denied.status == "denied"
    assert [pending.name for pending in result.pending] == ["desk_pid"]


async def test_a_run_without_the_server_is_refused_at_its_start(folder: Path) -> None:
    """Nothing was sent; the error says how to register it."""
    graph = load(folder / "desk.yaml", registry=Registry())

    with pytest.raises(ConfigError, match=r"registry\.server\(stdio\(…\), name='desk'\)"):
        await graph.run(None, model=ScriptedModel(["Hello."]), prompt="Add.")


async def test_a_server_that_differs_from_the_pins_gets_no_call(folder: Path) -> None:
    """The pins are what a person has read; `add` of the server has an output schema."""
    names = Registry()
    async with the_server() as server:
        names.server(server, name="desk")
        model = ScriptedModel(
            [{"calls": [{"name": "desk_add", "arguments": {"a": 1, "b": 2}}]}, "No."]
        )
        graph: Topology[None] = load(folder / "desk.yaml", registry=names)
        result = await graph.run(None, model=model, prompt="Add.")

    (refused,) = [message for message in result.messages if message.role == "tool"]
    assert refused.status == "error"
    assert "has changed its tool 'add' (input_schema, output_schema)" in str(refused.content)


async def test_a_call_that_a_server_holds_ends_with_its_run(tmp_path: Path) -> None:
    """The person never answers: the server must not wait for ever."""
    note, names = tmp_path / "note", Registry()
    async with the_server(ask=True, mode="legacy") as server:
        names.server(server, name="desk")
        await server.pin(tmp_path / "desk.mcp.json")
        (tmp_path / "desk.yaml").write_text(written())
        model = ScriptedModel(
            [{"calls": [{"name": "desk_hold", "arguments": {"note": str(note)}}]}]
        )
        graph: Topology[None] = load(tmp_path / "desk.yaml", registry=names)
        parked = await graph.run(None, model=model, prompt="Hold.")
        stream = graph.resume_stream(parked, model=model)
        stream.abort("enough")
        await stream.consume()
        await until(lambda: note.read_text() == "ended")

    assert [pending.server for pending in parked.pending] == ["desk"]


def test_a_file_reads_back_with_the_definitions_in_it(folder: Path) -> None:
    """`dump` needs no second file, and the fingerprint covers what models read."""
    graph = load(folder / "desk.yaml", registry=Registry())
    text = dump(graph)
    other = text.replace("Add two numbers.", "Add two figures.")

    assert load(text) == graph
    assert fingerprint(load(text)) == fingerprint(graph)
    assert fingerprint(load(other)) != fingerprint(graph)
    assert load(other) != graph


SCHEMAS = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.floats(-9, 9), st.text(max_size=9), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(max_size=9), SCHEMAS, max_size=3))
def test_definitions_in_a_file_keep_their_fingerprints(
    description: str, extra: dict[str, object]
) -> None:
    """A call is refused where the fingerprint differs: a notation must not change it."""
    schema: dict[str, object] = {"type": "object", "properties": {}, "examples": [extra]}
    pinned = Definition("look", description, schema)
    (read,) = pins_of(pins_text([pinned]).encode())
    entry: dict[str, object] = {
        "pinned": [{"name": "look", "description": description, "input_schema": schema}]
    }
    data = yaml.safe_load(written("{}"))
    data["mcp"] = {"desk": entry}
    data["nodes"]["gate"].pop("rules")
    data.pop("rules")

    graph = load(dump(load(json.dumps(data))))

    (again,) = graph.document.servers["desk"].definitions
    assert pinned.fingerprint == read.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    ("mcp", "said"),
    [
        (
            "{pinned: desk.mcp.jsn.json}",
            "5:18: `pinned`: 'desk.mcp.jsn.json': there is no such file. Did",
        ),
        ("{pinned: other/desk.mcp.json}", "`graphloop mcp pin`"),
        ("{pinned: ../desk.mcp.json}", "leads out of the folder"),
        ("{pinned: desk.yaml}", "is no file of pinned tools, which ends in .json"),
        ("{pinned: odd.json}", "'odd.json' has no definitions of tools: "),
        ("{pinned: [{nam: a}]}", "`pinned`: expected a file, or definitions of tools: "),
        ("{pinned: 3}", "`pinned`: expected a file, or definitions of tools: "),
        ("{pinned: desk.mcp.json, prefix: 'a b'}", "`prefix`"),
        ("{pinned: desk.mcp.json, tools: [ad]}", "Did you mean 'add'?"),
        ("{pinned: desk.mcp.json, needs_approval: [ad]}", "Did you mean 'add'?"),
        ("{pinned: desk.mcp.json, needs_approval: 3}", "`needs_approval`: expected true, false"),
        ("{pinned: desk.mcp.json, trust: yes}", "`trust`: expected true or false"),
        ("{pinned: desk.mcp.json, timeout_s: 0}", "`timeout_s`: expected a number above 0"),
        ("{pinned: desk.mcp.json, prefx: a_}", "Did you mean 'prefix'?"),
        ("{prefix: a_}", "`pinned`"),
        ("{pinned: bad.json}", "bad"),
    ],
)
def test_a_mistake_is_told_with_its_line(folder: Path, mcp: str, said: str) -> None:
    """Each names the key, and all of them what to write instead."""
    (folder / "odd.json").write_text("[")
    bad = Definition("bad", "", {"type": "object", "properties": 3})
    (folder / "bad.json").write_text(pins_text([bad]))

    problem = refusal(folder, mcp, "{allow: '*'}").replace(str(folder / "desk.yaml"), "")

    assert said in problem
    assert ":5:" in problem
    assert "Fix: " in problem


def test_a_rule_about_a_tool_that_no_server_has_is_refused(folder: Path) -> None:
    """It would protect nothing."""
    assert "Did you mean 'desk_learn'?" in refusal(folder, PINNED, "{deny: desk_lern}")


def test_two_tools_of_one_name_are_refused(folder: Path) -> None:
    """A model could not tell them apart; a prefix can."""
    both = "{pinned: desk.mcp.json, prefix: desk_}\n  other: {pinned: desk.mcp.json, prefix: desk_}"

    assert "two tools have the name 'desk_add'" in refusal(folder, both)


def test_editors_know_the_keys_of_a_server(definitions: tuple[Definition, ...]) -> None:
    """The schema marks what the reader refuses."""
    data = cast("dict[str, Any]", yaml.safe_load(written()))
    inline = {"pinned": yaml.safe_load(pins_text(definitions))["tools"]}

    assert is_valid(data)
    assert is_valid({**data, "mcp": {"desk": inline}})
    assert is_valid({**data, "mcp": {"desk": {"pinned": "a.json", "needs_approval": ["a"]}}})
    for entry in ({}, {"pinned": "a.yaml"}, {"pinned": "a.json", "prefx": "a"}, "a.json"):
        assert not is_valid({**data, "mcp": {"desk": entry}})


def test_a_registered_server_has_no_options_of_tools() -> None:
    """They would hold in runs, and not in checks without the server."""
    names = Registry()

    with pytest.raises(ConfigError, match="found prefix"):
        names.server(the_server(prefix="a_"), name="desk")


def test_an_agent_of_a_file_has_servers_of_its_own(folder: Path) -> None:
    """Its folder is that of its own file."""
    (folder / "agents").mkdir()
    for name in ("desk.yaml", "desk.mcp.json"):
        (folder / name).rename(folder / "agents" / name)
    outer = written("{pinned: agents/desk.mcp.json, prefix: outer_}", "{ask: 'desk_*'}")
    outer = outer.replace("at_most: desk_add", "at_most: outer_add")
    agents = "agents: {inner: {include: agents/desk.yaml, description: A desk.}}\ntools: [inner]\n"
    (folder / "all.yaml").write_text(outer + agents)

    graph = load(folder / "all.yaml", registry=Registry())

    assert set(graph.surroundings.tool_names or ()) == {
        "inner",
        *[f"{prefix}_{tool}" for prefix in ("outer", "desk") for tool in ("add", "pid", "learn")],
    }
