"""Agent: a model and tools in the standard loop, ready to be asked any number of times."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Unpack, cast, final

from ..drivers.ports import Approval
from ..drivers.sync import run_sync
from ..errors import ConfigError
from ..events import Answer, Changes, Tripped
from ..graph import Edges
from ..loop import standard_edges
from ..nodes.execute import Execute
from ..nodes.prepare_step import PrepareStep
from ..nodes.stop_check import StopCheck
from ..run import Run
from ..stop import Condition, HasToolCall, StopInfo
from ..tools import Toolbox
from ..values import ToolSpec
from .graph import Graph
from .inputs import MessageInput, messages_of
from .options import (
    AgentOptions,
    Model,
    Predicate,
    StepChanges,
    StepInfo,
    StopInput,
    choice_of,
    known_tools,
    reject_unknown,
)
from .result import RunResult
from .runner import Runner
from .stream import RunStream

__all__ = ["Agent"]

PREPARE_STEP = "prepare_step"
STOP_WHEN = "stop_when"


@final
class Agent:
    """An agent: its `graph` is exactly what runs.

        agent = Agent("anthropic:claude-opus-4-8", tools=[get_weather], max_steps=5)
        result = agent.generate_sync("What's the weather in NYC and London?")

    An agent holds no conversation and is never changed by a run; ask it from as many tasks as you
    like. To go on with a conversation, pass `messages=[*history, *result.messages, …]`.

    Args:
        model: `"provider:model"`, or a provider.
        options: see `AgentOptions`.

    Raises:
        ConfigError: an option, the model or a tool cannot work; nothing has been sent.
    """

    def __init__(self, model: Model, **options: Unpack[AgentOptions]) -> None:
        reject_unknown(options, AgentOptions, "an agent")
        toolbox = Toolbox(options.get("tools", ()))
        options["tools"] = [known for spec in toolbox.specs if (known := toolbox.get(spec.name))]
        self.model = model
        self._options: AgentOptions = options
        conditions, self._predicates = _stop_input(options.get("stop_when", ()))
        watched = [one.tool for one in conditions if isinstance(one, HasToolCall)]
        known_tools("stop.has_tool_call", watched, toolbox.specs)
        self._prepare_step = options.get("prepare_step")
        given = options.get("active_tools")
        active = None if given is None else known_tools("active_tools", given, toolbox.specs)
        prepare = self._every_turn = PrepareStep(
            active_tools=active,
            tool_choice=choice_of(
                options.get("tool_choice", "auto"), _offered(toolbox.specs, active)
            ),
            callback=PREPARE_STEP if self._prepare_step else "",
        )
        execute = Execute(concurrency=options.get("max_tool_concurrency", 5))
        stop = StopCheck(
            max_steps=options.get("max_steps", 20),
            max_tool_errors=options.get("max_consecutive_tool_errors", 3),
            conditions=conditions,
            callback=STOP_WHEN if self._predicates else "",
        )
        edges: Edges[None] = standard_edges(prepare, execute, stop)
        self.graph: Graph[None] = Graph(options.get("name", "agent"), prepare, edges)
        callbacks = {PREPARE_STEP: self._prepare, STOP_WHEN: self._stop}
        self._runner = Runner(self.graph, model, toolbox, options, callbacks=callbacks)

    @property
    def options(self) -> AgentOptions:
        """The agent's options but for its key, which must not end up in a log."""
        shown = self._options.copy()
        shown.pop("api_key", None)
        return shown

    def with_options(self, **options: Unpack[AgentOptions]) -> Agent:
        """Return an agent like this one, but for these options.

        Raises:
            ConfigError: an option cannot work.
        """
        merged: AgentOptions = {**self._options, **options}
        return Agent(self.model, **merged)

    def stream(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
    ) -> RunStream[None]:
        """Return the stream of a new run; nothing happens until it is looked at.

        Args:
            prompt: the question, or
            messages: the conversation so far.
            run_id: the run's id in the store; made up if not given.
        """
        return self._runner.start(prompt, messages, None, run_id)

    async def generate(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
    ) -> RunResult[None]:
        """Run to the end and return the result; the arguments are those of `stream`.

        Raises:
            ConfigError: the question is not one; nothing has been sent.
            ProviderError: the model could not be asked, or did not answer completely.
            Exception: what `prepare_step` or a stop predicate raised.
        """
        return await self._runner.start(prompt, messages, None, run_id, keep=False).result()

    def generate_sync(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[MessageInput] | None = None,
        run_id: str | None = None,
    ) -> RunResult[None]:
        """Do what `generate` does, for callers without an event loop."""
        return run_sync(self._generate_and_close(prompt, messages, run_id), "Agent.generate")

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
        return self._runner.resume(run, approvals or {}, tool_results or {})

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

    async def aclose(self) -> None:
        """Close the connections to the agent's models; it can be used again."""
        await self._runner.aclose()

    async def _generate_and_close(
        self, prompt: str | None, messages: Sequence[MessageInput] | None, run_id: str | None
    ) -> RunResult[None]:
        """Close connections before the event loop of a synchronous call does."""
        try:
            return await self.generate(prompt, messages=messages, run_id=run_id)
        finally:
            await self.aclose()

    async def _prepare(self, run: Run[None]) -> Answer:
        prepare = self._prepare_step
        assert prepare is not None, "the graph invokes what it was built with"
        info = StepInfo(run.turn.number, run.messages, run.spent.usage)
        answer = prepare(info)
        if inspect.isawaitable(answer):
            answer = await answer
        return self._changes(answer)

    def _changes(self, changes: StepChanges | None) -> Changes:
        if changes is None:
            return Changes()
        if not isinstance(changes, StepChanges):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"`prepare_step` returns StepChanges or None; found {type(changes).__name__}"
            )
        specs = self._runner.toolbox.specs
        every_turn, given, model = self._every_turn, changes.active_tools, changes.model
        active = None if given is None else known_tools("active_tools", given, specs)
        # The agent's own choice, too, may be impossible among the tools of this turn.
        choice = choice_of(
            every_turn.tool_choice if changes.tool_choice is None else changes.tool_choice,
            _offered(specs, every_turn.active_tools if active is None else active),
        )
        return Changes(
            messages=None if changes.messages is None else messages_of(changes.messages),
            active_tools=active,
            tool_choice=None if changes.tool_choice is None else choice,
            model=None if model is None else self._runner.add_model(model),
        )

    async def _stop(self, run: Run[None]) -> Answer:
        info = StopInfo(run.steps, run.spent, run.at - run.started_at)
        tripped: list[str] = []
        for predicate in self._predicates:
            answer = predicate(info)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                tripped.append(_name_of(predicate))
        return Tripped(tuple(tripped))


def _offered(tools: Sequence[ToolSpec], active: Sequence[str] | None) -> tuple[ToolSpec, ...]:
    return tuple(one for one in tools if active is None or one.name in active)


def _name_of(predicate: Predicate) -> str:
    """Return a function's own name; a lambda and a partial have none."""
    name = getattr(predicate, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else "custom"


def _stop_input(given: StopInput) -> tuple[tuple[Condition, ...], tuple[Predicate, ...]]:
    """Part pure conditions, which the graph evaluates, from functions, which it invokes."""
    # isinstance cannot tell the item type.
    every = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    conditions: list[Condition] = []
    predicates: list[Predicate] = []
    for one in every:
        if isinstance(one, Condition) and not isinstance(one, type):
            conditions.append(one)
        elif callable(one) and not isinstance(one, type):
            # What a function takes and returns shows only when it is called.
            predicates.append(cast("Predicate", one))
        else:
            raise ConfigError(
                "`stop_when` takes conditions (graphloop.stop) and functions of StopInfo; "
                f"found {one!r}"
            )
    return tuple(conditions), tuple(predicates)
