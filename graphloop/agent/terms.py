"""Terms: the models, tools, limits, rules and store that all runs of one graph start with.

`starting` starts or resumes a run on these terms. `child_runs` starts one as a child run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, final
from weakref import WeakKeyDictionary

from .. import stores
from ..driver import Callback, Ports, logged, observers_of
from ..errors import ConfigError
from ..events import Setup
from ..graph import NodeGraph
from ..policy import Policy
from ..providers import Provider
from ..stores import Codec, MemoryStore, Store, check_state, open_store, running_loop
from ..tools import AnyTool, Toolbox
from .answers import ToolApprover
from .bindings import DEPTH_MAX, needs_messages, nesting_of, runs_one_at_a_time
from .final_answer import FinalAnswer
from .inherited_limits import inherited_rules, reply_max, run_bound
from .options import Options
from .resources import AgentResources
from .states import known_state_type

__all__ = ["RunTerms", "SharedResources", "run_sync"]

S = TypeVar("S")
T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")


@final
class SharedResources:
    """Opens the store of the options, and closes it with the connections to the models.

    Each event loop has a store of its own, so that a synchronous call closes only its own store.
    No counter of users is kept: close an agent once its runs are over (`async with agent:`).

    Args:
        given: the store of the options; a store that is open already stays open.
        models: the models by label, also those that runs add later.
        named: the labels of models that were given by name.
    """

    def __init__(
        self,
        given: Store | str | Path | None,
        models: Mapping[str, Provider],
        named: Collection[str],
    ) -> None:
        self._given, self._models, self._named = given, models, named
        self._stores: WeakKeyDictionary[asyncio.AbstractEventLoop, Store] = WeakKeyDictionary()

    def store(self) -> Store:
        """Return the open store of the options; without one, a new store in memory.

        Raises:
            ConfigError: no event loop of asyncio runs here.
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
            # The store of a closed loop may hold leases; a new store could not write these runs.
            left = next((known for known in tuple(self._stores) if known.is_closed()), None)
            store = None if left is None else self._stores.pop(left, None)
            # Child runs have states of other types, so the store reads states as plain JSON.
            self._stores[loop] = store or open_store(given, Codec())
        return self._stores[loop]

    def stored(self) -> Store:
        """Return the open store of the options, for runs that are known by their id only.

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
        """Return a run's store, opened again if a synchronous call has closed it."""
        if not isinstance(self._given, str | Path) or not isinstance(store, stores.SqliteStore):
            return store
        return self.store() if store.closed else store

    async def aclose(self, *, given: bool = True) -> None:
        """Close the store and the connections of the running event loop.

        Args:
            given: whether the connections of models that were given as objects close, too.

        Raises:
            BaseException: the last failure, once everything is closed.
        """
        store = self._stores.pop(asyncio.get_running_loop(), None)
        async with AsyncExitStack() as closing:
            if store is not None and isinstance(store, stores.SqliteStore):
                closing.push_async_callback(store.aclose)
            for label, provider in self._models.items():
                if given or label in self._named:
                    closing.push_async_callback(provider.aclose)


