"""McpServer: agents as the tools of an MCP server, over stdio or Streamable HTTP.

    tools/call ──► run ──► result ────────────────────────────► text and structured content
                    │
                    └─ parks on an approval ─┬─ 2026-07-28: InputRequiredResult, and the run waits
                       (in the store)        │   in the store; the call comes back with answers
                                             └─ 2025-11-25: elicitation while the call is open

The protocol: https://modelcontextprotocol.io/specification/2026-07-28, and the one before it. A run
parks in the store, so on 2026-07-28 the answers may come to another process with the same store and
secret. A client that cannot be asked gets an error that names the command to answer with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct
from starlette.applications import Starlette

from ..agent import Agent, RunResult, RunStream, StoreInput
from ..errors import ConfigError, GraphloopError, RunBusy, nearest
from ..parts import Part, StepStart, ToolState
from ..questions import Pending
from ..stores import Catalog
from ..tools import legal_name
from .caller_binding import CallerClaims
from .questions import Context, approval_of, elicited, form_of, request_headers
from .served import RequestRefused, by_authorization, served_store

__all__ = ["McpServer"]

ToolAnswer: TypeAlias = types.CallToolResult | types.InputRequiredResult

LOG: Final = logging.getLogger("graphloop")
STATUS: Final = "run_status"
ROUNDS_MAX: Final = 100
"""How often one call may ask its client; a run that asks more often stays parked."""
ASKS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "The task, in words."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
ENDED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "end_reason": {"type": "string"},
        "run_id": {"type": "string"},
    },
    "required": ["text", "end_reason", "run_id"],
}
OF_RUN: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"run_id": {"type": "string"}},
    "required": ["run_id"],
    "additionalProperties": False,
}
STANDS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "status": {"type": "string"},
        "waits_for": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["run_id", "status", "waits_for"],
}
RUN_STATUS: Final = types.Tool(
    name=STATUS,
    description="Tell whether a run is over, and what it waits for.",
    input_schema=OF_RUN,
    output_schema=STANDS,
)


@final
class McpServer:
    """Agents as the tools of an MCP server.

        server = McpServer([support], store="runs.db", secret=os.environ["DESK_SECRET"])
        await server.stdio()
        app = server.app()  # Streamable HTTP: `uvicorn module:app`

    Each agent is a tool with one parameter, `prompt`, and a call starts a run. The tool
    `run_status` tells how a run of the same caller stands.

    Args:
        agents: the agents, each with a name of its own.
        descriptions: what a client's model reads of each agent, by its tool's name: the agent's
            name, with underscores in place of characters that tool names may not have.
        store: where parked runs wait, in place of the agents' own stores: a `Store`, or its path;
            by default the memory of this process.
        secret: signs run ids and request states. Processes that share a store need the same one;
            by default it is random, and answers do not survive the process.
        caller: returns the caller's name from the headers of an HTTP request. A run belongs to its
            caller; no other caller may answer its questions or ask for its status. Authenticate
            callers before this server: it only tells them apart.
        deps: returns the `deps` of a run by its id, for agents with a `deps_type`.

    Raises:
        ConfigError: there is no agent, or two of them have one name.
    """

    def __init__(
        self,
        agents: Iterable[Agent[Any, Any]],
        *,
        descriptions: Mapping[str, str] | None = None,
        store: StoreInput | None = None,
        secret: str | bytes | None = None,
        caller: Callable[[Mapping[str, str]], str] = by_authorization,
        deps: Callable[[str], object] | None = None,
    ) -> None:
        self._store, self._opened = served_store(store)
        self._claims = CallerClaims(secret)
        self._caller = caller
        self._deps = deps
        self._under_way: set[asyncio.Task[Any]] = set()
        self._agents: dict[str, Agent[Any, Any]] = {}
        for agent in agents:
            name = legal_name(agent.name)
            if name in self._agents or name == STATUS:
                raise ConfigError(
                    f"an MCP server: expected agents with different names, found {name!r} twice. "
                    "Fix: give one of them another `name`."
                )
            self._agents[name] = agent.with_options(store=self._store)
        if not self._agents:
            raise ConfigError("an MCP server: expected at least one agent, found none.")
        self._tools = [*_tools_of_agents(self._agents, descriptions or {}), RUN_STATUS]
        self._server: Server[dict[str, Any]] = Server(
            next(iter(self._agents)), on_list_tools=self._list, on_call_tool=self._call
        )

    def __repr__(self) -> str:
        return f"<McpServer of {', '.join(self._agents)}>"

    @property
    def connection(self) -> Server[dict[str, Any]]:
        """The SDK's server, for a client or a transport in this process."""
        return self._server

    async def stdio(self) -> None:
        """Serve the client that started this process, until it closes the standard input.

        The standard output belongs to the protocol: what a tool prints goes to standard error.
        """
        try:
            async with stdio_server() as (reading, writing):
                options = self._server.create_initialization_options()
                await self._server.run(reading, writing, options)
        finally:
            await self.aclose()

    async def http(self, port: int) -> None:
        """Serve `http://127.0.0.1:PORT/mcp`, to this machine only, until it is interrupted."""
        config = uvicorn.Config(self.app(), host="127.0.0.1", port=port, log_level="warning")
        try:
            await uvicorn.Server(config).serve()
        finally:
            await self.aclose()

    def app(self, *, host: str = "127.0.0.1") -> Starlette:
        """Return the ASGI application, which serves the path `/mcp`.

        Args:
            host: the host that the application is served at. At a loopback address, requests for
                another host are refused (421), so that no web page reaches the server.
        """
        return self._server.streamable_http_app(host=host)

    async def aclose(self) -> None:
        """Wait until no run is under way, and close the store if this object opened it."""
        if self._under_way:
            await asyncio.wait(self._under_way)
        if self._opened is not None:
            await self._opened.aclose()

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=self._tools)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> ToolAnswer:
        """Answer `tools/call`; what the caller did wrong, or may not do, is an error result."""
        try:
            return await self._answer_request(context, params)
        except RequestRefused as error:
            return _call_result(str(error), None)
        except RunBusy:
            return _call_result("this run is being driven already. Fix: ask for its status.", None)

    async def _answer_request(
        self, context: Context, params: types.CallToolRequestParams
    ) -> ToolAnswer:
        arguments = params.arguments or {}
        request = _Request(context, self._caller(request_headers(context)), params.name)
        if params.name == STATUS:
            return await self._status_result(request.caller, _text_argument(arguments, "run_id"))
        agent = self._agents.get(params.name)
        if agent is None:
            known = (*self._agents, STATUS)
            raise RequestRefused(f"no tool {params.name!r}.{nearest(params.name, known)}")
        if params.request_state is None:
            prompt, run_id = (
                _text_argument(arguments, "prompt"),
                self._claims.new_run(request.caller),
            )
            stream = agent.stream(prompt, run_id=run_id, **self._run_options(agent, run_id))
        else:
            asked = await self._waiting_run(request, agent, params.request_state)
            run_id, given = asked[0], params.input_responses or {}
            answers = {one.key: approval_of(one, given.get(one.key)) for one in asked[1]}
            stream = agent.resume_stream(
                run_id, approvals=answers, **self._run_options(agent, run_id)
            )
        return await self._run_until_asked(request, agent, run_id, stream)

    def _run_options(self, agent: Agent[Any, Any], run_id: str) -> dict[str, Any]:
        if self._deps is None or "deps_type" not in agent.options:
            return {}
        return {"deps": self._deps(run_id)}

    async def _run_until_asked(
        self, request: _Request, agent: Agent[Any, Any], run_id: str, stream: RunStream[Any]
    ) -> ToolAnswer:
        """Drive a run until it is over, or waits for a client that answers by a later call."""
        for _ in range(ROUNDS_MAX):
            result = await self._drive_run(request.context, run_id, stream)
            asked = result.pending
            if not asked:
                return _call_result(
                    result.text,
                    {"text": result.text, "end_reason": result.end_reason, "run_id": run_id},
                )
            answers = None
            if all(one.kind == "approval" for one in asked):
                if request.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    state = self._claims.state(request.caller, request.tool, run_id, asked)
                    return types.InputRequiredResult(
                        input_requests={one.key: form_of(one) for one in asked}, request_state=state
                    )
                answers = await elicited(request.context, asked)
            if answers is None:
                names = ", ".join(f"{one.name} ({one.key})" for one in asked)
                raise RequestRefused(
                    f"run {run_id} waits for {names}. Fix: graphloop approve {run_id} "
                    f"{asked[0].key} --store STORE; then ask for its status."
                )
            stream = agent.resume_stream(
                run_id, approvals=answers, **self._run_options(agent, run_id)
            )
        raise RequestRefused(f"run {run_id} has asked {ROUNDS_MAX} times, and waits.")

    async def _drive_run(
        self, context: Context, run_id: str, stream: RunStream[Any]
    ) -> RunResult[Any]:
        """Return a run's result; a request that its client cancels ends the run as aborted.

        The run has a task of its own, which the cancellation of the request does not reach: so the
        run's calls get their results, and its journal has its end.
        """
        task = asyncio.create_task(_report_progress(context, stream))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stream.abort("the client cancelled the request")
            raise
        except RunBusy:
            raise
        except (GraphloopError, OSError) as error:
            # The message may hold what only the operator may read.
            LOG.exception("a served run failed: %s", run_id)
            raise RequestRefused(f"run {run_id} failed: {type(error).__name__}.") from error

    async def _waiting_run(
        self, request: _Request, agent: Agent[Any, Any], state: str
    ) -> tuple[str, tuple[Pending, ...]]:
        """Return the run that a request state names, and the questions that it waits for."""
        run_id = self._claims.run_of(state)
        if run_id is None:
            raise RequestRefused(
                "`request_state`: expected one of this server, found another text. "
                "Fix: call the tool again."
            )
        try:
            asked = await agent.runs(self._store).waiting(run_id)
        except GraphloopError as error:
            raise RequestRefused(
                "`request_state`: expected a run that waits, found none. Fix: call the tool again."
            ) from error
        if not asked or not self._claims.fits(state, request.caller, request.tool, run_id, asked):
            raise RequestRefused(
                "`request_state` does not fit: its questions are answered, or another caller's."
            )
        return run_id, asked

    async def _status_result(self, caller: str, run_id: str) -> types.CallToolResult:
        record = None
        if self._claims.owns(caller, run_id) and isinstance(self._store, Catalog):
            records = await self._store.overview(run_id)
            record = next((one for one in records if one.run_id == run_id), None)
        if record is None:
            raise RequestRefused(f"no run {run_id!r} of this caller.")
        asked = [ask.name for ask in record.asks]
        said = f"{record.status}, waits for {', '.join(asked)}" if asked else record.status
        return _call_result(said, {"run_id": run_id, "status": record.status, "waits_for": asked})


