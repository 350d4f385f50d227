"""Runner: starts, resumes and nests the runs of one graph, in the world it was given."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from ..approvals import Approval, secret_of
from ..codec import Codec
from ..drivers.driver import AsyncDriver
from ..drivers.ports import Callback, ChildRun, Ports, Resumption, unpriced
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Setup, Started
from ..graph import Graph
from ..model_price import ModelPrice
from ..nodes.execute import Execute
from ..outcomes import FollowUp
from ..policy import Policy
from ..run import Run
from ..spending import Budget
from ..stores.base import Posted, Store
from ..stores.memory import MemoryStore
from ..tools import AnyTool, Toolbox
from ..values import Message, SystemMessage, evolve
from .answers import Answers, approval_of
from .begun import refuse_begun
from .carried import needs_messages
from .checking import check_kinds, check_run_id, clock_of, settings_of
from .child import Brief
from .final_answer import FinalAnswer
from .handed_in import HandedIn
from .inputs import conversation
from .journals import answer_call, open_ask, opening_of, recorded_asks, root_of, state_after
from .keeper import Hold, Keeper, close_all
from .nesting import DEPTH_MAX, nesting_of
from .opened import Opened
from .options import RunOptions, Tools
from .question import Question
from .result import RunResult, spent_by
from .resuming import descendants, not_over, refuse_edits, refuse_unattended, resumption, waiting
from .run_bound import reply_max, run_bound
from .setup_below import gates_below, setup_below
from .state_types import check_first, known_state_type
from .stream import RunStream
from .told import Model
from .tool_approver import ToolApprover, approver_alone, approver_below
from .watched import beyond_watch, refuse_other_rules, watched
from .world import World, price_below, price_of

if TYPE_CHECKING:
    from ..proofs.most import Bound

__all__ = ["Runner"]

S = TypeVar("S")


class Runner(Generic[S]):
    """Starts and resumes runs of one graph.

    Args:
        graph: what to run.
        model: the default model; None for a graph that asks none.
        tools: the tools and agents on offer.
        options: the options of every run.
        callbacks: makes the functions that nodes invoke, by name, for a run with this toolbox.
        own_gates: the rules of its own gates, for the functions of their conditions.
        gates: what every gate of the graph heeds beside its own rules.
        world: models, tools and agents; made of the model, the tools and the options if not given.
        final: how the final answer is given, where it has a form.
        child_state: the state that a run begins with as another's child.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """

    def __init__(  # noqa: PLR0913 - what a run needs but its question
        self,
        graph: Graph[S],
        model: Model | None,
        tools: Tools,
        options: RunOptions,
        *,
        callbacks: Callable[[Toolbox], Mapping[str, Callback[S]]] | None = None,
        own_gates: Policy | None = None,
        gates: tuple[Policy, ...] = (),
        world: World | None = None,
        final: FinalAnswer | None = None,
        child_state: S | None = None,
    ) -> None:
        check_kinds(options)
        self.graph, self.options = graph, options
        self.told_graph: Graph[Any] | None = None  # `known.graph_of` makes it once.
        self.world = World(model, options, tools) if world is None else world
        self._callbacks = callbacks
        self._gates, self._own_gates = gates, own_gates
        self._final = final
        decide = options.get("approve_tool_call")
        rules = tuple([gate.rules for gate in gates])
        self._approve = None if decide is None else ToolApprover(decide, own=rules)
        self._child_state = child_state
        self._clock = clock_of(options)
        self._secret = secret_of(options.get("approval_secret"))
        unsigned = [name for name, one in self.world.children.items() if one.opener.is_signed]
        if unsigned and self._secret is None:
            raise ConfigError(
                f"agent {unsigned[0]!r} takes signed approvals only, and a child run takes those "
                "of the run above it: give `approval_secret` to this one, too"
            )
        # Runs below this one have states of other types: what is read is told by each graph.
        self._keeper = Keeper(options.get("store"), Codec(), self.world.disconnect)
        below = [one.opener.keepers for one in self.world.children.values()]
        self.keepers = dict.fromkeys([*chain.from_iterable(below), self._keeper])
        runners = [node for node in graph.nodes.values() if isinstance(node, Execute)]
        one_at_a_time = any(node.concurrency == 1 for node in runners)
        self.setup = Setup(
            model=self.world.label,
            tools=self.world.toolbox.specs,
            settings=settings_of(options, one_at_a_time=one_at_a_time),
            budget=options.get("budget") or Budget(),
            output=None if final is None else final.spec,
            rules=rules,
            watch=watched(options, graph, self.world),
            own=self.world.own,
            depth_max=options.get("max_agent_depth", DEPTH_MAX),
            signed=self._secret is not None,
            approval_ttl_s=options.get("approval_ttl_s"),
        )
        self.tool_names = self.world.callable_names
        self.nesting = nesting_of(graph, self.world.children, options.get("max_agent_depth"))
        self.reply_max = reply_max(self.setup, self.world)
        # An agent that is shared on many levels is looked at once.
        self._bound = cache(partial(run_bound, graph, self.setup, self.world))
        own = self.world.models.get(self.world.label)
        self._price = unpriced if own is None else price_of(options, own)

    @property
    def is_signed(self) -> bool:
        """Whether approvals have to be signed."""
        return self._secret is not None

    def bound(self, *, context_window: int | None = None, price: ModelPrice | None = None) -> Bound:
        """Return the most that one run can come to, with the agents that it may call."""
        return self._bound(context_window, price)

    def now(self) -> float:
        """Return the time as runs see it."""
        return self._clock()

    async def aclose(self, *, given: bool = True) -> None:
        """Close the connections to all models, and the store; they can be used again.

        Runs that go on keep theirs, and models given as objects do, without `given`.
        """
        await close_all(self.keepers, given=given)

    @asynccontextmanager
    async def using(self) -> AsyncGenerator[Store, None]:
        """Keep the store of the options open for a while, for runs known by their id only.

        Raises:
            ConfigError: there is none, so there are no such runs.
        """
        held = Hold(self.keepers)
        try:
            yield self._keeper.own()
        finally:
            await held.release()

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
            store = self._keeper.store()
            run_id = uuid4().hex if question.run_id is None else question.run_id
            handed = self._handed_in(question, messages)
            if handed is not None:
                await refuse_begun(handed, store, self.graph, self.world)
            if handed is not None and handed.approves and self.options.get("store") is not None:
                run_id, handed = handed.run_id, await handed.once(store)
            ports = replace(
                self.ports(store),
                attended=question.attended,
                stoppable=keep or question.attended,
                # Who iterates a run can be cancelled, and come back to it without a store, too.
                resumable=question.attended or self.options.get("store") is not None,
                settle=None if handed is None else handed.settler(),
            )
            driver = AsyncDriver(self.graph, ports, state)
            setup = evolve(self.setup, attended=question.attended)
            self._check_first(state, ports)
            started = Started(ports.clock(), run_id, self.graph.name, messages, setup, state)
            return self._opened(ports, driver, messages, warnings=warnings, started=started)

        return self._stream(open_run, keep=keep)

    def resume(
        self,
        run: str | RunResult[S],
        answers: Answers,
        *,
        attended: bool = False,
        keep: bool = True,
    ) -> RunStream[S]:
        """Return the stream of a run taken up again, by its result or by its id in the store.

        Where it is `attended`, its caller iterates it, as the caller who began it did.
        """

        async def open_run() -> Opened[S]:
            if isinstance(run, RunResult):
                store, known, added = self._keeper.again(run.store), run.run, run.added
                opening = run.opening
                await not_over(run.run, store, self.graph)
            else:
                store, added = self._keeper.own(), ()
                events = await store.load(run)
                known, opening = state_after(self.graph, events), opening_of(events)
            refuse_other_rules(known, self.setup.watch)
            if attended:
                refuse_unattended(known)
            approve = approver_alone(self._approve, known)
            ports = replace(self.ports(store, added), attended=attended, approve=approve)
            taken_up = await resumption(known, ports, answers)
            driver = AsyncDriver(self.graph, ports, known.state)
            return self._opened(ports, driver, opening, taken_up=taken_up)

        return self._stream(open_run, keep=keep)

    def _stream(
        self, open_run: Callable[[], Awaitable[Opened[S]]], *, keep: bool = True
    ) -> RunStream[S]:
        async def held() -> Opened[S]:
            hold = Hold(self.keepers)
            try:
                return replace(await open_run(), hold=hold)
            except BaseException:
                await hold.release()
                raise

        return RunStream(
            held,
            keep=keep,
            has_objects=self._final is not None,
            has_follow_ups=any(FollowUp in row for row in self.graph.table.values()),
        )

    async def approve(self, run_id: str, key: str, answer: bool | Approval) -> Posted:  # noqa: FBT001 - as callbacks answer
        """Answer a call that a run waits for, without driving it; see `Agent.approve`."""
        run_id, key = root_of(run_id, key)
        async with self.using() as store:
            asks = await recorded_asks(store, run_id)
            if asks is None:
                run = state_after(self.graph, await store.load(run_id))
                asks = tuple(one.ask for one in await waiting(run, self.ports(store)))
            ask, now, secret = open_ask(asks, run_id, key), self.now(), self._secret
            if approval_of(answer).edit:
                run = state_after(self.graph, await store.load(run_id))
                await refuse_edits(run, self.ports(store), Answers({key: answer}))
            return await answer_call(store, run_id, ask, answer=answer, now=now, secret=secret)

    def child(
        self, brief: Callable[[], Brief], effect: StartRun, parent: Run[Any], ports: Ports[Any]
    ) -> ChildRun[Any]:
        """Return a run of this graph as another's child, as strict and as poor as its parent."""
        own = self.ports(ports.store)
        above = gates_below(effect, parent, ports)
        above += beyond_watch(parent.setup, above)
        setup = setup_below(self.setup, effect, parent, above)
        child_ports = replace(
            own,
            approve=approver_below(ports.approve, self._approve, effect.agent, parent, above),
            gates=(*above, *own.gates),
            secret=ports.secret,
            path=(*ports.path, effect.key),
            resumable=ports.resumable,
            price=price_below(self.options, own.price, ports.price),
            stoppable=ports.stoppable,
            clock=ports.clock,
            wrong=ports.wrong,
        )
        run_id = f"{parent.id}/{effect.key}"

        def begin() -> Started:
            messages, state = self._briefed(brief(), effect.agent)
            self._check_first(state, ports)
            return Started(ports.clock(), run_id, self.graph.name, messages, setup, state)

        return ChildRun(graph=self.graph, ports=child_ports, run_id=run_id, begin=begin)

    def _check_first(self, state: object, ports: Ports[Any]) -> None:
        """Refuse a run that cannot begin with this state, or would go too deep."""
        check_first(self.graph, state, kept=ports.kept)
        if self.nesting.problem:
            raise ConfigError(self.nesting.problem)

    def _briefed(self, brief: Brief, agent: str) -> tuple[tuple[Message, ...], object]:
        """Return the conversation and the state that a child run begins with."""
        messages, instructions = brief.messages, self.options.get("instructions")
        if not messages and needs_messages(self.graph):
            raise ConfigError(
                f"agent {agent!r} is given no message, and a model needs one: say what it is "
                "asked, with `prompt=`"
            )
        if instructions:
            told = [one for one in messages if not isinstance(one, SystemMessage)]
            messages = (SystemMessage(instructions), *told)
        return messages, self._child_state if brief.state is None else brief.state

    def ports(self, store: Store, added: Sequence[AnyTool] = ()) -> Ports[S]:
        """Return the world of a run as its driver sees it.

        Args:
            store: where its journal goes.
            added: the tools that were added to the run before.
        """
        toolbox = self.world.toolbox.copy()
        if added:
            toolbox.add(added)
        return Ports(
            store=store,
            models=self.world.models,
            toolbox=toolbox,
            callbacks={} if self._callbacks is None else self._callbacks(toolbox),
            approve=self._approve,
            children=self.world.children,
            gates=self._gates,
            own=self._own_gates,
            state_type=known_state_type(self.graph),
            kept=type(store) is not MemoryStore,
            secret=self._secret,
            step_s=self.options.get("step_timeout_s"),
            price=self._price,
            clock=self._clock,
        )

    def _handed_in(self, question: Question, messages: tuple[Message, ...]) -> HandedIn | None:
        if question.answers is None:
            return None
        return HandedIn(messages, question.answers, self._secret, self.now)

    def _conversation(self, question: Question) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        run_id = question.run_id
        if run_id is not None:
            check_run_id("run_id", run_id)
        given = conversation(
            question.prompt,
            question.messages,
            self.options.get("instructions"),
            keep_open=question.answers is not None,
            may_be_empty=not needs_messages(self.graph),
            repair=self.options.get("on_bad_history", "repair") == "repair",
        )
        handed = self._handed_in(question, given[0])
        if handed is not None:
            handed.check(self.world.toolbox)
            if handed.approves and run_id is not None and self.options.get("store") is not None:
                raise ConfigError(
                    "`run_id` cannot be given with `approvals`: they count once in a `store`, "
                    "which makes the run's id of the conversation. Leave `run_id` out"
                )
        return given

    def _opened(
        self,
        ports: Ports[S],
        driver: AsyncDriver[S],
        opening: tuple[Message, ...],
        *,
        started: Started | None = None,
        taken_up: Resumption[S] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> Opened[S]:
        listener, final = self.options.get("on_step_finish"), self._final
        opened = partial(Opened[S], on_step_finish=listener, final=final, opening=opening)
        if started is not None:
            return opened(self.graph, ports, driver, driver.start(started), warnings=warnings)
        assert taken_up is not None, "a run is started or taken up"
        run, below = taken_up.run, descendants(taken_up)
        seen = driver.resume(run, taken_up.answers, taken_up.children)
        spent, reported = spent_by(run, below), len(run.record.steps)
        return opened(self.graph, ports, driver, seen, spent, reported, children=below)
