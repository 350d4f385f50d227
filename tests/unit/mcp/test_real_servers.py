"""Servers of other people, and the protocol's own conformance tests, where `.ci/nightly` runs.

It installs them from npm and PyPI; no test downloads anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from graphloop import Agent
from graphloop.driver import Pending
from graphloop.mcp import Server, ServerOptions, http, stdio
from graphloop.media import MediaPart
from graphloop.policy import Approval, approve
from graphloop.testing import ScriptedModel
from graphloop.values import ToolResult
from tests.mcp_calls import outcome, tools_of

pytestmark = pytest.mark.deadline(50)

EVERYTHING = "mcp-server-everything"
CLIENT = Path(__file__).parents[2] / "mcp_conformance.py"
OTHERS = ("time", "git", "sqlite", "filesystem", "memory")


def needing(program: str) -> pytest.MarkDecorator:
    """Return the mark of a test that a program is needed for."""
    return pytest.mark.skipif(
        which(program) is None, reason=f"needs the program {program}, which `.ci/nightly` installs"
    )


@pytest.fixture(scope="module")
def everything_url() -> Iterator[str]:
    """Start the reference server on a free port, and return its URL."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environ = {**os.environ, "PORT": str(port)}
    command = [EVERYTHING, "streamableHttp"]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        try:
            while b"listening on" not in process.stderr.readline():
                assert process.poll() is None
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@pytest.fixture(params=["stdio-auto", "stdio-legacy", "http-auto", "http-legacy"])
def everything(request: pytest.FixtureRequest) -> Server:
    """Return the reference server on each transport and with each protocol."""
    transport, mode = str(request.param).split("-")
    options: ServerOptions = {"mode": mode, "ask": True, "sampling": ScriptedModel(["short"])}  # type: ignore[typeddict-item]
    if transport == "stdio":
        return stdio(EVERYTHING, **options)
    return http(str(request.getfixturevalue("everything_url")), **options)


@needing(EVERYTHING)
async def test_the_reference_server_of_another_sdk_works(everything: Server) -> None:
    """Most servers are written with the SDK for TypeScript, which speaks an older version."""
    async with tools_of(everything) as tools:
        said = await outcome(tools["echo"], message="hi")
        shown = await outcome(tools["get-tiny-image"])
        weather = await outcome(tools["get-structured-content"], location="New York")
        linked = await outcome(tools["get-resource-links"], count=2)
        embedded = await outcome(tools["get-resource-reference"], resourceType="Text", resourceId=1)
        refused = await outcome(tools["get-sum"], a="many")

    assert (said.content, said.status) == ("Echo: hi", "ok")
    assert any(isinstance(part, MediaPart) for part in shown.content)
    assert "temperature" in json.loads(weather.data)
    assert "[resource " in str(linked.content)
    assert embedded.status == "ok"
    assert refused.status == "invalid"


@needing(EVERYTHING)
async def test_a_long_call_of_the_reference_server_tells_how_far_it_is(everything: Server) -> None:
    """The steps come in order; a call that is cancelled leaves a server that answers."""
    arguments = {"duration": 1, "steps": 4}
    call = {"name": "trigger-long-running-operation", "arguments": arguments}
    async with Agent(
        ScriptedModel([{"calls": [call]}, "."]), tools=await everything.tools()
    ) as one:
        stream = one.stream("Go.")
        parts = [part async for part in stream.full_stream if part.type == "tool-progress"]
    async with tools_of(everything) as tools:
        slow = asyncio.create_task(outcome(tools[call["name"]], duration=60, steps=5))  # type: ignore[index]
        await asyncio.sleep(0)
        slow.cancel()
        await asyncio.wait({slow})
        after = await outcome(tools["echo"], message="here")

    steps = [part.done for part in parts]
    assert steps == sorted(steps)
    assert (parts[-1].done, parts[-1].total) == (4, 4)
    assert after.content == "Echo: here"