@final
class RunTerms(Generic[S]):
    """The terms that all runs of one graph start on.

    Args:
        graph: the graph that runs.
        options: the options of every run.
        world: the models, tools and agents.
        callbacks: makes the functions that nodes invoke, by name, for a run with this toolbox.
        own_gates: the rules of the graph's own gates, for the functions of their conditions.
        gates: the gates that hold beside the graph's own gates.
        final: reads the final answer of an agent with an `output_type`.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """

    def __init__(  # noqa: PLR0913 - all that a run needs beside its question
        self,
        graph: NodeGraph[S],
        options: Options,
        world: AgentResources,
        *,
        callbacks: Callable[[Toolbox], Mapping[str, Callback[S]]] | None = None,
        own_gates: Policy | None = None,
        gates: tuple[Policy, ...] = (),
        final: FinalAnswer | None = None,
    ) -> None:
        self.graph, self.options, self.world, self.final = graph, options, world, final
        self.known_graph: NodeGraph[Any] | None = None  # `metadata.graph_of` makes it once.
        self._callbacks, self._gates, self._own_gates = callbacks, gates, own_gates
        rules = tuple([gate.rules for gate in gates])
        decide = options.approve_tool_call
        self.approver = None if decide is None else ToolApprover(decide, own=rules)
        self.secret = options.secret
        self.is_signed = self.secret is not None
        self.clock = options.checked_clock
        self._observers = observers_of(options.watch)
        self._refuse_unsigned()
        self._share_resources()
        depth = options.max_agent_depth
        self.setup = Setup(
            model=world.label,
            tools=world.toolbox.specs,
            settings=options.settings(one_call_at_a_time=runs_one_at_a_time(graph)),
            budget=options.allowance,
            output=None if final is None else final.spec,
            rules=rules,
            watch=inherited_rules(options, graph, world),
            own=world.own,
            depth_max=DEPTH_MAX if depth is None else depth,
            signed=self.is_signed,
            approval_ttl_s=options.approval_ttl_s,
        )
        self.tool_names = world.callable_names
        self.needs_messages = needs_messages(graph)
        self.nesting = nesting_of(graph, world.children, depth)
        self.reply_max = reply_max(self.setup, world)
        # An agent that many levels share is computed once.
        self.bound = cache(partial(run_bound, graph, self.setup, world))
        self.price = world.price()
        self._state_type = known_state_type(graph)

    def _share_resources(self) -> None:
        world = self.world
        self.shared = SharedResources(self.options.store, world.models, world.named)
        below = [plan.opener.terms.resources for plan in world.children.values()]
        made = [plan.opener.terms.own_resources for plan in world.made]
        self.resources = tuple(dict.fromkeys([*chain.from_iterable(below), self.shared]))
        self.own_resources: tuple[SharedResources, ...] = (*chain.from_iterable(made), self.shared)

    def ports(self, store: Store, added: Sequence[AnyTool] = ()) -> Ports[S]:
        """Return the world of a run as its driver sees it.

        Args:
            store: where its journal goes.
            added: the tools that earlier legs of the run have added.
        """
        toolbox = self.world.toolbox.copy()
        if added:
            toolbox.add(added)
        return Ports(
            store=store,
            models=self.world.models,
            toolbox=toolbox,
            callbacks={} if self._callbacks is None else self._callbacks(toolbox),
            approve=self.approver,
            children=self.world.children,
            gates=self._gates,
            own=self._own_gates,
            state_type=self._state_type,
            kept=type(store) is not MemoryStore,
            secret=self.secret,
            step_s=self.options.step_timeout_s,
            price=self.price,
            clock=self.clock,
            observers=(
                logged(self._observers) if LOG.isEnabledFor(logging.INFO) else self._observers
            ),
        )

    def run_sync(self, ask: Callable[[], Awaitable[T]], instead: str) -> T:
        """Run `ask` to its end without an event loop, and close everything that it opened.

        Args:
            ask: makes the awaited call.
            instead: the call to await where an event loop is running.
        """

        async def closing() -> T:
            try:
                return await ask()
            finally:
                await self.aclose()

        return run_sync(closing(), instead)

    def check_start(self, state: object, *, kept: bool) -> None:
        """Refuse a run whose state has another type, or that would go too deep.

        Args:
            state: the state.
            kept: whether a store writes the journal down.

        Raises:
            ConfigError: the state, or a part of it that is written down, is of another type.
        """
        if state is not None or self._state_type is not None:
            place = f"a run of graph {self.graph.name!r} begins with"
            check_state(state, self._state_type, place, kept=kept)
        if self.nesting.problem:
            raise ConfigError(self.nesting.problem)

    async def aclose(self, *, shared: bool = True) -> None:
        """Close the store and the connections to the models; they can be used again.

        Args:
            shared: whether to close what other agents may use as well: models that were given as
                objects, and the agents that this one may call.

        Raises:
            BaseException: the last failure, once everything is closed.
        """
        async with AsyncExitStack() as closing:
            for resource in reversed(self.resources if shared else self.own_resources):
                closing.push_async_callback(resource.aclose, given=shared)

    def _refuse_unsigned(self) -> None:
        """Refuse agents that demand signed approvals, where no secret signs them."""
        children = self.world.children.items()
        unsigned = [name for name, plan in children if plan.opener.terms.is_signed]
        if unsigned and self.secret is None:
            raise ConfigError(
                f"agent {unsigned[0]!r} takes signed approvals only, and a child run takes the "
                "approvals of its parent. Fix: give `approval_secret` to the parent, too."
            )


def run_sync(work: Coroutine[object, object, T], instead: str) -> T:
    """Run a coroutine to its end in a new event loop, and return its result.

    Args:
        work: the coroutine.
        instead: the call to await where an event loop is running.

    Raises:
        ConfigError: an event loop is running in this thread.
    """
    if running_loop() is not None:
        work.close()
        raise ConfigError(
            f"an event loop is running in this thread (a notebook, a web server): await {instead} "
            "instead of its synchronous twin"
        )
    return asyncio.run(work)
