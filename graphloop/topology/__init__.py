"""Topology files: graphs as YAML.

Owns reading, writing, includes and the JSON Schema of the files.
Refuses a callable that was never registered, and tells every fault of a file with its line.
Start with `document.py`, then `reader.py`.
"""

from .agents import with_agents
from .conditions import rules_of_texts
from .diagnostics import TopologyError
from .document import AgentEntry, Document, document_of
from .includes import SUFFIXES
from .loaded import Topology, dump, fingerprint, load
from .reader import read_path, read_text
from .registration import RegisteredNames, Registry, registry
from .schema import topology_schema
from .writer import data_of, fingerprint_of, yaml_of

__all__ = [
    "SUFFIXES",
    "AgentEntry",
    "Document",
    "RegisteredNames",
    "Registry",
    "Topology",
    "TopologyError",
    "data_of",
    "document_of",
    "dump",
    "fingerprint",
    "fingerprint_of",
    "load",
    "read_path",
    "read_text",
    "registry",
    "rules_of_texts",
    "topology_schema",
    "with_agents",
    "yaml_of",
]
