"""Server: an MCP server, its tools as graphloop tools, and its connections.

A server connects when it is first asked, once for each event loop, and again once where the
connection has ended. Before each call it reads the server's tools anew: a tool that no longer is
what the model read is refused. An agent closes the servers of its tools (`Agent.aclose`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Self, Unpack, final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ..errors import ConfigError, ToolError, not_among
from ..media import MediaPart
from ..providers import resolve
from ..tools import AnyTool, ToolAsks, ToolContext, ToolOutcome, legal_name
from ..values import Message, TextPart
from .connections import Connections
from .definitions import Definition, changes, read_pins, write_pins
from .materials import Prompt, Resource
from .remote import remote_tool, remote_tools, wanted
from .server_questions import HeldCall, Json, answered, response_to, waiting_for
from .target import Address, Command, Lost, ServerOptions, Taken, check_options

if TYPE_CHECKING:
    from httpx2 import Auth

    from .connection import Connection

__all__ = ["Server", "http", "stdio"]

LOG: Final = logging.getLogger("graphloop.mcp")


def stdio(
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    **options: Unpack[ServerOptions],
) -> Server:
    """Return an MCP server that this process starts, and speaks to over its standard streams.

        files = stdio("npx", "-y", "@modelcontextprotocol/server-filesystem", ".", prefix="fs_")
        agent = Agent(model, tools=await files.tools())

    Nothing starts before the server is first asked.

    Args:
        command: the program.
        args: the program's arguments.
        env: variables for the server; of this process it inherits only PATH, HOME and the like.
        cwd: the directory in which the server starts.
        options: see `ServerOptions`.

    Raises:
        ConfigError: an option has a wrong value.
    """
    words = (command, *args)
    where = None if cwd is None else str(cwd)
    return Server(Command(words, dict(env or {}), where), " ".join(words), options)


def http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    **options: Unpack[ServerOptions],
) -> Server:
    """Return an MCP server behind a URL (Streamable HTTP).

        crm = http("https://crm.example/mcp", headers={"authorization": token}, prefix="crm_")

    Args:
        url: the server's address.
        headers: further headers of each request, such as a key.
        auth: an authentication of the SDK, such as its OAuth providers.
        options: see `ServerOptions`.

    Raises:
        ConfigError: the URL is not one of HTTP, or an option has a wrong value.
    """
    try:
        shown = urlsplit(url)
    except ValueError:  # Such as a bracket that is left open.
        shown = urlsplit("")
    if shown.scheme not in {"http", "https"}:
        raise ConfigError(
            f"http: expected a URL that begins with https:// or http://, found {url!r}. Fix: write "
            "the whole address, or use stdio(…) for a command."
        )
    # Without its query and its password: people read the server's name.
    title = f"{shown.scheme}://{shown.netloc.rpartition('@')[2]}{shown.path}"
    return Server(Address(url, dict(headers or {}), auth), title, options)


@final
class Server:
    """An MCP server; `stdio` and `http` make it, and all agents may share it.

    Args:
        target: where the server is.
        title: the server's name, if the options have none.
        options: see `ServerOptions`.

    Attributes:
        name: the server's name in errors, logs and questions.
        options: the options, as they were given.

    Raises:
        ConfigError: an option is unknown or has a wrong value.
    """

    def __init__(self, target: Command | Address, title: str, options: ServerOptions) -> None:
        check_options(options)
        self.options = options
        self.name: Final = options.get("name") or title
        model = options.get("sampling")
        self._model = None if model is None else resolve(model, environ=os.environ)
        self._offered: dict[str, Definition] = {}
        self._blocks: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self._connections: Final = Connections(
            target, self.name, options, self._model, self._warn_of_changes
        )

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    async def tools(self) -> tuple[AnyTool, ...]:
        """Return the server's tools, as it describes them now.

        Raises:
            ConfigError: the server cannot be reached, lacks a tool that an option names, or has
                two tools whose names become equal.
        """
        _, found = await self._list_tools()
        return self._offer(found)

    async def pin(self, path: str | Path) -> None:
        """Write the tools, as the server describes them now, to a JSON file for `pinned`.

            asyncio.run(files.pin("fs.mcp.json"))

        Read the file before a model does: each description is text from a stranger.

        Raises:
            ConfigError: the server cannot be reached.
            OSError: the file cannot be written.
        """
        write_pins(await self.definitions(), path)

    def pinned(self, path: str | Path) -> tuple[AnyTool, ...]:
        """Return the tools of a file that `pin` wrote, without a connection.

            agent = Agent(model, tools=files.pinned("fs.mcp.json"))

        Graphs with these tools can be drawn and proven while the server is absent. A call of a tool
        that the server describes differently is refused.

        Raises:
            ConfigError: the file cannot be read, or an option names a tool that it lacks.
        """
        return self._offer(read_pins(path))

    async def definitions(self) -> tuple[Definition, ...]:
        """Return the tools as the server describes them now, without those left out by `tools`.

        Raises:
            ConfigError: the server cannot be reached.
        """
        _, found = await self._list_tools()
        return wanted(found, self.options)

    async def call(self, name: str, arguments: Mapping[str, object] | None = None) -> ToolOutcome:
        """Call a tool from a program, without a model, and return the outcome.

            outcome = await files.call("read_file", {"path": "notes.txt"})

        The arguments are checked as a model's are; no person is asked.

        Args:
            name: the server's name of the tool.
            arguments: the arguments by name; None for none.

        Raises:
            ConfigError: the server cannot be reached, or has no such tool.
        """
        known = {tool.name: tool for tool in await self.definitions()}
        if name not in known:
            raise ConfigError(
                f"MCP server {self.name!r}: expected one of its tools ({', '.join(known)}), found "
                f"{not_among([name], known)}"
            )
        tool = remote_tool(self, legal_name(name), known[name], self.options)
        context = ToolContext(run_id=token_hex(16))
        try:
            return await tool.run(json.dumps(dict(arguments or {})), context)
        except ToolAsks as asks:
            await self.withdraw(context)
            return ToolOutcome(f"{asks} Only a run can ask a person: call by an agent.", "error")

    async def resources(self) -> tuple[Resource, ...]:
        """Return the resources that the server offers; empty if it offers none.

        Raises:
            ConfigError: the server cannot be reached.
        """
        return await self._connections.asked(lambda connection: connection.resources())

    async def read(self, uri: str) -> tuple[TextPart | MediaPart, ...]:
        """Return the texts and media of a resource, as parts of a message.

            report = await files.read("file:///reports/may.md")
            result = await agent.generate(["Shorten this.", *report])

        Raises:
            ConfigError: the server cannot be reached, or refuses.
        """
        return await self._connections.asked(lambda connection: connection.read(uri))

    async def prompts(self) -> tuple[Prompt, ...]:
        """Return the prompts that the server offers; empty if it offers none.

        Raises:
            ConfigError: the server cannot be reached.
        """
        return await self._connections.asked(lambda connection: connection.prompts())

    async def prompt(self, name: str, **arguments: str) -> tuple[Message, ...]:
        """Return the messages of a prompt, for the start of a conversation.

            result = await agent.generate(await crm.prompt("letter", customer="Ada"))

        Each message is text from the server: read it before a model does.

        Raises:
            ConfigError: the server cannot be reached, or refuses.
        """
        return await self._connections.asked(lambda connection: connection.prompt(name, arguments))

    async def __aenter__(self) -> Self:
        """Keep the connection until the end of the block, also where an agent is closed.

            async with files:
                tools = await files.tools()
                async with Agent(model, tools=tools) as reader, Agent(model, tools=tools) as writer:
                    ...

        Nothing starts before the server is first asked.
        """
        loop = asyncio.get_running_loop()
        self._blocks[loop] = self._blocks.get(loop, 0) + 1
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection of the running event loop, at the end of its last block."""
        self._blocks[asyncio.get_running_loop()] -= 1
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection of the running event loop; a later call opens another.

        Any task may call it. The server's process has ended afterwards. In a block of `async with`,
        the end of the block closes the connection: another agent may have a call in flight.
        """
        if self._blocks.get(asyncio.get_running_loop()):
            return
        await self._connections.aclose()
        if self._model is not None and isinstance(self.options.get("sampling"), str):
            await self._model.aclose()

    async def withdraw(self, context: ToolContext) -> None:
        """Cancel a call that the server holds open for an answer, because its run ends.

        Another process than the one that sent the call cannot do so.
        """
        found = self._connections.held_by(context)
        if found is not None:
            await found.give_up()
            self._connections.let_go(found)

    def note(self, definitions: Iterable[Definition]) -> None:
        """Note which definitions agents use: a server that changes them is warned about."""
        self._offered |= {tool.name: tool for tool in definitions}

    async def perform(
        self,
        definition: Definition,
        arguments: dict[str, object],
        context: ToolContext,
        *,
        repeatable: bool,
    ) -> object:
        """Perform a model's call, if the server still describes the tool by `definition`.

        Raises:
            ToolError: the server cannot be reached, has changed the tool, or reports a failure.
        """
        try:
            return await self._perform_call(definition, arguments, context, repeatable=repeatable)
        except ConfigError as error:
            raise ToolError(str(error)) from error

    async def _perform_call(
        self,
        definition: Definition,
        arguments: dict[str, object],
        context: ToolContext,
        *,
        repeatable: bool,
    ) -> object:
        rounds = None
        if context.answer is not None:
            waiting, response = waiting_for(context.answer), response_to(context.answer)
            if isinstance(waiting, HeldCall):
                return await self._resume_held_call(waiting.token, response, context)
            rounds = answered(self.name, waiting, response)
        while True:  # `repeatable` bounds this loop, and a connection is taken once.
            connection, listed = await self._list_tools()
            self._refuse_changed(definition, listed)
            try:
                return await connection.call(definition.name, arguments, context, rounds)
            except Taken:
                continue
            except Lost as error:
                connection.stop()
                if not repeatable:
                    raise self._lost_error(error) from error
                repeatable = False

    async def _resume_held_call(self, token: str, response: Json, context: ToolContext) -> object:
        """Return the result of a call that the server has held open for a person's answer."""
        found = self._connections.holding(token)
        if found is None:
            raise ToolError(
                f"The MCP server {self.name!r} held the call open while it asked, and the "
                "connection has ended since: the answer cannot reach it. Whether the call took "
                "effect is not known."
            )
        try:
            return await found.go_on(response, context)
        except Lost as error:
            raise self._lost_error(error) from error
        finally:
            self._connections.let_go(found)

    def _lost_error(self, error: Lost) -> ToolError:
        return ToolError(
            f"The MCP server {self.name!r} was lost during the call: {error} "
            "Whether the call took effect is not known."
        )

    async def _list_tools(self) -> tuple[Connection, tuple[Definition, ...]]:
        """Return an open connection and the server's tools."""

        async def listed(
            connection: Connection,
        ) -> tuple[Connection, tuple[Definition, ...]]:
            return connection, await connection.definitions()

        return await self._connections.asked(listed)

    async def _warn_of_changes(self, connection: Connection) -> None:
        """Log how the server's tools differ from those that agents got of it."""
        offered = self._offered
        now = wanted(await connection.definitions(), self.options)
        found = changes(offered.values(), now)
        if offered and found:
            LOG.warning(
                "MCP server %r changed its tools: %s. Calls of changed tools are refused until an "
                "agent gets the tools anew.",
                self.name,
                found,
            )

    def _refuse_changed(self, pinned: Definition, listed: Iterable[Definition]) -> None:
        """Raise a ToolError if the server describes a tool differently than the model read it."""
        now = next((tool for tool in listed if tool.name == pinned.name), None)
        if now is None:
            raise ToolError(f"MCP server {self.name!r} no longer has a tool {pinned.name!r}.")
        if now.fingerprint != pinned.fingerprint:
            raise ToolError(
                f"MCP server {self.name!r} has changed its tool {pinned.name!r} "
                f"({pinned.difference(now)}) since this agent got it. The call was not sent."
            )

    def _offer(self, definitions: tuple[Definition, ...]) -> tuple[AnyTool, ...]:
        made = remote_tools(self, definitions, self.options)
        self.note(wanted(definitions, self.options))
        return made
