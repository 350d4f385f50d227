"""Servers of the SDK, each a process of its own, on both transports and both protocols."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from graphloop.mcp import Server, ServerOptions, http, stdio
from tests.mcp_calls import SERVER, Make
from tests.warm_python import warm_python


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start the server on a free port, and return its URL."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [*warm_python(), SERVER, "http", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            while b"running on" not in process.stderr.readline():
                assert process.poll() is None
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


WAYS = ["stdio-auto", "stdio-legacy", "http-auto", "http-legacy"]
"""Each transport with each protocol; test_real_servers.py has the same four for the npm server."""


@pytest.fixture(params=WAYS)
def make(request: pytest.FixtureRequest) -> Make:
    """Return a function that makes a server on a transport, and with a protocol."""
    transport, mode = str(request.param).split("-")

    def made(**options: object) -> Server:
        given: ServerOptions = {"mode": mode, **options}  # type: ignore[typeddict-item]
        if transport == "stdio":
            return stdio(*warm_python(), SERVER, "stdio", **given)
        return http(str(request.getfixturevalue("url")), **given)

    return made
