"""The request of a recorded reply, in the form that a script keeps, and how requests differ.

The form has what decides a model's answer: the messages since the last reply, a digest of those
before, the names of the tools, and the settings. It never has a key or a header; provider options
are kept as a digest, because some of them are secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from hashlib import sha256
from typing import Final

import yaml

from ..media import MediaPart
from ..values import (
    AssistantMessage,
    Message,
    ModelRequest,
    Settings,
    SystemMessage,
    TextPart,
    ToolChoice,
    ToolResult,
    UserPart,
)

__all__ = ["asked_of", "asked_text", "entry_text", "request_difference"]

DIGEST_CHARS: Final = 16
LINES_MAX: Final = 40


def asked_of(request: ModelRequest) -> Mapping[str, object]:
    """Return the form of a request, as plain data for a YAML or JSON file."""
    messages = list(request.messages)
    at = max(
        (n for n, each in enumerate(messages, 1) if isinstance(each, AssistantMessage)), default=0
    )
    asked: dict[str, object] = {}
    if at:
        asked["before"] = _digest([_message_line(message) for message in messages[:at]])
    asked["messages"] = [_message_line(message) for message in messages[at:]]
    if request.tools:
        asked["tools"] = [tool.name for tool in request.tools]
    if request.tool_choice != ToolChoice():
        asked["tool_choice"] = request.tool_choice.name or request.tool_choice.mode
    if request.output is not None:
        asked["output"] = request.output.name
    if request.settings != Settings():
        asked["settings"] = _settings(request.settings)
    return asked


def entry_text(request: ModelRequest, reply: Mapping[str, object]) -> str:
    """Return the YAML of a script's entry that answers this request only."""
    return _yaml([{"asked": {**asked_of(request)}, **reply}])


def asked_text(asked: Mapping[str, object]) -> str:
    """Return the form as the YAML of a script."""
    return _yaml({**asked})


def _yaml(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def request_difference(
    recorded: Iterable[Mapping[str, object]], asked: Mapping[str, object]
) -> str:
    """Return the difference of a request from the recorded request that is most like it."""
    found = asked_text(asked)
    texts = [asked_text(each) for each in recorded]
    nearest = max(texts, key=lambda text: SequenceMatcher(None, text, found).ratio(), default="")
    lines = unified_diff(
        nearest.splitlines(), found.splitlines(), "recorded", "asked", n=1, lineterm=""
    )
    shown = list(lines)
    more = [f"… {len(shown) - LINES_MAX} more lines"] if len(shown) > LINES_MAX else []
    return "\n".join([*shown[:LINES_MAX], *more])


def _settings(settings: Settings) -> Mapping[str, object]:
    plain = Settings()
    kept: dict[str, object] = {}
    for name in Settings.__struct_fields__:
        value: object = getattr(settings, name)
        if value != getattr(plain, name):
            kept[name] = value
    if settings.stop_sequences:
        kept["stop_sequences"] = [*settings.stop_sequences]
    if "options" in kept:
        kept["options"] = _digest([settings.options])
    return kept


def _message_line(message: Message) -> str:
    match message:
        case AssistantMessage():
            calls = [f"{call.name}({call.arguments})" for call in message.calls]
            return "\n".join(
                [f"assistant: {message.text}", *map(_part_text, message.media), *calls]
            )
        case ToolResult():
            failed = "" if message.status == "ok" else f" ({message.status})"
            return f"tool {message.name}{failed}: {_content_text(message.content)}"
        case SystemMessage():
            return f"system: {message.content}"
        case _:
            return f"user: {_content_text(message.content)}"


def _content_text(content: str | Sequence[UserPart]) -> str:
    return content if isinstance(content, str) else "\n".join(map(_part_text, content))


def _part_text(part: UserPart) -> str:
    match part:
        case TextPart():
            return part.text
        case MediaPart():
            return f"[{part.label} {_digest([part.identity])}]"


def _digest(texts: Sequence[str]) -> str:
    return sha256(json.dumps(texts).encode()).hexdigest()[:DIGEST_CHARS]
