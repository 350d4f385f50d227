"""Runner: starts, resumes and nests the runs of one graph, in the world it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import Any, Generic, TypeVar
from uuid import uuid4

from ..approvals import Approval, secret_of
from ..codec import Codec
from ..drivers.aio import AsyncDriver
from ..drivers.children import Resumption
from ..drivers.ports import Callback, ChildRun, Ports, Settler
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Setup, Started
from ..graph import Graph
from ..nodes.execute import Execute
from ..policy import Policy, Rule
from ..replay import replay
from ..run import Run
from ..spending import Budget
from ..stores.base import Posted, Store
from ..stores.memory import MemoryStore
from ..stores.opening import open_store
from ..stores.sqlite import SqliteStore
from ..tools import AnyTool, Toolbox
from ..values import Message, SystemMessage, evolve
from .answers import Answers, names_of, settler
from .checking import check_kinds, check_run_id, settings_of
from .final_answer import FinalAnswer
from .inputs import MessageInput, conversation
from .journals import answer_call, open_ask, recorded_asks
from .opened import Opened
from .options import RunOptions, Tools
from .result import RunResult, spent_by
from .resuming import descendants, resumption, waiting
from .stream import RunStream
from .told import Model
from .tool_approver import ToolApprover
from .world import World, price_of

__all__ = ["Question", "Runner"]

S = TypeVar("S")


@dataclass(frozen=True)
class Question:
    """What a run begins with: a conversation, and answers to the calls that it ends in.

    Args:
        prompt: the question, or
        messages: the conversation so far.
        answers: who approves the calls that the conversation ends in, and what client tools
            returned; None for a conversation that waits for nothing.
        run_id: the run's id in the store; made up if not given.
        attended: whether the caller iterates the run.
    """

    prompt: str | None = None
    messages: Sequence[MessageInput] | None = None
    answers: Answers | None = None
    run_id: str | None = None
    attended: bool = False


class Runner(Generic[S]):
    """Starts and resumes runs of one graph.

    Args:
        graph: what to run.
        model: the default model.
        tools: the tools and agents on offer.
        options: the options of every run.
        callbacks: makes the user's functions that the graph's nodes invoke, by name, for a run
            with this toolbox.
        state_type: the type of the user's state, for journals.
        gates: the rules that the graph's own gates apply, for their conditions.
        rules: rules that every gate of the graph applies beside its own.
        world: models, tools and agents; made of the model, the tools and the options if not given.
        final: how the final answer is given, where it has a form.
        child_state: the state that a run begins with as another's child.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """

    def __init__(  # noqa: PLR0913 - what a run needs but its question
        self,
        graph: Graph[S],
        model: Model,
        tools: Tools,
        options: RunOptions,
        *,
        callbacks: Callable[[Toolbox], Mapping[str, Callback[S]]] | None = None,
        state_type: type[S] | None = None,
        gates: tuple[Policy, ...] = (),
        rules: tuple[tuple[Rule, ...], ...] = (),
        world: World | None = None,
        final: FinalAnswer | None = None,
        child_state: S | None = None,
    ) -> None:
        check_kinds(options)
        self.graph = graph
        self.options = options
        self.world = World(model, options, tools) if world is None else world
        self._callbacks = callbacks
        self._gates = gates
        self._final = final
        self._child_state = child_state
        self._secret = secret_of(options.get("approval_secret"))
        unsigned = [name for name, one in self.world.children.items() if one.opener.is_signed]
        if unsigned and self._secret is None:
            raise ConfigError(
                f"agent {unsigned[0]!r} takes signed approvals only, and a child run takes those "
                "of the run above it: give `approval_secret` to this one, too"
            )
        self._state_type: type[object] = state_type or object
        self._store_opened: Store | None = None
        one_at_a_time = any(
            isinstance(node, Execute) and node.concurrency == 1 for node in graph.nodes.values()
        )
        self.setup = Setup(
            model=self.world.label,
            tools=self.world.toolbox.specs,
            settings=settings_of(options, one_at_a_time=one_at_a_time),
            budget=options.get("budget") or Budget(),
            output=None if final is None else final.spec,
            rules=rules,
            depth_max=options.get("max_agent_depth", 2),
            signed=self._secret is not None,
            approval_ttl_s=options.get("approval_ttl_s"),
        )
        self._price = price_of(options, self.world.models[self.world.label])

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that may be called in a run, or in those below it."""
        return self.world.callable_names

    @property
    def is_signed(self) -> bool:
        """Whether approvals have to be signed."""
        return self._secret is not None

    def now(self) -> float:
        """Return the time as runs see it."""
        return self.options.get("clock", time)()

    async def aclose(self) -> None:
        """Close the connections to all models, and the store; they can be used again."""
        await self.world.aclose()
        opened, self._store_opened = self._store_opened, None
        if isinstance(opened, SqliteStore):
            await opened.aclose()

    def start(self, question: Question, state: S, *, keep: bool = True) -> RunStream[S]:
        """Return the stream of a new run; nothing happens until it is looked at.

        The conversation is read now, so that what the caller does to it later changes nothing.
        """
        given: tuple[tuple[Message, ...], tuple[str, ...]] | ConfigError
        try:
            given = self._conversation(question)
        except ConfigError as error:
            given = error

        async def open_run() -> Opened[S]:
            if isinstance(given, ConfigError):
                raise given
            messages, warnings = given
            store = self.store()
            ports = replace(
                self.ports(store),
                attended=question.attended,
                settle=self._settler(question.answers, messages),
            )
            driver = AsyncDriver(self.graph, ports, state)
            setup = evolve(self.setup, attended=question.attended)
            run_id = uuid4().hex if question.run_id is None else question.run_id
            started = Started(ports.clock(), run_id, self.graph.name, messages, setup, state)
            return self._opened(ports, driver, warnings=warnings, started=started)

        return RunStream(open_run, keep=keep, has_objects=self._final is not None)

    def resume(self, run: str | RunResult[S], answers: Answers) -> RunStream[S]:
        """Return the stream of a run taken up again, by its result or by its id in the store."""

        async def open_run() -> Opened[S]:
            if isinstance(run, RunResult):
                store, known, added = self._open_again(run.store), run.run, run.added
            else:
                store, added = self.own_store(), ()
                known = replay(self.graph, await store.load(run))
            ports = self.ports(store, added)
            taken_up = await resumption(known, ports, answers)
            driver = AsyncDriver(self.graph, ports, known.state)
            return self._opened(ports, driver, taken_up=taken_up)

        return RunStream(open_run, has_objects=self._final is not None)

    async def approve(self, run_id: str, key: str, answer: bool | Approval) -> Posted:  # noqa: FBT001 - as callbacks answer
        """Answer a call that a run waits for, without driving it; see `Agent.approve`."""
        store = self.own_store()
        asks = await recorded_asks(store, run_id)
        if asks is None:
            run = replay(self.graph, await store.load(run_id))
            asks = tuple(one.ask for one in await waiting(run, self.ports(store)))
        ask = open_ask(asks, run_id, key)
        return await answer_call(store, run_id, ask, answer=answer, now=self.now())

    def child(
        self, messages: tuple[Message, ...], effect: StartRun, parent: Run[Any], ports: Ports[Any]
    ) -> ChildRun[Any]:
        """Return a run of this graph as another's child, as strict and as poor as its parent."""
        instructions = self.options.get("instructions")
        if instructions:
            told = [one for one in messages if not isinstance(one, SystemMessage)]
            messages = (SystemMessage(instructions), *told)
        own = self.ports(ports.store)
        above = ports.gates
        setup = evolve(
            self.setup,
            budget=self.setup.budget.tightened(effect.budget),
            rules=tuple((*self.world.allowed, *gate.rules) for gate in above),
            depth=parent.setup.depth + 1,
            depth_max=min(self.setup.depth_max + parent.setup.depth + 1, parent.setup.depth_max),
            signed=parent.setup.signed,
            approval_ttl_s=_shorter(parent.setup.approval_ttl_s, self.setup.approval_ttl_s),
        )
        approve = ports.approve or own.approve
        if isinstance(approve, ToolApprover):
            approve = approve.within(effect.agent)
        child_ports = replace(
            own,
            approve=approve,
            gates=(*above, *own.gates),
            secret=ports.secret,
            path=(*ports.path, effect.key),
            clock=ports.clock,
        )
        run_id = f"{parent.id}/{effect.key}"
        state = self._child_state
        started = Started(ports.clock(), run_id, self.graph.name, messages, setup, state)
        return ChildRun(graph=self.graph, ports=child_ports, started=started, state=state)

    def ports(self, store: Store, added: Sequence[AnyTool] = ()) -> Ports[S]:
        """Return the world of a run as its driver sees it.

        Args:
            store: where its journal goes.
            added: the tools that were added to the run before.
        """
        toolbox = self.world.toolbox.copy()
        if added:
            toolbox.add(added)
        outer, decide = self.options.get("gate"), self.options.get("approve_tool_call")
        return Ports(
            store=store,
            models=self.world.models,
            toolbox=toolbox,
            callbacks={} if self._callbacks is None else self._callbacks(toolbox),
            approve=None if decide is None else ToolApprover(decide),
            children=self.world.children,
            gates=self._gates if outer is None or self._gates else (outer,),
            secret=self._secret,
            step_s=self.options.get("step_timeout_s"),
            price=self._price,
            clock=self.options.get("clock", time),
        )

    def _settler(self, answers: Answers | None, messages: tuple[Message, ...]) -> Settler | None:
        if answers is None:
            return None
        return settler(answers, messages, self._secret, self.now)

    def _conversation(self, question: Question) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        run_id = question.run_id
        if run_id is not None:
            check_run_id("run_id", run_id)
        given = conversation(
            question.prompt,
            question.messages,
            self.options.get("instructions"),
            keep_open=question.answers is not None,
            repair=self.options.get("on_bad_history", "repair") == "repair",
        )
        if question.answers is not None:
            _check_answers(question.answers, given[0])
        return given

    def _opened(
        self,
        ports: Ports[S],
        driver: AsyncDriver[S],
        *,
        started: Started | None = None,
        taken_up: Resumption[S] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> Opened[S]:
        on_step_finish = self.options.get("on_step_finish")
        if started is not None:
            seen = driver.start(started)
            return Opened(
                self.graph,
                ports,
                driver,
                seen,
                on_step_finish=on_step_finish,
                warnings=warnings,
                final=self._final,
            )
        assert taken_up is not None, "a run is started or taken up"
        run, below = taken_up.run, descendants(taken_up)
        return Opened(
            self.graph,
            ports,
            driver,
            driver.resume(run, taken_up.answers, taken_up.children),
            spent_by(run, below),
            len(run.steps),
            on_step_finish,
            children=below,
            final=self._final,
        )

    def _open_again(self, store: Store) -> Store:
        """Return a run's store; our own opened anew where a synchronous call has closed it."""
        own = isinstance(self.options.get("store"), str | Path)
        return self.store() if own and isinstance(store, SqliteStore) and store.closed else store

    def own_store(self) -> Store:
        """Return the store of the options, opened, for runs that are known by their id only.

        Raises:
            ConfigError: there is none, so there are no such runs.
        """
        if self.options.get("store") is None:
            raise ConfigError(
                "this agent has no `store`, so it knows no run by its id: give it one "
                "(store='runs.db'), or resume with the RunResult"
            )
        return self.store()

    def store(self) -> Store:
        """Return the store of the options, opened; a new one in memory if there is none."""
        store = self.options.get("store")
        if store is None:
            return MemoryStore()
        if not isinstance(store, str | Path):
            return store
        if self._store_opened is None:
            self._store_opened = open_store(store, Codec(self._state_type))
        return self._store_opened


def _check_answers(answers: Answers, messages: tuple[Message, ...]) -> None:
    answers.refuse_wrong_types()
    known = names_of(messages)
    for option, given in (("approvals", answers.approvals), ("tool_results", answers.tool_results)):
        for key in given:
            if key not in known:
                raise ConfigError(
                    f"`{option}` answers {key!r}, which the conversation does not wait for, or not "
                    "once; its open calls are by their keys, and by ids that only one of them has: "
                    f"{', '.join(known) or 'none'}"
                )


def _shorter(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
