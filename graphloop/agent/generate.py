"""Functions that create an agent to answer one question, return one object, or be one tool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Generic, Unpack, cast, final, overload

from msgspec import Struct
from typing_extensions import TypeForm, TypeVar

from ..errors import ConfigError, OutputInvalid
from ..run import EndReason
from ..tools import Approval as NeedsApproval
from ..tools import run_sync
from ..values import Usage
from .agent import Agent
from .inputs import Model, PromptInput, QuestionInput
from .options import NO_DEPS, PLAIN_TEXT, AgentOptions, EveryAgentOption
from .result import RunHandle, RunResult
from .stream import RunStream
from .sub_agents import AgentTool

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


DepsT = TypeVar("DepsT", default=None)
OutputT = TypeVar("OutputT", default=str)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class TextOptions(AgentOptions[DepsT], QuestionInput[DepsT], Generic[DepsT], total=False):
    """The options of an agent that runs once, and the conversation and the `deps` of its run."""


async def generate_text(
    model: Model,
    prompt: PromptInput | None = None,
    *,
    output_type: TypeForm[OutputT] = PLAIN_TEXT,  # type: ignore[assignment]
    signal: asyncio.Event | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> RunResult[OutputT]:
    """Ask a model, let it use tools until it is done, and return the result.

    Args:
        model: `"provider:model"`, or a provider.
        prompt: the question, a text or a list such as `["What is it?", Path("a.png")]`; omit it if
            `messages` gives the conversation so far.
        signal: aborts the run once it is set; the result keeps the turns before the abort.
        output_type: the type of `result.output`; see `Agent`.
        options: see `AgentOptions`; `approvals` and `tool_results`, which answer the calls at the
            end of `messages`, are those of `Agent.stream`.

    Raises:
        ConfigError: an option, the model, a tool or the question is invalid; no request was sent.
        ProviderError: a model request failed, or its reply was incomplete.
        Exception: a `prepare_step` function or a stop predicate raised this error.
    """
    agent, question = _agent_of(model, output_type, options)
    try:
        return await agent.generate(prompt, signal=signal, **question)
    finally:
        if isinstance(model, str):
            await agent.aclose(shared=False)


def generate_text_sync(
    model: Model,
    prompt: PromptInput | None = None,
    *,
    output_type: TypeForm[OutputT] = PLAIN_TEXT,  # type: ignore[assignment]
    **options: Unpack[TextOptions[DepsT]],
) -> RunResult[OutputT]:
    """Run `generate_text` in a new event loop and return its result, for synchronous callers."""
    work = generate_text(model, prompt, output_type=output_type, **options)
    return run_sync(work, "generate_text")


def stream_chat(
    model: Model,
    prompt: PromptInput | None = None,
    *,
    output_type: TypeForm[OutputT] = PLAIN_TEXT,  # type: ignore[assignment]
    **options: Unpack[TextOptions[DepsT]],
) -> RunStream[OutputT]:
    """Return the stream of a new run; no request is sent before the stream is first read.

    The arguments are those of `generate_text`. This function never raises: for an invalid argument
    the stream has an error part, and its `result` raises the error.
    """
    try:
        agent, question = _agent_of(model, output_type, options)
        stream = agent.stream(prompt, **question)
    except Exception as error:  # noqa: BLE001 - `result` raises it again
        return RunStream(partial(_raise_at_start, error))
    if isinstance(model, str):
        stream.on_over = partial(agent.aclose, shared=False)
    return stream


def _agent_of(
    model: Model, output_type: TypeForm[OutputT], options: TextOptions[Any]
) -> tuple[Agent[Any, OutputT], QuestionInput[Any]]:
    """Create the agent, and return it with the options that are its question's."""
    given: Mapping[str, object] = {**options}  # A TypedDict takes no computed keys.
    asked = QuestionInput.__annotations__
    question = {key: value for key, value in given.items() if key in asked}
    own = {key: value for key, value in given.items() if key not in asked}
    kind: TypeForm[Any] = type(question["deps"]) if "deps" in question else NO_DEPS
    agent = Agent(model, output_type=output_type, deps_type=kind, **cast("AgentOptions[Any]", own))
    return agent, cast("QuestionInput[Any]", question)


async def _raise_at_start(error: Exception) -> RunHandle[None]:
    raise error


