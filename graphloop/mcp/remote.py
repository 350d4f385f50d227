"""Remote: graphloop tools that an MCP server runs, made from its definitions.

Each is a tool like any other: it has a legal name with the server's prefix, and its arguments are
checked here. It acts and runs at most once, unless a trusted server says otherwise.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol, final

from ..errors import ConfigError, ToolDefinitionError, not_among
from ..tools import AnyTool, Tool, ToolContext, legal_name
from .definitions import Definition
from .target import TIMEOUT_S, ServerOptions

__all__ = [
    "Remote",
    "RemoteTool",
    "remote_names",
    "remote_tool",
    "remote_tools",
    "wanted",
]

LOG: Final = logging.getLogger("graphloop.mcp")


class Remote(Protocol):
    """The server of remote tools."""

    @property
    def name(self) -> str:
        """The server's name in errors."""
        ...

    async def perform(
        self,
        definition: Definition,
        arguments: dict[str, object],
        context: ToolContext,
        *,
        repeatable: bool,
    ) -> object:
        """Return the result of a call; a lost call that is repeatable may be sent again."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


def wanted(definitions: Iterable[Definition], options: ServerOptions) -> tuple[Definition, ...]:
    """Return the definitions that the option `tools` keeps."""
    only = options.get("tools")
    return tuple([tool for tool in definitions if only is None or tool.name in only])


def remote_names(definitions: Iterable[Definition], options: ServerOptions) -> dict[str, str]:
    """Return the names for models by the server's names, of the tools that the options keep."""
    prefix = options.get("prefix", "")
    return {tool.name: legal_name(f"{prefix}{tool.name}") for tool in wanted(definitions, options)}


def remote_tools(
    server: Remote, definitions: Sequence[Definition], options: ServerOptions
) -> tuple[AnyTool, ...]:
    """Return a tool for each definition that the options keep.

    A definition with a bad schema is left out, and a warning names it.

    Raises:
        ConfigError: an option names a tool that is not defined, or two names become equal.
        ToolDefinitionError: the option `tools` names a tool that has a bad schema.
    """
    _refuse_unknown(server, definitions, options)
    kept = wanted(definitions, options)
    named = remote_names(kept, options)
    counts = Counter([named[definition.name] for definition in kept])
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        both = [definition.name for definition in kept if named[definition.name] == twice]
        raise ConfigError(
            f"MCP server {server.name!r}: expected tools of different names, found {both}, which "
            f"a model would call {twice!r}. Fix: leave one out with `tools`."
        )
    made: list[AnyTool] = []
    for definition in kept:
        try:
            made.append(remote_tool(server, named[definition.name], definition, options))
        except ToolDefinitionError as error:
            if options.get("tools") is not None:
                raise
            LOG.warning("MCP server %r: %s The tool is left out.", server.name, error)
    return tuple(made)


def remote_tool(
    server: Remote, name: str, definition: Definition, options: ServerOptions
) -> AnyTool:
    """Return the tool of a definition, under a name for models.

    Raises:
        ToolDefinitionError: the definition has a bad schema.
    """
    asked, effect = options.get("needs_approval", False), _effect_of(definition, options)
    return Tool(
        name=name,
        description=definition.description,
        parameters=definition.input_schema,
        execute=RemoteTool(server, definition, repeatable=effect != "at_most_once"),
        needs_approval=(
            asked if isinstance(asked, bool) or callable(asked) else definition.name in asked
        ),
        effect=effect,
        timeout_s=options.get("timeout_s", TIMEOUT_S),
        server=server.name,
    )


@final
class RemoteTool:
    """The function of a tool that an MCP server runs; `kept_open` is the server."""

    def __init__(self, server: Remote, definition: Definition, *, repeatable: bool) -> None:
        self.kept_open, self.definition = server, definition
        self._repeatable = repeatable

    async def __call__(self, arguments: dict[str, object], context: ToolContext) -> object:
        """Send the call to the server, and return its result for the model."""
        return await self.kept_open.perform(
            self.definition, arguments, context, repeatable=self._repeatable
        )


def _effect_of(
    definition: Definition, options: ServerOptions
) -> Literal["pure", "idempotent", "at_most_once"]:
    """Return whether a call may run again; only a trusted server decides it."""
    is_trusted = options.get("trust", False)
    if is_trusted and definition.read_only:
        return "pure"
    return "idempotent" if is_trusted and definition.idempotent else "at_most_once"


def _refuse_unknown(
    server: Remote, definitions: Iterable[Definition], options: ServerOptions
) -> None:
    known = [tool.name for tool in definitions]
    asked = options.get("needs_approval", False)
    for option, names in (
        ("tools", options.get("tools")),
        ("needs_approval", None if isinstance(asked, bool) or callable(asked) else asked),
    ):
        unknown = [name for name in names or () if name not in known]
        if unknown:
            raise ConfigError(
                f"`{option}` of MCP server {server.name!r}: expected the server's names of its "
                f"tools ({', '.join(known)}), found {not_among(unknown, known)}"
            )
