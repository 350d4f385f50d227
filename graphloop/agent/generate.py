"""Functions that make an agent for one question, one object, or one tool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar, Unpack, cast, final, overload

from ..errors import ConfigError, OutputInvalid
from ..run import EndReason
from ..tools import Approval as NeedsApproval
from ..values import Usage
from .agent import Agent
from .inputs import Model, QuestionInput
from .options import AgentOptions
from .result import RunHandle, RunResult
from .stream import RunStream
from .sub_agents import AgentTool
from .terms import run_sync

__all__ = [
    "ObjectResult",
    "TextOptions",
    "agent_tool",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "stream_chat",
]


class TextOptions(AgentOptions, QuestionInput, total=False):
    """Options of an agent that is asked once, and its conversation."""


async def generate_text(
    model: Model,
    prompt: str | None = None,
    *,
    signal: asyncio.Event | None = None,
    **options: Unpack[TextOptions],
) -> RunResult[None]:
    """Ask a model, let it use tools until it is done, and return the result.

    Args:
        model: `"provider:model"`, or a provider.
        prompt: the question; or `messages`, the conversation so far.
        signal: aborts the run once it is set; the result has all that was done before.
        options: `approvals` and `tool_results` for the calls that `messages` ends in, as for
            `Agent.stream`; for the others see `AgentOptions`.

    Raises:
        ConfigError: an option, the model, a tool or the question cannot work; nothing was sent.
        ProviderError: the model could not be asked, or did not answer completely.
        Exception: the error of a `prepare_step` function or a stop predicate.
    """
    agent, question = _agent_of(model, options)
    try:
        return await agent.generate(prompt, signal=signal, **question)
    finally:
        if isinstance(model, str):
            await agent.aclose(shared=False)


def generate_text_sync(
    model: Model, prompt: str | None = None, **options: Unpack[TextOptions]
) -> RunResult[None]:
    """Do what `generate_text` does, for callers without an event loop."""
    return run_sync(generate_text(model, prompt, **options), "generate_text")


def stream_chat(
    model: Model, prompt: str | None = None, **options: Unpack[TextOptions]
) -> RunStream[None]:
    """Return the stream of one run; nothing is sent before the first look at it.

    The arguments are those of `generate_text`. A mistake in them becomes the stream's error part
    and the error of its `result`; this function never raises.
    """
    try:
        agent, question = _agent_of(model, options)
        stream = agent.stream(prompt, **question)
    except Exception as error:  # noqa: BLE001 - `result` raises it again
        return RunStream(partial(_refuse, error))
    if isinstance(model, str):
        stream.on_over = partial(agent.aclose, shared=False)
    return stream


def _agent_of(model: Model, options: TextOptions) -> tuple[Agent, QuestionInput]:
    """Return the agent, and its conversation."""
    given: Mapping[str, object] = {**options}  # A TypedDict loses its type where keys are computed.
    asked = QuestionInput.__annotations__
    question = {key: value for key, value in given.items() if key in asked}
    own = {key: value for key, value in given.items() if key not in asked}
    return Agent(model, **cast("AgentOptions", own)), cast("QuestionInput", question)


async def _refuse(error: Exception) -> RunHandle[None]:
    raise error


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ABOUT_ONE_ANSWER: Final = frozenset(
    (
        *("api_key", "base_url", "budget", "clock", "compact", "compaction", "fallback_models"),
        *("instructions", "max_output_retries", "max_tokens", "max_verify_retries", "name"),
        *("on_bad_history", "on_step_finish", "output_mode", "price", "prices"),
        *("provider_options", "retries", "seed", "step_timeout_s", "stop_sequences"),
        *("temperature", "timeouts", "top_p", "verify"),
    )
)
"""The options that have an effect without tools; all others are refused."""


@final
@dataclass(frozen=True)
class ObjectResult(Generic[T_co]):
    """An answer of the asked type, and the run that gave it."""

    object: T_co
    run: RunResult[None]

    @property
    def usage(self) -> Usage | None:
        """Tokens of all attempts; None where no server reported them."""
        return self.run.total_usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all attempts in US dollars; None if no price was known for a call."""
        return self.run.cost_usd

    @property
    def warnings(self) -> tuple[str, ...]:
        """The options that could not take full effect, and why."""
        return self.run.warnings


@overload
async def generate_object(
    model: Model,
    output_type: type[T],
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[T]: ...
@overload
async def generate_object(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[object]: ...
async def generate_object(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[Any]:
    """Ask a model for an answer of a type, and return it checked.

    Args:
        model: `"provider:model"`, or a provider.
        output_type: a pydantic model, a dataclass, a TypedDict, any type pydantic knows, or a
            JSON Schema.
        prompt: the question; or `messages`, the conversation so far.
        options: the `AgentOptions` that have an effect without tools. For an answer after work
            with tools, give an `Agent` an `output_type`.

    Raises:
        ConfigError: an option belongs to the loop, or cannot work; nothing was sent.
        OutputInvalid: the model gave no answer of this type.
        ProviderError: the model could not be asked, or did not answer completely.
    """
    refused = sorted(options.keys() - ABOUT_ONE_ANSWER - {"messages"})
    if refused:
        raise ConfigError(
            f"generate_object asks for one answer; {', '.join(refused)} would have no effect: "
            "use Agent(…, output_type=…) for an answer after work with tools"
        )
    # Each attempt may be paused once by the server.
    steps = 2 * (options.get("max_output_retries", 2) + 1)
    every: TextOptions = {**options, "output_type": output_type, "max_steps": steps}
    result = await generate_text(model, prompt, **every)
    if result.end_reason is not EndReason.COMPLETED:
        raise OutputInvalid(
            f"the model gave no answer; the run ended by {result.end_reason.value}",
            text=result.text,
        )
    return ObjectResult(result.output, result)


@overload
def generate_object_sync(
    model: Model,
    output_type: type[T],
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[T]: ...
@overload
def generate_object_sync(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[object]: ...
def generate_object_sync(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    **options: Unpack[TextOptions],
) -> ObjectResult[Any]:
    """Do what `generate_object` does, for callers without an event loop."""
    work = generate_object(model, output_type, prompt, **options)
    return run_sync(work, "generate_object")


def agent_tool(
    model: Model,
    *,
    description: str,
    needs_approval: NeedsApproval = False,
    takes_over: bool = False,
    **options: Unpack[AgentOptions],
) -> AgentTool:
    """Return an agent that other agents call as a tool, by its `name`.

    Args:
        model: `"provider:model"`, or a provider.
        description: its purpose; the calling model decides by this.
        needs_approval: whether a person must approve a call.
        takes_over: whether the agent reads the whole conversation and gives the run's answer.
        options: see `AgentOptions`; `name` is the tool's name too.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """
    return Agent(model, **options).as_tool(
        description=description, needs_approval=needs_approval, takes_over=takes_over
    )
