"""generate_object: one answer of a given type, from one model, with feedback where it does not fit.

The same loop as everywhere: what is wrong with an answer goes back to the model, a bounded number
of times, and everything that was used on the way is counted (CONTRACT §9 #48).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, Unpack, final, overload

from ..drivers.sync import run_sync
from ..errors import ConfigError, OutputInvalid
from ..run import EndReason
from ..values import Usage
from .agent import Agent
from .inputs import MessageInput
from .options import AgentOptions
from .result import RunResult
from .told import Model

__all__ = ["ObjectResult", "generate_object", "generate_object_sync"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ABOUT_ONE_ANSWER: Final = frozenset(
    {
        "api_key",
        "base_url",
        "budget",
        "clock",
        "compact",
        "compaction",
        "fallback_models",
        "instructions",
        "max_output_retries",
        "max_tokens",
        "name",
        "on_bad_history",
        "on_step_finish",
        "output_mode",
        "price",
        "prices",
        "provider_options",
        "retries",
        "seed",
        "step_timeout_s",
        "stop_sequences",
        "temperature",
        "timeouts",
        "top_p",
        "verify",
        "max_verify_retries",
    }
)
"""The options that mean something without tools; every other is refused, never ignored."""


@final
@dataclass(frozen=True)
class ObjectResult(Generic[T_co]):
    """An answer of a given type, and the run that it came from."""

    object: T_co
    run: RunResult[None]

    @property
    def usage(self) -> Usage | None:
        """Tokens of all attempts; None where no server told them."""
        return self.run.total_usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all attempts in US dollars; None if no price was known for a call."""
        return self.run.cost_usd

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not take full effect."""
        return self.run.warnings


@overload
async def generate_object(
    model: Model,
    output_type: type[T],
    /,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[T]: ...
@overload
async def generate_object(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[object]: ...
async def generate_object(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[Any]:
    """Ask a model for an answer of a type, and return it checked.

    Args:
        model: `"provider:model"`, or a provider.
        output_type: a pydantic model, a dataclass, a TypedDict, any type pydantic knows, or a
            JSON Schema.
        prompt: the question, or
        messages: the conversation so far.
        options: those of `AgentOptions` that say something about one answer; for an answer after
            work with tools, give an `Agent` an `output_type`.

    Raises:
        ConfigError: an option belongs to the loop, or cannot work; nothing was sent.
        OutputInvalid: the model gave no answer of this type, or none at all.
        ProviderError: the model could not be asked, or did not answer completely.
    """
    refused = sorted(options.keys() - ABOUT_ONE_ANSWER)
    if refused:
        raise ConfigError(
            f"generate_object asks for one answer; {', '.join(refused)} would have no effect: "
            "use Agent(…, output_type=…) for an answer after work with tools"
        )
    every: AgentOptions = {**options, "output_type": output_type, "max_steps": _steps(options)}
    agent = Agent(model, **every)
    try:
        result = await agent.generate(prompt, messages=messages)
    finally:
        if isinstance(model, str):
            await agent.aclose(shared=False)
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
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[T]: ...
@overload
def generate_object_sync(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[object]: ...
def generate_object_sync(
    model: Model,
    output_type: object,
    /,
    prompt: str | None = None,
    *,
    messages: Sequence[MessageInput] | None = None,
    **options: Unpack[AgentOptions],
) -> ObjectResult[Any]:
    """Do what `generate_object` does, for callers without an event loop."""
    work = generate_object(model, output_type, prompt, messages=messages, **options)
    return run_sync(work, "generate_object")


def _steps(options: AgentOptions) -> int:
    """Return how many turns there may be: the retries, and as many that were spent on pauses."""
    return 2 * (options.get("max_output_retries", 2) + 1)
