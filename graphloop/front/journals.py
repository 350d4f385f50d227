"""Doors to a run's journal that drive nothing: its state at any event, a copy, an answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar
from uuid import uuid4

from ..approvals import Approval
from ..effects import StartRun
from ..errors import ConfigError, StoreError, UnknownRun, nearest
from ..events import Event
from ..graph import Graph
from ..replay import replay
from ..run import Run
from ..stores.base import Ask, Catalog, Leases, Mailbox, Posted, RunRecord, Store
from ..stores.fork import fork
from .answers import Answers, approval_of, check_answer
from .checking import check_run_id

__all__ = [
    "answer_call",
    "answer_recorded",
    "children_at",
    "fork_run",
    "open_ask",
    "recorded_asks",
    "root_of",
    "state_after",
]

S = TypeVar("S")


def state_after(graph: Graph[S], events: Sequence[Event], upto: int | None = None) -> Run[S]:
    """Return the run as it stood after event `upto`, or after the last; nothing is performed.

    Raises:
        StoreError: there is no such event, or the journal is of another graph.
        IllegalEvent: an event does not fit the graph: it has changed since.
    """
    number = len(events) if upto is None else upto
    if not 1 <= number <= len(events):
        raise StoreError(
            f"the journal has events 1 to {len(events)}: it cannot be replayed up to {upto}"
        )
    return replay(graph, events[:number])


def children_at(graph: Graph[S], events: Sequence[Event], at: int) -> tuple[str, ...]:
    """Return the keys of the child runs that may have begun, and not ended, by event `at`.

    Raises:
        StoreError: there is no such event, or the journal is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    pending = state_after(graph, events, at).pending.values()
    return tuple(one.key for one in pending if isinstance(one, StartRun))


async def fork_run(
    graph: Graph[Any] | None, store: Store, run_id: str, *, at: int, new_id: str | None = None
) -> str:
    """Copy a run up to event `at`, with the children that were running then; return the new id.

    Args:
        graph: the run's graph; None only for a run without children.
        store: where the run is.
        run_id: the run.
        at: after which event the copy goes on.
        new_id: the copy's id; made up if not given.

    Raises:
        StoreError: there is no such run or event, or the id is taken.
        ConfigError: the id cannot be one.
    """
    copy = uuid4().hex if new_id is None else new_id
    check_run_id("new_id", copy)
    events = await store.load(run_id)
    within = 1 <= at <= len(events)  # If not, `fork` says what is wrong.
    children = children_at(graph, events, at) if graph is not None and within else ()
    await fork(store, run_id, at=at, new_id=copy, children=children)
    if isinstance(store, Catalog) and (target := (await _record(store, run_id)).target):
        await store.set_target(copy, target)
    return copy


def root_of(run_id: str, key: str) -> tuple[str, str]:
    """Return whom to answer, and by which key: a child's calls are answered at its root run."""
    root, slash, path = run_id.partition("/")
    return root, f"{path}/{key}" if slash else key


async def recorded_asks(store: Store, run_id: str) -> tuple[Ask, ...] | None:
    """Return what the store says that a run waits for; None where stores do not know.

    Raises:
        UnknownRun: there is no such run.
        ConfigError: the run waits for nobody, as it stands.
    """
    if not isinstance(store, Catalog) or not isinstance(store, Leases):
        return None
    record = await _record(store, run_id)
    match record.status:
        case "suspended":
            return record.asks
        case "running":
            problem = "is being driven; answer its driver, or wait until it parks"
        case "interrupted" | "ready":
            problem = "waits for a driver: resume it first, and it will say what it asks"
        case "done" | "failed" | "cancelled":
            problem = f"is over ({record.status})"
    raise ConfigError(f"run {run_id!r} takes no answers: it {problem}.")


def open_ask(asks: Iterable[Ask], run_id: str, key: str) -> Ask:
    """Return what is asked under a key, if an approval can answer it.

    Raises:
        ConfigError: nothing is, or what is there takes no approval.
    """
    known = {one.key: one for one in asks}
    ask = known.get(key)
    if ask is None:
        raise ConfigError(
            f"run {run_id!r} does not wait for {key!r}; it waits for "
            f"{', '.join(known) or 'nothing'}.{nearest(key, known)}"
        )
    if ask.kind != "approval":
        raise ConfigError(
            f"{key!r} of run {run_id!r} waits for what the client tool {ask.name!r} returns, not "
            f"for an approval: resume(…, tool_results={{{key!r}: …}})"
        )
    return ask


async def answer_call(
    store: Store, run_id: str, ask: Ask, *, answer: bool | Approval, now: float
) -> Literal["accepted", "duplicate", "answered"]:
    """Put an answer into the store's mailbox, where the run's next driver finds it.

    An answer without a token gets the one that the store keeps with the question.

    Raises:
        ConfigError: the store keeps no answers, or an approval comes too late, or is none.
    """
    if not isinstance(store, Mailbox):
        raise ConfigError(
            f"{type(store).__name__} keeps no answers for later: pass them to "
            "resume(…, approvals=…), or keep the run in a database: store='runs.db'"
        )
    check_answer(f"the answer to {ask.key!r}", answer)
    given = approval_of(answer)
    if given.approved and ask.expires_at is not None and now >= ask.expires_at:
        raise ConfigError(
            f"the approval of {ask.key!r} of run {run_id!r} comes too late, by "
            f"{now - ask.expires_at:.0f} seconds: deny it, and the model may ask anew"
        )
    token = given.token or ask.token
    approval = Approval(given.approved, given.reason, given.edit or None, token)
    ((key, data),) = Answers({ask.key: approval}).posts(now)
    signal_id = answer.signal_id if isinstance(answer, Approval) and answer.signal_id else ""
    posted: Posted = await store.post(run_id, key, signal_id or uuid4().hex, data)
    return posted


async def answer_recorded(
    store: Store, run_id: str, key: str, *, answer: bool | Approval, now: float
) -> Literal["accepted", "duplicate", "answered"]:
    """Answer a call that the store says a run waits for.

    Raises:
        UnknownRun: there is no such run.
        ConfigError: the run does not wait for this, or the store cannot know or keep answers.
    """
    asks = await recorded_asks(store, run_id)
    if asks is None:
        raise ConfigError(
            f"{type(store).__name__} does not know what runs wait for: pass the answer to "
            "resume(…, approvals=…), or keep the run in a database: store='runs.db'"
        )
    return await answer_call(store, run_id, open_ask(asks, run_id, key), answer=answer, now=now)


async def _record(store: Catalog, run_id: str) -> RunRecord:
    records = {one.run_id: one for one in await store.overview()}
    if run_id not in records:
        raise UnknownRun(f"no run {run_id!r} in this store.{nearest(run_id, records)}")
    return records[run_id]
