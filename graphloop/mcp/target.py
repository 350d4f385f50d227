"""Target: where an MCP server is, and the options of its tools; the SDK is not needed here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from msgspec import Struct

from ..errors import ConfigError, GraphloopError, not_among
from ..spending import is_number
from ..tools import Approval

if TYPE_CHECKING:
    from httpx2 import Auth

    from ..providers import Provider

__all__ = [
    "MESSAGE_BYTES_MAX",
    "TIMEOUT_S",
    "Address",
    "Command",
    "Lost",
    "Mode",
    "ServerOptions",
    "Taken",
    "check_options",
]

Mode: TypeAlias = Literal["auto", "legacy"]
"""How the version of the protocol is found: the newest of both sides, or none after 2025-11-25."""


TIMEOUT_S: Final = 60.0
"""The seconds for a connection and for a call, unless the option `timeout_s` sets others."""
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest message of a server: a larger one would fill this process's memory."""


class Command(Struct, frozen=True):
    """A server that this process starts: the command line, its variables, its directory."""

    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None


class Address(Struct, frozen=True):
    """A server behind a URL, with the headers and the authentication of each request."""

    url: str
    headers: Mapping[str, str]
    auth: Auth | None = None


class Lost(GraphloopError):
    """The connection ended before the answer to a request came."""


class Taken(GraphloopError):
    """The server waits on this connection for the answer to another call."""


class ServerOptions(TypedDict, total=False):
    """What `stdio` and `http` take about the tools of a server.

    `prefix`: comes before each tool's name, so that servers do not clash and a gate's rules see
    whose tool it is. `tools`: the server's names of the only tools to use (default: all).
    `needs_approval`: True, the server's names of the tools whose calls a human approves, or a
    function of (arguments, context). `trust`: believe the server which tools change nothing or may
    be repeated; without it, each tool acts, and its calls run at most once. `timeout_s`: the
    seconds for the connection, and for each call (default 60; None for no limit). `name`: the
    server's name in errors, logs and questions. `mode`: "legacy" asks for no version newer than
    2025-11-25. `ask`: the server may ask people during a call: the run parks, or its approver
    answers. `sampling`: the model that answers the server's own requests to models, a label or a
    provider; its usage counts in the budget of the run that calls. `roots`: folders that the
    server is told it may work in; it is not held to them.
    """

    prefix: str
    tools: Collection[str] | None
    needs_approval: Approval | Collection[str]
    trust: bool
    timeout_s: float | None
    name: str
    mode: Mode
    ask: bool
    sampling: str | Provider | None
    roots: Sequence[str | Path]


def check_options(options: ServerOptions) -> None:
    """Refuse options that are unknown or have wrong values.

    Raises:
        ConfigError: naming the option, and what it may be.
    """
    known = ServerOptions.__annotations__
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ConfigError(
            f"options of an MCP server: expected {', '.join(known)}, found "
            f"{not_among(unknown, known)}"
        )
    for option in ("tools", "needs_approval", "roots"):
        if isinstance(options.get(option), str):
            raise ConfigError(
                f"`{option}`: expected a list of names, found the text {options.get(option)!r}. "
                "Fix: put it in a list."
            )
    timeout_s = options.get("timeout_s")
    if timeout_s is not None and not (is_number(timeout_s) and timeout_s > 0):
        raise ConfigError(
            f"`timeout_s`: expected more than 0 seconds, found {timeout_s!r}. Fix: give None for "
            "no limit."
        )
    if options.get("mode", "auto") not in ("auto", "legacy"):
        raise ConfigError(
            f"`mode`: expected 'auto' or 'legacy', found {options.get('mode')!r}. Fix: leave it "
            "out."
        )
