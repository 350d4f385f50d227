"""Who runs a tool's calls, and what a provider is told of a tool that it runs itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from ..errors import ToolDefinitionError
from ..values import ToolKind

__all__ = ["definition_text", "kind_of"]


def kind_of(kind: ToolKind | None, execute: Callable[..., object] | None, place: str) -> ToolKind:
    """Return who runs a tool: without a `kind`, this process if it can, else a client.

    Raises:
        ToolDefinitionError: the kind and the executor contradict each other.
    """
    if kind is None:
        return "client" if execute is None else "function"
    if (kind == "function") != (execute is not None):
        found = "none" if execute is None else repr(execute)
        raise ToolDefinitionError(
            f"{place}: only kind 'function' has an `execute`, and it must have one; found {found} "
            f"with kind {kind!r}. Fix: leave `kind` out."
        )
    return kind


def definition_text(kind: ToolKind, definition: Mapping[str, object] | None, name: str) -> str:
    """Return the definition of a provider's tool as JSON text, as its wire will send it.

    Raises:
        ToolDefinitionError: it is not JSON, has no `type` or another `name`; or the tool is none
            of the provider's.
    """
    place = f"tool {name!r}"
    if kind != "provider":
        if definition is None:
            return ""
        raise ToolDefinitionError(
            f"{place}: only a provider's tool has a definition, found one with kind {kind!r}. "
            "Fix: drop it, or use provider_tool(…)."
        )
    given = {} if definition is None else dict(definition)
    if given.get("name") != name or not isinstance(given.get("type"), str):
        raise ToolDefinitionError(
            f"{place}: a provider's tool is defined by its 'type' and called by the 'name' in its "
            f"definition, found {definition!r}. Fix: add what is missing, and do not rename it."
        )
    try:
        return json.dumps(given, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(
            f"{place}: the definition is not JSON: {error}. Fix: use JSON values only."
        ) from error
