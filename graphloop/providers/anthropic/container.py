"""The container of Anthropic's server tools: a turn reports it, the next request sends it.

Without it a paused turn cannot go on, and files that the model wrote are gone. The
turn's message keeps the id, so any process can send it from the history. A container that the
caller names wins, and `null` asks for a new one.
"""

from __future__ import annotations

from ...values import AssistantMessage, ModelRequest
from ..options import options_of
from ..wire_json import JsonObject, is_object, json_text, object_in

__all__ = ["container_field", "container_in", "container_of", "kept_container", "names_container"]

_FIELD = "container"


def kept_container(container: object) -> str:
    """Return the JSON text that a message keeps of its turn's `container`."""
    told = container.get("id") if is_object(container) else None
    return json_text({_FIELD: told}) if isinstance(told, str) and told else ""


def container_in(message: AssistantMessage, *, place: str) -> str:
    """Return the id of the container that a message of this wire keeps, or nothing.

    Raises:
        ConfigError: the message's `extra` is no JSON object; the error names `place`.
    """
    if not message.extra:
        return ""
    told = object_in(message.extra, place=place).get(_FIELD)
    return told if isinstance(told, str) else ""


def names_container(options: JsonObject) -> bool:
    """Whether the caller's options choose the container: by its id, or a new one.

    An object without an id only lists skills to load.
    """
    said = options.get(_FIELD, {})
    return not is_object(said) or bool(said.get("id"))


def container_of(request: ModelRequest) -> JsonObject | None:
    """Return the fields to send beside the id of the container; None to send no container.

    None is sent where the caller chose one, and where the request offers no server tools.

    Raises:
        ConfigError: the options cannot be sent.
    """
    options, server_tools = options_of(request.settings, {})
    offered = server_tools or any(spec.kind == "provider" for spec in request.tools)
    fields: JsonObject = options.get(_FIELD, {})
    if names_container(options) or not (offered or fields):
        return None
    return fields


def container_field(fields: JsonObject | None, told: str) -> str:
    """Return the member to send: `fields`, and the id of `told` if there is one."""
    if fields is None or not (fields or told):
        return ""
    value = {**fields, "id": told} if told and fields else fields or told
    return f',"{_FIELD}":{json_text(value)}'
