"""Topologies as data: graphs written down in YAML or JSON, read strictly and written back."""

from .diagnostics import TopologyError
from .document import AgentEntry, Document, document_of
from .reader import read_path, read_text
from .registration import Names, Registry, registry
from .schema import schema_of
from .writer import data_of, fingerprint_of, yaml_of

__all__ = [
    "AgentEntry",
    "Document",
    "Names",
    "Registry",
    "TopologyError",
    "data_of",
    "document_of",
    "fingerprint_of",
    "read_path",
    "read_text",
    "registry",
    "schema_of",
    "yaml_of",
]
