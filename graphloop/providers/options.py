"""Provider options: the fields of `Settings.options`, which are merged into the request body.

A field that graphloop writes itself is refused. Merging it could change the conversation, and
dropping it would silently ignore the option. The exception is `tools`: server tools in the options
are sent together with the run's own tools.
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
"""Maps each request field that every wire writes itself to the advice in its error message."""


def options_of(settings: Settings, owned: Mapping[str, str]) -> tuple[JsonObject, list[object]]:
    """Return the option fields to merge into the request body, and the server tools among them.

    Args:
        settings: the settings of the request.
        owned: more fields that this wire writes itself, each with the advice in its error message.

    Raises:
        ConfigError: the options are not a JSON object, or set a field that graphloop writes itself.
    """
    if not settings.options:
        return {}, []
    options = object_in(settings.options, place="Settings.options")
    for name in options:
        instead = _OWNED.get(name) or owned.get(name)
        if instead is not None:
            raise ConfigError(
                "Settings.options: expected only fields that graphloop does not write itself, "
                f"found {name!r}. Fix: leave it out. {instead}"
            )
    tools = options.pop("tools", [])
    if not is_list(tools):
        raise ConfigError(
            f"Settings.options: expected an array of the server's own tools, found {tools!r} at "
            "'tools'. Tools that run here are given to the run."
        )
    return options, tools
