"""The pydantic model of a topology file, and its JSON Schema for editors.

The reader refuses everything that the schema refuses, and more. For example, the schema cannot
check the outcomes of a node, or the registered names of functions and tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema

from ..node_protocol import control_in
from ..rules import rule_schema
from .conditions import STOP_MODEL
from .models import REF, Flag, Form, Model, Said, ToolName, Whole, fault, model_of, reference
from .node_models import meaning_of, model_of_use
from .registration import LIBRARY, Registry
from .table import ROW_FORM

__all__ = ["AGENT", "CODES", "GRAPH", "IGNORE", "SOURCES", "TOPOLOGY", "VERSION", "topology_schema"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
VERSION: Final = 1
SOURCES: Final = ("include", "graph", "given")
"""The keys for the source of an agent; each agent has exactly one of these keys."""
INCLUDED: Final = {"type": "string", "pattern": r"\.(yaml|yml|json)$"}

Schema: TypeAlias = dict[str, object]


def _version(found: int) -> int:
    if found != VERSION:
        fix = f"write `graphloop: {VERSION}`, or install a newer graphloop."
        raise fault(f"`graphloop`: expected version {VERSION} of the form, found {found}.", fix)
    return found


def _name(name: str) -> str:
    if (control := control_in(name)) is not None:
        raise fault(
            f"`name`: {name!r:.60} holds the control character {control!r}.", "leave it out."
        )
    return name


CODES: Final = tuple([f"GL{number}" for number in range(1, 14)])
"""The codes of the checker findings that a file may ignore."""
IGNORE: Final = model_of(
    "ignore", {"node": Said, "code": Literal[CODES], "reason": Said}, ["code", "reason"]
)
MANY: Final[Form] = list
"""`list` without a static type: checkers reject `list[...]` of a type built at run time."""


def _documented(forms: Mapping[str, tuple[Form, str]]) -> dict[str, Form]:
    return {key: Annotated[form, Field(description=doc)] for key, (form, doc) in forms.items()}


GRAPH_FORMS: Final = _documented(
    {
        "name": (
            Annotated[Said, AfterValidator(_name)],
            "The graph's name in journals and diagrams.",
        ),
        "description": (Said, "What it is for."),
        "instructions": (Said, "The system message of its models, put before the conversation."),
        "start": (Said, "The node that a run begins at."),
        "nodes": (
            Annotated[
                dict[
                    Annotated[str, WithJsonSchema({"type": "string", "not": {"const": "END"}})],
                    # A nested node may have a `name`; a node in this mapping is named by its key.
                    Annotated[
                        Any, WithJsonSchema({REF: "#/$defs/node", "properties": {"name": False}})
                    ],
                ],
                Field(min_length=1),
            ],
            "The nodes by name.",
        ),
        "edges": (
            dict[str, ROW_FORM],
            "For each node, where each of its outcomes leads: to a node, or to END.",
        ),
        "rules": (
            list[Annotated[Any, reference("rule")]],
            "Temporal rules: what must never happen, or only after something else.",
        ),
        "agents": (
            dict[str, Annotated[Any, reference("agent")]],
            "The agents that nodes run, or models call, by name.",
        ),
        "tools": (
            Annotated[list[ToolName], Field(json_schema_extra={"uniqueItems": True})],
            "The registered tools, or agents of this file, that models may call.",
        ),
        "prompt": (Said, "What is asked when a run is given no prompt."),
        "ignore": (
            MANY[IGNORE.form],
            "Findings of the checker that are set aside, each with its reason.",
        ),
    }
)
NEEDED: Final = ("name", "start", "nodes", "edges")
GRAPH: Final = model_of("graph", GRAPH_FORMS, NEEDED)
VERSIONED: Final = _documented(
    {
        "graphloop": (
            Annotated[Whole, AfterValidator(_version), WithJsonSchema({"const": VERSION})],
            f"The version of this form: {VERSION}.",
        )
    }
)
TOPOLOGY: Final = model_of(
    "graphloop topology",
    {**VERSIONED, **GRAPH_FORMS},
    ["graphloop", *NEEDED],
    "A graph of an LLM agent's loop: nodes, and where each outcome leads.",
)
AGENT: Final = model_of(
    "agent",
    _documented(
        {
            "include": (
                Annotated[Said, WithJsonSchema(INCLUDED)],
                "The file of the agent's topology, from the folder of this one.",
            ),
            "graph": (Annotated[Any, reference("graph")], "The agent's topology itself."),
            "given": (Literal[True], "true, if the agent is handed to each run (`agents=`)."),
            "description": (Said, "What it is for; the models that may call it decide by this."),
            "takes_over": (Flag, "Whether it takes the conversation over when it is called."),
        }
    ),
    [],
    oneOf=[{"required": [key]} for key in SOURCES],
)


def topology_schema(registry: Registry, *, open_to_others: bool = False) -> Schema:
    """Return the JSON Schema of topology files, with the library's and the registered nodes.

    With `open_to_others`, the schema accepts any node with an unknown `use`, because that name may
    be registered where the file is read.
    """
    uses = [*LIBRARY, *registry.names("node")]
    parts = {"agent": AGENT, "graph": GRAPH, "stop_condition": STOP_MODEL}
    models: dict[str, Model] = {
        "topology": TOPOLOGY,
        **parts,
        **{f"use {use}": model_of_use(use, meaning_of(use, registry)) for use in uses},
    }
    # A single call for all models generates a definition that two models share only once.
    by_key, shared = TypeAdapter.json_schemas(
        [(key, "validation", model.adapter) for key, model in models.items()]
    )
    schemas = {key: schema for (key, _), schema in by_key.items()}
    nodes = [schemas[f"use {use}"] for use in uses]
    if open_to_others:
        other = {"type": "string", "not": {"enum": uses}}
        nodes.append({"type": "object", "properties": {"use": other}, "required": ["use"]})
    definitions = {
        **shared.get("$defs", {}),
        **{key: schemas[key] for key in parts},
        "node": {"oneOf": nodes},
        "rule": rule_schema(),
    }
    top = schemas["topology"]
    if "$ref" in top:
        top = definitions.pop(str(top["$ref"]).rpartition("/")[2])
    whole = {"$schema": DIALECT, **top, "$defs": definitions}
    schema: Schema = json.loads(json.dumps(whole).replace(f'"{REF}"', '"$ref"'))
    return schema
