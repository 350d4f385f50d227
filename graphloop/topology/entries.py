"""Entries: read the nodes and the MCP servers of a topology file."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeAlias

from pydantic import ValidationError

from ..errors import ConfigError
from ..graph import END
from ..mcp import pins_of
from ..node_protocol import NAME_MAX, flaw_of, node_flaw_of
from .compose import bytes_of
from .diagnostics import Diagnostics, ParseError
from .document import AnyNode
from .includes import IncludePlace
from .models import Nodes, Reading, entries_of, parse_fields
from .node_models import NODE
from .schema import SERVER
from .servers import PinnedServer, pinned_server
from .tree import Entry, Value, entry_at, plain_data, value_at

__all__ = ["NODES_MAX", "Servers", "read_nodes", "read_servers"]

NODES_MAX: Final = 2_000
"""The largest number of nodes in a topology, including the nodes of each of its agents."""

Servers: TypeAlias = dict[str, PinnedServer]
"""The MCP servers of a file by name."""


def read_nodes(value: Value, reading: Reading) -> Nodes:
    """Return the nodes under the key `nodes`.

    Raises:
        ParseError: the value is not a mapping, or has too many nodes.
    """
    entries = entries_of(value, reading, "nodes")
    if not entries:
        problem = "`nodes`: expected at least one node, found none."
        reading.diagnostics.note(value.mark, problem, "add `name: {use: …}`.")
    if len(entries) > NODES_MAX:
        problem = f"`nodes`: expected at most {NODES_MAX:,} nodes, found {len(entries):,}."
        fix = "give parts of it to agents of their own."
        raise reading.diagnostics.error(value.mark, problem, fix)
    return {entry.key: _read_node(entry, reading) for entry in entries}


def _read_node(entry: Entry, reading: Reading) -> AnyNode | None:
    flaw = "it is where runs end" if entry.key == END.value else node_flaw_of(entry.key)
    if flaw:
        fix = f"choose a word of at most {NAME_MAX} characters, other than END."
        problem = f"{entry.key!r:.60} is not a node's name: {flaw}."
        reading.diagnostics.note(entry.mark, problem, fix)
    if (name := entry_at(entry.value, "name")) is not None:
        problem = f"`name`: the key of the node is its name, {entry.key!r:.60}."
        reading.diagnostics.note(name.mark, problem, "remove the key.")
    data = plain_data(entry.value)
    if isinstance(data, dict):
        # An invalid name is already reported; a valid one here avoids a second problem.
        data["name"] = "node" if flaw else entry.key
    try:
        return NODE.validate_python(data, context=reading)
    except ValidationError as error:
        reading.diagnostics.report(error, entry.value, entry.key)
        return None


def read_servers(value: Value, place: IncludePlace, reading: Reading) -> Servers:
    """Return the MCP servers under the key `mcp`.

    Raises:
        ParseError: the value is not a mapping.
    """
    servers = Servers()
    for entry in entries_of(value, reading, "mcp"):
        if flaw := flaw_of(entry.key):
            problem = f"{entry.key!r:.60} is not a server's name: {flaw}."
            reading.diagnostics.note(entry.mark, problem, "choose another.")
        with suppress(ParseError):
            servers[entry.key] = _read_server(entry, place, reading)
    return servers


def _read_server(entry: Entry, place: IncludePlace, reading: Reading) -> PinnedServer:
    values = parse_fields(SERVER, entry.value, reading, entry.key)
    pins, mark = values["pinned"], value_at(entry.value, ("pinned",)).mark
    try:
        if isinstance(pins, str):
            path = place.file(pins, mark, reading.diagnostics, "pinned")
            pins = pins_of(bytes_of(path, Diagnostics(pins, reading.diagnostics.problems)))
        server = pinned_server(entry.key, pins, values)
        server.tools(reading.registry)
    except ConfigError as error:
        problem, _, fix = str(error).partition(" Fix: ")
        raise reading.diagnostics.error(entry.mark, problem, fix or "look at the file.") from error
    except ValueError as error:
        problem = f"`pinned`: {values['pinned']!r:.80} has no definitions of tools: {error}."
        fix = "write it again: graphloop mcp pin SERVER -o FILE."
        raise reading.diagnostics.error(mark, problem, fix) from error
    return server
