"""Send the spans of a stored run to a trace backend, or print them.

  graphloop otel 1f3a2b4c --store runs.db
  graphloop otel 1f3a2b4c --store runs.db --print
  graphloop otel 1f3a2b4c --store runs --target examples/approval

The spans have the times of the run's events. They are those that watch=[otel()] makes while a run
goes on, with all child runs. The run's target is loaded; no model is asked, and no tool runs.

The environment names the backend by OpenTelemetry's variables: OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_SERVICE_NAME, OTEL_TRACES_EXPORTER.
Spans hold messages only with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true. A run that is
sent twice has the same ids.

Exit status: 0 the spans were sent or printed, 1 the backend did not take them, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import typer

from .. import otel as room
from ..errors import ConfigError
from ..events import Event
from .draw import graph_with_tools
from .errors import Status, tell_error
from .modules import register
from .options import Registers, RunId, StorePath, TargetOption
from .settings import EnvFile, load_env_file
from .stored import child_journals, opened, read
from .target import load_target
from .text import clean, counted, wrapped

__all__ = ["otel_command"]

Printed: TypeAlias = Annotated[
    bool, typer.Option("--print", help="Print the spans as a tree, and send nothing.")
]


def otel_command(
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    env_file: EnvFile = None,
    registers: Registers = None,
    printed: Printed = False,
) -> Status:
    """Make the spans of a run's journals, and send or print them."""
    load_env_file(env_file)
    register(registers)
    journal = asyncio.run(read(store, run))
    journal.refuse_part("otel")
    loaded = load_target(journal.target(target))
    graph = graph_with_tools(loaded.loop(), loaded.tools)
    below = asyncio.run(_child_journals(store, journal.run_id))
    try:
        spans = room.StoredSpans(graph, journal.events, below)
    except ModuleNotFoundError as missing:
        raise ConfigError(str(missing)) from missing
    if printed:
        for line in spans.lines():
            sys.stdout.write(f"{wrapped(clean(line), sys.stdout)}\n")
        return Status.OK
    try:
        names = spans.send()
    except ConnectionError as error:
        tell_error(f"error: {error}")
        return Status.FAILED
    sys.stdout.write(f"sent {counted(len(spans.spans), 'span')} by {', '.join(names)}\n")
    return Status.OK


async def _child_journals(where: str | None, run_id: str) -> Mapping[str, Sequence[Event]]:
    async with opened(where) as store:
        return await child_journals(store, run_id)
