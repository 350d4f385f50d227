"""Topology files: graphs as YAML.

Owns reading, writing, includes and the JSON Schema of the files.
Refuses a callable that was never registered, and tells every fault of a file with its line.
Start with `document.py`.
"""

from .diagnostics import TopologyError
from .document import AgentEntry, Document, document_of
from .reader import read_path, read_text
from .registration import RegisteredNames, Registry, registry
from .schema import topology_schema
from .writer import data_of, fingerprint_of, yaml_of

__all__ = [
    "AgentEntry",
    "Document",
    "RegisteredNames",
    "Registry",
    "TopologyError",
    "data_of",
    "document_of",
    "fingerprint_of",
    "read_path",
    "read_text",
    "registry",
    "topology_schema",
    "yaml_of",
]
