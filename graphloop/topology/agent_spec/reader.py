"""Reader: a document of Open Agent Spec as a topology's data, with a report of what became of it.

As strict as the reader of topologies: sizes are bounded, every key has to be known, nothing is
evaluated, and all mistakes are told at once. What is no mistake, but has no counterpart, is told
by the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ...errors import GraphError
from ..compose import Fields, Scalar, compose
from ..document import Document
from ..forms import Data, Reading, put_off
from ..node_forms import read_part
from ..problems import Complaints, Misread, TopologyError
from ..reader import VERSION, read_text
from ..registration import Category, Names, Registry
from ..source import bytes_of, text_of
from ..writer import yaml_of
from .components import Component, Components
from .findings import AgentSpecReport, Findings
from .normal import Normal, difference, normal_form
from .read_agents import AgentReader, Context
from .read_flows import FlowReader
from .sheet import METADATA
from .writer import write_agent_spec

__all__ = ["Read", "read_agent_spec"]

LEFT_OUT: Final = "take it out of the document, or allow what is refused to be left out."
CARRIED: Final = (
    f"remove {METADATA!r} from the metadata to read the rest; or, if you trust whoever wrote it, "
    "allow what is refused: the topology is taken as it stands."
)


@final
@dataclass(frozen=True)
class Read:
    """What was read.

    Attributes:
        document: the topology.
        names: what its names mean; tools that nobody looked for stand for nothing.
        report: what became of the document's parts.
    """

    document: Document
    names: Names
    report: AgentSpecReport


def read_agent_spec(
    given: str | Path,
    names: Names,
    *,
    allow_refused: bool = False,
    unregistered: bool = False,
) -> Read:
    """Return the topology that a document describes.

    Args:
        given: the document, JSON or YAML, or its path.
        names: what is registered.
        allow_refused: whether what has no counterpart is left out: runs end where it stood. A
            topology in the metadata is taken as it stands, with what the rest does not show.
        unregistered: whether tools and functions may be named that are not registered.

    Raises:
        TopologyError: the document is wrong, or something in it is refused; with every problem.
    """
    title = str(given) if isinstance(given, Path) else "agent-spec"
    complaints = Complaints(title)
    try:
        content = bytes_of(given, complaints) if isinstance(given, Path) else given
        json = isinstance(given, Path) and given.suffix == ".json"
        tree = compose(text_of(content, complaints), complaints, json=json)
        to = Reading(complaints, names, read_part)
        components = Components(tree, to)
        root = components.root()
        form = normal_form(tree, complaints)
        kept = _kept(root)
        if kept is not None:
            put_off(failed=bool(complaints.problems))
            carried = _carried(kept, form, root, names, complaints)
            return _allowed(carried, title, CARRIED, allow_refused=allow_refused)
        context = Context(components, to, Findings(title), None if unregistered else names)
        data = _data(root, context)
        put_off(failed=bool(complaints.problems))
    except Misread:
        complaints.refuse()
        raise AssertionError("what is misread is among the complaints") from None
    report = context.findings.report
    if data is None:
        raise TopologyError(title, report.problems(LEFT_OUT))
    known = _known(context.registered) if unregistered else names
    document = _made(data, known, root, complaints)
    return _allowed(Read(document, known, report), title, LEFT_OUT, allow_refused=allow_refused)


def _made(
    data: Mapping[str, Data], known: Names, root: Component, complaints: Complaints
) -> Document:
    """Return the topology that a document's data are.

    Raises:
        TopologyError: it is none; nobody sees its text, so what is wrong is told of the document.
    """
    try:
        return read_text(yaml_of({"graphloop": VERSION, **data}), known)
    except TopologyError as error:
        for one in error.problems:
            found = f"what becomes of {root.kind} {root.id!r:.80} is no topology: {one.found}"
            complaints.note(root.mark, found, f"in the document, {one.fix}")
    complaints.refuse()
    raise AssertionError("what is wrong with it is among the complaints")


def _allowed(read: Read, title: str, fix: str, *, allow_refused: bool) -> Read:
    if read.report.refused and not allow_refused:
        raise TopologyError(title, read.report.problems(fix))
    return read


def _data(root: Component, context: Context) -> dict[str, Data] | None:
    agents = AgentReader(context)
    data = FlowReader(context, agents).any(root)
    for id_, entry in context.components.referenced.items():
        if id_ not in context.components.used and not context.findings.report.refused:
            said = "nothing refers to it; it is left out"
            context.findings.add("approximated", "component", id_, said, entry.mark)
    return data


def _kept(root: Component) -> Scalar | None:
    """Return the topology that travels along in the metadata."""
    metadata = root.value("metadata")
    if not isinstance(metadata, Fields):
        return None
    found = next((one.value for one in metadata.entries if one.key == METADATA), None)
    return found if isinstance(found, Scalar) and isinstance(found.value, str) else None


def _carried(
    kept: Scalar,
    form: Mapping[str, Normal],
    root: Component,
    names: Names,
    complaints: Complaints,
) -> Read:
    """Return the topology that travels along, if the rest of the document still says the same.

    A person reads the rest. So whatever of the topology does not show there is told once more.
    """
    title = f"{complaints.file}, metadata {METADATA!r}"
    document = read_text(str(kept.value), names, title)
    try:
        text, written = write_agent_spec(document, names)
    except GraphError as error:
        why = "; ".join(str(one) for one in error.problems)
        found = f"the topology in the metadata is none that the rest could say: {why}"
        raise complaints.misread(kept.mark, found, CARRIED) from None
    other = Complaints(title)
    differs = difference(form, normal_form(compose(text, other, json=True), other))
    if differs:
        found = (
            f"the document was changed after the topology in its metadata was written down: "
            f"{differs!r:.80} is not what that says."
        )
        fix = (
            f"remove {METADATA!r} from the metadata to read the rest, take the change back, or "
            "register the tools that it was written with."
        )
        raise complaints.misread(kept.mark, found, fix)
    findings = Findings(complaints.file)
    said = f"the topology in its metadata ({METADATA!r}): all that the rest shows is the same"
    findings.add("exact", root.kind, root.id, said, root.mark)
    for one in written:
        if one.verdict != "exact":
            said = f"the rest of the document does not show what the topology has: {one.said}"
            findings.add(one.verdict, one.kind, one.name, said, kept.mark)
    report = AgentSpecReport(findings.report.findings, is_carried=True)
    return Read(document, names, report)


def _known(registered: dict[Category, dict[str, None]]) -> Names:
    """Return names that are known, and mean nothing."""
    known = Registry()
    for name in registered.get("tool", {}):
        known.tool(object(), name=name)
    for name in registered.get("function", {}):
        known.function(_nothing, name=name)
    return Names(known, installed=False)


def _nothing() -> None:
    raise AssertionError("what stands for a name is never called")
