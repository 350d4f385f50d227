"""Agent: a model and tools in the standard loop, which can be asked any number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Self, Unpack, cast, final

from ..limits import ModelPrice
from ..parts import Part
from ..tools import Approval as NeedsApproval
from ..tools import legal_name
from .child_runs import as_agent_tool
from .inputs import AnswersInput, ConversationInput, Model, QuestionInput
from .options import AgentOptions
from .result import RunResult
from .runs import Runs
from .standard import agent_terms
from .starting import resume_run, start_run
from .stream import RunStream
from .sub_agents import AgentTool
from .tool_runner import ToolRunner

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = ["Agent"]


@final
class Agent:
    """A model and tools in the standard loop; `graph` is the table that runs.

        agent = Agent("anthropic:claude-opus-4-8", tools=[get_weather], max_steps=5)
        result = agent.generate_sync("What's the weather in NYC and London?")

    An agent holds no conversation, and no run changes it, so many tasks can ask it at once.
    To go on with a conversation, pass `messages=[*history, *result.messages, …]`.

    Args:
        model: `"provider:model"`, or a provider.
        options: see `AgentOptions`.

    Raises:
        ConfigError: an option, the model or a tool cannot work; nothing has been sent.
    """

    def __init__(self, model: Model, **options: Unpack[AgentOptions]) -> None:
        self.model = model
        self.name = options.get("name", "agent")
        self.graph, self._terms, self._options = agent_terms(model, options)

    @property
    def options(self) -> AgentOptions:
        """The agent's options without its secrets, so that a log can show them."""
        shown = self._options.copy()
        shown.pop("api_key", None)
        shown.pop("approval_secret", None)
        return shown

    def with_options(self, **options: Unpack[AgentOptions]) -> Agent:
        """Return a new agent with these options in place of earlier ones.

        Raises:
            ConfigError: an option cannot work.
        """
        merged: AgentOptions = {**self._options, **options}
        return Agent(self.model, **merged)

    def as_tool(
        self,
        *,
        name: str = "",
        description: str = "",
        needs_approval: NeedsApproval = False,
        takes_over: bool = False,
    ) -> AgentTool:
        """Return this agent as a tool of other agents; each call is a child run.

        Args:
            name: the tool's name; by default the agent's name.
            description: its purpose; the calling model decides by this.
            needs_approval: whether a person must approve a call.
            takes_over: a handoff: the agent reads the whole conversation, and its answer becomes
                the answer of the calling run.

        Raises:
            ConfigError: the name cannot be a tool's.
        """
        return as_agent_tool(
            self._terms,
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
        )

    def as_sub_agent(
        self,
        name: str,
        options: Mapping[str, object],  # noqa: ARG002 - an agent has its own
    ) -> AgentTool:
        """Return this agent, with its own model, for nodes that name it."""
        return self.as_tool(name=legal_name(name))

    def bound(self, *, context_window: int | None = None, price: ModelPrice | None = None) -> Bound:
        """Return the worst case of one run: its model calls, tokens, tools and cost.

        Args:
            context_window: how many tokens the largest of the models' windows holds.
            price: the price of the dearest of the models.
        """
        return self._terms.bound(context_window, price)

    def stream(
        self, prompt: str | None = None, **question: Unpack[QuestionInput]
    ) -> RunStream[None]:
        """Return the stream of a new run; the run starts at the first look at it.

        Args:
            prompt: the question; or `messages`, the conversation so far.
            question: see `QuestionInput`.
        """
        return start_run(self._terms, None, prompt, question)

    async def generate(
        self,
        prompt: str | None = None,
        *,
        signal: asyncio.Event | None = None,
        **question: Unpack[QuestionInput],
    ) -> RunResult[None]:
        """Run to the end, or until `signal` aborts; other arguments are those of `stream`.

        Raises:
            ConfigError: the question cannot be asked; nothing has been sent.
            ProviderError: the model could not be asked, or did not answer completely.
            OutputInvalid: the answer does not fit the `output_type`.
            Exception: the error of a function among the options.
        """
        stream = start_run(self._terms, None, prompt, question, keep=signal is not None)
        return await (stream.result() if signal is None else _until(stream, signal))

    def generate_sync(
        self, prompt: str | None = None, **question: Unpack[QuestionInput]
    ) -> RunResult[None]:
        """Do what `generate` does, for callers without an event loop."""
        ask = partial(self.generate, prompt, **question)
        return self._terms.run_sync(ask, "Agent.generate")

    def iter(
        self,
        prompt: str | None = None,
        *,
        on_part: Callable[[Part], object] | None = None,
        **conversation: Unpack[ConversationInput],
    ) -> ToolRunner:
        """Return a new run to iterate turn by turn, and to steer; see `ToolRunner`.

        `resume_iter` iterates a run that parked, or whose process died.

        Args:
            prompt: the question; or `messages`, the conversation so far.
            on_part: called with each part of the run as it comes, deltas included; its error
                becomes a warning.
            conversation: see `ConversationInput`.
        """
        keep = on_part is not None
        # `start_run` refuses answers: an iterated run takes none.
        question = cast("QuestionInput", conversation)
        stream = start_run(self._terms, None, prompt, question, attended=True, keep=keep)
        return ToolRunner(self._terms, stream, on_part)

    def resume_stream(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunStream[None]:
        """Return the stream of a run that parked, or whose process died.

        Args:
            run: the run's id in this agent's store, or the result of the leg that parked.
            answers: see `AnswersInput`.
        """
        return resume_run(self._terms, run, answers)

    async def resume(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunResult[None]:
        """Resume a run and return its result; the arguments are those of `resume_stream`.

        Raises:
            StoreError: there is no such run, or its journal cannot be read.
            ConfigError: an answer names a call that the run does not wait for.
        """
        return await resume_run(self._terms, run, answers).result()

    def resume_sync(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunResult[None]:
        """Do what `resume` does, for callers without an event loop."""
        return self._terms.run_sync(partial(self.resume, run, **answers), "Agent.resume")

    def resume_iter(
        self,
        run: str | RunResult[None],
        *,
        on_part: Callable[[Part], object] | None = None,
        **answers: Unpack[AnswersInput],
    ) -> ToolRunner:
        """Return a run that `iter` started, to iterate and steer it further.

        The turn that was pending when the process died is pending again; tools that had run do not
        run again. A turn that the run has left, to wait for an approval, is not pending: its tools
        run, and the next turn follows. The first look raises an error if `iter` has not started
        the run, or if an answer names no call that waits.

        The arguments are those of `resume_stream`, and `on_part` of `iter`.
        """
        keep = on_part is not None
        stream = resume_run(self._terms, run, answers, attended=True, keep=keep)
        return ToolRunner(self._terms, stream, on_part, is_new=False)

    @property
    def runs(self) -> Runs[None]:
        """The runs in the agent's store, by their ids."""
        return Runs(terms=self._terms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the agent's store, and its connections to models; it can be used again.

        Close it once its runs are over: a run that goes on in this event loop fails.

        Args:
            shared: whether to close what other agents may use as well: models that were given as
                objects, and the agents that this one may call.
        """
        await self._terms.aclose(shared=shared)


async def _until(stream: RunStream[None], signal: asyncio.Event) -> RunResult[None]:
    """Return the run's result; the signal aborts the run."""
    watching = asyncio.create_task(_abort(stream, signal))
    await asyncio.sleep(0)  # A signal that is set already aborts the run before its first step.
    try:
        return await stream.result()
    finally:
        watching.cancel()


async def _abort(stream: RunStream[None], signal: asyncio.Event) -> None:
    await signal.wait()
    stream.abort("the signal was set")
