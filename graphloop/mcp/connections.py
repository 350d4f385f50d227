"""Connections: the open connections to a server, on each event loop.

A server connects when it is first asked, and again once where the connection has ended. While a
server holds a call open for a person's answer, other calls get a connection of their own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar, final
from weakref import WeakKeyDictionary

from ..errors import ConfigError, ToolError
from ..providers import Provider
from ..tools import ToolContext
from .target import TIMEOUT_S, Address, Command, Lost, ServerOptions

if TYPE_CHECKING:
    from .connection import Connection
    from .inputs import Inputs

__all__ = ["Connections"]

T = TypeVar("T")

HELD_MAX: Final = 10
"""The most calls that a server holds open for answers; the oldest is given up for one more."""


@final
class Connections:
    """The open connections to one server.

    Args:
        target: where the server is.
        name: the server's name in errors, logs and questions.
        options: see `ServerOptions`.
        model: the model that answers the server's requests; None for none.
        changed: is awaited when the server says that its tools have changed.
    """

    def __init__(
        self,
        target: Command | Address,
        name: str,
        options: ServerOptions,
        model: Provider | None,
        changed: Callable[[Connection], Awaitable[object]],
    ) -> None:
        self._target, self._name, self._options = target, name, options
        self._model, self._changed = model, changed
        self._known: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Connection]] = (
            WeakKeyDictionary()
        )

    async def asked(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Return the answer to a request without effect; connect again once if it is lost.

        Raises:
            ConfigError: the server cannot be reached, or does not answer in time.
        """
        lost: Lost | None = None
        limit = self._options.get("timeout_s", TIMEOUT_S)
        for _ in range(2):
            connection = await self._open(limit)
            try:
                async with asyncio.timeout(limit):
                    return await ask(connection)
            except Lost as error:
                connection.stop()
                lost = error
            except ToolError as error:  # Such as a picture that is not base64.
                raise ConfigError(f"MCP server {self._name!r}: {error}") from error
            except TimeoutError:  # The connection stays: the server may perform other calls.
                raise ConfigError(
                    f"MCP server {self._name!r}: expected an answer within {limit} s, found "
                    f"none.{connection.log.quoted} Fix: run it by hand, or raise timeout_s."
                ) from None
        raise ConfigError(
            f"MCP server {self._name!r}: expected an answer, found: {lost} Fix: run it by hand."
        ) from lost

    def holding(self, token: str) -> Connection | None:
        """Return the connection of the call that waits for this answer; None if it is over."""
        known = self._known.get(asyncio.get_running_loop(), [])
        return next((each for each in known if each.held_token == token), None)

    def held_by(self, context: ToolContext) -> Connection | None:
        """Return the connection of a call that waits for an answer; None if it does not."""
        known = self._known.get(asyncio.get_running_loop(), [])
        return next((each for each in known if each.is_held_by(context)), None)

    def let_go(self, connection: Connection) -> None:
        """Close a connection that no call holds any longer, if other calls have a newer one."""
        known = self._known.get(asyncio.get_running_loop(), [])
        if not connection.held_token and any(each is connection for each in known[:-1]):
            connection.stop()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the server's processes have ended."""
        for connection in self._known.pop(asyncio.get_running_loop(), []):
            await connection.aclose()

    async def _open(self, timeout_s: float | None) -> Connection:
        """Return an open connection of the running event loop that no question holds."""
        connect, inputs = await _import_classes()
        known = self._known.setdefault(asyncio.get_running_loop(), [])
        known[:] = [each for each in known if not each.is_closed]
        free = [each for each in known if each.is_usable and not each.held_token]
        if not free:
            held = [each for each in known if each.held_token]
            for oldest in held[: max(0, len(held) - HELD_MAX + 1)]:
                oldest.stop()
            mode, ask = self._options.get("mode", "auto"), self._options.get("ask", False)
            given = inputs(self._name, self._model, self._options.get("roots", ()), ask=ask)
            free = [connect(self._target, self._name, mode, given, self._changed)]
            known += free
        await free[-1].open(timeout_s)
        return free[-1]


async def _import_classes() -> tuple[type[Connection], type[Inputs]]:
    """Return the classes that need the SDK, whose import takes seconds: in a thread."""
    try:
        # Another task may be importing the module, which then is there without the class.
        module = sys.modules.get(f"{__package__}.connection")
        if module is None or not hasattr(module, "Connection"):
            module = await asyncio.to_thread(import_module, f"{__package__}.connection")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"graphloop.mcp: expected the package {error.name!r}, found none. Fix: pip install "
            "'graphloop[mcp]'."
        ) from error
    return module.Connection, module.Inputs
