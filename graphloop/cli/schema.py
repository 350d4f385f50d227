"""Print the JSON Schema of topology files, for editors.

  graphloop schema -o topology.schema.json
  graphloop schema --with desk.py -o topology.schema.json
  # yaml-language-server: $schema=topology.schema.json  (a first line)

Nodes of your own are taken as they are; with --with, those that it registers are known, and all
others are marked.
"""

from __future__ import annotations

import json
from typing import Annotated, TypeAlias

import typer

from ..topology import RegisteredNames, topology_schema
from .errors import Status
from .options import Registers, Text
from .output import print_file, stdout_suffix, write_file
from .target import register

__all__ = ["schema"]

Output: TypeAlias = Annotated[
    Text, typer.Option("-o", "--output", metavar="FILE", help="The file; - is stdout.")
]


def schema(output: Output = None, registers: Registers = None) -> Status:
    """Write the schema into a file, or print it.

    Raises:
        ConfigError: the file cannot be written.
    """
    register(registers)
    found = topology_schema(RegisteredNames(), open_to_others=not registers)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    if output is None or stdout_suffix("-o", output, (".json",)):
        print_file(text)
    else:
        write_file("-o", output, text)
    return Status.OK
