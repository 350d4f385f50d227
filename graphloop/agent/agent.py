"""Agent: a model and tools in the standard loop, ready to be asked any number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, final

from ..driver import run_sync
from ..errors import ConfigError
from ..limits import ModelPrice
from ..loop import standard_edges
from ..parts import Part
from ..policy import Approval
from ..run import Run
from ..stores import Posted
from ..tools import Approval as NeedsApproval
from ..tools import legal_name
from .answers import Answers
from .final_answer import FinalAnswer
from .graph import Graph
from .hooks import Model
from .inputs import MessageInput
from .known import attach_metadata
from .options import AgentOptions, Checks, group, reject_unknown_options
from .result import RunResult
from .runner import Question, Runner
from .runs import Runs
from .standard import agent_callbacks, standard_nodes, stop_input
from .stream import RunStream
from .sub_agents import AgentTool, as_agent_tool
from .tool_runner import ToolRunner
from .world import AgentResources

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = [
    "Agent",
    "result_of",
]


@final
class Agent:
    """An agent: its `graph` is exactly what runs.

        agent = Agent("anthropic:claude-opus-4-8", tools=[get_weather], max_steps=5)
        result = agent.generate_sync("What's the weather in NYC and London?")

    An agent holds no conversation, and no run changes it: ask it from as many tasks as you like.
    To go on with a conversation, pass `messages=[*history, *result.messages, …]`.

    Args:
        model: `"provider:model"`, or a provider.
        options: see `AgentOptions`.

    Raises:
        ConfigError: an option, the model or a tool cannot work; nothing has been sent.
    """

    def __init__(self, model: Model, **options: Unpack[AgentOptions]) -> None:
        reject_unknown_options(options, AgentOptions, "an agent")
        self.model = model
        self._options = _kept(options)
        if options.get("agents"):
            raise ConfigError(
                "`agents` are for the Child nodes of a graph of your own; give an agent the agents "
                "that it may call among its `tools`"
            )
        self._world = world = AgentResources(model, options, self._options.get("tools", ()))
        fallbacks = [world.add_model(one) for one in options.get("fallback_models", ())]
        final = _final_answer(options, [world.label, *fallbacks])
        answering = None if final is None else final.tool
        if answering is not None:
            world.answer_by(answering)
        conditions, predicates = stop_input(options.get("stop_when", ()))
        nodes = standard_nodes(options, world, conditions, predicates=bool(predicates))
        self.name = options.get("name", "agent")
        self.graph: Graph[None] = Graph(self.name, nodes.prepare, standard_edges(nodes))
        attach_metadata(self.graph, world, options)
        self._runner = Runner(
            self.graph,
            model,
            (),
            options,
            callbacks=agent_callbacks(options, world, nodes.prepare, predicates, final),
            own_gates=options.get("gate"),
            world=world,
            final=final,
        )

    @property
    def options(self) -> AgentOptions:
        """The agent's options but for its secrets, which must not end up in a log."""
        shown = self._options.copy()
        shown.pop("api_key", None)
        shown.pop("approval_secret", None)
        return shown

    def with_options(self, **options: Unpack[AgentOptions]) -> Agent:
        """Return an agent like this one, but for these options.

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
            name: the tool's name; the agent's if not given.
            description: what it is for; the calling model decides by this.
            needs_approval: whether a human must agree to a call.
            takes_over: a handoff: the agent reads the whole conversation, and its answer is the
                calling run's.

        Raises:
            ConfigError: the name cannot be a tool's.
        """
        return as_agent_tool(
            self._runner,
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
        )

    def as_sub_agent(
        self,
        name: str,
        model: Model | None,  # noqa: ARG002 - an agent has its own
        options: Mapping[str, object],  # noqa: ARG002 - the same
    ) -> AgentTool:
        """Return this agent, with its own model, for the nodes of a graph that name it."""
        return as_agent_tool(self._runner, name=legal_name(name), description="")

    def bound(self, *, context_window: int | None = None, price: ModelPrice | None = None) -> Bound:
        """Return the most that one run can come to; see `Graph.bound`."""
        return self._runner.bound(context_window=context_window, price=price)

    def stream(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunStream[None]:
        """Return the stream of a new run; nothing happens until it is looked at.

        Args:
            prompt: the question, or
            messages: the conversation so far.
            run_id: the run's id in the store; made up if not given.
            approvals: decisions about the calls that `messages` ends in, by the call's id; a call
                without one is denied. A token is good for its call at the end of its conversation,
                and an `approval_secret` demands one. In a `store`, a conversation is taken up
                with approvals once, unless `run_id` is given.
            tool_results: what client tools returned to those calls, by the call's id.
        """
        question = Question(prompt, messages, Answers.if_given(approvals, tool_results), run_id)
        return self._runner.start(question, None)

    def iter(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
        on_part: Callable[[Part], object] | None = None,
    ) -> ToolRunner:
        """Return a new run to be iterated turn by turn, and steered; see `ToolRunner`.

        A run that parked, or whose process died, is iterated further by `resume_iter`.

        Args:
            prompt: the question, or
            messages: the conversation so far.
            run_id: the run's id in the store; made up if not given.
            on_part: told of each part of the run as it comes, deltas included; what it raises
                becomes a warning.
        """
        question = Question(prompt, messages, None, run_id, attended=True)
        stream = self._runner.start(question, None, keep=on_part is not None)
        return ToolRunner(self._runner, stream, on_part)

    async def generate(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
        signal: asyncio.Event | None = None,
    ) -> RunResult[None]:
        """Run to the end, or to `signal`, which aborts; other arguments are those of `stream`.

        Raises:
            ConfigError: the question is not one; nothing has been sent.
            ProviderError: the model could not be asked, or did not answer completely.
            OutputInvalid: the answer has not the form of the `output_type`.
            Exception: what a function among the options raised.
        """
        question = Question(prompt, messages, Answers.if_given(approvals, tool_results), run_id)
        stream = self._runner.start(question, None, keep=signal is not None)
        return await result_of(stream, signal)

    def generate_sync(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunResult[None]:
        """Do what `generate` does, for callers without an event loop."""
        ask = partial(
            self.generate,
            prompt,
            messages=messages,
            run_id=run_id,
            approvals=approvals,
            tool_results=tool_results,
        )
        return run_sync(self._closing(ask), "Agent.generate")

    def resume_stream(
        self,
        run: str | RunResult[None],
        *,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunStream[None]:
        """Return the stream of a run that parked, or whose process died.

        Args:
            run: the run's id in this agent's store, or the result of the leg that parked.
            approvals: decisions by the key of the pending call; what is not decided stays
                pending.
            tool_results: what client tools returned, by the key of the pending call; an
                exception (`ToolError("…")`) says that the tool failed.
        """
        return self._runner.resume(run, Answers.given(approvals, tool_results))

    async def resume(
        self,
        run: str | RunResult[None],
        *,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunResult[None]:
        """Take a run up again and return its result; the arguments are those of `resume_stream`.

        Raises:
            StoreError: there is no such run, or its journal cannot be read.
            ConfigError: an answer names a call that the run does not wait for.
        """
        stream = self.resume_stream(run, approvals=approvals, tool_results=tool_results)
        return await stream.result()

    def resume_sync(
        self,
        run: str | RunResult[None],
        *,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunResult[None]:
        """Do what `resume` does, for callers without an event loop."""
        ask = partial(self.resume, run, approvals=approvals, tool_results=tool_results)
        return run_sync(self._closing(ask), "Agent.resume")

    def resume_iter(
        self,
        run: str | RunResult[None],
        *,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
        on_part: Callable[[Part], object] | None = None,
    ) -> ToolRunner:
        """Return a run that `iter` began, taken up to be iterated and steered as before.

        The turn that was pending when the process died is pending again: repeat what was not
        journaled; tools that had run do not run again. A turn that the run has left (it parked on
        an approval in it, say) is not; its tools run, and the next turn follows. The first look
        raises where `iter` has not started the run, or an answer names no call that it waits for.

        The arguments are those of `resume_stream`, and `on_part` of `iter`.
        """
        answers = Answers.given(approvals, tool_results)
        stream = self._runner.resume(run, answers, attended=True, keep=on_part is not None)
        return ToolRunner(self._runner, stream, on_part, is_new=False)

    @property
    def runs(self) -> Runs[None]:
        """The runs in the agent's store, by their ids; use it inside an event loop.

        Raises:
            ConfigError: the agent has no `store`.
        """
        return self._runner.runs

    async def approve(
        self,
        run_id: str,
        key: str,
        answer: bool | Approval = True,  # noqa: FBT001, FBT002 - `approve(run, key, False)` denies
    ) -> Posted:
        """Answer a call that a parked run waits for, without driving it; see `Runs.approve`."""
        return await self.runs.approve(run_id, key, answer)

    async def replay(self, run_id: str, *, upto: int | None = None) -> Run[None]:
        """Return a run as it stood after event `upto`, or after the last; see `Runs.replay`."""
        return await self.runs.replay(run_id, upto=upto)

    async def fork(
        self, run_id: str, *, at: int, new_id: str | None = None, share_approvals: bool = False
    ) -> str:
        """Copy a run up to event `at`, and return the id to `resume`; see `Runs.fork`."""
        return await self.runs.fork(run_id, at=at, new_id=new_id, share_approvals=share_approvals)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the agent's store, and its connections to models; it can be used again.

        Close it once its runs are over: a run that goes on in this event loop fails.

        Args:
            shared: whether to close what others may use as well: models that were given as
                objects, and the agents that it may call.
        """
        await self._runner.aclose(shared=shared)

    async def _closing(self, ask: Callable[[], Awaitable[RunResult[None]]]) -> RunResult[None]:
        """Close connections before the event loop of a synchronous call ends."""
        try:
            return await ask()
        finally:
            await self.aclose()


def _kept(options: AgentOptions) -> AgentOptions:
    """Return the options with tools that later changes to the caller's list do not reach."""
    kept = options.copy()
    tools = options.get("tools")
    if isinstance(tools, Mapping):
        kept["tools"] = dict(tools)
    elif isinstance(tools, Sequence):
        kept["tools"] = tuple(tools)
    return kept


def _final_answer(options: AgentOptions, labels: Sequence[str]) -> FinalAnswer | None:
    checks = group(options, Checks)
    if checks.output_type is None:
        return None
    own_server = options.get("base_url") is not None
    return FinalAnswer(checks.output_type, checks.output_mode, labels, own_server=own_server)


S = TypeVar("S")


async def result_of(stream: RunStream[S], signal: asyncio.Event | None) -> RunResult[S]:
    """Return a run's result, which is of an abort once the signal is set.

    Raises:
        Exception: what `RunStream.result` raises.
    """
    if signal is None:
        return await stream.result()
    watching = asyncio.create_task(_abort(stream, signal))
    await asyncio.sleep(0)  # A signal that is set already is heeded before the run begins.
    try:
        return await stream.result()
    finally:
        watching.cancel()


async def _abort(stream: RunStream[S], signal: asyncio.Event) -> None:
    await signal.wait()
    stream.abort("the signal was set")
