"""Agent: a model with tools, run by the standard loop; each question starts a new run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Self, Unpack, cast, final

from ..lazy import notebook_display
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
    """A model with tools, run by the standard loop of model calls and tool calls.

        agent = Agent("anthropic:claude-opus-4-8", tools=[get_weather], max_steps=5)
        result = agent.generate_sync("What's the weather in NYC and London?")

    An agent stores no conversation and runs do not change it, so concurrent tasks can share one.
    To continue a conversation, pass `messages=[*history, *result.messages, …]`.
    The attribute `graph` is the graph that each run executes.

    Args:
        model: `"provider:model"`, or a provider.
        options: see `AgentOptions`.

    Raises:
        ConfigError: an option, the model or a tool is invalid; no request has been sent.
    """

    def __init__(self, model: Model, **options: Unpack[AgentOptions]) -> None:
        self.model = model
        self.name = options.get("name", "agent")
        self.graph, self._terms, self._options = agent_terms(model, options)

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.label
        tools = len(self._terms.tool_names)
        return f"<Agent {self.name!r}: {model}, {tools} {'tool' if tools == 1 else 'tools'}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return the picture of the agent's graph, for notebooks."""
        return {**notebook_display(self.graph), "text/plain": repr(self)}

    @property
    def options(self) -> AgentOptions:
        """The agent's options without its secrets, so that a log can show them."""
        shown = self._options.copy()
        shown.pop("api_key", None)
        shown.pop("approval_secret", None)
        return shown

    def with_options(self, **options: Unpack[AgentOptions]) -> Agent:
        """Return a new agent in which these options replace the agent's earlier values.

        Raises:
            ConfigError: an option is invalid.
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
        """Return this agent as a tool that other agents can call; each call starts a child run.

        Args:
            name: the tool's name; by default the agent's name.
            description: the tool's purpose; the calling model reads it to choose a tool.
            needs_approval: whether a person must approve a call.
            takes_over: whether a call is a handoff: the agent reads the whole conversation of the
                calling run, and its answer becomes the calling run's answer.

        Raises:
            ConfigError: the name is not a legal tool name.
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
        options: Mapping[str, object],  # noqa: ARG002 - the agent keeps its own options
    ) -> AgentTool:
        """Return this agent, with its own model, as a tool for nodes that run it by `name`."""
        return self.as_tool(name=legal_name(name))

    def bound(self, *, context_window: int | None = None, price: ModelPrice | None = None) -> Bound:
        """Return the upper bounds on model calls, tokens, tool calls and cost of one run.

        Args:
            context_window: the largest context window among the models, in tokens.
            price: the price of the most expensive model.
        """
        return self._terms.bound(context_window, price)

    def stream(
        self, prompt: str | None = None, **question: Unpack[QuestionInput]
    ) -> RunStream[None]:
        """Return the stream of a new run, which starts when the stream is first read.

        Args:
            prompt: the question; omit it if `messages` gives the conversation so far.
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
        """Start a new run and return its result; setting `signal` aborts the run.

        The other arguments are those of `stream`.

        Raises:
            ConfigError: the question or an argument is invalid; no request has been sent.
            ProviderError: a model request failed, or its reply was incomplete.
            OutputInvalid: the answer does not fit the `output_type`.
            Exception: a function among the options raised this error.
        """
        stream = start_run(self._terms, None, prompt, question, keep=signal is not None)
        return await (stream.result() if signal is None else _until(stream, signal))

    def generate_sync(
        self, prompt: str | None = None, **question: Unpack[QuestionInput]
    ) -> RunResult[None]:
        """Run `generate` in a new event loop and return its result, for synchronous callers."""
        ask = partial(self.generate, prompt, **question)
        return self._terms.run_sync(ask, "Agent.generate")

    def iter(
        self,
        prompt: str | None = None,
        *,
        on_part: Callable[[Part], object] | None = None,
        **conversation: Unpack[ConversationInput],
    ) -> ToolRunner:
        """Return a `ToolRunner`, which iterates a new run turn by turn and can change each turn.

        To iterate a run that parked or whose process died, use `resume_iter`.

        Args:
            prompt: the question; omit it if `messages` gives the conversation so far.
            on_part: called with each part of the run as it arrives, including deltas. An error
                that the function raises becomes a warning.
            conversation: see `ConversationInput`.
        """
        keep = on_part is not None
        # This cast is safe: with `attended=True`, `start_run` refuses answers to calls.
        question = cast("QuestionInput", conversation)
        stream = start_run(self._terms, None, prompt, question, attended=True, keep=keep)
        return ToolRunner(self._terms, stream, on_part)

    def resume_stream(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunStream[None]:
        """Return the stream of a run that is resumed after it parked or its process died.

        Args:
            run: the run's id in this agent's store, or the `RunResult` of the parked run.
            answers: see `AnswersInput`.
        """
        return resume_run(self._terms, run, answers)

    async def resume(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunResult[None]:
        """Resume a run and return its result; the arguments are those of `resume_stream`.

        Raises:
            StoreError: the store has no run with this id, or its journal cannot be read.
            ConfigError: an answer names a call that the run does not wait for.
        """
        return await resume_run(self._terms, run, answers).result()

    def resume_sync(
        self, run: str | RunResult[None], **answers: Unpack[AnswersInput]
    ) -> RunResult[None]:
        """Run `resume` in a new event loop and return its result, for synchronous callers."""
        return self._terms.run_sync(partial(self.resume, run, **answers), "Agent.resume")

    def resume_iter(
        self,
        run: str | RunResult[None],
        *,
        on_part: Callable[[Part], object] | None = None,
        **answers: Unpack[AnswersInput],
    ) -> ToolRunner:
        """Return a `ToolRunner` that continues a run which `iter` started.

        If the process died during a turn, the runner yields that turn again; tools that had
        finished do not run again. If the run had left the turn to wait for an approval, the runner
        does not yield that turn: its tools run, and the next turn follows. The first iteration
        raises an error if `iter` did not start the run, or if an answer is for a call that the run
        does not wait for.

        The arguments are those of `resume_stream`, and `on_part` of `iter`.
        """
        keep = on_part is not None
        stream = resume_run(self._terms, run, answers, attended=True, keep=keep)
        return ToolRunner(self._terms, stream, on_part, is_new=False)

    @property
    def runs(self) -> Runs[None]:
        """Access to the runs in the agent's store by run id."""
        return Runs(terms=self._terms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the agent's store and its connections to models; later runs open them again.

        Call this after the agent's runs are over: a run still active in this event loop fails.

        Args:
            shared: whether to also close resources that other agents may share: models that were
                given as objects, and the agents that this agent may call.
        """
        await self._terms.aclose(shared=shared)


async def _until(stream: RunStream[None], signal: asyncio.Event) -> RunResult[None]:
    """Return the result of the stream's run; abort the run when `signal` is set."""
    watching = asyncio.create_task(_abort(stream, signal))
    await asyncio.sleep(0)  # Lets `_abort` act on a signal set earlier.
    try:
        return await stream.result()
    finally:
        watching.cancel()


async def _abort(stream: RunStream[None], signal: asyncio.Event) -> None:
    await signal.wait()
    stream.abort("the signal was set")
