"""The two message forms of the AI SDK (TypeScript): `UIMessage` and `ModelMessage`.

A browser holds `UIMessage`s: one message has `parts`, and a reply holds its calls and their
results. `step-start` parts divide a reply into turns. A server holds `ModelMessage`s: calls and
results are parts of `content`, and a message of role `tool` may hold several results.

The readers keep text, media, reasoning, calls and results. They leave out sources, data parts and
half-written calls, which the AI SDK itself sends to no model. They refuse tools that a provider
ran, because another provider cannot take them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from ..errors import ConfigError
from ..media import MediaPart
from ..providers import ANTHROPIC_WIRE, is_list, is_object, json_text
from ..values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ReasoningPart,
    ResultStatus,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from .fields import as_fields, media_at, media_in, text_field, text_or_empty

__all__ = ["is_ai_sdk", "model_messages", "ui_messages"]

MODEL_PARTS: Final = frozenset(
    {
        *("image", "reasoning", "tool-call", "tool-result"),
        *("tool-approval-request", "tool-approval-response"),
    }
)
"""The types of parts that only a `ModelMessage` has."""

UNSENT: Final = ("source-", "data-")
"""The beginnings of the types of parts that a browser shows and no model reads."""

OPEN: Final = frozenset({"input-available", "approval-requested", "approval-responded"})
"""The states of a call that has no result yet."""


def is_ai_sdk(message: Mapping[str, object]) -> bool:
    """Whether a message has the form of the AI SDK and not that of chat completions."""
    if "parts" in message or "providerOptions" in message:
        return True
    content = message.get("content")
    parts = cast("Sequence[object]", content) if isinstance(content, list | tuple) else ()
    return any(
        is_object(part)
        and (
            part.get("type") in MODEL_PARTS
            or "providerOptions" in part
            or (part.get("type") == "file" and "data" in part)
        )
        for part in parts
    )


def ui_messages(place: str, message: Mapping[str, object]) -> Iterator[Message]:
    """Yield the messages of a `UIMessage`; an assistant's has a reply and its results a turn.

    Raises:
        ConfigError: the role is unknown, or a part is malformed or cannot be sent to a model.
    """
    parts = _check_list(f"{place}.parts", message.get("parts"))
    role = message.get("role")
    if role in ("system", "user"):
        yield _text_message(place, role, tuple(_user_parts(f"{place}.parts", parts)))
        return
    if role != "assistant":
        raise _unknown_role(place, role, "system, user, assistant")
    turn: list[AssistantPart] = []
    results: list[ToolResult] = []
    for at, part in enumerate(parts):
        here = f"{place}.parts[{at}]"
        fields = _check_part(here, part)
        kind = str(fields["type"])
        if kind == "step-start":
            yield from _turn_messages(turn, results)
            turn, results = [], []
        elif kind == "dynamic-tool" or kind.startswith("tool-"):
            turn += _ui_call(here, fields, results)
        elif not kind.startswith(UNSENT):
            turn.append(_assistant_part(here, fields))
    yield from _turn_messages(turn, results)


def model_messages(place: str, message: Mapping[str, object]) -> Iterator[Message]:
    """Yield the messages in a `ModelMessage`: one, or one for each result of role `tool`.

    Raises:
        ConfigError: the role is unknown, or a part is malformed or cannot be sent to a model.
    """
    role, content = message.get("role"), message.get("content")
    parts = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else _check_list(f"{place}.content", content)
    )
    if role == "tool":
        for at, part in enumerate(parts):
            here = f"{place}.content[{at}]"
            fields = _check_part(here, part)
            if fields["type"] == "tool-result":
                yield _tool_result(here, fields)
            elif fields["type"] != "tool-approval-response":
                raise _unknown_part(here, fields, "a tool-result")
    elif role == "assistant":
        turn: list[AssistantPart] = []
        for at, part in enumerate(parts):
            here = f"{place}.content[{at}]"
            fields = _check_part(here, part)
            if fields["type"] == "tool-call":
                turn.append(_tool_call(here, fields, fields.get("toolName")))
            elif fields["type"] != "tool-approval-request":
                turn.append(_assistant_part(here, fields))
        yield from _turn_messages(turn, ())
    elif role in ("system", "user"):
        yield _text_message(place, role, tuple(_user_parts(f"{place}.content", parts)))
    else:
        raise _unknown_role(place, role, "system, user, assistant, tool")


def _text_message(place: str, role: object, parts: tuple[UserPart, ...]) -> Message:
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if role == "user":
        is_text = len(parts) == 1 and len(texts) == 1
        return UserMessage(texts[0] if is_text else parts)
    if len(texts) < len(parts):
        raise ConfigError(f"{place}: expected only text in a system message, found another part")
    return SystemMessage("".join(texts))


def _user_parts(place: str, parts: Sequence[object]) -> Iterator[UserPart]:
    for at, part in enumerate(parts):
        here = f"{place}[{at}]"
        fields = _check_part(here, part)
        match fields["type"]:
            case "text":
                yield TextPart(text_field(here, fields, "text"))
            case "image":
                kind = text_or_empty(here, fields, "mediaType")
                yield _media_part(here, text_field(here, fields, "image"), kind or "image/*")
            case "file":
                yield _file_part(here, fields)
            case str(kind) if kind.startswith("data-"):
                pass
            case _:
                raise _unknown_part(here, fields, "text, image or file")


def _file_part(place: str, fields: Mapping[str, object]) -> MediaPart:
    return _media_part(
        place,
        text_field(place, fields, "url" if "url" in fields else "data"),
        text_field(place, fields, "mediaType"),
        text_or_empty(place, fields, "filename"),
    )


def _media_part(place: str, source: str, media_type: str, name: str = "") -> MediaPart:
    """Return media from a URL, a data URL, or base64 text."""
    is_url = source.startswith(("data:", "http://", "https://"))
    return (media_at if is_url else media_in)(place, source, media_type, name)


def _assistant_part(place: str, fields: Mapping[str, object]) -> AssistantPart:
    match fields["type"]:
        case "text":
            return TextPart(text_field(place, fields, "text"))
        case "reasoning":
            metadata = fields.get("providerMetadata") or fields.get("providerOptions")
            signed = metadata.get("anthropic") if is_object(metadata) else None
            known: Mapping[str, object] = signed if is_object(signed) else {}
            return ReasoningPart(
                text_field(place, fields, "text"),
                text_or_empty(place, known, "signature"),
                text_or_empty(place, known, "redactedData"),
            )
        case "file":
            return _file_part(place, fields)
        case _:
            raise _unknown_part(place, fields, "text, reasoning, file or a call")


def _ui_call(
    place: str, fields: Mapping[str, object], results: list[ToolResult]
) -> tuple[ToolCall, ...]:
    """Return the call in a tool part, and add its result to `results` if it has one."""
    kind, state = str(fields["type"]), fields.get("state")
    name = fields.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
    if state == "input-streaming":
        return ()
    call = _tool_call(place, fields, name)
    answers: Mapping[object, tuple[object, ResultStatus]] = {
        "output-available": (fields.get("output"), "ok"),
        "output-error": (fields.get("errorText"), "error"),
        "output-denied": (_denial_text(fields.get("approval")), "denied"),
    }
    if state in answers:
        content, status = answers[state]
        results.append(ToolResult("", call.id, call.name, _text_of(place, content), status))
    elif state not in OPEN:
        known = ", ".join(["input-streaming", *sorted(OPEN), *map(str, answers)])
        raise ConfigError(f"{place}: expected `state` to be one of {known}, found {state!r}")
    return (call,)


def _tool_call(place: str, fields: Mapping[str, object], name: object) -> ToolCall:
    if fields.get("providerExecuted"):
        raise ConfigError(
            f"{place}: expected a tool that your own process runs, found {name!r}, which its "
            "provider ran. Fix: leave the part out, or hand in the run's own `result.messages`."
        )
    if not isinstance(name, str):
        raise ConfigError(f"{place}: expected `toolName` to be a string, found {name!r:.80}")
    given = fields.get("input")
    raw = fields.get("rawInput")
    arguments = raw if given is None and isinstance(raw, str) else _json_text(place, given or {})
    return ToolCall(text_field(place, fields, "toolCallId"), name, arguments)


def _tool_result(place: str, fields: Mapping[str, object]) -> ToolResult:
    output = fields.get("output")
    if not is_object(output):
        raise ConfigError(
            f'{place}: expected `output` as {{"type": …, "value": …}}, as of AI SDK 5, found '
            f"{output!r:.80}"
        )
    value = output.get("value")
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"
    match output.get("type"):
        case "text" | "json":
            content = _text_of(place, value)
        case "error-text" | "error-json":
            content, status = _text_of(place, value), "error"
        case "execution-denied":
            content, status = _denial_text(output), "denied"
        case "content":
            here = f"{place}.output.value"
            content = tuple(_user_parts(here, [*map(_content_part, _check_list(here, value))]))
        case other:
            raise ConfigError(
                f"{place}: expected the type of `output` to be one of text, json, error-text, "
                f"error-json, execution-denied, content, found {other!r}"
            )
    call_id, name = text_field(place, fields, "toolCallId"), text_field(place, fields, "toolName")
    return ToolResult("", call_id, name, content, status)


def _content_part(part: object) -> object:
    """Return a part of a result's content in the form of a user's part."""
    fields: Mapping[str, object] = part if is_object(part) else {}
    match fields.get("type"):
        case "media" | "image-data" | "file-data":
            return {**fields, "type": "file"}
        case "image-url":
            return {"type": "image", "image": fields.get("url")}
        case _:
            return part


def _turn_messages(
    parts: Sequence[AssistantPart], results: Sequence[ToolResult]
) -> Iterator[Message]:
    if parts:
        signed = any(
            isinstance(part, ReasoningPart) and part.signature + part.data for part in parts
        )
        yield AssistantMessage(tuple(parts), ANTHROPIC_WIRE if signed else "")
    yield from results


def _denial_text(approval: object) -> str:
    reason: object = approval.get("reason") if is_object(approval) else None
    return (
        f"Tool call denied. {reason}" if isinstance(reason, str) and reason else "Tool call denied."
    )


def _text_of(place: str, value: object) -> str:
    return value if isinstance(value, str) else _json_text(place, value)


def _json_text(place: str, value: object) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{place}: expected JSON, found {error}") from error


def _check_list(place: str, value: object) -> Sequence[object]:
    if is_list(value):
        return value
    raise ConfigError(f"{place}: expected a list of parts, found {type(value).__name__}")


def _check_part(place: str, part: object) -> Mapping[str, object]:
    match part:
        case {"type": str()}:
            return as_fields(part)
        case _:
            raise ConfigError(f"{place}: expected a part with a `type`, found {part!r:.80}")


def _unknown_part(place: str, fields: Mapping[str, object], expected: str) -> ConfigError:
    return ConfigError(
        f"{place}: expected {expected}, found a part of type {fields['type']!r}. Fix: leave it out."
    )


def _unknown_role(place: str, role: object, known: str) -> ConfigError:
    return ConfigError(f"{place}: expected `role` to be one of {known}, found {role!r}")
