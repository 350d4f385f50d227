"""The container of Anthropic's server tools, from turn to request.

Without it a paused turn cannot go on, and files that the model wrote are gone. The turn's message
keeps the id, so any process can send it from the history. A container that the caller names wins,
and `null` asks for a new one.
"""

from __future__ import annotations

from ...values import AssistantMessage, ModelRequest
from ..options import options_of
from ..wire_json import JsonObject, is_object, json_text, object_in

__all__ = ["container_member", "container_to_keep", "kept_id", "names_container"]

_FIELD = "container"


def container_to_keep(container: object) -> str:
    """Return the JSON text that a message keeps of its turn's `container`."""
    container_id = container.get("id") if is_object(container) else None
    is_id = isinstance(container_id, str) and container_id
    return json_text({_FIELD: container_id}) if is_id else ""


def kept_id(message: AssistantMessage, *, place: str) -> str:
    """Return the id of the container that a message keeps, if any.

    Raises:
        ConfigError: the message's `extra` is no JSON object; the error names `place`.
    """
    if not message.extra:
        return ""
    container_id = object_in(message.extra, place=place).get(_FIELD)
    return container_id if isinstance(container_id, str) else ""


def names_container(options: JsonObject) -> bool:
    """Whether the caller's options choose the container, or a new container.

    An object without an id only lists skills to load.
    """
    container = options.get(_FIELD, {})
    return not is_object(container) or bool(container.get("id"))


def container_member(request: ModelRequest, kept: str) -> str:
    """Return the member of the request that names the container.

    Nothing is sent where the caller chose a container, nor to a request without server tools.

    Raises:
        ConfigError: the options cannot be sent.
    """
    if not (kept or request.settings.options):
        return ""
    options, server_tools = options_of(request.settings, {})
    if names_container(options):
        return ""
    fields: JsonObject = options.get(_FIELD, {})
    offered = server_tools or any(spec.kind == "provider" for spec in request.tools)
    if not (fields or (kept and offered)):
        return ""
    return f',"{_FIELD}":{json_text({**fields, "id": kept} if kept and fields else fields or kept)}'
