"""Inputs: what a server may ask for: a person's answer, a model's reply, and its folders.

All three are off by default, and the server is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Final, final

from mcp.client.session import ListRootsFnT
from mcp.types import (
    INVALID_REQUEST,
    AudioContent,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ErrorData,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    Root,
    SamplingMessage,
    TextContent,
)

from ..errors import GraphloopError, ToolError
from ..providers import Provider
from ..tools import ToolContext
from ..values import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelRequest,
    Reply,
    Settings,
    SystemMessage,
    UserMessage,
)
from .results import part_of
from .server_questions import Json, Rounds, next_question

__all__ = ["Inputs", "sampled"]

SHOWN: Final = (TextContent, ImageContent, AudioContent)

ROUNDS_MAX: Final = 10
"""How often a server may ask for answers before it ends a call."""
PAUSE_S: Final = 0.1
"""The seconds before a call is sent again that its server has ended without a question."""

STOPS: Final = {
    FinishReason.LENGTH: "maxTokens",
    FinishReason.STOP_SEQUENCE: "stopSequence",
}


@final
class Inputs:
    """The parties that answer a server's requests for inputs.

    Args:
        server: the server's name in questions and errors.
        ask: whether people are asked.
        model: the model that answers; None for none.
        folders: the folders that the server is told of.
    """

    def __init__(
        self, server: str, model: Provider | None, folders: Iterable[str | Path], *, ask: bool
    ) -> None:
        self._server, self.model, self.ask = server, model, ask
        paths = [Path(folder).resolve() for folder in folders]
        self._roots = [
            Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in paths
        ]

    @property
    def are_offered(self) -> bool:
        """Whether the server may ask for anything."""
        return self.ask or self.model is not None

    @property
    def roots(self) -> ListRootsFnT | None:
        """The function that tells a server its folders; None if it has none."""
        return self._list_roots if self._roots else None

    async def _list_roots(self, context: object) -> ListRootsResult:
        del context
        return ListRootsResult(roots=self._roots)

    async def gathered(
        self, required: InputRequiredResult, before: Rounds | None, context: ToolContext
    ) -> Rounds:
        """Return the answers that a server has ended a call for; models answer at once.

        Raises:
            ToolAsks: a person is asked.
            ToolError: the server asks for what it is not offered, or too often.
        """
        number = 1 if before is None else before.number + 1
        if number > ROUNDS_MAX:
            raise ToolError(
                f"MCP server {self._server!r} has asked for more inputs {ROUNDS_MAX} times, and "
                "does not end the call."
            )
        responses, remaining = dict[str, Json](), dict[str, Json]()
        for key, request in (required.input_requests or {}).items():
            if isinstance(request, ElicitRequest) and self.ask:
                remaining[key] = request.params.model_dump(
                    by_alias=True, mode="json", exclude_none=True
                )
            elif isinstance(request, CreateMessageRequest) and self.model is not None:
                result = await sampled(self.model, request.params, context)
                if isinstance(result, ErrorData):
                    raise ToolError(f"MCP server {self._server!r}: {result.message}")
                responses[key] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            elif isinstance(request, ListRootsRequest) and self._roots:
                roots = await self._list_roots(context)
                responses[key] = roots.model_dump(by_alias=True, mode="json", exclude_none=True)
            else:
                raise ToolError(
                    f"MCP server {self._server!r} asks for {request.method}, which is not offered "
                    "to it."
                )
        rounds = Rounds(number, required.request_state, "", remaining, responses)
        if not required.input_requests:
            await asyncio.sleep(PAUSE_S)
        return next_question(self._server, rounds)


async def sampled(
    model: Provider, params: CreateMessageRequestParams, context: ToolContext
) -> CreateMessageResult | ErrorData:
    """Return a model's reply to a server's request, within the budget of the run that called it."""
    meter = None if context.meter is None else context.meter()
    if meter is not None and (reached := meter.reached):
        return _refusal(f"no model is asked: the run has reached {', '.join(reached)}.")
    if params.tools:
        return _refusal("tools are not offered to the model of a server.")
    try:
        reply = await _call_model(model, _model_request(params))
    except GraphloopError as error:
        return _refusal(f"the model failed: {error}")
    if meter is not None:
        meter.add(reply, model.label)
    return CreateMessageResult(
        role="assistant",
        content=TextContent(text=reply.message.text),
        model=reply.model or model.label,
        stop_reason=STOPS.get(reply.finish_reason, "endTurn"),
    )


def _refusal(why: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=f"Sampling: {why}")


async def _call_model(model: Provider, request: ModelRequest) -> Reply:
    found: Reply | None = None
    async with aclosing(model.session().stream(request)) as items:
        async for item in items:
            found = item if isinstance(item, Reply) else found
    assert found is not None, "a session's last item is the reply"
    return found


def _model_request(params: CreateMessageRequestParams) -> ModelRequest:
    system = [SystemMessage(params.system_prompt)] if params.system_prompt else []
    settings = Settings(
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        stop_sequences=tuple(params.stop_sequences or ()),
    )
    return ModelRequest((*system, *map(_message, params.messages)), settings=settings)


def _message(message: SamplingMessage) -> Message:
    """Return a message of a server; calls and results of tools are not offered, and left out."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    parts = tuple([part_of(block) for block in blocks if isinstance(block, SHOWN)])
    return UserMessage(parts) if message.role == "user" else AssistantMessage(parts)
