"""Agent: a model with tools, run by the standard loop; each question starts a new run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, cast, final, overload

from typing_extensions import TypeForm, TypeVar

from ..lazy import notebook_display
from ..limits import ModelPrice
from ..tools import Approval as NeedsApproval
from ..tools import legal_name
from . import chats
from .build_loop import agent_terms, merged_options
from .child_runs import as_agent_tool
from .inputs import CallInput, CallOptions, IteratedInput, Model, PromptInput, ResumeInput
from .options import NO_DEPS, PLAIN_TEXT, AgentOptions, EveryAgentOption, OverrideOptions
from .result import RunResult
from .runs import Questions, Runs, StoreInput
from .start_and_resume import for_call, overriding, resume_run, start_run
from .stream import RunStream
from .sub_agents import AgentTool, Place
from .tool_runner import PartListener, ToolRunner

if TYPE_CHECKING:
    from ..proofs import Bound
    from .chats import Chat, ChatOptions

__all__ = ["Agent"]

DepsT_contra = TypeVar("DepsT_contra", default=None, contravariant=True)
OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)
T = TypeVar("T")


@final
class Agent(Generic[DepsT_contra, OutputT_co]):
    """A model with tools, run by the standard loop of model calls and tool calls.

        agent = Agent("anthropic:claude-opus-4-8", tools=[get_weather], max_steps=5)
        result = agent.generate_sync("What's the weather in NYC and London?")

    An agent stores no conversation and runs do not change it, so concurrent tasks can share one.
    To continue a conversation, pass `messages=result.conversation`. Each run executes `graph`.

    An agent's type names the type of its answers: `Agent(model, output_type=Person)` is an
    `Agent[None, Person]`, and its `generate` returns a `RunResult[Person]`.

    Args:
        model: `"provider:model"`, or a provider.
        output_type: the type of the final answer, as `result.output`: a pydantic model, any type
            that JSON can express, or `json_output(schema)`. Without it, the output is a text.
        deps_type: the type of `deps`, an object that callers give the functions of a run. Tools
            read it as `context.deps` (`ToolContext[Deps]`), other functions as `info.deps`.
        options: see `graphloop.agent.AgentOptions` and, for `tools` or `store`, its `RunOptions`.

    Raises:
        ConfigError: an option, the model or a tool is invalid; no request has been sent.
    """

    def __init__(
        self,
        model: Model,
        *,
        # A type checker accepts no value as the default of every `TypeForm[T]`.
        output_type: TypeForm[OutputT_co] = PLAIN_TEXT,  # type: ignore[assignment]
        deps_type: TypeForm[DepsT_contra] = NO_DEPS,  # type: ignore[assignment]
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> None:
        self.model = model
        self.name = options.get("name", "agent")
        named: dict[str, object] = {"output_type": output_type, "deps_type": deps_type}
        given = {**options, **{name: kind for name, kind in named.items() if kind is not None}}
        self.graph, self._terms, self._options = agent_terms(model, cast("EveryAgentOption", given))

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.label
        tools = len(self.options.get("tools", ()))
        return f"<Agent {self.name!r}: {model}, {tools} {'tool' if tools == 1 else 'tools'}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return the picture of the agent's graph, for notebooks."""
        return {**notebook_display(self.graph), "text/plain": repr(self)}

    @property
    def options(self) -> EveryAgentOption[Any]:
        """The agent's options without its secrets, so that a log can show them."""
        secret = ("api_key", "approval_secret", "headers")
        shown = {name: value for name, value in self._options.items() if name not in secret}
        return cast("EveryAgentOption[Any]", shown)

    @property
    def revision(self) -> str:
        """The hash of the agent's code, without the code within its functions."""
        return self._terms.current.revision()

    @overload
    def with_options(
        self, *, model: Model | None = None, **options: Unpack[AgentOptions[DepsT_contra]]
    ) -> Self: ...
    @overload
    def with_options(
        self,
        *,
        output_type: TypeForm[T],
        model: Model | None = None,
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> Agent[DepsT_contra, T]: ...
    def with_options(
        self, *, model: Model | None = None, **options: Unpack[EveryAgentOption[Any]]
    ) -> Agent[DepsT_contra, Any]:
        """Return a new agent in which these options replace the agent's earlier values.

        Args:
            model: the model in place of the agent's. Access to the agent's model (`base_url`,
                `api_key`, …) does not apply to a model of another service, or to a provider.
            options: see `AgentOptions`.

        Raises:
            ConfigError: an option is invalid.
        """
        given = {**options, "model": model, **self._terms.current.overridden}
        now, merged = merged_options(self.model, self._options, given)
        return Agent(now, **cast("dict[str, Any]", merged))

    @contextmanager
    def override(
        self, *, model: Model | None = None, **options: Unpack[OverrideOptions[DepsT_contra]]
    ) -> Generator[None]:
        """Replace options of this agent in the runs that a test starts inside the `with` block.

            with agent.override(model=ScriptedModel(["Sunny."])):
                assert answer_customer("What's the weather?") == "Sunny."

        The agent may be a global of the tested module, or a tool of another agent. Calls and
        `with_options` inside the block do not replace these options. Other tasks and threads do not
        see them; tasks that start inside the block do. Inner blocks begin with the agent's options.

        Args:
            model: the model in place of the agent's and of its `fallback_models`.
            options: the options to replace, and the `deps` of all runs.

        Raises:
            ConfigError: an option is invalid.
        """
        given: dict[str, Any] = {**options}
        deps = {"deps": given.pop("deps")} if "deps" in given else {}
        if model is not None:
            given = {"fallback_models": (), **given, "model": model}
        now, merged = merged_options(self.model, self._options, given)
        _, terms, _ = agent_terms(now, merged, None if "store" in given else self._terms)
        with overriding(self._terms, terms.evolved(overridden=given, test_deps=deps)):
            yield

    def as_tool(
        self,
        *,
        name: str = "",
        description: str = "",
        needs_approval: NeedsApproval = False,
        takes_over: bool = False,
        deps: Callable[[Any], DepsT_contra] | None = None,
        place: Place = "here",
    ) -> AgentTool:
        """Return this agent as a tool that other agents can call; each call starts a child run.

        Args:
            name: the tool's name; by default the agent's name.
            description: the tool's purpose; the calling model reads it to choose a tool.
            needs_approval: whether a person must approve a call.
            takes_over: whether a call is a handoff: the agent reads the whole conversation of the
                calling run, and its answer becomes the calling run's answer.
            deps: makes this agent's `deps` from those of the calling run, which are the default.
            place: "anywhere" lets any worker drive the child run, while its parent waits parked.

        Raises:
            ConfigError: the name is not a legal tool name, or the place is unknown.
        """
        return as_agent_tool(
            self._terms,
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
            deps=deps,
            place=place,
        )

    def as_sub_agent(
        self,
        name: str,
        options: Mapping[str, object],  # noqa: ARG002 - the agent keeps its own options
    ) -> AgentTool:
        """Return this agent, with its own model, as a tool for nodes that run it by `name`."""
        return self.as_tool(name=legal_name(name))

    def bound(
        self,
        *,
        context_window: int | None = None,
        price: ModelPrice | None = None,
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> Bound:
        """Return the upper bounds on model calls, tokens, tool calls and cost of one run.

        Args:
            context_window: the largest context window among the models, in tokens.
            price: the price of the most expensive model.
            options: the run's own options; see `CallOptions`.
        """
        terms, _ = for_call(self._terms, options)
        return terms.bound(context_window, price)

    def stream(
        self, prompt: PromptInput | None = None, **question: Unpack[CallInput[DepsT_contra]]
    ) -> RunStream[OutputT_co]:
        """Return the stream of a new run, which starts when the stream is first read.

        Args:
            prompt: the question, after `messages`: a text, or parts: `["Who?", Path("a.png")]`.
            question: see `CallInput`; the run's own options replace those of the agent.
        """
        return start_run(self._terms, None, prompt, question)

    async def generate(
        self,
        prompt: PromptInput | None = None,
        *,
        signal: asyncio.Event | None = None,
        **question: Unpack[CallInput[DepsT_contra]],
    ) -> RunResult[OutputT_co]:
        """Start a new run and return its result; setting `signal` aborts the run.

        The other arguments are those of `stream`.

        Raises:
            ConfigError: the question or an argument is invalid; no request has been sent.
            ProviderError: a model request failed, or its reply was incomplete.
            OutputInvalid: the answer does not fit the `output_type`.
            Exception: a function among the options raised this error.
        """
        stream = start_run(self._terms, None, prompt, question, keep=signal is not None)
        return await (stream.result() if signal is None else _result_or_abort(stream, signal))

    def generate_sync(
        self, prompt: PromptInput | None = None, **question: Unpack[CallInput[DepsT_contra]]
    ) -> RunResult[OutputT_co]:
        """Run `generate` in a new event loop and return its result, for synchronous callers."""
        return self._terms.run_sync(partial(self.generate, prompt, **question), "Agent.generate")

    def iter(
        self,
        prompt: PromptInput | None = None,
        *,
        on_part: PartListener | None = None,
        **conversation: Unpack[IteratedInput[DepsT_contra]],
    ) -> ToolRunner[OutputT_co]:
        """Return a `ToolRunner`, which iterates a new run turn by turn and can change each turn.

        To iterate a run that parked or whose process died, use `resume_iter`.

        Args:
            prompt: the question; it follows `messages`, which may also end in the question.
            on_part: called with each part of the run as it arrives; its error becomes a warning.
            conversation: see `IteratedInput`.
        """
        terms, asked = for_call(self._terms, conversation, attended=True)
        stream = start_run(terms, None, prompt, asked, attended=True, keep=on_part is not None)
        return ToolRunner(terms, stream, on_part)

    def resume_stream(
        self, run: str | RunResult[Any], **answers: Unpack[ResumeInput[DepsT_contra]]
    ) -> RunStream[OutputT_co]:
        """Return the stream of a run that is resumed after it parked or its process died.

        Args:
            run: the run's id in this agent's store, or the `RunResult` of the parked run.
            answers: see `ResumeInput`.
        """
        return resume_run(self._terms, run, answers)

    async def resume(
        self, run: str | RunResult[Any], **answers: Unpack[ResumeInput[DepsT_contra]]
    ) -> RunResult[OutputT_co]:
        """Resume a run and return its result; the arguments are those of `resume_stream`.

        Raises:
            StoreError: the store has no run with this id, or its journal cannot be read.
            ConfigError: an answer names a call that the run does not wait for.
        """
        return await resume_run(self._terms, run, answers).result()

    def resume_sync(
        self, run: str | RunResult[Any], **answers: Unpack[ResumeInput[DepsT_contra]]
    ) -> RunResult[OutputT_co]:
        """Run `resume` in a new event loop and return its result, for synchronous callers."""
        return self._terms.run_sync(partial(self.resume, run, **answers), "Agent.resume")

    def resume_iter(
        self,
        run: str | RunResult[Any],
        *,
        on_part: PartListener | None = None,
        **answers: Unpack[ResumeInput[DepsT_contra]],
    ) -> ToolRunner[OutputT_co]:
        """Return a `ToolRunner` that continues a run which `iter` started.

        If the process died during a turn, the runner yields that turn again; tools that had
        finished do not run again. If the run had left the turn to wait for an approval, the runner
        does not yield that turn: its tools run, and the next turn follows. The first iteration
        raises an error if `iter` did not start the run, or if an answer is for a call that the run
        does not wait for.

        The arguments are those of `resume_stream`, and `on_part` of `iter`.
        """
        stream = resume_run(self._terms, run, answers, attended=True, keep=on_part is not None)
        return ToolRunner(self._terms, stream, on_part, is_new=False)

    def chat(
        self, chat_id: str | None = None, **options: Unpack[ChatOptions]
    ) -> Chat[DepsT_contra, OutputT_co]:
        """Return a conversation that goes on over many questions, also in other processes.

            chat = agent.chat("user-42", store="chats.db")
            result = await chat.send("What's the weather in NYC?")
            result = await chat.send("And tomorrow?")

        Args:
            chat_id: the id of the chat in its store. Without an id, the chat is a new one, and
                without a store it is kept in memory.
            options: see `ChatOptions`.

        Raises:
            ConfigError: an option is invalid, or a chat with an id has no store.
        """
        return chats.Chat(self._terms, chat_id, options)

    @property
    def runs(self) -> Runs[OutputT_co]:
        """Access to the runs in the agent's store by id; `runs("other.db")` for another store."""
        return Runs(terms=self._terms)

    async def pending(self, run_id: str, *, store: StoreInput | None = None) -> Questions:
        """Return the calls that a stored run waits for, without driving the run.

            for call in await agent.pending("r1"): print(call.name, call.arguments)
            result = await agent.resume("r1", approvals={call.key: call.approve()})

        Args:
            run_id: the run's id.
            store: the store of the run, or its path; by default the agent's own store.

        Raises:
            UnknownRun: the store has no such run.
            ConfigError: there is no store, or the agent lacks a model or tool of the run.
        """
        return await (self.runs if store is None else self.runs(store)).waiting(run_id)

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


async def _result_or_abort(stream: RunStream[T], signal: asyncio.Event) -> RunResult[T]:
    """Return the result of the stream's run; abort the run when `signal` is set."""
    watching = asyncio.create_task(_abort_on_signal(stream, signal))
    await asyncio.sleep(0)  # Lets `_abort_on_signal` act on a signal set earlier.
    try:
        return await stream.result()
    finally:
        watching.cancel()


async def _abort_on_signal(stream: RunStream[Any], signal: asyncio.Event) -> None:
    await signal.wait()
    stream.abort("the signal was set")
