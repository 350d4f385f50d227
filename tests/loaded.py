"""What the server process of `tests/forked.py` has loaded, so that no forked process loads it."""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "a2a.helpers",
    "a2a.server.routes",
    "fastapi.testclient",
    "graphloop.a2a",
    "graphloop.agent.tool_runner",
    "graphloop.cli.check",
    "graphloop.cli.replay",
    "graphloop.cli.run",
    "graphloop.mcp.connection",
    "graphloop.nodes.critique",
    "graphloop.nodes.router",
    "graphloop.proofs.checking",
    "graphloop.providers.openai_chat",
    "graphloop.serve",
    "graphloop.stores.revision",
    "graphloop.stores.sqlite.store",
    "graphloop.testing.fuzzing",
    "graphloop.tools.json_schema",
    "graphloop.tools.raw_schema",
    "graphloop.topology.reader",
    "graphloop.views.render",
    "hypothesis",
    "mcp.server",
    "mcp.server.elicitation",
    "mcp.server.mcpserver.resolve",
    "pydantic.type_adapter",
    "pytest",
    "starlette.applications",
    "tests.sim.killed_chat",
    "tests.sim.killed_generator",
    "tests.sim.test_killed_workers",
    "unittest.mock",
    "uvicorn",
):
    import_module(name)

# A collection in a forked process would write to each of these objects, and so copy its page.
gc.collect()
gc.freeze()