@needing(EVERYTHING)
async def test_the_reference_server_asks_a_person_and_a_model(everything: Server) -> None:
    """Its forms have all kinds of fields, and its questions reach the run."""
    asked: list[str] = []

    async def decide(pending: Pending) -> Approval:
        asked.append(pending.arguments)
        needed = json.loads(pending.parameters).get("required", [])
        return approve(edit=dict.fromkeys(needed, "Ada"))

    tools = {tool.name: tool for tool in await everything.tools()}
    calls: list[dict[str, object]] = [
        {"name": "trigger-elicitation-request", "arguments": {}},
        {"name": "trigger-sampling-request", "arguments": {"prompt": "Hi", "maxTokens": 9}},
    ]
    model = ScriptedModel([*[{"calls": [call]} for call in calls], "."])
    async with Agent(model, tools=list(tools.values()), approve_tool_call=decide) as agent:
        result = await agent.generate("Go.")

    answers = [each for each in result.messages if isinstance(each, ToolResult)]
    assert len(asked) == 1
    assert [each.status for each in answers] == ["ok", "ok"]
    assert "Ada" in str(answers[0].content)
    assert "short" in str(answers[1].content)


@needing(EVERYTHING)
async def test_the_reference_server_has_resources_and_prompts(everything: Server) -> None:
    """Both are listed over several pages, and one of each is read."""
    async with everything as server:
        resources, prompts = await server.resources(), await server.prompts()
        parts = await server.read(resources[0].uri)
        plain = next(prompt for prompt in prompts if not prompt.arguments)
        messages = await server.prompt(plain.name)

    assert parts
    assert messages


def others(folder: Path) -> dict[str, tuple[list[str], list[dict[str, object]], str]]:
    """Return the command of each server, the calls of an agent, and a pattern of their results."""
    (folder / "note.txt").write_text("tea at five")
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
    return {
        "time": (
            ["mcp-server-time", "--local-timezone", "UTC"],
            [{"name": "get_current_time", "arguments": {"timezone": "Europe/Berlin"}}],
            "Europe/Berlin",
        ),
        "git": (
            ["mcp-server-git"],
            [{"name": "git_status", "arguments": {"repo_path": str(folder)}}],
            "note.txt",
        ),
        "sqlite": (
            ["mcp-server-sqlite", "--db-path", str(folder / "a.db")],
            [
                {"name": "create_table", "arguments": {"query": "create table t (n int)"}},
                {"name": "write_query", "arguments": {"query": "insert into t values (7)"}},
                {"name": "read_query", "arguments": {"query": "select n from t"}},
            ],
            "7",
        ),
        "filesystem": (
            ["mcp-server-filesystem", str(folder)],
            [{"name": "read_text_file", "arguments": {"path": str(folder / "note.txt")}}],
            "tea at five",
        ),
        "memory": (
            ["mcp-server-memory"],
            [
                {"name": "create_entities", "arguments": {"entities": [entity]}},
                {"name": "search_nodes", "arguments": {"query": "tea"}},
            ],
            "likes tea",
        ),
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needing(f"mcp-server-{name}")) for name in OTHERS]
)
async def test_a_real_server_works_inside_an_agents_loop(name: str, tmp_path: Path) -> None:
    """The model calls its tools, one after another, and reads what they return."""
    command, calls, pattern = others(tmp_path)[name]
    if name == "git":
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path)], check=True)
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    server = stdio(*command, env=env, prefix=f"{name}_")
    prefixed = [{**call, "name": f"{name}_{call['name']}"} for call in calls]
    model = ScriptedModel([*[{"calls": [call]} for call in prefixed], "Done."])
    async with Agent(model, tools=await server.tools()) as agent:
        result = await agent.generate("Go.")

    answers = [each for each in result.messages if isinstance(each, ToolResult)]
    assert [each.status for each in answers] == ["ok"] * len(calls)
    assert re.search(pattern, str(answers[-1].content))


@needing("conformance")
@pytest.mark.parametrize(
    "scenario",
    [
        "initialize",
        "tools_call",
        "sse-retry",
        "elicitation-sep1034-client-defaults",
        "auth/metadata-default",
        "auth/scope-step-up",
        "auth/token-endpoint-auth-basic",
    ],
)
def test_the_official_conformance_tests_pass(scenario: str) -> None:
    """The protocol's own authors judge the client."""
    client = f"{sys.executable} {CLIENT}"
    command = ["conformance", "client", "--scenario", scenario, "--command", client]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr
