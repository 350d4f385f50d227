"""`graphloop mcp list|pin|call`, with real servers in processes of their own."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.mcp import read_pins
from tests.unit.cli.command_line import ROOT, called, refused, shown, started
from tests.warm_python import warm_python

THE_SERVER = "SERVER"
"""What stands for the server's command in a parameter."""


def server(file: Path = ROOT / "tests/mcp_server.py") -> str:
    """Return the command of a server."""
    return " ".join([*warm_python(), str(file), "stdio"])


def in_python() -> str:
    """Return a program whose `desk` is the server."""
    return f"""
from graphloop.mcp import stdio
desk = stdio(*{server().split()!r}, tools=["add"])
"""


@pytest.mark.usefixtures("desk")
def test_the_tools_are_listed_as_a_model_reads_them() -> None:
    """A person reads the descriptions before an agent does."""
    lines = shown("mcp", "list", server()).splitlines()
    tools = [json.loads(line) for line in shown("mcp", "list", server(), "--json").splitlines()]

    assert lines[:2] == ["add(a, b)", "  Add two numbers."]
    assert lines[lines.index("pid()") + 2] == "  (the server says: changes nothing)"
    assert "steps(count?)" in lines
    assert tools[0]["name"] == "add"
    assert tools[0]["input_schema"]["required"] == ["a", "b"]
    assert len(tools[0]["fingerprint"]) == 64


@pytest.mark.usefixtures("desk")
def test_a_description_cannot_control_the_terminal() -> None:
    """It is text from a stranger: escape sequences could hide a line of it."""
    Path("odd.py").write_text(
        "from mcp.server import MCPServer\nserver = MCPServer('odd')\n"
        "@server.tool(description='Hidden\\x1b[2K here\\u202e.')\ndef look() -> str: return ''\n"
        "server.run('stdio')\n"
    )

    text = shown("mcp", "list", server(Path("odd.py")))

    assert text == "look()\n  Hidden[2K here\\u202e.\n"


@pytest.mark.usefixtures("desk")
def test_a_pinned_file_is_compared_with_the_one_before() -> None:
    """The person who pins anew sees what the server has changed."""
    Path("desk.py").write_text(in_python())

    first = called("mcp", "pin", server(), "-o", "desk.mcp.json", cwd=Path.cwd())
    second = called("mcp", "pin", "desk.py:desk", "-o", "desk.mcp.json", cwd=Path.cwd())
    printed = shown("mcp", "pin", "desk.py:desk")

    assert (first.returncode, first.stdout) == (Status.OK, "")
    assert first.stderr.startswith("desk.mcp.json: 16 tools of ")
    assert "since the file before: removed long_text, pid, die, " in second.stderr
    assert [tool.name for tool in read_pins("desk.mcp.json")] == ["add"]
    assert printed == Path("desk.mcp.json").read_text()


@pytest.mark.usefixtures("desk")
def test_pinned_tools_are_proven_and_drawn_as_those_of_the_server() -> None:
    """The person who reviews a graph need not run its servers."""
    agent = """
import asyncio, sys
from graphloop import Agent, allow, ask
from graphloop.mcp import stdio
from graphloop.testing import ScriptedModel

def desk(*command):
    return stdio(*command, prefix="desk_", needs_approval=["learn"])

async def listed(server):
    async with server:
        return await server.tools()

gate = ask("desk_d*") | allow("desk_*")
"""
    live = f"asyncio.run(listed(desk(*{server().split()!r})))"
    absent = 'desk("no-such-program").pinned("desk.mcp.json")'
    for name, tools in (("live", live), ("absent", absent)):
        Path(f"{name}.py").write_text(
            f"{agent}agent = Agent(ScriptedModel(['.']), tools={tools}, gate=gate)\n"
        )
    called("mcp", "pin", server(), "-o", "desk.mcp.json", cwd=Path.cwd())

    for command in ("check", "draw"):
        there, away = (
            called(command, f"{name}.py:agent", cwd=Path.cwd()) for name in ("live", "absent")
        )
        assert (there.returncode, away.returncode) == (Status.OK, Status.OK), away.stderr
        assert there.stdout.replace("live", "") == away.stdout.replace("absent", "")
        assert there.stdout


