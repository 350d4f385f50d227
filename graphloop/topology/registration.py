"""Registry: the names that a topology's file may use, each given its meaning in Python.

    @registry.node
    @node
    async def route(ticket: Ticket) -> Billing | Technical: ...

    @registry.predicate
    def over_limit(arguments, context) -> bool: ...

A file is data. It can name things that were registered before it is read, and the entry points of
installed packages; it cannot name a module, and the reader evaluates nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Final, Literal, TypeAlias, TypeVar, final, get_args

from .. import nodes
from ..errors import ConfigError
from ..node_protocol import is_node

__all__ = [
    "FROM_OUTSIDE",
    "GROUPS",
    "LIBRARY",
    "Category",
    "RegisteredNames",
    "Registry",
    "registry",
    "snake_case",
]

T = TypeVar("T")

Category: TypeAlias = Literal["node", "predicate", "function", "tool"]

GROUPS: Final[Mapping[Category, str]] = {
    "node": "graphloop.nodes",
    "predicate": "graphloop.predicates",
    "function": "graphloop.functions",
    "tool": "graphloop.tools.tool",
}
"""The groups of entry points, by category."""

FROM_OUTSIDE: Final = "on the command line: --with FILE.py, which does so"
"""How a message tells the way to register a name for a command."""


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
    """Nodes, predicates, functions and tools, by the names that files use.

    `node` takes a node, or a class of nodes: a frozen dataclass, whose fields are then the
    parameters that a file may give. `predicate` takes a function of (arguments, context) for the
    `when` of a gate's rule. `function` takes a function that a node's `callback` names, such as a
    reducer: see `Graph.run(callbacks=…)`. `tool` takes a tool, or a function that is to be one.
    """

    def __init__(self) -> None:
        self._known: dict[Category, dict[str, object]] = {one: {} for one in get_args(Category)}

    def node(self, given: T, /, *, name: str = "") -> T:
        """Register a node, or a class of nodes; return it as it is.

        Raises:
            ConfigError: it is neither, it has no name, or the name is taken.
        """
        kind = isinstance(given, type)
        if not (is_dataclass(given) if kind else is_node(given)):
            raise ConfigError(
                f"registry.node: expected a node, or a frozen dataclass of nodes, found "
                f"{given!r:.80}. Fix: make a node of a function with @node, below @registry.node"
            )
        own = name or _named(given, "__name__" if kind else "name")
        if isinstance(own, str) and own in LIBRARY:
            raise ConfigError(
                f"registry.node: expected a new name, found {own!r}, a node of the library. "
                "Fix: registry.node(…, name='…')"
            )
        return self._keep("node", given, own)

    def predicate(self, given: T, /, *, name: str = "") -> T:
        """Register the condition of a gate's rule; return it as it is."""
        return self._keep("predicate", _function(given), name)

    def function(self, given: T, /, *, name: str = "") -> T:
        """Register a function that nodes invoke; return it as it is."""
        return self._keep("function", _function(given), name)

    def tool(self, given: T, /, *, name: str = "") -> T:
        """Register a tool, or a function for one; return it."""
        return self._keep("tool", given, name or _named(given))

    def get(self, category: Category, name: str) -> object | None:
        """Return the object that is registered under a name; None without one."""
        return self._known[category].get(name)

    def names(self, category: Category) -> tuple[str, ...]:
        """Return the names of a category."""
        return tuple(self._known[category])

    @contextmanager
    def set_back(self) -> Generator[None]:
        """Forget new registrations at the end: another version may follow."""
        before: dict[Category, dict[str, object]] = {
            category: dict(known) for category, known in self._known.items()
        }
        try:
            yield
        finally:
            self._known = before

    def _keep(self, category: Category, given: T, name: object) -> T:
        own = name or _named(given, "__name__")
        if not isinstance(own, str) or not own.strip() or own == "<lambda>":
            raise ConfigError(
                f"registry.{category}: expected a name, found none for {given!r:.80}. "
                f"Fix: registry.{category}(…, name='…')"
            )
        known = self._known[category].setdefault(own, given)
        if known is not given:
            raise ConfigError(
                f"registry.{category}: expected one {category} named {own!r}, found {known!r:.80} "
                f"and {given!r:.80}. Fix: give one of them another `name`"
            )
        return given


registry = Registry()
"""The registry that files are read with, unless another is given."""


@final
class RegisteredNames:
    """The names of a registry, then of the entry points of installed packages.

    A package's code is loaded only when a file names its entry point. An entry point cannot take
    the place of a node of the library.
    """

    def __init__(self, own: Registry = registry, *, installed: bool = True) -> None:
        self._own = own
        self._installed = installed

    @cached_property
    def _points(self) -> dict[Category, dict[str, EntryPoint]]:
        """The entry points, which are looked for once, and late."""
        every = entry_points() if self._installed else EntryPoints()
        return {
            category: {
                one.name: one
                for one in every.select(group=group)
                if category != "node" or one.name not in LIBRARY
            }
            for category, group in GROUPS.items()
        }

    def find(self, category: Category, name: str) -> object | None:
        """Return the object of a name; None for an unknown name.

        Raises:
            ConfigError: the package that offers it cannot be loaded.
        """
        found = self._own.get(category, name)
        if found is not None:
            return found
        point = self._points[category].get(name)
        if point is None:
            return None
        try:
            loaded: object = point.load()
        except Exception as error:
            raise ConfigError(
                f"{category} {name!r} of an installed package: expected to load {point.value}, "
                f"found {type(error).__name__}: {error}"
            ) from error
        return loaded

    def known(self, category: Category) -> tuple[str, ...]:
        """Return all names of a category."""
        return tuple(dict.fromkeys((*self._own.names(category), *self._points[category])))

    def registered(self, category: Category) -> tuple[str, ...]:
        """Return the names of a category, without those of entry points."""
        return self._own.names(category)


def _named(given: object, word: str = "name") -> object:
    return getattr(given, word, "")


def _function(given: T) -> T:
    if not callable(given) or isinstance(given, type):
        raise ConfigError(f"expected a function, found {given!r:.80}")
    return given
