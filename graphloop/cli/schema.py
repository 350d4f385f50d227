"""Print the JSON Schema of topology files, for editors.

  graphloop schema -o topology.schema.json
  graphloop schema --with desk.py -o topology.schema.json
  # yaml-language-server: $schema=topology.schema.json  (a first line)

Without --with, an editor accepts every name of a node. With --with, it marks the names that are not
registered.
"""

from __future__ import annotations

import json
from typing import Annotated, TypeAlias

import typer

from ..topology import registry, topology_schema
from .errors import Status
from .modules import register
from .options import Registers, Text
from .output import Destination

__all__ = ["schema_command"]

Output: TypeAlias = Annotated[
    Text, typer.Option("-o", "--output", metavar="FILE", help="The file; - is stdout.")
]


def schema_command(output: Output = None, registers: Registers = None) -> Status:
    """Write the JSON Schema of topology files to a file, or to stdout."""
    register(registers)
    schema = topology_schema(registry, open_to_others=not registers)
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    file = Destination.of("-o", output or "-", (".json",))
    file.write(text)
    return Status.OK