@pytest.mark.usefixtures("desk")
def test_a_file_of_another_kind_is_not_overwritten() -> None:
    """`-o` beside a topology's name would lose the topology."""
    Path("notes.json").write_text("{}")

    assert "expected a new file" in refused("mcp", "pin", server(), "-o", "notes.json")
    assert Path("notes.json").read_text() == "{}"


@pytest.mark.usefixtures("desk")
def test_a_call_prints_its_result_and_its_status() -> None:
    """A script reads the JSON, a person the text."""
    added = shown("mcp", "call", server(), "add", '{"a": 1, "b": 2}')
    kinds = shown("mcp", "call", server(), "all.kinds")
    data = json.loads(shown("mcp", "call", server(), "add", '{"a": 1, "b": 2}', "--json"))
    failed = called("mcp", "call", server(), "fail", cwd=Path.cwd())

    assert added == "3\n"
    assert kinds.splitlines()[2:4] == ["[image/png]", "[audio/wav]"]
    assert (data["content"], data["status"], json.loads(data["data"])) == ("3", "ok", {"result": 3})
    assert (failed.returncode, failed.stdout) == (Status.FAILED, "")
    assert failed.stderr == "error: The page shows an error.\n[image/png]\n"


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("call", THE_SERVER, "ad"), "Did you mean 'add'?"),
        (("call", THE_SERVER, "add", '{"a": 1}'), "'b' is a required property"),
        (("call", THE_SERVER, "add", "{a: 1}"), "ARGUMENTS: expected a JSON object"),
        (("call", THE_SERVER, "add", "[1]"), "Fix: name each argument."),
        (("list", "desk.py"), "desk.py:NAME"),
        (("list", "desk.yaml"), "found the file 'desk.yaml'"),
        (("list", "desk.py:dask"), "Did you mean 'desk'?"),
        (("list", "dsk.py:desk"), "Did you mean 'desk.py'?"),
        (("list", "desk.py:desk", "--env", "A=1"), "--env would have no effect"),
        (("list", "https://x.example/mcp", "--env", "A=1"), "is started elsewhere"),
        (("list", THE_SERVER, "--header", "a=b"), "which gets no header"),
        (("list", THE_SERVER, "--env", "HOMER"), "--env HOMER: expected a variable of this shell"),
        (("list", THE_SERVER, "--env", "=1"), "expected NAME or NAME=VALUE"),
        (("list", "'open"), "close the quotes"),
        (("list", "no-such-program-here"), "no-such-program-here"),
        (("list", "http://127.0.0.1:9/mcp", "--timeout", "5"), "ConnectError"),
        (("list", THE_SERVER, "--timeout", "0"), "expected more than 0 seconds"),
        (("list", ""), "SERVER: expected text"),
    ],
)
def test_a_mistake_gets_a_hint_and_status_2(arguments: tuple[str, ...], message: str) -> None:
    """Each names the argument and the remedy."""
    Path("desk.py").write_text(in_python())

    given = [server() if each == THE_SERVER else each for each in arguments]
    assert message in refused("mcp", *given)


@pytest.mark.usefixtures("desk")
def test_a_server_gets_the_variables_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the shell is no key of each server."""
    Path("env.py").write_text(
        "import os\nfrom mcp.server import MCPServer\nserver = MCPServer('env')\n"
        "@server.tool()\ndef look() -> list[str]:\n"
        "    return [os.environ.get(name, '') for name in ('DESK_KEY', 'DESK_MODE', 'DESK_ALL')]\n"
        "server.run('stdio')\n"
    )
    for name in ("DESK_KEY", "DESK_ALL"):
        monkeypatch.setenv(name, "secret")
    given = ("--env", "DESK_KEY", "--env", "DESK_MODE=test")

    seen = json.loads(shown("mcp", "call", server(Path("env.py")), "look", "--json", *given))

    assert json.loads(seen["data"]) == {"result": ["secret", "test", ""]}


def test_ctrl_c_cancels_the_call_at_the_server(tmp_path: Path) -> None:
    """The terminal returns at once, and no work goes on behind it."""
    note = tmp_path / "note"
    os.mkfifo(note)
    with started("mcp", "call", server(), "wait", json.dumps({"note": str(note)})) as process:
        assert note.read_text() == "started"
        os.kill(process.pid, signal.SIGINT)
        assert note.read_text() == "cancelled"
        out, err = process.communicate()

    assert (process.returncode, out) == (Status.INTERRUPTED, "")
    assert err == "interrupted: the server was told to stop\n"
