"""Registry: maps names in topology files to Python objects.

    @registry.node
    @node
    async def route(ticket: Ticket) -> Billing | Technical: ...

    @registry.predicate
    def over_limit(arguments, context) -> bool: ...

A topology file is data. It can use only names that are registered before the file is read. It
cannot name a module, and the reader evaluates no code in it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final, get_args

from .. import nodes
from ..errors import ConfigError
from ..mcp import Server
from ..node_protocol import is_node

__all__ = [
    "FROM_OUTSIDE",
    "LIBRARY",
    "Category",
    "Registry",
    "registry",
    "snake_case",
]

T = TypeVar("T")

Category: TypeAlias = Literal["node", "predicate", "function", "tool", "server"]

OF_TOOLS: Final = ("prefix", "tools", "needs_approval", "trust")
"""The options of an MCP server that a file gives."""
FROM_OUTSIDE: Final = "on the command line: --with FILE.py, which does so"
"""The part of an error message that says how to register a name for a CLI command."""


def snake_case(made: type) -> str:
    """Return a class name in snake case, which is its name in topology files."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", made.__name__).lower()


LIBRARY: Final[Mapping[str, type]] = {
    snake_case(made): made
    for made in (getattr(nodes, name) for name in nodes.__all__)
    if isinstance(made, type) and hasattr(made, "enter")
}
"""The library's node classes by their names in files. No other node can use these names."""


@final
class Registry:
    """Holds nodes, predicates, functions and tools by the names that topology files use."""

    def __init__(self) -> None:
        self._known: dict[Category, dict[str, object]] = {key: {} for key in get_args(Category)}

    def node(self, value: T, /, *, name: str = "") -> T:
        """Register a node or a node class (a frozen dataclass), and return it unchanged.

        A file sets the fields of a registered class as parameters of the node.

        Raises:
            ConfigError: the value is not a node or a dataclass, has no name, or its name is taken.
        """
        is_class = isinstance(value, type)
        if not (is_dataclass(value) if is_class else is_node(value)):
            raise ConfigError(
                f"registry.node: expected a node, or a frozen dataclass of nodes, found "
                f"{value!r:.80}. Fix: make a node of a function with @node, below @registry.node"
            )
        own = name or getattr(value, "__name__" if is_class else "name", "")
        if own in LIBRARY:
            raise ConfigError(
                f"registry.node: expected a new name, found {own!r}, a node of the library. "
                "Fix: registry.node(…, name='…')"
            )
        return self._register("node", value, own)

    def predicate(self, function: T, /, *, name: str = "") -> T:
        """Register a function of (arguments, context) that gate rules can name in `when`."""
        return self._register("predicate", _check_callable(function), name)

    def function(self, function: T, /, *, name: str = "") -> T:
        """Register a function that nodes can name in `callback`; see `Graph.run(callbacks=…)`."""
        return self._register("function", _check_callable(function), name)

    def tool(self, tool: T, /, *, name: str = "") -> T:
        """Register a tool, or a function to use as a tool, and return it unchanged."""
        return self._register("tool", tool, name or getattr(tool, "name", ""))

    def server(self, server: Server, /, *, name: str) -> Server:
        """Register the MCP server that files name under `mcp`, and return it unchanged.

            registry.server(stdio("uvx", "mcp-server-git"), name="git")

        A file gives the options of the tools itself, so that it can be checked without the server.

        Raises:
            ConfigError: the server has options of tools, or the name is taken.
        """
        if options := [option for option in OF_TOOLS if option in server.options]:
            raise ConfigError(
                f"registry.server: expected a server without options of its tools, found "
                f"{', '.join(options)}. Fix: write them under `mcp` in the file."
            )
        return self._register("server", server, name)

    def get(self, category: Category, name: str) -> object | None:
        """Return the object that is registered under a name; None if the name is unknown."""
        return self._known[category].get(name)

    def names(self, category: Category) -> tuple[str, ...]:
        """Return all names that are registered in a category."""
        return tuple(self._known[category])

    @contextmanager
    def set_back(self) -> Generator[None]:
        """Undo all registrations made inside the `with` block when it ends.

        This lets two versions of one Python file register the same names in turn.
        """
        before: dict[Category, dict[str, object]] = {
            category: dict(known) for category, known in self._known.items()
        }
        try:
            yield
        finally:
            self._known = before

    def _register(self, category: Category, value: T, name: str) -> T:
        own = name or getattr(value, "__name__", "")
        if not isinstance(own, str) or not own.strip() or own == "<lambda>":
            raise ConfigError(
                f"registry.{category}: expected a name, found none for {value!r:.80}. "
                f"Fix: registry.{category}(…, name='…')"
            )
        known = self._known[category].setdefault(own, value)
        if known is not value:
            raise ConfigError(
                f"registry.{category}: expected one {category} named {own!r}, found {known!r:.80} "
                f"and {value!r:.80}. Fix: give one of them another `name`"
            )
        return value


registry = Registry()
"""The default registry for reading topology files."""


def _check_callable(function: T) -> T:
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"expected a function, found {function!r:.80}")
    return function
