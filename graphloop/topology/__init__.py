"""Topology files: graphs written as YAML or JSON.

This package reads and writes the files, resolves their includes and generates their JSON Schema.
It refuses a callable that is not registered, and reports every problem of a file with its line.
Start with `document.py`, then `reader.py`.
"""

from .agents import with_agents
from .conditions import rules_of_texts
from .diagnostics import TopologyError
from .includes import SUFFIXES
from .loaded import Topology, dump, fingerprint, load
from .registration import Registry, registry
from .schema import topology_schema

__all__ = [
    "SUFFIXES",
    "Registry",
    "Topology",
    "TopologyError",
    "dump",
    "fingerprint",
    "load",
    "registry",
    "rules_of_texts",
    "topology_schema",
    "with_agents",
]
