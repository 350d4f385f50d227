"""Read the container id from Anthropic's replies, and send it in later requests.

A container is the sandbox in which Anthropic's server runs its tools. Without its id, a paused turn
cannot continue, and files that the model wrote are lost. The reply's message stores the id, so any
process can send the id from the history. A container that the caller names in the options takes
precedence; `null` in the options asks for a new container.
"""

from __future__ import annotations

from ...values import AssistantMessage, ModelRequest
from ..options import options_of
from ..wire_json import JsonObject, is_object, json_text, object_in

__all__ = ["container_member", "container_to_keep", "kept_id", "names_container"]

_FIELD = "container"


def container_to_keep(container: object) -> str:
    """Return JSON text with the id of the reply's `container`, or empty text without an id."""
    container_id = container.get("id") if is_object(container) else None
    is_id = isinstance(container_id, str) and container_id
    return json_text({_FIELD: container_id}) if is_id else ""


def kept_id(message: AssistantMessage, *, place: str) -> str:
    """Return the container id that a message stores, or an empty string.

    Raises:
        ConfigError: the message's `extra` is not a JSON object; the error names `place`.
    """
    if not message.extra:
        return ""
    container_id = object_in(message.extra, place=place).get(_FIELD)
    return container_id if isinstance(container_id, str) else ""


def names_container(options: JsonObject) -> bool:
    """Whether the caller's options name a container, or ask for a new container.

    A `container` object without an id does neither: it only lists skills to load.
    """
    container = options.get(_FIELD, {})
    return not is_object(container) or bool(container.get("id"))


def container_member(request: ModelRequest, kept: str) -> str:
    """Return the JSON member of the request that names the container, or an empty string.

    `kept` is the container id from the history. The member is empty if the caller's options choose
    a container. Without server tools, it is empty unless the options list skills.

    Raises:
        ConfigError: the options are not a JSON object, or set a field that graphloop writes itself.
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
