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
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, final

import mcp_types as types
from mcp.server import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct
from starlette.applications import Starlette

from ..agent import Agent, RunResult, RunStream, StoreInput
from ..errors import ConfigError, RunBusy, UnknownRun, nearest, not_among
from ..parts import Part, StepStart, ToolState
from ..policy import Approval
from ..questions import Pending
from ..stores import Catalog, MemoryStore
from ..tools import legal_name
from .caller_binding import CallerClaims
from .mcp_forms import Context, approval_of, elicited, form_of
from .mcp_listening import closing_app, serve_http, serve_stdio
from .mcp_tools import (
    RUN_STATUS,
    STATUS,
    ToolAnswer,
    end_result,
    error_result,
    status_result,
    text_argument,
    tools_of_agents,
)
from .served import RequestRefused, by_authorization, deps_options, ended_result, served_store

__all__ = ["McpServer"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")
ROUNDS_MAX: Final = 100
"""How often one call may ask its client; a run that asks more often stays parked."""


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
        store: where parked runs wait, in place of the agents' own store: a `Store`, or its path.
            The default is the agents' own store, or else the memory of this process.
        secret: signs run ids and request states. Processes that share a store need the same one;
            by default it is random, and answers do not survive the process.
        caller: returns the caller's name from the headers of an HTTP request. A run belongs to its
            caller; no other caller may answer its questions or ask for its status. Authenticate
            callers before this server: it only tells them apart.
        deps: returns the `deps` of a run by its id, for agents with a `deps_type`.

    Raises:
        ConfigError: there is no agent, two of them have one name, they have different stores, or a
            description is of no agent.
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
        agents = tuple(agents)
        self._store, self._opened = served_store(store, agents)
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
        if strange := [name for name in descriptions or {} if name not in self._agents]:
            raise ConfigError(
                f"`descriptions`: expected names of tools ({', '.join(self._agents)}), found "
                f"{not_among(strange, self._agents)}"
            )
        self._tools = [*tools_of_agents(self._agents, descriptions or {}), RUN_STATUS]
        self._server: Server[dict[str, Any]] = Server(
            next(iter(self._agents)),
            version=agents[0].revision,
            on_list_tools=self._list,
            on_call_tool=self._call,
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
            await serve_stdio(self._server)
        finally:
            await self.aclose()

    async def http(self, port: int, *, told: Callable[[str], object] | None = None) -> None:
        """Serve `http://127.0.0.1:PORT/mcp`, to this machine only, until it is interrupted.

        Calls under way are then aborted, unless they end within a second.

        Args:
            port: the port; 0 for a free one.
            told: is called with the address once clients can connect.

        Raises:
            ConfigError: the port cannot be had.
        """
        await serve_http(self.app(), port, told)

    def app(self, *, host: str = "127.0.0.1") -> Starlette:
        """Return the ASGI application, which serves the path `/mcp`, and ends as `aclose` does.

        Args:
            host: the host that the application is served at. At a loopback address, requests for
                another host are refused (421), so that no web page reaches the server.
        """
        return closing_app(self._server.streamable_http_app(host=host), self.aclose)

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
        """Answer `tools/call`; a refused request and a failed run are error results."""
        try:
            return await self._answer_request(context, params)
        except RequestRefused as error:
            return error_result(str(error))
        except Exception as error:
            # The user's functions may raise any error, with words for the operator only.
            LOG.exception("a call of an MCP server failed")
            return error_result(f"the call failed: {type(error).__name__}.")

    async def _answer_request(
        self, context: Context, params: types.CallToolRequestParams
    ) -> ToolAnswer:
        arguments = params.arguments or {}
        headers: Mapping[str, str] = getattr(context.request, "headers", {})  # None over stdio.
        request = _Request(context, self._caller(headers), params.name)
        if params.name == STATUS:
            return await self._status_result(request.caller, text_argument(arguments, "run_id"))
        agent = self._agents.get(params.name)
        if agent is None:
            known = (*self._agents, STATUS)
            raise RequestRefused(f"no tool {params.name!r}.{nearest(params.name, known)}")
        if params.request_state is None:
            prompt, run_id = (
                text_argument(arguments, "prompt"),
                self._claims.new_run(request.caller),
            )
            stream = agent.stream(prompt, run_id=run_id, **deps_options(agent, self._deps, run_id))
        else:
            asked = await self._waiting_run(request, agent, params.request_state)
            run_id, given = asked[0], params.input_responses or {}
            answers, problems = _decisions_in(asked[1], given)
            if problems:
                return self._asking(request, run_id, asked[1], problems)
            stream = agent.resume_stream(
                run_id, approvals=answers, **deps_options(agent, self._deps, run_id)
            )
        return await self._run_until_asked(request, agent, run_id, stream)

    async def _run_until_asked(
        self, request: _Request, agent: Agent[Any, Any], run_id: str, stream: RunStream[Any]
    ) -> ToolAnswer:
        """Drive a run until it is over, or waits for a client that answers by a later call."""
        for _ in range(ROUNDS_MAX):
            result = await self._drive_run(request.context, run_id, stream)
            asked = result.pending
            if not asked:
                return end_result(result)
            answers = None
            if all(one.kind == "approval" for one in asked):
                if request.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    return self._asking(request, run_id, asked, {})
                answers = await self._elicit(request.context, agent, run_id, asked)
            if answers is None:
                raise RequestRefused(self._how_to_answer(run_id, asked))
            stream = agent.resume_stream(
                run_id, approvals=answers, **deps_options(agent, self._deps, run_id)
            )
        raise RequestRefused(f"run {run_id} has asked {ROUNDS_MAX} times, and waits.")

    def _asking(
        self, request: _Request, run_id: str, asked: Sequence[Pending], problems: Mapping[str, str]
    ) -> types.InputRequiredResult:
        """Return the questions of a run, with what does not fit in the last answers."""
        return types.InputRequiredResult(
            input_requests={one.key: form_of(one, problems.get(one.key, "")) for one in asked},
            request_state=self._claims.state(request.caller, request.tool, run_id, asked),
        )

    async def _elicit(
        self, context: Context, agent: Agent[Any, Any], run_id: str, asked: Sequence[Pending]
    ) -> Mapping[str, bool | Approval] | None:
        """Ask the client's user; a request that its client cancels meanwhile ends the run."""
        try:
            return await elicited(context, asked)
        except asyncio.CancelledError:
            reason = "the client cancelled the request"
            self._start_task(agent.runs(self._store).cancel(run_id, reason))
            raise

    def _how_to_answer(self, run_id: str, asked: Sequence[Pending]) -> str:
        """Return the error for a client that cannot ask its user: how an operator answers."""
        names = ", ".join(f"{one.name} ({one.key})" for one in asked)
        if isinstance(self._store, MemoryStore):
            fix = "a client with elicitation; or a server with a store, for `graphloop approve`"
            return f"run {run_id} waits for {names}. Fix: {fix}."
        return (
            f"run {run_id} waits for {names}. Fix: an operator answers it by graphloop approve "
            f"{run_id} {asked[0].key} --store STORE, and finishes it by graphloop resume; then ask "
            "for its status."
        )

    def _start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that the end of this server waits for."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _drive_run(
        self, context: Context, run_id: str, stream: RunStream[Any]
    ) -> RunResult[Any]:
        """Return a run's result; a request that its client cancels ends the run as aborted.

        The run has a task of its own, which the cancellation of the request does not reach: so the
        run's calls get their results, and its journal has its end.
        """
        task = self._start_task(_report_progress(context, stream))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stream.abort("the client cancelled the request")
            raise
        except RunBusy:
            raise RequestRefused(
                f"run {run_id} is being driven already. Fix: ask for its status."
            ) from None
        except Exception as error:
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
        except UnknownRun as error:
            raise RequestRefused(
                "`request_state`: expected a run that waits, found none. Fix: call the tool again."
            ) from error
        if asked and self._claims.fits(state, request.caller, request.tool, run_id, asked):
            return run_id, asked
        if self._claims.owns(request.caller, run_id):  # Its client may have lost the result.
            raise RequestRefused(
                f"`request_state`: expected one whose questions are open, found answered ones of "
                f"run {run_id}. Fix: ask for its status."
            )
        raise RequestRefused("`request_state`: expected one of this caller, found another's.")

    async def _status_result(self, caller: str, run_id: str) -> types.CallToolResult:
        record = None
        if self._claims.owns(caller, run_id) and isinstance(self._store, Catalog):
            records = await self._store.overview(run_id)
            record = next((one for one in records if one.run_id == run_id), None)
        if record is None:
            raise RequestRefused(f"no run {run_id!r} of this caller.")
        agent, ended = self._agents.get(legal_name(record.graph)), None
        if agent is not None and record.status != "running":
            ended = await ended_result(agent, self._store, run_id)
        return status_result(record, ended)


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


def _decisions_in(
    asked: Iterable[Pending], given: Mapping[str, object]
) -> tuple[dict[str, Approval], dict[str, str]]:
    """Return the decisions in a client's answers, and what does not fit; both by their keys."""
    answers: dict[str, Approval] = {}
    problems: dict[str, str] = {}
    for one in asked:
        try:
            answers[one.key] = approval_of(one, given.get(one.key))
        except RequestRefused as error:
            problems[one.key] = str(error)
    return answers, problems