ABOUT_ONE_ANSWER: Final = frozenset(
    (
        *("api_key", "base_url", "budget", "clock", "compact", "compaction", "fallback_models"),
        *("headers", "query"),
        *("instructions", "max_output_retries", "max_tokens", "max_verify_retries", "name"),
        *("on_bad_history", "on_step_finish", "output_mode", "price", "prices"),
        *("provider_options", "retries", "seed", "step_timeout_s", "stop_sequences"),
        *("temperature", "timeouts", "top_p", "verify", "watch"),
    )
)
"""The options that `generate_object` accepts: those that have an effect without tools."""


@final
class ObjectResult(Struct, Generic[T_co], frozen=True):
    """An answer of the requested type (`object`), and the result of its run (`run`)."""

    object: T_co
    run: RunResult[T_co]

    @property
    def usage(self) -> Usage | None:
        """The token usage of all attempts; None if no server reported usage."""
        return self.run.total_usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all attempts in US dollars; None if no price was known for a call."""
        return self.run.cost_usd

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the run, such as options that could not take full effect."""
        return self.run.warnings


@overload
async def generate_object(
    model: Model,
    output_type: TypeForm[T],
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[T]: ...
@overload
async def generate_object(
    model: Model,
    output_type: Mapping[str, object],
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[Any]: ...
async def generate_object(
    model: Model,
    output_type: object,
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[Any]:
    """Ask a model for an answer of type `output_type`, and return the validated answer.

    Args:
        model: `"provider:model"`, or a provider.
        output_type: a pydantic model, a dataclass, a TypedDict, any type pydantic knows, or a
            JSON Schema.
        prompt: the question; omit it if `messages` gives the conversation so far.
        options: the `AgentOptions` that have an effect without tools. To let the model use tools
            before its answer, give an `Agent` an `output_type`.

    Raises:
        ConfigError: an option is invalid or has an effect only with tools; no request was sent.
        OutputInvalid: the model gave no answer of this type.
        ProviderError: a model request failed, or its reply was incomplete.
    """
    refused = sorted(options.keys() - ABOUT_ONE_ANSWER - {"messages"})
    if refused:
        raise ConfigError(
            f"generate_object asks for one answer; {', '.join(refused)} would have no effect: "
            "use Agent(…, output_type=…) for an answer after work with tools"
        )
    # Two turns for each attempt: the server may pause a reply once.
    steps = 2 * (options.get("max_output_retries", 2) + 1)
    every: TextOptions[DepsT] = {**options, "max_steps": steps}
    kind = cast("TypeForm[Any]", output_type)
    result = await generate_text(model, prompt, output_type=kind, **every)
    if result.end_reason is not EndReason.COMPLETED:
        raise OutputInvalid(
            f"the model gave no answer; the run ended by {result.end_reason.value}",
            text=result.text,
        )
    return ObjectResult(result.output, result)


@overload
def generate_object_sync(
    model: Model,
    output_type: TypeForm[T],
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[T]: ...
@overload
def generate_object_sync(
    model: Model,
    output_type: Mapping[str, object],
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[Any]: ...
def generate_object_sync(
    model: Model,
    output_type: object,
    /,
    prompt: PromptInput | None = None,
    **options: Unpack[TextOptions[DepsT]],
) -> ObjectResult[Any]:
    """Run `generate_object` in a new event loop and return its result, for synchronous callers."""
    kind = cast("TypeForm[Any]", output_type)
    work = generate_object(model, kind, prompt, **options)
    return run_sync(work, "generate_object")


def agent_tool(
    model: Model,
    *,
    description: str,
    needs_approval: NeedsApproval = False,
    takes_over: bool = False,
    **options: Unpack[EveryAgentOption[Any]],
) -> AgentTool:
    """Create an agent, and return it as a tool that other agents can call by its `name`.

    Args:
        model: `"provider:model"`, or a provider.
        description: the tool's purpose; the calling model reads it to choose a tool.
        needs_approval: whether a person must approve a call.
        takes_over: whether a call is a handoff: the agent reads the whole conversation of the
            calling run and gives that run's answer.
        options: see `AgentOptions`; `name` is also the tool's name.

    Raises:
        ConfigError: an option, the model or a tool is invalid.
    """
    every: dict[str, Any] = {**options}
    return Agent(model, **every).as_tool(
        description=description, needs_approval=needs_approval, takes_over=takes_over
    )
