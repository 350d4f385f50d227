"""List the model services, and which of their keys are set.

  graphloop models
  graphloop models --json

A model is named SERVICE:NAME, such as groq:llama-3.3-70b-versatile, for --model and for an agent.
The list shows the wire format of each service, the URL of its server, and the environment variable
of its key; a narrow terminal shows fewer columns. No key is shown. Other servers that speak chat
completions are asked by openai:NAME and --base-url.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ..providers import SERVICES, Service
from .errors import Status
from .options import Json

__all__ = ["models_command"]

COLUMNS: Final = ("SERVICE", "WIRE", "KEY", "IS SET", "URL")
OPTIONAL: Final = ("URL", "WIRE", "KEY")
"""The columns that a narrow terminal does without, the first first."""


def models_command(*, as_json: Json = False) -> Status:
    """Print the services; with `--json`, one JSON object for each service."""
    rows = [
        _row_of_service(name, service, os.environ) for name, service in sorted(SERVICES.items())
    ]
    if as_json:
        for row in rows:
            sys.stdout.write(f"{json.dumps(row)}\n")
        return Status.OK
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    lines = [COLUMNS, *[tuple(_cells_of(row)) for row in rows]]
    tables = [_drop_columns(lines, OPTIONAL[:left_out]) for left_out in range(len(OPTIONAL) + 1)]
    fitting = (text for text in tables if max(map(len, text.splitlines())) <= width)
    sys.stdout.write(next(fitting, tables[-1]))
    return Status.OK


def _drop_columns(lines: Sequence[Sequence[str]], left_out: Collection[str]) -> str:
    """Return the lines of the table without some columns."""
    columns = [one for one in zip(*lines, strict=True) if one[0] not in left_out]
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return "".join(f"{'  '.join(map(str.ljust, row, widths)).rstrip()}\n" for row in rows)


def _row_of_service(name: str, service: Service, environ: Mapping[str, str]) -> dict[str, object]:
    return {
        "service": name,
        "wire": service.wire.split(".")[1].replace("_", "-"),
        "key_variable": service.key_variable,
        "needs_key": service.needs_key,
        "is_set": bool(environ.get(service.key_variable)),
        "url": service.base_url,
        "url_variable": service.url_variable,
        "url_is_set": bool(service.url_variable and environ.get(service.url_variable)),
    }


def _cells_of(row: Mapping[str, object]) -> Iterator[str]:
    """Yield the cells of a line of the table."""
    yield from map(str, (row["service"], row["wire"], row["key_variable"]))
    yield "yes" if row["is_set"] else "no" if row["needs_key"] else "not needed"
    yield str(row["url_variable"] if row["url_is_set"] else row["url"])
