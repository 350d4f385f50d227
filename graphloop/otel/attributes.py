"""Attributes: the span attributes of runs, model calls, tool calls and questions.

The names are those of the semantic conventions for generative AI (`gen_ai.*`, `error.type`).
https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..effects import CallModel
from ..run import Run
from ..values import (
    AssistantMessage,
    Message,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

__all__ = [
    "ANSWERED",
    "Attributes",
    "asked_content",
    "called",
    "model_asked",
    "provider_of",
    "replied",
    "replied_content",
    "run_started",
    "usage_of",
]

Attributes: TypeAlias = dict[str, "str | bool | int | float | tuple[str, ...]"]

PROVIDERS: Final[Mapping[str, str]] = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock-anthropic": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "openai-responses": "openai",
    "xai": "x_ai",
    "xai-responses": "x_ai",
}
"""Names of providers in the conventions that differ from those of model labels."""

ANSWERED: Final = frozenset({"ok", "denied", "not_run", "unknown"})
"""The statuses of calls that are no errors of a tool: it succeeded, or it did not run."""


def provider_of(label: str) -> str:
    """Return the name of the provider in a model label such as `"openai:gpt-5"`."""
    name = label.partition(":")[0]
    return PROVIDERS.get(name, name)


def run_started(run: Run[Any], agent: str, conversation: str) -> Attributes:
    """Return the attributes of a run at its start or resume."""
    found: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": conversation,
    }
    if run.setup.model:
        found |= _model_attributes(run.setup.model)
    return found


def model_asked(effect: CallModel, agent: str, conversation: str) -> Attributes:
    """Return the attributes of a model call, without its messages."""
    settings = effect.request.settings
    optional = {
        "gen_ai.request.max_tokens": settings.max_tokens,
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.request.stop_sequences": settings.stop_sequences or None,
    }
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": conversation,
        "gen_ai.request.stream": True,
        **_model_attributes(effect.model),
        **{name: value for name, value in optional.items() if value is not None},
    }


def replied(reply: Reply) -> Attributes:
    """Return the attributes of a reply, without its content."""
    found: Attributes = {"gen_ai.response.finish_reasons": (reply.finish_reason.value,)}
    if reply.model:
        found["gen_ai.response.model"] = reply.model
    return found | usage_of(reply.usage)


def called(call: ToolCall, kind: str, conversation: str, *, content: bool) -> Attributes:
    """Return the attributes of a tool call; `kind` is the kind of the tool."""
    found: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": conversation,
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "extension" if kind == "provider" else "function",
    }
    if call.id:
        found["gen_ai.tool.call.id"] = call.id
    if content:
        found["gen_ai.tool.call.arguments"] = call.arguments
    return found


def usage_of(usage: Usage) -> Attributes:
    """Return the attributes of a usage.

    The conventions count cached tokens among the input tokens; `Usage` counts them apart.
    """
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    found: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens + cached,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    optional = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {**found, **{name: tokens for name, tokens in optional.items() if tokens}}


def asked_content(effect: CallModel) -> Attributes:
    """Return the messages of a model call, as JSON."""
    messages = effect.request.messages
    system = [one for one in messages if isinstance(one, SystemMessage)]
    others = [one for one in messages if not isinstance(one, SystemMessage)]
    found: Attributes = {"gen_ai.input.messages": _to_json(map(_message_json, others))}
    if system:
        parts = [{"type": "text", "content": one.content} for one in system]
        found["gen_ai.system_instructions"] = _to_json(parts)
    return found


def replied_content(reply: Reply) -> Attributes:
    """Return the message of a reply, as JSON."""
    message = {**_message_json(reply.message), "finish_reason": reply.finish_reason.value}
    return {"gen_ai.output.messages": _to_json([message])}


def _model_attributes(label: str) -> Attributes:
    model = label.partition(":")[2] or label
    return {"gen_ai.provider.name": provider_of(label), "gen_ai.request.model": model}


def _message_json(message: Message) -> dict[str, object]:
    """Return a message in the JSON form of the conventions."""
    match message:
        case ToolResult():
            part = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
            return {"role": "tool", "parts": [part]}
        case AssistantMessage():
            said = [{"type": "text", "content": message.text}] if message.text else []
            asked = [
                {"type": "tool_call", "id": one.id, "name": one.name, "arguments": one.arguments}
                for one in message.calls
            ]
            return {"role": "assistant", "parts": [*said, *asked]}
        case SystemMessage():
            return {"role": "system", "parts": [{"type": "text", "content": message.content}]}
        case UserMessage():
            return {"role": "user", "parts": _user_parts(message)}


def _user_parts(message: UserMessage) -> list[dict[str, object]]:
    content = message.content
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    return [
        {"type": "text", "content": part.text}
        if isinstance(part, TextPart)
        else {"type": part.kind}
        for part in content
    ]


def _to_json(parts: Iterable[Mapping[str, object]]) -> str:
    return json.dumps([*parts], ensure_ascii=False)
