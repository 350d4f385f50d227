"""Registry: the names for topology files, with their meaning in Python.

    @registry.node
    @node
    async def route(ticket: Ticket) -> Billing | Technical: ...

    @registry.predicate
    def over_limit(arguments, context) -> bool: ...

A file is data. It can name what was registered before it is read; it cannot name a module, and the
reader evaluates nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final, get_args

from .. import nodes
from ..errors import ConfigError
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

Category: TypeAlias = Literal["node", "predicate", "function", "tool"]

FROM_OUTSIDE: Final = "on the command line: --with FILE.py, which does so"
"""How a user registers a name for a command, in messages."""


def snake_case(made: type) -> str:
    """Return the name of a class as files write it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", made.__name__).lower()


LIBRARY: Final[Mapping[str, type]] = {
    snake_case(made): made
    for made in (getattr(nodes, name) for name in nodes.__all__)
    if isinstance(made, type) and hasattr(made, "enter")
}
"""The library's nodes by their names in files; no other node can be registered under these."""


@final
class Registry:
    """Nodes, predicates, functions and tools, by the names that files use."""

    def __init__(self) -> None:
        self._known: dict[Category, dict[str, object]] = {key: {} for key in get_args(Category)}

    def node(self, value: T, /, *, name: str = "") -> T:
        """Register a node, or a frozen dataclass of nodes; return it.

        The fields of a class are the parameters in a file.

        Raises:
            ConfigError: the value is neither, it has no name, or the name is taken.
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
        return self._keep("node", value, own)

    def predicate(self, function: T, /, *, name: str = "") -> T:
        """Register a function of (arguments, context) for a gate's `when`."""
        return self._keep("predicate", _callable(function), name)

    def function(self, function: T, /, *, name: str = "") -> T:
        """Register a function for the `callback` of a node; see `Graph.run(callbacks=…)`."""
        return self._keep("function", _callable(function), name)

    def tool(self, tool: T, /, *, name: str = "") -> T:
        """Register a tool, or a function that becomes one; return it."""
        return self._keep("tool", tool, name or getattr(tool, "name", ""))

    def get(self, category: Category, name: str) -> object | None:
        """Return the object that is registered under a name; None without one."""
        return self._known[category].get(name)

    def names(self, category: Category) -> tuple[str, ...]:
        """Return the names of a category."""
        return tuple(self._known[category])

    @contextmanager
    def set_back(self) -> Generator[None]:
        """Forget new registrations at the end, for another version of a file."""
        before: dict[Category, dict[str, object]] = {
            category: dict(known) for category, known in self._known.items()
        }
        try:
            yield
        finally:
            self._known = before

    def _keep(self, category: Category, value: T, name: str) -> T:
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
"""The registry that files are read with by default."""


def _callable(function: T) -> T:
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"expected a function, found {function!r:.80}")
    return function
