"""The JSON Schema of topologies, for editors; made of the forms that read them.

A schema cannot say all that the reader says (that an outcome is one of its node's, that a name is
known): what it refuses is refused there too, and whatever is read has its form.
"""

from __future__ import annotations

from typing import Final

from ..temporal.data import rule_schema
from .forms import Schema, Text
from .ignored import IGNORE_KEYS
from .library import NodeKind, kind_of_class, node_kind
from .node_forms import NAMED
from .part_form import PART
from .reader import AGENT_KEYS, KEYS, NEEDED, VERSION
from .registration import Names
from .stop_forms import ConditionForm
from .uses import LIBRARY

__all__ = ["DIALECT", "schema_of"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

SAID: Final = Text(filled=True).schema
ROW: Final[Schema] = {"type": "object", "minProperties": 1, "additionalProperties": SAID}


def schema_of(names: Names, *, open_to_others: bool = False) -> Schema:
    """Return the schema of topologies that name the library's nodes and what is registered.

    Args:
        names: what is registered.
        open_to_others: whether nodes of other kinds are taken as they are: they may be registered
            where the file is read.
    """
    return {
        "$schema": DIALECT,
        "title": "graphloop topology",
        "description": "A graph of an LLM agent's loop: nodes, and where each outcome leads.",
        **_topology(NEEDED),
        "$defs": {
            "agent": _agent(),
            "graph": _topology(NEEDED[1:]),
            "node": {"oneOf": _nodes(names, open_to_others=open_to_others, part=False)},
            PART: {"oneOf": _nodes(names, open_to_others=open_to_others, part=True)},
            "rule": rule_schema(),
            "stop_condition": ConditionForm().definition,
        },
    }


def _topology(needed: tuple[str, ...]) -> Schema:
    of: dict[str, Schema] = {
        "graphloop": {"const": VERSION},
        "name": SAID,
        "description": SAID,
        "instructions": SAID,
        "start": SAID,
        "nodes": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"not": {"const": "END"}},
            "additionalProperties": {"$ref": "#/$defs/node"},
        },
        "edges": {"type": "object", "additionalProperties": ROW},
        "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}},
        "agents": {"type": "object", "additionalProperties": {"$ref": "#/$defs/agent"}},
        "tools": {"type": "array", "items": SAID, "uniqueItems": True},
        "prompt": SAID,
        "ignore": {"type": "array", "minItems": 1, "items": _ignore()},
    }
    return _closed({key: {**of[key], "description": doc} for key, doc in KEYS.items()}, needed)


def _agent() -> Schema:
    of: dict[str, Schema] = {
        "include": {"type": "string", "pattern": r"\.(yaml|yml|json)$"},
        "graph": {"$ref": "#/$defs/graph"},
        "given": {"const": True},
        "description": SAID,
        "takes_over": {"type": "boolean"},
    }
    one = [{"required": [key]} for key in ("include", "graph", "given")]
    described = {key: {**of[key], "description": doc} for key, doc in AGENT_KEYS.items()}
    return {**_closed(described, ()), "oneOf": one}


def _ignore() -> Schema:
    return _closed(dict.fromkeys(IGNORE_KEYS, SAID), IGNORE_KEYS[1:])


def _nodes(names: Names, *, open_to_others: bool, part: bool) -> list[Schema]:
    schemas = [_kind(node_kind(use), part=part) for use in LIBRARY]
    for use, found in names.items("node"):
        if isinstance(found, type):
            schemas.append(_kind(kind_of_class(use, found), part=part))
        else:
            schemas.append(_closed(_with_use(use, part=part), ("use",)))
    # What is installed and not loaded has a name; its parameters are the reader's business.
    loaded = {use for use, _ in names.items("node")}
    for use in names.known("node"):
        if use not in loaded:
            known = _with_use(use, part=part)
            schemas.append({"type": "object", "properties": {**known}, "required": ["use"]})
    if open_to_others:
        taken = [*LIBRARY, *names.known("node")]
        other: dict[str, Schema] = {"use": {**SAID, "not": {"enum": taken}}}
        schemas.append({"type": "object", "properties": {**other}, "required": ["use"]})
    return schemas


def _kind(kind: NodeKind, *, part: bool) -> Schema:
    parameters = {name: one.schema for name, one in kind.record.parameters.items()}
    needed = [name for name, one in kind.record.parameters.items() if one.needed]
    properties = {**_with_use(kind.use, part=part), **parameters}
    closed = _closed(properties, ("use", *needed))
    return {**closed, "description": kind.record.doc, "title": kind.use}


def _with_use(use: str, *, part: bool) -> dict[str, Schema]:
    own: dict[str, Schema] = {"use": {"const": use}}
    return {**own, "name": NAMED.schema} if part else own


def _closed(properties: dict[str, Schema], needed: tuple[str, ...]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*needed],
        "additionalProperties": False,
    }
