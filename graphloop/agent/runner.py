"""Runner: starts, resumes and nests the runs of one graph, in the world it was given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final
from uuid import uuid4

from ..driver import AsyncDriver, Callback, ChildRun, Ports, Resumption
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Setup, Started
from ..graph import Graph
from ..limits import ModelPrice
from ..nodes import Execute
from ..outcomes import FollowUp
from ..policy import Policy
from ..run import Run
from ..spending import Budget
from ..stores import MemoryStore, Store
from ..tools import AnyTool, Toolbox
from ..values import Message, SystemMessage, evolve
from .answers import Answers, ToolApprover, approver_alone, approver_below
from .bindings import DEPTH_MAX, needs_messages, nesting_of
from .final_answer import FinalAnswer
from .handed_in import HandedIn
from .hooks import Model
from .inherited_limits import (
    beyond_watch,
    gates_below,
    inherited_rules,
    refuse_other_rules,
    reply_max,
    run_bound,
    setup_below,
)
from .inputs import MessageInput, check_run_id, conversation
from .journals import descendants, not_over, opening_of, refuse_unattended, resumption, state_after
from .opened import RunHandle
from .options import Limits, Permissions, RunOptions, Sampling, Tools, clock_of, group
from .resources import SharedResources, close_all
from .result import RunResult, spent_by
from .runs import Runs
from .states import check_first, known_state_type
from .stream import RunStream
from .sub_agents import Brief
from .world import AgentResources, price_below, price_of

if TYPE_CHECKING:
    from ..proofs import Bound

__all__ = [
    "Question",
    "Runner",
]

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
        world: AgentResources | None = None,
        final: FinalAnswer | None = None,
        child_state: S | None = None,
    ) -> None:
        self.graph, self.options = graph, options
        self.told_graph: Graph[Any] | None = None  # `known.graph_of` makes it once.
        self.world = AgentResources(model, options, tools) if world is None else world
        self._callbacks = callbacks
        self._gates, self._own_gates, self._final = gates, own_gates, final
        limits, permissions = group(options, Limits), group(options, Permissions)
        decide = permissions.approve_tool_call
        rules = tuple([gate.rules for gate in gates])
        self._approve = None if decide is None else ToolApprover(decide, own=rules)
        self._child_state, self._step_s = child_state, limits.step_timeout_s
        self._clock = clock_of(options)
        self.secret = permissions.secret
        unsigned = [name for name, one in self.world.children.items() if one.opener.is_signed]
        if unsigned and self.secret is None:
            raise ConfigError(
                f"agent {unsigned[0]!r} takes signed approvals only, and a child run takes those "
                "of the run above it: give `approval_secret` to this one, too"
            )
        self._shared = SharedResources(options.get("store"), self.world.disconnect)
        below = [one.opener.resources for one in self.world.children.values()]
        self.resources = dict.fromkeys([*chain.from_iterable(below), self._shared])
        made = [one.opener.own_resources for one in self.world.made]
        self.own_resources: tuple[SharedResources, ...] = (*chain.from_iterable(made), self._shared)
        runners = [node for node in graph.nodes.values() if isinstance(node, Execute)]
        one_at_a_time = any(node.concurrency == 1 for node in runners)
        self.setup = Setup(
            model=self.world.label,
            tools=self.world.toolbox.specs,
            settings=group(options, Sampling).settings(one_at_a_time=one_at_a_time),
            budget=limits.budget or Budget(),
            output=None if final is None else final.spec,
            rules=rules,
            watch=inherited_rules(options, graph, self.world),
            own=self.world.own,
            depth_max=DEPTH_MAX if limits.max_agent_depth is None else limits.max_agent_depth,
            signed=self.secret is not None,
            approval_ttl_s=permissions.approval_ttl_s,
        )
        self.tool_names = self.world.callable_names
        self._needs_messages = needs_messages(graph)
        self.nesting = nesting_of(graph, self.world.children, limits.max_agent_depth)
        self.reply_max = reply_max(self.setup, self.world)
        # An agent that is shared on many levels is looked at once.
        self._bound = cache(partial(run_bound, graph, self.setup, self.world))
        own = self.world.models.get(self.world.label)
        self._price = None if own is None else price_of(options, own)

    @property
    def is_signed(self) -> bool:
        """Whether approvals have to be signed."""
        return self.secret is not None

    def bound(self, *, context_window: int | None = None, price: ModelPrice | None = None) -> Bound:
        """Return the most that one run can come to, with the agents that it may call."""
        return self._bound(context_window, price)

    def now(self) -> float:
        """Return the time as runs see it."""
        return self._clock()

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the store and the connections to the models; they can be used again.

        Args:
            shared: whether to close what others may use as well: models that were given as
                objects, and the agents that it may call.
        """
        await close_all(self.resources if shared else self.own_resources, given=shared)

    def start(self, question: Question, state: S, *, keep: bool = True) -> RunStream[S]:
        """Return the stream of a new run; nothing happens until it is looked at.

        The conversation is read now, so that what the caller does to it later changes nothing.
        """
        given: tuple[tuple[Message, ...], tuple[str, ...]] | ConfigError
        try:
            given = self._conversation(question)
        except ConfigError as error:
            given = error

        async def open_run() -> RunHandle[S]:
            if isinstance(given, ConfigError):
                raise given
            messages, warnings = given
            store = self._shared.store()
            run_id, handed = question.run_id, self._handed_in(question, messages)
            is_stored = self.options.get("store") is not None
            if run_id is None and handed is not None and is_stored:
                run_id = await handed.run_id(self.graph.name, store)
            run_id = uuid4().hex if run_id is None else run_id
            ports = replace(
                self.ports(store),
                attended=question.attended,
                stoppable=keep or question.attended,
                # Who iterates a run can be cancelled, and come back to it without a store, too.
                resumable=question.attended or is_stored,
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

        async def open_run() -> RunHandle[S]:
            if isinstance(run, RunResult):
                store, known, added = self._shared.reopened(run.store), run.run, run.added
                opening = run.opening
                await not_over(run.run, store, self.graph)
            else:
                store, added = self._shared.stored(), ()
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
        self, open_run: Callable[[], Awaitable[RunHandle[S]]], *, keep: bool = True
    ) -> RunStream[S]:
        return RunStream(
            open_run,
            keep=keep,
            has_objects=self._final is not None,
            has_follow_ups=any(FollowUp in row for row in self.graph.table.values()),
        )

    @property
    def runs(self) -> Runs[S]:
        """The runs in the store of the options."""
        return Runs(self._shared.stored(), driver=self)

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
        if not messages and self._needs_messages:
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
            secret=self.secret,
            step_s=self._step_s,
            price=self._price,
            clock=self._clock,
        )

    def _handed_in(self, question: Question, messages: tuple[Message, ...]) -> HandedIn | None:
        if question.answers is None:
            return None
        return HandedIn(messages, question.answers, self.secret, self.now)

    def _conversation(self, question: Question) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        run_id = question.run_id
        if run_id is not None:
            check_run_id("run_id", run_id)
        given = conversation(
            question.prompt,
            question.messages,
            self.options.get("instructions"),
            keep_open=question.answers is not None,
            may_be_empty=not self._needs_messages,
            repair=self.options.get("on_bad_history", "repair") == "repair",
        )
        handed = self._handed_in(question, given[0])
        if handed is not None:
            handed.check(self.world.toolbox, self.world.children)
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
    ) -> RunHandle[S]:
        listener, final = self.options.get("on_step_finish"), self._final
        opened = partial(RunHandle[S], on_step_finish=listener, final=final, opening=opening)
        if started is not None:
            return opened(self.graph, ports, driver, driver.start(started), warnings=warnings)
        assert taken_up is not None, "a run is started or taken up"
        run, below = taken_up.run, descendants(taken_up)
        seen = driver.resume(run, taken_up.answers, taken_up.children)
        spent, reported = spent_by(run, below), len(run.record.steps)
        return opened(self.graph, ports, driver, seen, spent, reported, children=below)


@final
@dataclass(frozen=True)
class Question:
    """What a run begins with: a conversation, and answers to the calls that it ends in.

    Args:
        prompt: the question, or
        messages: the conversation so far.
        answers: who approves the calls that the conversation ends in, and what client tools
            returned; None for a conversation that waits for nothing.
        run_id: the run's id in the store; made of what is approved, or made up, if not given.
        attended: whether the caller iterates the run.
    """

    prompt: str | None = None
    messages: Sequence[MessageInput] | None = None
    answers: Answers | None = None
    run_id: str | None = None
    attended: bool = False
