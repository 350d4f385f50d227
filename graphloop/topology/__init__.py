"""Topology files: graphs as YAML.

Owns reading, writing, includes and the JSON Schema of the files.
Refuses a callable that was never registered, and tells every fault of a file with its line.
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
