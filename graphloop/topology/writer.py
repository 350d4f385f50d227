"""Writer: convert a `Document` to plain data, to YAML or to a fingerprint.

A written document reads back as an equal document; otherwise an error names each part that a file
cannot represent. The fingerprint is the hash of a canonical form, which leaves out defaults, names
every outcome and sorts its keys. Files with equal content therefore have equal fingerprints.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeAlias, cast

import msgspec
import yaml
from pydantic import ValidationError

from ..errors import ConfigError, GraphError, Problem
from ..node_protocol import is_node
from ..outcomes import Outcome, outcome_name
from ..policy import Rule
from ..rules import rules_to_data
from .compose import DEPTH_MAX
from .conditions import STOPS
from .diagnostics import FAULT, Diagnostics, TopologyError
from .document import AgentEntry, AnyNode, Document, NodeWithGraphs, graphs_run
from .models import ELSE, Reading
from .node_models import NODE, SHORT, NodeKind, Renamed, class_fields, meaning_of
from .reader import read_text
from .registration import LIBRARY, Registry
from .schema import VERSION
from .tree import DIGITS_MAX, is_text

__all__ = ["UnwritableError", "data_of", "fingerprint_of", "node_data", "topology_text", "yaml_of"]

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

WIDTH: Final = 100
WHOLE_END: Final = 10**DIGITS_MAX
STOP_WORDS: Final[Mapping[object, str]] = {made: word for word, made in STOPS.items()}
CHANGE: Final = "change it, or run the graph from Python."


class UnwritableError(Exception):
    """A file cannot represent a value; the message contains the fix."""


def data_of(document: Document, registry: Registry, *, shortened: bool = True) -> dict[str, Data]:
    """Convert a document to plain data; with `shortened`, rows use `else` for equal targets.

    Raises:
        GraphError: a file cannot represent a node; the error names each such node and the reason.
    """
    return {"graphloop": VERSION, **_graph_data(document, registry, shortened=shortened)}


def fingerprint_of(document: Document, registry: Registry) -> str:
    """Return the SHA-256 of a document's canonical form.

    Raises:
        GraphError: a file cannot represent a node; see `data_of`.
    """
    data = data_of(document, registry, shortened=False)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def yaml_of(data: Mapping[str, Data]) -> str:
    """Convert plain data to YAML text that `compose` reads back as equal data."""
    text: str = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    return text


def topology_text(document: Document, registry: Registry) -> str:
    """Convert a document to YAML text that `read_text` reads back as an equal document.

    Raises:
        GraphError: a file cannot represent a node, or the text does not read back as an equal
            document. The error names each such node and the reason.
    """
    data = data_of(document, registry)
    if _is_too_deep(data):
        problem = f"its values stand more than {DEPTH_MAX} levels deep."
        fix = "give its agents files of their own, which include one another (`include`)."
        raise _cannot_write(document, problem, fix)
    text = yaml_of(data)
    try:
        copy = read_text(text, registry)
    except TopologyError as error:
        problems = [f"could not be read: {problem.found}" for problem in error.problems]
        raise _cannot_write(document, "; ".join(problems), CHANGE) from error
    if copy != document:
        nodes = document.graph.nodes
        changed = [name for name, node in nodes.items() if copy.graph.nodes[name] != node]
        problem = f"reads back as another graph ({', '.join(changed) or 'its agents or rules'})."
        fix = "give the nodes an `__eq__` by their parameters, as dataclasses have."
        raise _cannot_write(document, problem, fix)
    return text


def _cannot_write(document: Document, problem: str, fix: str) -> GraphError:
    return GraphError(document.graph.name, [Problem("the file", problem, fix)])


def _is_too_deep(data: Data) -> bool:
    level = [data]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def _graph_data(document: Document, registry: Registry, *, shortened: bool) -> dict[str, Data]:
    graph = document.graph
    agents: dict[str, Data] = {
        name: _agent_data(entry, registry, shortened=shortened)
        for name, entry in document.agents.items()
    }
    # The order of `ignore` has no effect, so the canonical form sorts it.
    ignore = document.ignore.items() if shortened else sorted(document.ignore.items())
    data: dict[str, Data] = {
        "name": graph.name,
        "description": document.description,
        "instructions": document.instructions,
        "prompt": document.prompt,
        "start": graph.start,
        "tools": [*document.listed_tools],
        "mcp": {
            name: _plain_data(server.plain, registry) for name, server in document.servers.items()
        },
        "agents": agents,
        "nodes": _nodes_data(document, registry),
        "edges": {name: _row_data(row, shortened=shortened) for name, row in graph.table.items()},
        "rules": [{**rule} for rule in rules_to_data(document.rules)],
        "ignore": [
            {**({"node": node} if node else {}), "code": code, "reason": reason}
            for (node, code), reason in ignore
        ],
    }
    return {key: value for key, value in data.items() if value not in ("", [], {})}


def _nodes_data(document: Document, registry: Registry) -> dict[str, Data]:
    graph = document.graph
    problems: list[Problem] = []
    nodes: dict[str, Data] = {}
    for name, node in graph.nodes.items():
        try:
            nodes[name] = {**node_data(node, registry)}
        except UnwritableError as error:
            problems.append(Problem(f"node {name!r}", f"cannot be written: {error}.", CHANGE))
        if ELSE in map(outcome_name, graph.table[name]):
            problem = "has an outcome named `else`, which stands for the rest in a file."
            problems.append(Problem(f"node {name!r}", problem, "rename the class."))
    if problems:
        raise GraphError(graph.name, problems)
    return nodes


def _row_data(row: Mapping[type[Outcome], str], *, shortened: bool) -> dict[str, Data]:
    """Convert a row to data; with `shortened`, `else` replaces the last cells of equal target."""
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


def _agent_data(entry: AgentEntry, registry: Registry, *, shortened: bool) -> Data:
    data: dict[str, Data] = {"description": entry.description} if entry.description else {}
    if entry.takes_over:
        data["takes_over"] = True
    if entry.place != "here":
        data["place"] = entry.place
    if entry.document is None:
        return {**data, "given": True}
    return {**data, "graph": _graph_data(entry.document, registry, shortened=shortened)}


class _Dumper(yaml.SafeDumper):
    """Writes YAML without aliases, and writes each innermost mapping or list on one line."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the dumper gives it.
        """Return True, so that a repeated value is written in full each time."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if not text.replace("\n", "").isprintable():
        # Double quotes allow escapes: YAML versions disagree on which characters break lines.
        style: str | None = '"'
    else:
        # Set explicitly: PyYAML quotes the special words of YAML 1.1, and 1.2 has others.
        style = None if is_text(text) and text != "<<" else "'"
    # PyYAML's stub of `represent_scalar` lacks the type of one parameter.
    represent = cast("Callable[..., yaml.Node]", dumper.represent_scalar)  # pyright: ignore[reportUnknownMemberType]
    return represent("tag:yaml.org,2002:str", text, style)


def _represent_mapping(dumper: yaml.SafeDumper, data: dict[str, Data]) -> yaml.Node:
    flat = not any(map(_has_table, data.values()))
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=flat)


def _represent_list(dumper: yaml.SafeDumper, data: list[Data]) -> yaml.Node:
    flat = not any(isinstance(item, dict | list) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


def _has_table(data: Data) -> bool:
    """Whether a value is a mapping with entries, or a list that contains a mapping."""
    if isinstance(data, list):
        return any(isinstance(item, dict) for item in data)
    return isinstance(data, dict) and bool(data)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
_Dumper.add_representer(list, _represent_list)


def node_data(node: AnyNode, registry: Registry) -> dict[str, Data]:
    """Return the mapping that describes a node in a file, without parameters at their defaults.

    Raises:
        UnwritableError: a file cannot represent the node.
    """
    data = _node_data(node, registry, is_part=False)
    reading = Reading(Diagnostics("the node"), registry, graphs_run([node]))
    try:
        copy = NODE.validate_python({**data, "name": node.name}, context=reading)
    except ValidationError as error:
        raise UnwritableError(
            "; ".join(map(_why_invalid, error.errors(include_url=False)))
        ) from error
    if copy != node:
        raise UnwritableError(
            f"{node!r:.80} cannot be written: its text, {data!r:.200}, reads back as another node. "
            "Fix: register a class of your own with @registry.node"
        )
    return data


def _why_invalid(details: Mapping[str, Any]) -> str:
    if details["type"] == FAULT:
        return f"{details['msg']} {details['ctx']['fix']}"
    place = ".".join(map(str, details["loc"]))
    return f"`{place}`: {details['msg']}, found {details['input']!r:.60}"


def _node_data(node: AnyNode, registry: Registry, *, is_part: bool) -> dict[str, Data]:
    """Convert a node to data; include its name only if it is nested in another node."""
    plain = node.node if isinstance(node, NodeWithGraphs) else node
    name = str(getattr(plain, "name", ""))
    for use in (*LIBRARY, *registry.names("node")):
        meaning = meaning_of(use, registry)
        if isinstance(meaning, NodeKind):
            if type(plain) is meaning.made:
                return {
                    "use": use,
                    **_parameter_data(plain, name, meaning, registry, is_part=is_part),
                }
        elif meaning is not None and plain in (meaning, _under_name(meaning, name)):
            return {"use": use, "name": name} if is_part and meaning.name != name else {"use": use}
    raise UnwritableError(
        f"{type(plain).__name__} {name!r} is made in Python and is not registered, so no file "
        "could name it: register it with @registry.node"
    )


def _under_name(node: AnyNode, name: str) -> AnyNode:
    return node.renamed(name) if isinstance(node, Renamed) else node


def _parameter_data(
    node: AnyNode, name: str, kind: NodeKind, registry: Registry, *, is_part: bool
) -> dict[str, Data]:
    keys = {key: key in kind.model.needed for key in kind.model.forms if key != "use"}
    if is_part:
        return _field_data(node, kind.make, {**keys, "name": False}, registry)
    del keys["name"]
    return _field_data(node, partial(kind.make, name=name), keys, registry)


def _field_data(
    value: object, make: Callable[..., object], keys: Mapping[str, bool], registry: Registry
) -> dict[str, Data]:
    """Convert an object's parameters to data; leave out optional parameters at their defaults.

    `keys` maps each parameter to whether it is required.
    """
    values = {key: getattr(value, key, None) for key in keys}
    written: dict[str, Data] = {}
    for key, must in keys.items():
        without = {other: inner for other, inner in values.items() if other != key}
        if not must and _makes_same(make, without, value):
            values = without
            continue
        try:
            written[key] = _plain_data(values[key], registry, key)
        except UnwritableError as error:
            raise UnwritableError(f"`{key}`: {error}") from error
    return written


def _makes_same(make: Callable[..., object], values: Mapping[str, object], value: object) -> bool:
    try:
        return bool(make(**values) == value)
    except (ConfigError, TypeError):
        return False


def _plain_data(value: object, registry: Registry, key: str = "") -> Data:
    """Convert a Python value to plain data; `key` is the name of its parameter."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _plain_number(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)  # isinstance leaves its types open.
        return {
            str(_plain_data(name, registry)): _plain_data(inner, registry)
            for name, inner in entries.items()
        }
    if isinstance(value, tuple | list | frozenset):
        if key == "caps":
            return _plain_data(dict(cast("Iterable[tuple[object, object]]", value)), registry)
        items = [_plain_data(item, registry) for item in cast("Iterable[object]", value)]
        items = sorted(items, key=str) if isinstance(value, frozenset) else items
        return _single_or_list(items) if key == "after" else items
    return _object_data(value, registry)


