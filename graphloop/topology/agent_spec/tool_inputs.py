"""What the tools take that are registered under the names of a document's tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeGuard, cast

from ...errors import ConfigError
from ...tools import Tool, tool
from ..forms import Data

__all__ = ["input_properties", "registered_tool"]

TYPES: Final = frozenset({"string", "integer", "number", "boolean"})


def registered_tool(found: object) -> Tool[Any, Any] | None:
    """Return the tool that something registered is, or is made; None if it is none."""
    if _is_tool(found):
        return found
    if not callable(found):
        return None
    try:
        return tool(found)
    except ConfigError:
        return None


def input_properties(made: Tool[Any, Any]) -> list[dict[str, Data]]:
    """Return what a tool takes as properties: a title each, and the type if it is a plain one."""
    schema = cast("Mapping[str, Any]", json.loads(made.spec.parameters))
    return [_property(*one) for one in dict(schema.get("properties", {})).items()]


def _is_tool(found: object) -> TypeGuard[Tool[Any, Any]]:
    return isinstance(found, Tool)


def _property(title: str, schema: object) -> dict[str, Data]:
    said: Mapping[str, object] = {}
    if isinstance(schema, dict):
        said = cast("Mapping[str, object]", schema)  # Keys of JSON are texts.
    kind = said.get("type")
    own: dict[str, Data] = {"title": title}
    own |= {"type": kind} if isinstance(kind, str) and kind in TYPES else {}
    description = said.get("description")
    return {**own, "description": description} if isinstance(description, str) else own
