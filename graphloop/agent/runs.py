"""Runs: access to stored runs by their ids.

    runs = Runs("runs.db", agent)
    for run in await runs.list(): print(run.run_id, run.status)
    await runs.approve(run_id, key)
    result = await runs.resume(run_id)

A store that is given by its path is opened and closed by each call; an open store stays open.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, Unpack, final

from typing_extensions import TypeVar

from .. import stores
from ..driver import Fleet
from ..errors import ConfigError
from ..events import Event
from ..graph import NodeGraph
from ..policy import Approval, decline
from ..questions import Pending
from ..run import Run
from ..stores import (
    Ask,
    Catalog,
    Closes,
    Posted,
    RunRecord,
    Store,
    Submission,
    state_after,
)
from .inputs import AnswersInput, CallInput, PromptInput
from .result import RunResult
from .resumption import first_misfit, waiting
from .start_and_resume import first_event, resume_run
from .stored_runs import StoredRuns
from .stream import RunStream
from .terms import NO_FLEET, RunTerms, SharedResources

__all__ = ["HasRuns", "Questions", "Runs", "StoreInput"]

O_co = TypeVar("O_co", default=str, covariant=True)
S = TypeVar("S", default=None)

StoreInput: TypeAlias = Store | str | Path
Questions: TypeAlias = tuple[Pending, ...]


class HasRuns(Protocol[O_co, S]):
    """An object with a `runs` attribute, such as an agent."""

    @property
    def runs(self) -> Runs[O_co, S]:
        """The runs in the store of this agent or graph."""
        ...


@final
class Runs(Generic[O_co, S]):
    """The runs in one store.

    Args:
        store: a `Store`, or its path; by default the store of the agent.
        graph: the graph of the runs, or their agent. `replay` needs a graph, and so does `fork` of
            a run with child runs. `resume` and `cancel` need an agent.
        terms: the terms (`RunTerms`) that the runs were started on, in place of an agent.
        fleet: what the worker that resumes the runs shares with others.
    """

    def __init__(
        self,
        store: StoreInput | None = None,
        graph: NodeGraph[S] | HasRuns[O_co, S] | None = None,
        *,
        terms: RunTerms[S] | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        if graph is not None and not isinstance(graph, NodeGraph):
            terms = graph.runs._terms
        self._store, self._fleet = store, fleet or NO_FLEET
        self._terms: RunTerms[S] | None = terms
        self._graph = graph if isinstance(graph, NodeGraph) else terms.graph if terms else None

    def __call__(self, store: StoreInput, *, fleet: Fleet | None = None) -> Runs[O_co, S]:
        """Return access to the runs of another store, with the same agent or graph.

        for record in await agent.runs("runs.db").list(): ...
        """
        graph = self._graph if self._terms is None else None
        return Runs(store, graph, terms=self._terms, fleet=fleet)

    def __repr__(self) -> str:
        is_path = isinstance(self._store, str | Path)
        where = repr(str(self._store)) if is_path else type(self._store).__name__
        return f"<Runs of {where if self._store is not None else 'the store of the agent'}>"

    async def list(self) -> Sequence[RunRecord]:
        """Return a record of each run in the store, oldest first.

        Raises:
            ConfigError: the store keeps no catalog.
        """
        async with self._open_store() as store:
            if not isinstance(store, Catalog):
                raise ConfigError(
                    f"{type(store).__name__} keeps no catalog of its runs. Fix: keep them in a "
                    "database, store='runs.db'."
                )
            return await store.overview()

    async def pending(self, run_id: str) -> tuple[Ask, ...]:
        """Return the pending questions of a parked run and of its child runs.

        While a driver has the run, these are the questions that the run had before.

        Raises:
            UnknownRun: there is no such run.
            ConfigError: the run is not parked, or the store keeps no questions and there is no
                agent to compute them.
        """
        async with self._open_store() as store:
            return await StoredRuns(store, self._terms).pending(run_id)

    async def waiting(self, run_id: str) -> Questions:
        """Return the calls that a run and its children wait for, as `result.pending` does.

        This method only reads journals, so it works with any store, and the run does not change.
        The tuple is empty if the run is over, or is interrupted and only has to be resumed.

        Raises:
            UnknownRun: there is no such run.
            ConfigError: there is no agent, or the agent lacks a model or tool of the run.
        """
        terms = self._agents_terms(run_id)
        async with self._open_store() as store:
            run = state_after(terms.graph, await store.load(run_id))
            return await waiting(run, terms.ports(store))

    async def approve(
        self,
        run_id: str,
        key: str,
        answer: bool | Approval = True,  # noqa: FBT001, FBT002 - `approve(run, key, False)` denies
    ) -> Posted:
        """Store the answer to a pending call of a parked run, without resuming the run.

        The answer stays in the store until the run is resumed. Of several ones, the first counts.

        Args:
            run_id: the run's id.
            key: the key of the pending call.
            answer: the decision; an answer without a token gets the token of the stored question.

        Returns:
            "accepted" for the first answer; "duplicate" if the same answer, or one with the same
            signal id, is stored already; "answered" if another answer is.

        Raises:
            ConfigError: the run does not wait for this call, the store keeps no answers, or the
                answer is not a decision, is too late, or has arguments that the tool refuses.
            UnknownRun: there is no such run.
        """
        async with self._open_store() as store:
            return await StoredRuns(store, self._terms).approve(run_id, key, answer)

    async def decline(self, run_id: str, key: str, reason: str = "") -> Posted:
        """Store a denial of a pending call of a parked run; see `approve`."""
        return await self.approve(run_id, key, decline(reason))

    async def replay(self, run: str | Sequence[Event], *, upto: int | None = None) -> Run[S]:
        """Return the state of a run after event `upto`, or after its last event.

        The state is computed from the journal: no model is called, no tool runs, no event is
        written.

        Args:
            run: the run's id, or its events.
            upto: the number of the event, from 1.

        Raises:
            StoreError: there is no such run or event.
            IllegalEvent: an event is not legal in this graph, because the graph has changed.
            ConfigError: this object was made without a graph.
        """
        if self._graph is None:
            raise ConfigError("a replay: expected the runs' graph, found none. Fix: Runs(…, graph)")
        if not isinstance(run, str):
            return state_after(self._graph, run, upto)
        async with self._open_store() as store:
            return state_after(self._graph, await store.load(run), upto)

    async def misfit(self, run_id: str) -> int:
        """Return the number of the first event that this agent's code does not fit; 0 for none.

        Raises:
            UnknownRun: there is no such run.
            ConfigError: there is no agent.
        """
        terms = self._agents_terms(run_id)
        async with self._open_store() as store:
            return first_misfit(terms.graph, await store.load(run_id), terms.ports(store))

    async def fork(
        self, run_id: str, *, at: int, new_id: str | None = None, share_approvals: bool = False
    ) -> str:
        """Copy a run up to event `at` under a new id, which `resume` accepts, and return the id.

        Child runs that were running after event `at` are copied with all their present events.

        Args:
            run_id: the run's id.
            at: the number of the last event to copy, from 1.
            new_id: the copy's id; by default a random one.
            share_approvals: whether the copy may use approvals that were given to the run.

        Raises:
            StoreError: there is no such run or event, or the new id is taken.
            ConfigError: the copy would use an approval without `share_approvals`, or the run has
                child runs and this object was made without a graph.
        """
        async with self._open_store() as store:
            return await stores.fork_run(
                self._graph, store, run_id, at, new_id, share=share_approvals
            )

    async def submit(
        self,
        prompt: PromptInput | None = None,
        *,
        tenant: str = "",
        priority: int = 0,
        deadline_s: float | None = None,
        queue: str = "default",
        **question: Unpack[CallInput[Any]],
    ) -> str:
        """Store the first event of a new run, for a worker to drive, and return the run's id.

        With a `run_id`, a second call for the same question has no effect, so that a caller may
        repeat the call after a failure.

        Args:
            prompt: the question, as in `generate`.
            tenant: for whom the run is driven. Workers take the runs of the tenants in turn.
            priority: how urgent the run is, from -100 to 100: of the runs that wait alike, those
                of the highest priority go first.
            deadline_s: the seconds from now after which a worker ends the run as `timeout`, also
                while the run waits for an answer; None for no deadline.
            queue: the queue in which the run waits (`stores.QueueLimits`).
            question: the options of the call, as in `generate`.

        Raises:
            ConfigError: there is no agent, an option is invalid, the store has no line of runs
                for such a place, or the run id has another question.
        """
        started = await first_event(self._agents_terms("to submit"), prompt, question)
        async with self._open_store() as store:
            await stores.enlist(store, started, Submission(tenant, priority, deadline_s, queue))
        return started.run_id

    async def resume(self, run_id: str, **answers: Unpack[AnswersInput[Any]]) -> RunResult[O_co, S]:
        """Resume a run that parked, or whose process died, and return its result.

        Raises:
            StoreError: there is no such run, or its journal cannot be read.
            ConfigError: an answer names a call that is not pending, or there is no agent.
        """
        async with self._open_store() as store:
            return await self._resume_with(store, run_id, answers).result()

    def resume_stream(
        self, run_id: str, **answers: Unpack[AnswersInput[Any]]
    ) -> RunStream[O_co, S]:
        """Return the stream of a run that is resumed; it closes the store that a path names.

        Raises:
            ConfigError: there is no agent.
        """
        given = self._given_store()
        if not isinstance(given, str | Path):
            return self._resume_with(given, run_id, answers)
        store = stores.open_store(given)
        stream = self._resume_with(store, run_id, answers)
        if isinstance(store, Closes):
            stream.on_over = store.aclose
        return stream

    async def cancel(self, run_id: str, reason: str = "") -> RunResult[O_co, S]:
        """End a run as `aborted` and return its result; its history has a result for each call.

        Raises:
            StoreError: there is no such run, or its journal cannot be read.
            ConfigError: there is no agent.
        """
        async with self._open_store() as store:
            stream = self._resume_with(store, run_id, {}, ends=True)
            stream.abort(reason)
            return await stream.result()

    def _resume_with(
        self, store: Store, run_id: str, answers: AnswersInput[Any], *, ends: bool = False
    ) -> RunStream[O_co, S]:
        return resume_run(self.terms_in(store, run_id), run_id, answers, ends=ends)

    def terms_in(self, store: Store, run_id: str) -> RunTerms[S]:
        """Return the terms on which a run of an open store is resumed.

        Raises:
            ConfigError: there is no agent.
        """
        shared = SharedResources(store, {}, (), fleet=self._fleet)
        return self._agents_terms(run_id).evolved(shared=shared)

    def _agents_terms(self, run_id: str) -> RunTerms[S]:
        if self._terms is None:
            raise ConfigError(
                f"run {run_id!r}: expected the agent that it belongs to, found none. Fix: "
                "Runs(store, agent), or the `runs` of the agent"
            )
        return self._terms

    def _given_store(self) -> StoreInput:
        given = self._store
        if given is None and self._terms is not None:
            given = self._terms.shared.stored()
        if given is None:
            raise ConfigError("`store`: expected the store of the runs, found none. Fix: pass it.")
        return given

    @asynccontextmanager
    async def _open_store(self) -> AsyncGenerator[Store]:
        given = self._given_store()
        if not isinstance(given, str | Path):
            yield given
            return
        store = stores.open_store(given)
        try:
            yield store
        finally:
            if isinstance(store, Closes):
                await store.aclose()
