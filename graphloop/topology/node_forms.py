"""Nodes in a file: `use` says which kind, the other keys are its parameters.

What a `use` stands for is looked up among the library's nodes, then among what is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, cast, runtime_checkable

from ..errors import ConfigError
from ..node_protocol import Node, is_node
from ..outcomes import Outcome
from .forms import Data, Reading, Text, Unwritable, Writing
from .included import Included, with_graphs
from .library import NodeKind, kind_of_class, node_kind
from .record import Parameter, Record, mapping_of, read_fields
from .registration import FROM_OUTSIDE
from .tree import Fields, Value
from .uses import LIBRARY

__all__ = ["Renamed", "read_node", "read_part", "registered_nodes", "write_node", "write_part"]

NAMED: Final = Parameter(Text(filled=True), doc="The node's name, where it is not its kind's.")


@runtime_checkable
class Renamed(Protocol):
    """A registered node that can stand in a graph under other names than its own."""

    def renamed(self, name: str, /) -> Node[Any, Outcome]:
        """Return the same node under another name."""
        ...


def read_node(value: Value, to: Reading, name: str) -> Node[Any, Outcome]:
    """Return the node of that name, which stands in a file as `value`.

    Raises:
        Misread: there is none; why, is among the complaints.
    """
    title = f"node {name!r}"
    use, rest = _use_of(value, to, title)
    found = _meant(use, value, to)
    if isinstance(found, NodeKind):
        record = replace(found.record, title=title, make=partial(found.record.make, name=name))
        return _node(record.read(rest, to), to)
    read_fields(title, {}, rest.entries, rest.mark, to)
    return _node(_called(found, name, value, to), to)


def read_part(value: Value, to: Reading) -> Node[Any, Outcome]:
    """Return a node that stands within another, and has its kind's name if it is given none.

    Raises:
        Misread: there is none; why, is among the complaints.
    """
    use, rest = _use_of(value, to, "a node")
    found = _meant(use, value, to)
    if isinstance(found, NodeKind):
        return _node(_part_record(found).read(rest, to), to)
    given = read_fields(f"node {use!r}", {"name": NAMED}, rest.entries, rest.mark, to)
    return _node(_called(found, str(given.get("name", found.name)), value, to), to)


def write_node(node: object, to: Writing) -> dict[str, Data]:
    """Return what stands in a file for a node, under its name.

    Raises:
        Unwritable: nothing can.
    """
    plain = node.node if isinstance(node, Included) else node
    name = str(getattr(plain, "name", ""))
    for kind in _kinds(to):
        if type(plain) is kind.made:
            make = partial(kind.record.make, name=name)
            return {"use": kind.use, **_fields(replace(kind.record, make=make), plain, to)}
    for use, one in registered_nodes(to):
        if one == plain or (isinstance(one, Renamed) and one.renamed(name) == plain):
            return {"use": use}
    raise Unwritable(
        f"{type(plain).__name__} {name!r} is made in Python and is not registered, so no file "
        "could name it: register it with @registry.node"
    )


def write_part(node: object, to: Writing) -> Data:
    """Return what stands in a file for a node within another."""
    plain = node.node if isinstance(node, Included) else node
    for kind in _kinds(to):
        if type(plain) is kind.made:
            return {"use": kind.use, **_fields(_part_record(kind), plain, to)}
    written = write_node(plain, to)
    own = to.names.find("node", str(written["use"]))
    name = str(getattr(plain, "name", ""))
    return written if getattr(own, "name", "") == name else {**written, "name": name}


def registered_nodes(to: Writing) -> Iterator[tuple[str, Node[Any, Outcome]]]:
    """Yield the nodes that are registered as they are, not as classes."""
    for use in to.names.known("node"):
        found = to.names.find("node", use)
        if is_node(found):
            yield use, found


def _use_of(value: Value, to: Reading, title: str) -> tuple[str, Fields]:
    """Return what a node is made by, and its other keys."""
    entries = mapping_of(value, title, to)
    use = next((one for one in entries if one.key == "use"), None)
    if use is None:
        fix = f"add `use: …`, one of {', '.join(_uses(to))}."
        raise to.complaints.misread(value.mark, f"{title} lacks `use`.", fix)
    rest = tuple(one for one in entries if one is not use)
    return Text(filled=True).read(use.value, to), Fields(rest, value.mark)


def _meant(use: str, value: Value, to: Reading) -> NodeKind | Node[Any, Outcome]:
    at = next(one.value for one in mapping_of(value, use, to) if one.key == "use")
    if use in LIBRARY:
        return node_kind(use)
    try:
        found = to.names.find("node", use)
        if isinstance(found, type):
            return kind_of_class(use, found)
    except ConfigError as error:
        raise to.complaints.misread(at.mark, f"{error}.", "mend it in Python.") from error
    if is_node(found):
        return found
    what = "there is no kind of node" if found is None else f"{found!r:.60} is no node, but"
    raise to.complaints.misread(
        at.mark,
        f"{what} {use!r}.{to.complaints.nearest(use, _uses(to))}",
        f"choose one of {', '.join(_uses(to))}, or register your own with @registry.node "
        f"({FROM_OUTSIDE}).",
    )


def _uses(to: Reading) -> tuple[str, ...]:
    return (*LIBRARY, *to.names.known("node"))


def _kinds(to: Writing) -> Iterator[NodeKind]:
    for use in LIBRARY:
        yield node_kind(use)
    for use in to.names.known("node"):
        found = to.names.find("node", use)
        if isinstance(found, type):
            yield kind_of_class(use, found)


def _part_record(kind: NodeKind) -> Record:
    parameters: Mapping[str, Parameter] = {**kind.record.parameters, "name": NAMED}
    return replace(kind.record, parameters=parameters)


def _fields(record: Record, node: object, to: Writing) -> dict[str, Data]:
    written = record.write(node, to)
    assert isinstance(written, dict), "a node's record has no short form"
    return written


def _node(made: object, to: Reading) -> Node[Any, Outcome]:
    known = {name: graph for name, graph in to.agents.items() if graph is not None}
    # The records of nodes make nodes.
    return with_graphs(cast("Node[Any, Outcome]", made), known)


def _called(node: Node[Any, Outcome], name: str, value: Value, to: Reading) -> Node[Any, Outcome]:
    if node.name == name:
        return node
    if isinstance(node, Renamed):
        return node.renamed(name)
    found = f"the registered node {node.name!r} can stand in a graph under its own name only."
    raise to.complaints.misread(value.mark, found, f"name it {node.name!r} here, too.")
