"""Servers with faults: each ends in an error that says what is wrong, and none in silence."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphloop.errors import ConfigError
from graphloop.mcp import Server, http, http_answers, process, stdio
from tests.mcp_calls import outcome, tools_of

pytestmark = pytest.mark.deadline(50)

ODD = str(Path(__file__).parents[2] / "mcp_odd_server.py")


def odd(fault: str, **options: Any) -> Server:
    """Return a server with a fault."""
    return stdio(sys.executable, "-I", "-S", ODD, fault, name="odd", **options)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no list", "within 2 s, found none. Fix: "),
        ("odd list", "another form than MCP gives it: tools.0.inputSchema.type: "),
        ("two of a name", "expected tools of different names, found ['look', 'look']"),
    ],
)
async def test_a_list_with_a_fault_is_refused_with_the_name_of_its_server(
    fault: str, said: str
) -> None:
    """A program must not wait for ever, and a person must not read a traceback of the SDK."""
    server = odd(fault, timeout_s=2 if fault == "no list" else 20)

    with pytest.raises(ConfigError) as refused:
        await server.tools()
    await server.aclose()

    assert str(refused.value).startswith("MCP server 'odd': ")
    assert said in str(refused.value)


async def test_a_result_of_another_form_is_an_error_in_one_sentence() -> None:
    """A model reads the error: 13 complaints of a schema would tell it nothing."""
    async with tools_of(odd("odd result")) as tools:
        answer = await outcome(tools["look"])

    assert answer.status == "error"
    assert "another form than MCP gives it: content.0." in str(answer.content)
    assert str(answer.content).count("\n") == 0


async def test_a_line_that_is_too_long_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the line's answer the call would wait for its time limit, and nobody knew why."""
    monkeypatch.setattr(process, "MESSAGE_BYTES_MAX", 10_000)
    async with tools_of(odd("long line", timeout_s=None)) as tools:
        answer = await outcome(tools["look"])

    assert answer.status == "error"
    assert "a line of more than" in str(answer.content)


async def test_news_without_end_costs_a_look_in_a_while() -> None:
    """Each look brings 2000 more notifications: a look for each would end no call."""
    async with tools_of(odd("flood")) as tools:
        answers = [int(str((await outcome(tools["look"])).content)) for _ in range(3)]

    assert answers[-1] <= 3 + 1 + 2  # A look before each call, the first, and those for news.


OVER = threading.Event()
"""Is set when a server that never answers may end."""


class Web(BaseHTTPRequestHandler):
    """A server behind a URL, whose path says how it answers a call."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ok: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        fault = self.path.removeprefix("/")
        match message["method"]:
            case "initialize":
                about: object = {"name": "web", "version": "1"}
                result: dict[str, object] = {"protocolVersion": "2025-11-25", "serverInfo": about}
                ok["result"] = result | {"capabilities": {"tools": {}}}
            case "tools/list" if fault != "403":
                tool = {"name": "look", "inputSchema": {"type": "object"}}
                ok["result"] = {"tools": [tool]}
            case "tools/call" if fault == "ok":
                ok["result"] = {"content": [{"type": "text", "text": "x" * 20_000}]}
            case "notifications/initialized":
                return self.tell(202, b"")
            case _:
                status = int(fault) if fault.isdigit() else 400
                return self.tell(status, b"the key lacks the right: read")
        return self.tell(200, json.dumps(ok).encode())

    def do_GET(self) -> None:
        """Offer no stream, and no end of the session."""
        self.tell(405, b"")

    def do_DELETE(self) -> None:
        """End a session, or never answer."""
        if self.path == "/deaf":
            OVER.wait()
        self.tell(405, b"")

    def tell(self, status: int, body: bytes) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", "a")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep the terminal clean."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Serve on a free port, and return the URL without a path."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        OVER.set()
        server.shutdown()


async def test_a_refusal_by_status_tells_the_status_and_the_reason(web: str) -> None:
    """A wrong key is the most frequent fault of all: the person must read that it is the key."""
    server = http(f"{web}/403")
    with pytest.raises(ConfigError) as refused:
        await server.tools()
    await server.aclose()
    async with tools_of(http(f"{web}/429")) as tools:
        answer = await outcome(tools["look"])

    assert "HTTP 403 Forbidden: the key lacks the right: read" in str(refused.value)
    assert answer.status == "error"
    assert str(answer.content).startswith("HTTP 429 Too Many Requests: the key")


async def test_an_answer_that_is_too_large_is_not_read(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server must not fill this process's memory, over HTTP no more than over stdio."""
    async with tools_of(http(f"{web}/ok")) as tools:
        whole = await outcome(tools["look"])
        monkeypatch.setattr(http_answers, "MESSAGE_BYTES_MAX", 10_000)
        refused = await outcome(tools["look"])

    assert len(str(whole.content)) == 20_000
    assert refused.status == "error"
    assert "an answer of more than 10000 bytes" in str(refused.content)


async def test_a_server_that_does_not_hear_the_end_is_left(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent is closed at the end of a program, which would never end."""
    monkeypatch.setattr(http_answers, "GOODBYE_S", 0.01)
    server = http(f"{web}/deaf")
    tools = await server.tools()
    await server.aclose()

    assert [tool.name for tool in tools] == ["look"]
