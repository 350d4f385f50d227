"""Runner: a graph with a model, tools and callbacks: everything a run needs but its question."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from os import environ
from pathlib import Path
from time import time
from typing import Generic, TypeVar, cast
from uuid import uuid4

from ..codec import Codec
from ..drivers.aio import AsyncDriver
from ..drivers.ports import Approval, Callback, Ports, Price, unpriced
from ..effects import AskHuman, CallModel, CallTool
from ..errors import ConfigError, nearest
from ..events import Decided, Event, Setup, Started, ToolReturned
from ..graph import Graph
from ..nodes.execute import Execute
from ..providers.base import Provider
from ..providers.registry import resolve
from ..replay import replay
from ..run import Run
from ..stores.base import Store
from ..stores.jsonl import JsonlStore
from ..stores.memory import MemoryStore
from ..tool_outcome import error_text, result_content
from ..tools import Toolbox
from ..values import Message
from .inputs import MessageInput, conversation
from .options import Model, RunOptions, check_kinds, check_model, settings_of
from .result import Pending, RunResult
from .stream import Opened, RunStream

__all__ = ["Runner"]

S = TypeVar("S")

CLIENT_RESULT_CHARS_MAX = 100_000


class Runner(Generic[S]):
    """Starts and resumes runs of one graph.

    Args:
        graph: what to run.
        model: the default model.
        toolbox: the tools on offer.
        options: the options of every run.
        callbacks: the user's functions that the graph's nodes invoke, by name.
        state_type: the type of the user's state, for journals.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """

    def __init__(
        self,
        graph: Graph[S],
        model: Model,
        toolbox: Toolbox,
        options: RunOptions,
        *,
        callbacks: Mapping[str, Callback[S]] | None = None,
        state_type: type[S] | None = None,
    ) -> None:
        check_kinds(options)
        self.graph = graph
        self.options = options
        self.toolbox = toolbox
        self.callbacks = dict(callbacks or {})
        self.models: dict[str, Provider] = {}
        self._state_type: type[object] = state_type or object
        label = self.add_model(model)
        one_at_a_time = any(
            isinstance(node, Execute) and node.concurrency == 1 for node in graph.nodes.values()
        )
        settings = settings_of(options, one_at_a_time=one_at_a_time)
        self.setup = Setup(label, self.toolbox.specs, settings)
        self._price = options.get("price") or _price_of(self.models[label])

    def add_model(self, model: Model) -> str:
        """Make a model known to runs and return its label.

        The options' key and URL are the default model's: another provider never sees them.
        """
        check_model(model)
        first = next(iter(self.models), None)
        same = isinstance(model, str) and _prefix(model) == _prefix(first or model)
        given: RunOptions = self.options if first is None or same else {}
        provider = resolve(
            model,
            api_key=given.get("api_key"),
            base_url=given.get("base_url"),
            timeouts=given.get("timeouts"),
            retries=given.get("retries"),
            environ=environ,
        )
        known = self.models.setdefault(provider.label, provider)
        if known is not provider and not isinstance(model, str):
            raise ConfigError(
                f"two different models are labelled {provider.label!r}, so a journal could not "
                "tell them apart: give one of them another label"
            )
        return provider.label

    async def aclose(self) -> None:
        """Close the connections to all models; they can be used again."""
        for provider in self.models.values():
            await provider.aclose()

    def start(
        self,
        prompt: str | None,
        messages: Sequence[MessageInput] | None,
        state: S,
        run_id: str | None = None,
        *,
        keep: bool = True,
    ) -> RunStream[S]:
        """Return the stream of a new run; nothing happens until it is looked at.

        The conversation is read now, so that what the caller does to it later changes nothing.
        """
        given: tuple[Message, ...] | ConfigError
        try:
            given = conversation(prompt, messages, self.options.get("instructions"))
        except ConfigError as error:
            given = error

        async def open_run() -> Opened[S]:
            if isinstance(given, ConfigError):
                raise given
            return self._opened(given, state, uuid4().hex if run_id is None else run_id)

        return RunStream(open_run, keep=keep)

    def resume(
        self,
        run: str | RunResult[S],
        approvals: Mapping[str, bool | Approval],
        tool_results: Mapping[str, object],
        *,
        keep: bool = True,
    ) -> RunStream[S]:
        """Return the stream of a run taken up again, by its result or by its id in the store."""

        async def open_run() -> Opened[S]:
            if isinstance(run, RunResult):
                store, known = run.store, run.run
            else:
                store = self._store()
                known = replay(self.graph, await store.load(run))
            self._check_resumable(known)
            driver = AsyncDriver(self.graph, self._ports(store), known.state)
            answers = self._answers(known, approvals, tool_results)
            return Opened(
                self.graph,
                store,
                driver,
                driver.resume(known, answers),
                known.spent,
                len(known.steps),
                self.options.get("on_step_finish"),
            )

        return RunStream(open_run, keep=keep)

    def _check_resumable(self, run: Run[S]) -> None:
        """Refuse before anything is journaled: a run must not end over a forgotten tool."""
        if run.ended:
            return
        labels = {run.setup.model} | {
            one.model for one in run.pending.values() if isinstance(one, CallModel)
        }
        for label in sorted(labels - self.models.keys()):
            raise ConfigError(
                f"run {run.id!r} asks model {label!r}, which is not here "
                f"(here: {', '.join(map(repr, self.models))}): resume it with that model"
            )
        for spec in run.setup.tools:
            if not spec.client and self.toolbox.get(spec.name) is None:
                raise ConfigError(
                    f"run {run.id!r} was started with tool {spec.name!r}, which is not here: "
                    "resume it with the tools that it was started with"
                )

    def _opened(self, messages: tuple[Message, ...], state: S, run_id: str) -> Opened[S]:
        store = self._store()
        ports = self._ports(store)
        driver = AsyncDriver(self.graph, ports, state)
        started = Started(ports.clock(), run_id, self.graph.name, messages, self.setup, state)
        return Opened(
            self.graph,
            store,
            driver,
            driver.start(started),
            on_step_finish=self.options.get("on_step_finish"),
        )

    def _store(self) -> Store:
        store = self.options.get("store")
        if store is None:
            return MemoryStore()
        if not isinstance(store, str | Path):
            return store
        if str(store).endswith((".db", ".sqlite", ".sqlite3")):
            raise ConfigError(
                f"store={str(store)!r} names a database file; journals are kept as JSON lines in "
                "a directory: give a directory, e.g. store='runs'"
            )
        return JsonlStore(store, codec=Codec(self._state_type))

    def _ports(self, store: Store) -> Ports[S]:
        return Ports(
            store=store,
            models=self.models,
            toolbox=self.toolbox,
            callbacks=self.callbacks,
            approve=self._approver(),
            price=self._price,
            clock=self.options.get("clock", time),
        )

    def _approver(self) -> Callable[[AskHuman, Run[S]], Awaitable[Approval]] | None:
        decide = self.options.get("approve_tool_call")
        if decide is None:
            return None

        async def approve(effect: AskHuman, _: Run[S]) -> Approval:
            call = effect.call
            pending = Pending("approval", effect.key, call.id, call.name, call.arguments)
            answer = decide(pending)
            if inspect.isawaitable(answer):
                answer = await answer
            return _approval(answer)

        return approve

    def _answers(
        self,
        run: Run[S],
        approvals: Mapping[str, bool | Approval],
        tool_results: Mapping[str, object],
    ) -> tuple[Event, ...]:
        """Return the answers that came from outside, as events, in the order of their calls."""
        asks = {one.key: one for one in run.pending.values() if isinstance(one, AskHuman)}
        clients = {
            one.key: one for one in run.pending.values() if isinstance(one, CallTool) and one.client
        }
        _known("approvals", approvals, asks)
        _known("tool_results", tool_results, clients)
        at = self.options.get("clock", time)()
        events: list[Event] = []
        for key, ask in asks.items():
            if key in approvals:
                approval = self._edited(ask, _approval(approvals[key]))
                events.append(
                    Decided(at, ask.id, approval.approved, approval.reason, approval.edit)
                )
        for key, call in clients.items():
            if key in tool_results:
                events.append(_client_result(at, call.id, tool_results[key]))
        return tuple(events)

    def _edited(self, ask: AskHuman, approval: Approval) -> Approval:
        tool = self.toolbox.get(ask.call.name)
        if approval.approved and approval.arguments and tool is not None:
            problem = tool.validate(approval.edit)
            if problem is not None:
                raise ConfigError(f"approvals[{ask.key!r}]: the edited arguments fail: {problem}")
        return approval


def _client_result(at: float, effect: int, value: object) -> ToolReturned:
    """Read what a client tool returned; an exception says that it failed."""
    if isinstance(value, Exception):
        return ToolReturned(at, effect, error_text(value), "error")
    return ToolReturned(at, effect, result_content(value, CLIENT_RESULT_CHARS_MAX))


def _approval(answer: object) -> Approval:
    """Read a decision; everything that is not exactly an approval denies."""
    if not isinstance(answer, Approval):
        return Approval(answer is True)
    return Approval(answer.approved is True, str(answer.reason), answer.edit)


def _known(option: str, given: Mapping[str, object], keys: Mapping[str, object]) -> None:
    for key in given:
        if key not in keys:
            raise ConfigError(
                f"`{option}` answers {key!r}, which the run does not wait for; it waits for "
                f"{', '.join(keys) or 'nothing of this kind'}.{nearest(key, keys)}"
            )


def _prefix(label: str) -> str:
    return label.partition(":")[0]


def _price_of(provider: Provider) -> Price:
    """Return the price table, which costs its import only where a real model is asked."""
    if _prefix(provider.label) not in {"anthropic", "openai"}:
        return unpriced
    return cast("Price", import_module("graphloop.prices").price)
