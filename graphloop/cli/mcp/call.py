"""Call a tool of an MCP server, and print its result.

  graphloop mcp call https://crm.example/mcp find '{"name": "Ada"}'
  graphloop mcp call "uvx mcp-server-time" get_current_time '{"timezone": "Europe/Berlin"}'
  graphloop mcp call desk.py:crm statistics --json

You are the person who allows the call: no approval is asked. The arguments are a JSON object, and
are checked by the tool's schema before the server gets them. Ctrl-C cancels the call at the server.
--json prints the result with its status, its media in base64 and its structured data.

A command is executed, and so is a Python file that names the server.

Exit status: 0 the tool succeeded, 1 it failed, 2 wrong usage or arguments, 130 Ctrl-C.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, TypeAlias, cast

import msgspec
import typer

from ...errors import ConfigError
from ...mcp import Server
from ...tools import ToolOutcome
from ...values import TextPart
from ..errors import Status, tell_error
from ..options import Json
from ..text import clean, safe_json
from .servers import Environment, ServerArgument, ServerHeaders, Timeout, served

__all__ = ["call_command"]

ToolName: TypeAlias = Annotated[
    str, typer.Argument(metavar="TOOL", help="The server's name of the tool.")
]
Arguments: TypeAlias = Annotated[
    str, typer.Argument(metavar="ARGUMENTS", help="A JSON object; none means no arguments.")
]


def call_command(  # noqa: PLR0913 - the options of a command are its parameters
    server: ServerArgument,
    tool: ToolName,
    arguments: Arguments = "{}",
    *,
    header: ServerHeaders = None,
    env: Environment = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> Status:
    """Call a tool once, and print what it returns."""
    given = _json_object(arguments)

    async def called(server: Server) -> Status:
        outcome = await server.call(tool, given)
        if outcome.status == "invalid":
            raise ConfigError(f"ARGUMENTS: {outcome.content}")
        if as_json:
            sys.stdout.write(f"{safe_json(msgspec.json.encode(outcome).decode())}\n")
        elif outcome.status == "ok":
            sys.stdout.write(f"{clean(_result_text(outcome))}\n")
        else:
            tell_error(f"error: {_result_text(outcome)}")
        return Status.OK if outcome.status == "ok" else Status.FAILED

    return served(server, called, headers=header, env=env, timeout_s=timeout)


def _json_object(text: str) -> dict[str, object]:
    """Return the JSON object in a text.

    Raises:
        ConfigError: the text is something else.
    """
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"ARGUMENTS: expected a JSON object, found {text!r:.80}: {error}. Fix: write for "
            """example '{"name": "Ada"}', in single quotes."""
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(
            f"ARGUMENTS: expected a JSON object, found {text!r:.80}. Fix: name each argument."
        )
    return cast("dict[str, object]", value)  # JSON objects have text keys.


def _result_text(outcome: ToolOutcome) -> str:
    """Return the result as text; a picture or a sound becomes its type."""
    if isinstance(outcome.content, str):
        return outcome.content
    return "\n".join(
        part.text if isinstance(part, TextPart) else f"[{part.media_type}]"
        for part in outcome.content
    )
