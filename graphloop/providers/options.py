"""Provider options: the fields of `Settings.options`, merged into the request's body.

A field that graphloop writes itself is refused: merged, a pasted option could change the
conversation; dropped, an option would silently have no effect. Tools are the exception: the
server's own tools stand beside those that run here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..errors import ConfigError
from ..values import Settings
from .wire_json import JsonObject, is_list, object_in

__all__ = ["options_of"]

_OWNED: Final[Mapping[str, str]] = {
    "messages": "Give the run its messages.",
    "model": "Name the model in 'provider:NAME'.",
    "stream": "Every answer is streamed; a buffered one is the drained stream.",
    "temperature": "Set Settings.temperature.",
    "tool_choice": "Set ToolChoice.",
    "top_p": "Set Settings.top_p.",
}
"""The fields that every wire writes itself, each with the advice of its error."""


def options_of(settings: Settings, owned: Mapping[str, str]) -> tuple[JsonObject, list[object]]:
    """Return the fields to merge, and the server's own tools.

    Args:
        settings: the settings of the request.
        owned: the fields that only this wire writes, each with the advice of its error.

    Raises:
        ConfigError: the options are no JSON object, or hold a field that is owned.
    """
    if not settings.options:
        return {}, []
    options = object_in(settings.options, place="Settings.options")
    for name in options:
        instead = _OWNED.get(name) or owned.get(name)
        if instead is not None:
            raise ConfigError(
                "Settings.options: expected only fields that graphloop does not write itself, "
                f"found {name!r}. Leave it out. {instead}"
            )
    tools = options.pop("tools", [])
    if not is_list(tools):
        raise ConfigError(
            f"Settings.options: expected an array of the server's own tools, found {tools!r} at "
            "'tools'. Tools that run here are given to the run."
        )
    return options, tools
