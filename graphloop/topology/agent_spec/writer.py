"""Writer: a topology as a document of Open Agent Spec, with a report of what others will not see.

The topology itself travels along in the document's metadata, and is what is read back here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..document import Document
from ..forms import Data
from ..registration import Names
from ..writer import data_of, yaml_of
from .findings import AgentSpecReport
from .sheet import METADATA, Sheet
from .write_agents import AgentWriter
from .write_flows import FlowWriter

__all__ = ["write_agent_spec"]


def write_agent_spec(
    document: Document, names: Names, *, carry: bool = True
) -> tuple[str, AgentSpecReport]:
    """Return a document of Open Agent Spec in JSON, and what became of each part.

    Args:
        document: the topology.
        names: what its file may name.
        carry: whether the topology itself travels along in the metadata.

    Raises:
        GraphError: no file can hold the topology, or no way leads to its end.
    """
    sheet = Sheet()
    text = yaml_of(data_of(document, names))
    agents = AgentWriter(sheet, names)
    root = FlowWriter(sheet, names, agents).any(document, document.graph.name)
    _left(document, document.graph.name, sheet)
    if carry:
        said = f"the whole topology stands in the metadata ({METADATA!r}), which others do not read"
        sheet.findings.add("exact", "topology", document.graph.name, said)
    metadata: Mapping[str, Data] = {METADATA: text} if carry else {}
    return sheet.json(root, metadata), sheet.findings.report


def _left(document: Document, place: str, sheet: Sheet) -> None:
    """Say what no component holds."""
    for number, _ in enumerate(document.rules, 1):
        said = "a temporal rule has no counterpart: nobody else keeps it"
        sheet.findings.add("refused", "rule", f"{place}/rule {number}", said)
    if document.prompt:
        said = "what is asked when nobody asks anything else has no counterpart"
        sheet.findings.add("refused", "prompt", place, said)
    for node, code in document.ignore:
        said = f"that {code} is set aside has no counterpart"
        sheet.findings.add("refused", "ignore", f"{place}/{node}", said)
    for name, entry in document.agents.items():
        if entry.document is not None:
            _left(entry.document, f"{place}/{name}", sheet)
