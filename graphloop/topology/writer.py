"""Writer: a `Document` as plain data, as YAML, and as one fingerprint.

What is written reads back as the same; whatever a file cannot say is an error that names it. The
canonical form leaves out defaults, names every outcome, and sorts its keys: two files that say the
same have one fingerprint, however they are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, cast

import yaml

from ..errors import GraphError, Problem
from ..graph import NodeGraph
from ..outcomes import Outcome, outcome_name
from ..rules import rules_to_data
from .compose import DEPTH_MAX
from .diagnostics import TopologyError
from .document import AgentEntry, Document
from .models import ELSE
from .node_writer import Data, UnwritableError, node_data
from .reader import read_text
from .registration import RegisteredNames
from .schema import VERSION
from .tree import is_text

__all__ = ["data_of", "fingerprint_of", "topology_text", "yaml_of"]

WIDTH: Final = 100


def data_of(
    document: Document, names: RegisteredNames, *, shortened: bool = True
) -> dict[str, Data]:
    """Return what stands in a file for a document, as plain data.

    Args:
        document: the document.
        names: what is known by name where it will be read.
        shortened: whether `else` may stand for the last outcomes of a row.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return {"graphloop": VERSION, **_graph_data(document, names, shortened=shortened)}


def fingerprint_of(document: Document, names: RegisteredNames) -> str:
    """Return the SHA-256 of the canonical form, in hexadecimal digits.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    data = data_of(document, names, shortened=False)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def yaml_of(data: Mapping[str, Data]) -> str:
    """Return data as YAML that `compose` reads as the same data."""
    written: str = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    return written


def topology_text(document: Document, names: RegisteredNames) -> str:
    """Return a document as YAML that `read_text` reads as an equal document.

    Raises:
        GraphError: naming each node that no file can hold, and why; or what keeps the text from
            being read as what it was.
    """
    data, name = data_of(document, names), document.graph.name
    if _depth(data) > DEPTH_MAX:
        found = f"its values stand more than {DEPTH_MAX} levels deep."
        fix = "give its agents files of their own, which include one another (`include`)."
        raise GraphError(name, [Problem("the file", found, fix)])
    text = yaml_of(data)
    try:
        read = read_text(text, names)
    except TopologyError as error:
        fix = "change it, or run the graph from Python."
        told = [
            Problem("the file", f"could not be read: {each.found}", fix) for each in error.problems
        ]
        raise GraphError(name, told) from error
    if read != document:
        nodes = document.graph.nodes
        other = [name for name, node in nodes.items() if read.graph.nodes[name] != node]
        found = f"reads back as another graph ({', '.join(other) or 'its agents, or its rules'})."
        fix = "give the nodes an `__eq__` by their parameters, as dataclasses have."
        raise GraphError(name, [Problem("the file", found, fix)])
    return text


def _depth(data: Data) -> int:
    """Return how many levels deep values stand."""
    levels: list[list[Data]] = [[data]]
    while levels[-1]:
        inner = [
            [*value.values()] if isinstance(value, dict) else value
            for value in levels[-1]
            if isinstance(value, dict | list)
        ]
        levels.append([value for values in inner for value in values])
    return len(levels) - 1


def _graph_data(document: Document, names: RegisteredNames, *, shortened: bool) -> dict[str, Data]:
    graph = document.graph
    problems: list[Problem] = []
    nodes: dict[str, Data] = {}
    for name, node in graph.nodes.items():
        try:
            nodes[name] = {**node_data(node, names)}
        except UnwritableError as error:
            fix = "change it, or run the graph from Python."
            problems.append(Problem(f"node {name!r}", f"cannot be written: {error}.", fix))
        if any(edge.outcome == ELSE for edge in graph.edges if edge.source == name):
            found = "has an outcome named `else`, which stands for the rest in a file."
            problems.append(Problem(f"node {name!r}", found, "rename the class."))
    if problems:
        raise GraphError(graph.name, problems)
    data: dict[str, Data] = {"name": graph.name, "description": document.description}
    data |= {"instructions": document.instructions, "prompt": document.prompt}
    data |= {"start": graph.start, "tools": [*document.tools]}
    agents: dict[str, Data] = {
        name: _agent_data(entry, names, shortened=shortened)
        for name, entry in document.agents.items()
    }
    data |= {"agents": agents, "nodes": nodes, "edges": _rows(graph, shortened=shortened)}
    rules: list[Data] = [{**rule} for rule in rules_to_data(document.rules)]
    ignore: list[Data] = [
        {**({"node": node} if node else {}), "code": code, "reason": reason}
        for (node, code), reason in _ordered(document.ignore, shortened=shortened)
    ]
    data |= {"rules": rules, "ignore": ignore}
    return {key: value for key, value in data.items() if value not in ("", [], {})}


def _rows(graph: NodeGraph[Any], *, shortened: bool) -> dict[str, Data]:
    """Return what stands at `edges` for a graph."""
    return {name: {**_shortened(row, shortened=shortened)} for name, row in graph.table.items()}


def _shortened(row: Mapping[type[Outcome], str], *, shortened: bool) -> dict[str, Data]:
    """Return a row by name; `else` stands for what it would be read as, in the same order."""
    cells = [(outcome_name(outcome), target) for outcome, target in row.items()]
    at = len(cells)
    while (
        at > 0
        and cells[at - 1][1] == cells[-1][1]
        and cells[at - 1 : at + 1] == sorted(cells[at - 1 : at + 1])
    ):
        at -= 1
    if not shortened or len(cells) - at < 2:
        return {**dict(cells)}
    return {**dict(cells[:at]), ELSE: cells[-1][1]}


def _ordered(
    ignore: Mapping[tuple[str, str], str], *, shortened: bool
) -> list[tuple[tuple[str, str], str]]:
    """Return what is set aside as it was written; sorted where only what it says counts."""
    return [*ignore.items()] if shortened else sorted(ignore.items())


def _agent_data(entry: AgentEntry, names: RegisteredNames, *, shortened: bool) -> Data:
    data: dict[str, Data] = {}
    if entry.description:
        data["description"] = entry.description
    if entry.takes_over:
        data["takes_over"] = True
    if entry.document is None:
        return {**data, "given": True}
    return {**data, "graph": _graph_data(entry.document, names, shortened=shortened)}


class _Dumper(yaml.SafeDumper):
    """Writes YAML without references, whose inner tables stand on one line."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the dumper gives it.
        """Write equal values out each time."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if not text.replace("\n", "").isprintable():
        # As escapes: some are line breaks in one version of YAML, and text in another.
        style: str | None = '"'
    else:
        # The dumper's own quotes are for YAML 1.1, whose words are not all of those of 1.2.
        style = None if is_text(text) and text != "<<" else "'"
    # Its stub lacks the type of one parameter.
    represent = cast("Callable[..., yaml.Node]", dumper.represent_scalar)  # pyright: ignore[reportUnknownMemberType]
    return represent("tag:yaml.org,2002:str", text, style)


def _mapping(dumper: yaml.SafeDumper, data: dict[str, Data]) -> yaml.Node:
    flat = not any(map(_has_table, data.values()))
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=flat)


def _listing(dumper: yaml.SafeDumper, data: list[Data]) -> yaml.Node:
    flat = not any(isinstance(item, dict | list) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


def _has_table(data: Data) -> bool:
    """Whether something has its own lines: a mapping, or a list with one in it."""
    if isinstance(data, list):
        return any(isinstance(item, dict) for item in data)
    return isinstance(data, dict) and bool(data)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(list, _listing)