def _single_or_list(items: list[Data]) -> Data:
    return items[0] if len(items) == 1 else items


def _object_data(value: object, registry: Registry) -> Data:
    """Convert an outcome type, rule, node, stop condition, dataclass or struct to plain data."""
    made: type = type(value)
    if isinstance(value, type):
        return outcome_name(cast("type[Outcome]", value))
    if isinstance(value, Rule):
        options = {"when": value.condition, "ttl_s": value.ttl_s, "reason": value.reason}
        kept = {name: _plain_data(option, registry) for name, option in options.items() if option}
        return {value.verdict: _single_or_list([*value.tools]), **kept}
    if is_node(value):
        return _node_data(value, registry, is_part=True)
    if word := STOP_WORDS.get(made):
        return {word: _plain_data(getattr(value, class_fields(made)[0][0]), registry)}
    if not dataclasses.is_dataclass(made) and not issubclass(made, msgspec.Struct):
        raise UnwritableError(f"{value!r:.60} has no form in a file")
    written = _field_data(value, made, dict(class_fields(made)), registry)
    short = SHORT.get(made, "")
    return written[short] if [*written] == [short] else written


def _plain_number(number: float) -> int | float:
    """Return a number as an int if it has no fraction.

    Raises:
        UnwritableError: the number has too many digits.
    """
    if abs(number) < WHOLE_END:
        return int(number) if number == int(number) else number
    try:
        if float(number) == number:
            return float(number)
    except OverflowError:
        pass  # An int that is too large for a float.
    raise UnwritableError(f"{number!r:.60} has more than {DIGITS_MAX} digits")
