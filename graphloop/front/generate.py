"""generate_text and stream_chat: an agent for one question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Unpack

from ..approvals import Approval
from ..drivers.sync import run_sync
from .agent import Agent
from .inputs import MessageInput
from .opened import Opened
from .options import AgentOptions
from .result import RunResult
from .stream import RunStream
from .told import Model

__all__ = ["generate_text", "generate_text_sync", "stream_chat"]


async def generate_text(
    model: Model,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    approvals: Mapping[str, bool | Approval] | None = None,
    tool_results: Mapping[str, object] | None = None,
    signal: asyncio.Event | None = None,
    **options: Unpack[AgentOptions],
) -> RunResult[None]:
    """Ask a model, let it use tools until it is done, and return the result.

    Args:
        model: `"provider:model"`, or a provider.
        prompt: the question, or
        messages: the conversation so far.
        approvals: decisions about the calls that `messages` ends in; see `Agent.stream`.
        tool_results: what client tools returned to those calls.
        signal: aborts the run once it is set: it ends as `aborted`, with what there is.
        options: see `AgentOptions`.

    Raises:
        ConfigError: an option, the model, a tool or the question cannot work; nothing was sent.
        ProviderError: the model could not be asked, or did not answer completely.
        Exception: what `prepare_step` or a stop predicate raised.
    """
    agent = Agent(model, **options)
    try:
        return await agent.generate(
            prompt,
            messages=messages,
            approvals=approvals,
            tool_results=tool_results,
            signal=signal,
        )
    finally:
        if isinstance(model, str):
            await agent.aclose(shared=False)


def generate_text_sync(
    model: Model,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    approvals: Mapping[str, bool | Approval] | None = None,
    tool_results: Mapping[str, object] | None = None,
    **options: Unpack[AgentOptions],
) -> RunResult[None]:
    """Do what `generate_text` does, for callers without an event loop."""
    agent = Agent(model, **options)
    ask = partial(
        agent.generate, prompt, messages=messages, approvals=approvals, tool_results=tool_results
    )
    return run_sync(_closing(agent, ask), "generate_text")


async def _closing(agent: Agent, ask: Callable[[], Awaitable[RunResult[None]]]) -> RunResult[None]:
    """Close what was opened by name before the event loop of a synchronous call ends."""
    try:
        return await ask()
    finally:
        if isinstance(agent.model, str):
            await agent.aclose()


def stream_chat(
    model: Model,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    approvals: Mapping[str, bool | Approval] | None = None,
    tool_results: Mapping[str, object] | None = None,
    **options: Unpack[AgentOptions],
) -> RunStream[None]:
    """Return the stream of one run at once; nothing is sent until it is looked at.

    The arguments are those of `generate_text`. Whatever is wrong with them becomes the stream's
    error part and the error of its `result`: this function itself never raises.
    """
    try:
        agent = Agent(model, **options)
        stream = agent.stream(
            prompt, messages=messages, approvals=approvals, tool_results=tool_results
        )
    except Exception as error:  # noqa: BLE001 - it is raised again by `result`
        return RunStream(partial(_refuse, error))
    if isinstance(model, str):
        stream.on_over = partial(agent.aclose, shared=False)
    return stream


async def _refuse(error: Exception) -> Opened[None]:
    raise error
