"""The pydantic model of a topology file, and its JSON Schema for editors.

The reader refuses everything that the schema refuses, and more. For example, the schema cannot
check the outcomes of a node, or the registered names of functions and tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema

from ..effects import Place
from ..mcp import pins_of
from ..node_protocol import control_in
from ..rules import rule_schema
from .conditions import STOP_MODEL
from .models import (
    REF,
    Flag,
    Form,
    Model,
    PositiveNumber,
    Said,
    ToolName,
    Whole,
    fault,
    model_of,
    reference,
)
from .node_models import meaning_of, model_of_use
from .registration import LIBRARY, Registry
from .table import ROW_FORM

__all__ = [
    "AGENT",
    "CODES",
    "GRAPH",
    "IGNORE",
    "SERVER",
    "SOURCES",
    "TOPOLOGY",
    "VERSION",
    "topology_schema",
]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
VERSION: Final = 1
SOURCES: Final = ("include", "graph", "given")
"""The keys for the source of an agent; each agent has exactly one of these keys."""
INCLUDED: Final = {"type": "string", "pattern": r"\.(yaml|yml|json)$"}

Schema: TypeAlias = dict[str, object]


def _check_version(found: int) -> int:
    if found != VERSION:
        fix = f"write `graphloop: {VERSION}`, or install a newer graphloop."
        raise fault(f"`graphloop`: expected version {VERSION} of the form, found {found}.", fix)
    return found


def _check_name(name: str) -> str:
    if (control := control_in(name)) is not None:
        raise fault(
            f"`name`: {name!r:.60} holds the control character {control!r}.", "leave it out."
        )
    return name


def _check_pinned(value: object) -> object:
    """Return the name of a file, or the definitions of a list."""
    if isinstance(value, str):
        return value
    try:
        return pins_of(cast("list[object]", value))
    except ValueError as error:
        fix = "name a file that `graphloop mcp pin` wrote, such as fs.mcp.json."
        raise fault(f"`pinned`: expected a file, or definitions of tools: {error}.", fix) from error


def _check_approval(value: object) -> object:
    is_list = isinstance(value, list)
    items = cast("list[object]", value) if is_list else []
    if isinstance(value, bool) or (is_list and all(isinstance(item, str) for item in items)):
        return tuple(items) if is_list else value
    raise fault(
        f"`needs_approval`: expected true, false, or a list of the server's names of its tools, "
        f"found {value!r:.60}.",
        "write true, or [first, second].",
    )


NAMES: Final = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}
CODES: Final = tuple([f"GL{number}" for number in range(1, 14)])
"""The codes of the checker findings that a file may ignore."""
IGNORE: Final = model_of(
    "ignore", {"node": Said, "code": Literal[CODES], "reason": Said}, ["code", "reason"]
)
MANY: Final[Form] = list
"""`list` without a static type: checkers reject `list[...]` of a type built at run time."""


def _with_descriptions(forms: Mapping[str, tuple[Form, str]]) -> dict[str, Form]:
    return {key: Annotated[form, Field(description=doc)] for key, (form, doc) in forms.items()}


GRAPH_FORMS: Final = _with_descriptions(
    {
        "name": (
            Annotated[Said, AfterValidator(_check_name)],
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
        "mcp": (
            dict[str, Annotated[Any, reference("mcp_server")]],
            "The MCP servers whose tools models may call, by the names of the registered servers.",
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
VERSIONED: Final = _with_descriptions(
    {
        "graphloop": (
            Annotated[Whole, AfterValidator(_check_version), WithJsonSchema({"const": VERSION})],
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
    _with_descriptions(
        {
            "include": (
                Annotated[Said, WithJsonSchema(INCLUDED)],
                "The file of the agent's topology, from the folder of this one.",
            ),
            "graph": (Annotated[Any, reference("graph")], "The agent's topology itself."),
            "given": (Literal[True], "true, if the agent is handed to each run (`agents=`)."),
            "description": (Said, "What it is for; the models that may call it decide by this."),
            "takes_over": (Flag, "Whether it takes the conversation over when it is called."),
            "place": (Place, "Whether any worker may drive its child runs: anywhere, or here."),
        }
    ),
    [],
    oneOf=[{"required": [key]} for key in SOURCES],
)

SERVER: Final = model_of(
    "mcp server",
    _with_descriptions(
        {
            "pinned": (
                Annotated[
                    Any,
                    AfterValidator(_check_pinned),
                    WithJsonSchema(
                        {
                            "oneOf": [
                                {"type": "string", "pattern": r"\.json$"},
                                {
                                    "type": "array",
                                    "items": {"type": "object", "required": ["name"]},
                                },
                            ]
                        }
                    ),
                ],
                "The file that `graphloop mcp pin` wrote, or the definitions themselves.",
            ),
            "prefix": (
                Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")],
                "What comes before the name of each of its tools.",
            ),
            "tools": (
                list[Said],
                "The only tools of it that models may call, by the server's names.",
            ),
            "needs_approval": (
                Annotated[
                    Any,
                    AfterValidator(_check_approval),
                    WithJsonSchema({"oneOf": [{"type": "boolean"}, NAMES]}),
                ],
                "true, or the server's names of the tools whose calls a person approves.",
            ),
            "trust": (
                Flag,
                "Whether to believe it which tools change nothing, or may be repeated.",
            ),
            "timeout_s": (PositiveNumber, "The seconds that a call may take (default 60)."),
        }
    ),
    ["pinned"],
    "An MCP server whose tools models may call.",
)


def topology_schema(registry: Registry, *, open_to_others: bool = False) -> Schema:
    """Return the JSON Schema of topology files, with the library's and the registered nodes.

    With `open_to_others`, the schema accepts any node with an unknown `use`, because that name may
    be registered where the file is read.
    """
    uses = [*LIBRARY, *registry.names("node")]
    parts = {"agent": AGENT, "graph": GRAPH, "mcp_server": SERVER, "stop_condition": STOP_MODEL}
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
