"""RunTerms: the models, tools, limits, rules and store that all runs of one graph start with.

`starting` starts or resumes a run on these terms. `child_runs` starts one as a child run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from copy import copy
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack, final
from weakref import WeakKeyDictionary

from .. import stores
from ..driver import Callback, Fleet, Ports, logged, observers_of
from ..errors import ConfigError
from ..events import ChatSoFar, Setup
from ..graph import NodeGraph
from ..policy import Policy
from ..providers import Provider
from ..states import known_state_type
from ..stores import Closes, Codec, MemoryStore, Store, check_state, running_loop
from ..tools import AnyTool, Closable, Toolbox, check_deps, refuse_undeclared, run_sync
from .answers import ToolApprover
from .bindings import DEPTH_MAX, deps_needs, facts_of, nesting_of
from .final_answer import FinalAnswer
from .inherited_limits import inherited_rules, refuse_unsigned, reply_max, run_bound
from .options import Options
from .resources import AgentResources

__all__ = ["OVERRIDES", "Override", "RunTerms", "SharedResources", "TermChanges"]

S = TypeVar("S")
T = TypeVar("T")

Recast: TypeAlias = Callable[["RunTerms[S]", Mapping[str, object]], "RunTerms[S]"]

OVERRIDES: Final[ContextVar[Mapping[AgentResources, Override] | None]] = ContextVar(
    "graphloop_overrides", default=None
)
"""The terms that a test gives in place of an agent's, by its resources; tasks inherit them."""

NO_FLEET: Final = Fleet()

LOG: Final = logging.getLogger("graphloop")


@final
class SharedResources:
    """The store and the model connections that all runs of an agent share.

    Each event loop gets its own open store, so that a synchronous call closes only its own store.
    Nothing counts the runs in progress: close an agent only after these have ended
    (`async with agent:`).

    Args:
        given: the `store` option; an open store is never closed here.
        models: the models by label; runs may add models to this mapping later.
        named: the labels of the models that were given by name.
        kept_open: what the functions of tools keep open, such as MCP servers.
        fleet: what the worker that drives the runs shares with others.

    Attributes:
        is_given: whether the caller gave a store.
        lengths: for each chat, a lower bound of its questions in the store. A chat that is
            opened again looks for its last question from there on.
    """

    def __init__(
        self,
        given: Store | str | Path | None,
        models: Mapping[str, Provider],
        named: Collection[str],
        kept_open: Collection[Closable] = (),
        *,
        fleet: Fleet = NO_FLEET,
    ) -> None:
        self._given, self._models, self._named = given, models, named
        self._kept_open, self.is_given, self.fleet = kept_open, given is not None, fleet
        self.lengths: dict[str, int] = {}
        self._stores: WeakKeyDictionary[asyncio.AbstractEventLoop, Store] = WeakKeyDictionary()

    def store(self) -> Store:
        """Return the open store of the options; without a `store` option, a new memory store.

        Raises:
            ConfigError: no asyncio event loop is running in this thread.
        """
        loop, given = running_loop(), self._given
        if loop is None:
            raise ConfigError(
                "a run: expected a running event loop of asyncio, found none (trio has its own). "
                "Fix: await it under `asyncio.run`, or call its synchronous twin in a thread."
            )
        if given is None:
            return MemoryStore()
        if not isinstance(given, str | Path):
            return given
        if loop not in self._stores:
            # Reuse the store of a closed loop: its leases would lock out a new store.
            left = next((known for known in tuple(self._stores) if known.is_closed()), None)
            store = None if left is None else self._stores.pop(left, None)
            # Child runs have states of other types, so the codec reads plain JSON.
            self._stores[loop] = store or stores.open_store(given, Codec())
        return self._stores[loop]

    def stored(self) -> Store:
        """Return the open store of the options, to find a run by its id.

        Raises:
            ConfigError: the options have no store.
        """
        if self._given is None:
            raise ConfigError(
                "this agent has no `store`, so it knows no run by its id. Fix: give it one "
                "(store='runs.db'), or resume with the RunResult."
            )
        return self.store()

    def reopened(self, store: Store) -> Store:
        """Return the given store of a run, or a new one if a synchronous call has closed it."""
        if not isinstance(self._given, str | Path) or not isinstance(store, Closes):
            return store
        return self.store() if store.closed else store

    async def aclose(self, *, given: bool = True) -> None:
        """Close the store and the connections of the running event loop.

        Args:
            given: whether to close models that were given as objects, and servers of tools, too.

        Raises:
            BaseException: the last error of a close; the others are closed nevertheless.
        """
        store = self._stores.pop(asyncio.get_running_loop(), None)
        async with AsyncExitStack() as closing:
            if store is not None and isinstance(store, Closes):
                closing.push_async_callback(store.aclose)
            for label, provider in self._models.items():
                if given or label in self._named:
                    closing.push_async_callback(provider.aclose)
            for kept in self._kept_open if given else ():
                closing.push_async_callback(kept.aclose)