class _Request(Struct, frozen=True):
    """A call of an agent: its connection, its caller, and the name of the tool."""

    context: Context
    caller: str
    tool: str


async def _report_progress(context: Context, stream: RunStream[Any]) -> RunResult[Any]:
    """Drive a run, and report its steps and tools as progress of the request."""
    done = 0
    async for part in stream.full_stream:
        if (message := _progress_text(part)) is not None:
            done += 1
            await context.session.report_progress(done, None, message)
    return await stream.result()


def _progress_text(part: Part) -> str | None:
    match part:
        case StepStart():
            return f"step {part.step_index + 1}"
        case ToolState():
            return f"{part.tool_name}: {part.state}"
        case _:
            return None


def _tools_of_agents(
    agents: Iterable[str], descriptions: Mapping[str, str]
) -> Iterator[types.Tool]:
    for name in agents:
        text = descriptions.get(name, f"Ask the agent {name!r} to do a task.")
        yield types.Tool(name=name, description=text, input_schema=ASKS, output_schema=ENDED)


def _call_result(text: str, data: dict[str, Any] | None) -> types.CallToolResult:
    """Return a result with structured data, or an error."""
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=data is None)


def _text_argument(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip() or len(arguments) > 1:
        raise RequestRefused(
            f"expected one argument, the text `{name}`, found {sorted(arguments)}."
        )
    return value
