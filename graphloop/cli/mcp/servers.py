"""Servers: the MCP server that a command line names, and a command's work with it.

A server is named by its URL, by the command that starts it (in quotes), or by a Python object:
`FILE.py:NAME` or `module:name`, a `Server` of graphloop.mcp with all its options.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from ...errors import ConfigError, nearest, not_among
from ...mcp import Server, http, stdio
from ..errors import Status, tell_error
from ..modules import execute, exists, imported
from ..settings import headers_of
from ..target import refuse_options

__all__ = ["Environment", "ServerArgument", "ServerHeaders", "Timeout", "served"]

ServerArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SERVER",
        help="A URL, a command in quotes, or FILE.py:NAME or module:name. Command and Python are "
        "executed.",
    ),
]
ServerHeaders: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar="NAME=VALUE", help="An HTTP header of each request; repeatable."
    ),
]
Environment: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="A variable of this shell for the server, or NAME=VALUE; repeatable.",
    ),
]
Timeout: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="How long each answer may take (default 60)."),
]

IN_PYTHON: Final = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)|(?P<module>[A-Za-z_][\w.]*):\w+")
NO_COMMANDS: Final = (".yaml", ".yml", ".json", ".py")


def served(
    text: str,
    work: Callable[[Server], Awaitable[Status]],
    *,
    headers: Iterable[str] | None,
    env: Iterable[str] | None,
    timeout_s: float | None,
) -> Status:
    """Do the work of a command with a server, close the server, and return the exit status.

    Raises:
        ConfigError: `text` names no server, or an option would have no effect on it.
    """
    server = _make_server(text, headers, env, timeout_s)

    async def served() -> Status:
        async with server:
            return await work(server)

    try:
        return asyncio.run(served())
    except KeyboardInterrupt:
        tell_error("interrupted: the server was told to stop")
        return Status.INTERRUPTED


def _make_server(
    text: str,
    headers: Iterable[str] | None,
    env: Iterable[str] | None,
    timeout_s: float | None,
) -> Server:
    limit = 60.0 if timeout_s is None else timeout_s
    if text.startswith(("http://", "https://")):
        refuse_options({"--env": env or None}, f"{text} is started elsewhere")
        return http(text, headers=headers_of(headers), timeout_s=limit)
    if IN_PYTHON.fullmatch(text):
        why = f"{text} has its own options"
        given = {"--header": headers or None, "--env": env or None, "--timeout": timeout_s}
        refuse_options(given, why)
        return _in_python(text)
    refuse_options({"--header": headers or None}, f"{text!r} is a command, which gets no header")
    words = _split_words(text)
    return stdio(*words, env=_env_variables(env or ()), timeout_s=limit)


def _split_words(text: str) -> list[str]:
    """Return the words of a command.

    Raises:
        ConfigError: the text is no command, such as a file that only graphloop reads.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(
            f"SERVER: expected a command, found {text!r}: {error}. Fix: close the quotes."
        ) from error
    if len(words) == 1 and text.endswith(NO_COMMANDS) and not os.access(text, os.X_OK):
        fix = f"name the server in it: {text}:NAME; or start it: 'python {text}'."
        raise ConfigError(
            f"SERVER: expected a URL, a command, FILE.py:NAME or module:name, found the file "
            f"{text!r}. Fix: {fix if text.endswith('.py') else 'name the server itself.'}"
        )
    return words


def _in_python(text: str) -> Server:
    place, _, name = text.rpartition(":")
    if place.endswith(".py"):
        if not exists(place):
            near = [file.name for file in Path(place).parent.glob("*.py")]
            raise ConfigError(
                f"{text}: expected a .py file, found nothing of that name."
                f"{nearest(Path(place).name, near)}"
            )
        module = execute(Path(place))
    else:
        module = imported(place, text)
    value: object = getattr(module, name, None)
    if not isinstance(value, Server):
        known = [key for key, found in vars(module).items() if isinstance(found, Server)]
        raise ConfigError(
            f"{text}: expected a server, made by stdio(…) or http(…) of graphloop.mcp, found "
            f"{'no such name' if value is None else type(value).__name__}. The servers there are: "
            f"{', '.join(known) or 'none'}.{nearest(name, known)}"
        )
    return value


def _env_variables(texts: Iterable[str]) -> Mapping[str, str]:
    """Return the variables that `--env` gives; an error never quotes a value."""
    variables: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise ConfigError(
                "--env: expected NAME or NAME=VALUE, found another form. Fix: write for example "
                "--env GITHUB_TOKEN"
            )
        if not equals and name not in os.environ:
            raise ConfigError(
                f"--env {name}: expected a variable of this shell, found "
                f"{not_among([name], os.environ)}"
            )
        variables[name] = value if equals else os.environ[name]
    return variables
