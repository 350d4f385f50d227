"""List the model services, and which of their keys are set.

  graphloop models
  graphloop models --json

A model is named SERVICE:NAME, such as groq:llama-3.3-70b-versatile, for --model and for an agent.
The list shows the wire format of each service, the URL of its server, and the environment variable
of its key. No key is shown. Other servers that speak chat completions are asked by openai:NAME and
--base-url.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping

from ..providers import SERVICES, Service
from .errors import Status
from .options import Json

__all__ = ["models_command"]

COLUMNS = ("SERVICE", "WIRE", "KEY", "IS SET", "URL")


def models_command(*, as_json: Json = False) -> Status:
    """Print the services; with `--json`, one JSON object for each service."""
    rows = [_row(name, service, os.environ) for name, service in sorted(SERVICES.items())]
    if as_json:
        for row in rows:
            sys.stdout.write(f"{json.dumps(row)}\n")
        return Status.OK
    lines = [COLUMNS, *[tuple(_cells(row)) for row in rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        sys.stdout.write(f"{'  '.join(cells).rstrip()}\n")
    return Status.OK


def _row(name: str, service: Service, environ: Mapping[str, str]) -> dict[str, object]:
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


def _cells(row: Mapping[str, object]) -> Iterator[str]:
    """Yield the cells of a line of the table."""
    yield from map(str, (row["service"], row["wire"], row["key_variable"]))
    yield "yes" if row["is_set"] else "no" if row["needs_key"] else "not needed"
    yield str(row["url_variable"] if row["url_is_set"] else row["url"])