class TermChanges(TypedDict, total=False):
    """The terms that differ in a chat, in another store, in a test, or with agents made for a run.

    `setup`, `chat`: those of the next question of a chat, and what its earlier runs have left.
    `shared`, `own_to_close`: the open store and connections, and those that end with the run.
    `overridden`, `test_deps`: the options of `Agent.override`, and the `deps` of all its runs.
    """

    setup: Setup
    chat: ChatSoFar
    shared: SharedResources
    own_to_close: tuple[SharedResources, ...]
    overridden: Mapping[str, object]
    test_deps: Mapping[str, object]


@final
class RunTerms(Generic[S]):
    """The terms that all runs of one graph start on; they never change.

    Args:
        graph: the graph that runs.
        options: the options of every run.
        resources: the models, tools and agents that runs may use.
        callbacks: returns the user functions that nodes call, by name, for a run's toolbox
            and its `deps`.
        own_gates: the policy of the graph's own gates, with the functions of its conditions.
        gates: gates that apply in addition to the graph's own gates.
        final: reads the final answer of an agent with an `output_type`.
        recast: makes the terms of one call of an agent, with options of its own; None for a graph.
        base: the terms of the agent, of which these replace some options. They share its store,
            its connections and its revision.
        max_steps: the limit of turns of one call; 0 for none.

    Raises:
        ConfigError: an option, the model or a tool is not valid.
    """

    shared: SharedResources
    to_close: tuple[SharedResources, ...]
    own_to_close: tuple[SharedResources, ...]

    def __init__(  # noqa: PLR0913 - everything that a run needs except its question
        self,
        graph: NodeGraph[S],
        options: Options,
        resources: AgentResources,
        *,
        callbacks: Callable[[Toolbox, object], Mapping[str, Callback[S]]],
        own_gates: Policy | None = None,
        gates: tuple[Policy, ...] = (),
        final: FinalAnswer | None = None,
        recast: Recast[S] | None = None,
        base: RunTerms[S] | None = None,
        max_steps: int = 0,
    ) -> None:
        self.graph, self.options, self.resources, self.final = graph, options, resources, final
        self.recast = recast
        self.chat: ChatSoFar | None = None
        self.overridden: Mapping[str, object] = {}
        self.test_deps: Mapping[str, object] = {}
        self._callbacks, self._gates, self._own_gates = callbacks, gates, own_gates
        rules = tuple([gate.rules for gate in gates])
        decide = options.approve_tool_call
        self.approver = None if decide is None else ToolApprover(decide, own=rules)
        self.secret = options.secret
        self.is_signed = self.secret is not None
        self.clock = options.checked_clock
        self._observers = observers_of(options.watch)
        refuse_unsigned(resources, self.secret)
        self.shared, self.to_close, self.own_to_close = _to_close(options, resources, base)
        depth, facts = options.max_agent_depth, facts_of(graph)
        self.setup = Setup(
            model=resources.label,
            tools=resources.toolbox.specs,
            settings=options.settings(one_call_at_a_time=facts.one_at_a_time),
            budget=options.allowance,
            output=None if final is None else final.spec,
            rules=rules,
            watch=inherited_rules(options, graph, resources),
            own=resources.own,
            depth_max=DEPTH_MAX if depth is None else depth,
            signed=self.is_signed,
            max_steps=max_steps,
            approval_ttl_s=options.approval_ttl_s,
        )
        self.tool_names = resources.callable_names
        self.needs_messages, self.limits = facts.needs_messages, facts.limits
        self._named = facts.asked
        self.nesting = nesting_of(graph, resources.children, depth)
        self.reply_max = reply_max(self.setup, resources)
        # Cached: an agent that is a sub-agent at many levels is computed once.
        self.bound = cache(partial(run_bound, graph, self.setup, resources))
        self.price, self.state_type = resources.price(), known_state_type(graph)
        readers = self.setup.budget.usd, self.setup.budget.tokens, options.on_step_finish
        self.reads_steps = bool(self.limits) or any(one is not None for one in readers)
        calls = callbacks(resources.toolbox, None)
        self.deps_needs = deps_needs(graph, calls, resources.toolbox, resources.children, options)
        self._refuses_deps = recast is not None and options.deps_type is None
        if self._refuses_deps:
            refuse_undeclared(self.deps_needs, graph.name)
        self.revision: Callable[[], str] = cache(self._revision) if base is None else base.revision

    def evolved(self, **changes: Unpack[TermChanges]) -> RunTerms[S]:
        """Return these terms with some values replaced."""
        terms = copy(self)
        vars(terms).update(changes)
        return terms

    def with_options(self, given: Mapping[str, object]) -> RunTerms[S]:
        """Return the terms of one call, with options of its own.

        Raises:
            ConfigError: an option is invalid; no request has been sent.
        """
        return self if self.recast is None or not given else self.recast(self, given)

    @property
    def current(self) -> RunTerms[S]:
        """The terms that `Agent.override` puts in place of these; without it, these."""
        override = (OVERRIDES.get() or {}).get(self.resources)
        if override is None:
            return self
        return override.by if self is override.own else override.by.evolved(shared=self.shared)

    def _revision(self) -> str:
        """Return the revision of the code that runs on these terms: see `stores.revision_of`."""
        options = self.options
        return stores.revision_of(
            self.graph,
            self.setup,
            options.instructions,
            options.stop_when,
            {name: given for name, given in options.given.items() if callable(given)},
            self._callbacks(self.resources.toolbox, None),
            {name: plan.opener.terms.revision() for name, plan in self.resources.children.items()},
        )

    def asked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a call, without those that a test overrides, and with its deps."""
        own = {name: value for name, value in given.items() if name not in self.overridden}
        return {**own, **self.test_deps}

    def ports(self, store: Store, added: Sequence[AnyTool] = (), deps: object = None) -> Ports[S]:
        """Return the ports of one run: the store, models, tools and functions that its driver uses.

        Args:
            store: the store of the run's journal.
            added: tools that were added to the run before it parked.
            deps: the caller's object for the user's functions.
        """
        toolbox, approve, fleet = self.resources.toolbox.copy(), self.approver, self.shared.fleet
        if approve is not None and deps is not None:
            approve = approve.with_deps(deps)
        if added:
            toolbox.add(added)
        return Ports(
            store=store,
            models=self.resources.models,
            named=self._named,
            toolbox=toolbox,
            callbacks=self._callbacks(toolbox, deps),
            approve=approve,
            children=self.resources.children,
            gates=self._gates,
            own=self._own_gates,
            state_type=self.state_type,
            kept=type(store) is not MemoryStore,
            secret=self.secret,
            step_s=self.options.step_timeout_s,
            price=self.price,
            clock=self.clock,
            deps=deps,
            pace=self.resources.pace(store, fleet.pace) if self.options.limits else fleet.pace,
            elsewhere=fleet.elsewhere,
            observers=(
                logged(self._observers) if LOG.isEnabledFor(logging.INFO) else self._observers
            ),
        )

    def check_deps(self, given: Mapping[str, object]) -> None:
        """Refuse a start or a resume without the `deps` that the functions of its runs read.

        Raises:
            ConfigError: `deps` are missing, of another type, or without effect.
        """
        check_deps(self.deps_needs, given, repr(self.graph.name), refused=self._refuses_deps)

    def run_sync(self, ask: Callable[[], Awaitable[T]], instead: str) -> T:
        """Call and await `ask` in a new event loop, close its resources, and return its result.

        Args:
            ask: starts the asynchronous call.
            instead: the asynchronous call that the error message suggests.
        """

        async def closing() -> T:
            try:
                return await ask()
            finally:
                await self.aclose()

        return run_sync(closing(), instead)

    def check_state(self, state: object, *, kept: bool) -> None:
        """Refuse a run that begins with a state of the wrong type, which may have to be `kept`.

        Raises:
            ConfigError: the state or a stored part of it has the wrong type.
        """
        place = f"a run of graph {self.graph.name!r} begins with"
        check_state(state, self.state_type, place, kept=kept)

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the store and the model connections; a later run opens them again.

        Args:
            shared: whether to close resources that other agents may use as well: models that were
                given as objects, and the sub-agents of this agent.

        Raises:
            BaseException: the last error of a close; the others are closed nevertheless.
        """
        async with AsyncExitStack() as closing:
            for resource in reversed(self.to_close if shared else self.own_to_close):
                closing.push_async_callback(resource.aclose, given=shared)


def _to_close(
    options: Options, resources: AgentResources, base: RunTerms[Any] | None
) -> tuple[SharedResources, tuple[SharedResources, ...], tuple[SharedResources, ...]]:
    """Return what the runs share; this with what child runs share; and what of it is their own."""
    if base is not None:
        return base.shared, base.to_close, base.own_to_close
    kept = dict.fromkeys([tool.kept_open for tool in resources.toolbox.tools if tool.kept_open])
    shared = SharedResources(options.store, resources.models, resources.named, [*kept])
    below = [plan.opener.terms.to_close for plan in resources.children.values()]
    made = [plan.opener.terms.own_to_close for plan in resources.made]
    to_close = dict.fromkeys([*chain.from_iterable(below), shared])
    return shared, (*to_close,), (*chain.from_iterable(made), shared)


class Override(NamedTuple):
    """The terms of an agent, and those by which a test replaces them."""

    own: RunTerms[Any]
    by: RunTerms[Any]
