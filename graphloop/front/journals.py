"""Doors to a run's journal that drive nothing: its state at any event, a copy, an answer to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

from ..approvals import Approval, claimed, issue, refuse_edit, verify
from ..codec import typed_events
from ..drivers.pending import unfit
from ..effects import AskHuman, StartRun
from ..errors import ConfigError, StoreError, UnknownRun, nearest
from ..events import Decided, Event, Started, Steered
from ..graph import Graph
from ..limits import is_whole
from ..replay import replay, replay_steps
from ..run import Run
from ..stores.base import Ask, Catalog, Leases, Mailbox, Posted, RunRecord, Store
from ..stores.fork import fork
from ..stores.journals import those_within
from ..stores.opening import open_store
from ..stores.sqlite import SqliteStore
from ..values import Message
from .answers import Answers, approval_of, check_answer
from .checking import check_run_id
from .state_types import known_state_type

__all__ = [
    "answer_call",
    "answer_recorded",
    "check_token",
    "children_at",
    "fork_run",
    "open_ask",
    "opened_store",
    "opening_of",
    "parameters_in",
    "recorded_asks",
    "root_of",
    "state_after",
    "typed",
]

S = TypeVar("S")


def opening_of(events: Sequence[Event]) -> tuple[Message, ...]:
    """Return the conversation that a run began with, by its journal."""
    first = events[0] if events else None
    return tuple(first.messages) if isinstance(first, Started) else ()


def state_after(graph: Graph[S], events: Sequence[Event], upto: int | None = None) -> Run[S]:
    """Return the run as it stood after event `upto`, or after the last; nothing is performed.

    Raises:
        ConfigError: `upto` is no whole number.
        StoreError: there is no such event, the journal is of another graph, or a state in it is
            not of the graph's type.
        IllegalEvent: an event does not fit the graph: it has changed since.
    """
    number = len(events) if upto is None else _whole(upto, events)
    if not 1 <= number <= len(events):
        raise StoreError(
            f"the journal has events 1 to {len(events)}: it cannot be replayed up to {upto}"
        )
    return replay(graph, typed(graph, events[:number]))


def children_at(graph: Graph[S], events: Sequence[Event], at: int) -> tuple[str, ...]:
    """Return the keys of the child runs that may have begun, and not ended, by event `at`.

    Raises:
        StoreError: there is no such event, or the journal is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    pending = state_after(graph, events, at).pending.values()
    return tuple(one.key for one in pending if isinstance(one, StartRun))


async def fork_run(
    graph: Graph[Any] | None,
    store: Store,
    run_id: str,
    at: int,
    new_id: str | None = None,
    *,
    share: bool = False,
) -> str:
    """Copy a run up to event `at`, with the children that were running then; return the new id.

    Args:
        graph: the run's graph; None only for a run without children.
        store: where the run is.
        run_id: the run.
        at: after which event the copy goes on.
        new_id: the copy's id; made up if not given.
        share: whether the copy may act on what people have approved of the run.

    Raises:
        StoreError: there is no such run or event, or the id is taken.
        ConfigError: the id cannot be one, or `at` is no whole number, or the run has children and
            there is no graph; or the copy would act on an approval, and may not.
    """
    copy = uuid4().hex if new_id is None else new_id
    check_run_id("new_id", copy)
    events, known = await store.load(run_id), await those_within(store, run_id)
    if graph is None and len(known) > 1:
        raise ConfigError(
            f"run {run_id!r} has child runs: only its graph tells which of them were running after "
            f"event {at}, so give it"
        )
    within = 1 <= _whole(at, events) <= len(events)  # If not, `fork` says what is wrong.
    children = children_at(graph, events, at) if graph is not None and within else ()
    if within and not share:
        _refuse_approved(run_id, graph, events[:at])
        for child in known:
            key = child.removeprefix(f"{run_id}/").partition("/")[0]
            if graph is not None and key in children:
                begun = _begun(graph, events[:at], key)
                _refuse_approved(child, None, await store.load(child), begun)
    await fork(store, run_id, at=at, new_id=copy, children=children)
    if isinstance(store, Catalog) and (target := (await _record(store, run_id)).target):
        await store.set_target(copy, target)
    return copy


def _begun(graph: Graph[Any], events: Sequence[Event], key: str) -> int:
    """Return after which event of a run its child that is running now had not begun yet."""
    before = range(len(events) - 1, 0, -1)
    return next((at for at in before if key not in children_at(graph, events, at)), 1)


def _refuse_approved(
    run_id: str, graph: Graph[Any] | None, events: Sequence[Event], begun: int = 0
) -> None:
    """Refuse a copy that would act on what a person has approved of the run.

    An approved call that has its result acts no more, nor does a run that is over; without a graph,
    neither can be told.

    Args:
        run_id: the run.
        graph: its graph; None for a child's.
        events: its events.
        begun: of a child, the last event of the run that is forked before the child began.
    """
    said = enumerate(events)
    given = {at: one.effect for at, one in said if isinstance(one, Decided) and one.approved}
    if not given:
        return
    runs = [] if graph is None else [one.run for one in replay_steps(graph, typed(graph, events))]
    if runs and runs[-1].ending is not None:
        return
    for at, effect in given.items():
        what = ""
        if runs:
            asked = runs[at - 1].pending[effect]
            assert isinstance(asked, AskHuman), "a decision answers a question"
            if runs[at - 1].turn.has_call(asked.key) and not runs[-1].turn.waits_for(asked.key):
                continue
            what = f" ({asked.key} {asked.call.name})"
        raise ConfigError(
            f"event {at + 1} of run {run_id!r} approved what the copy would do again{what}. Fix: "
            f"fork at={begun or at} or before, and the person is asked again; or say "
            "share_approvals=True (--share-approvals)."
        )


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


def check_token(
    ask: Ask,
    answer: bool | Approval,  # noqa: FBT001 - as callbacks answer
    secret: bytes | None = None,
) -> None:
    """Refuse an approval by the token of another question: accepted, it would be a denial.

    Args:
        ask: what is asked.
        answer: the decision.
        secret: signs tokens, where it is known here.

    Raises:
        ConfigError: saying what the token is good for, or that it is not good.
    """
    given, asked = approval_of(answer), claimed(ask.token)
    if not (given.approved and given.token) or asked is None:
        return
    found = claimed(given.token)
    refusal: str = "malformed"
    if secret is not None:
        refusal = verify(given.token, asked, secret=secret, now=-inf)  # When is asked later.
    elif found is not None:
        # Who does not know the secret can still tell what the token says.
        refusal = verify(issue(found, None), asked, secret=None, now=-inf)
    if refusal:
        raise ConfigError(
            f"the approval of {ask.key!r} has a token that is {refusal}: answer with the "
            "`pending.approve()` of this call, or without a token for the one that the store keeps"
        )


async def answer_call(
    store: Store,
    run_id: str,
    ask: Ask,
    *,
    answer: bool | Approval,
    now: float,
    secret: bytes | None = None,
) -> Literal["accepted", "duplicate", "answered"]:
    """Put an answer into the store's mailbox, where the run's next driver finds it.

    An answer without a token gets the one that the store keeps with the question.

    Raises:
        ConfigError: the store keeps no answers, or an approval comes too late, or is none, or edits
            a call that may have run.
    """
    if not isinstance(store, Mailbox):
        raise ConfigError(
            f"{type(store).__name__} keeps no answers for later: pass them to "
            "resume(…, approvals=…), or keep the run in a database: store='runs.db'"
        )
    check_answer(f"the answer to {ask.key!r}", answer)
    given = approval_of(answer)
    check_token(ask, answer, secret)
    refuse_edit(f"{ask.key!r} of run {run_id!r}", given, unknown=ask.unknown)
    if given.edit:
        # The run has the tool itself, and checks every edit again.
        problem = unfit(ask.name, await parameters_in(store, run_id, ask), given.edit)
        if problem is not None:
            raise ConfigError(problem)
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
        ConfigError: the run does not wait for this, or the store cannot know or keep answers, or
            the tool does not take the edited arguments.
    """
    run_id, key = root_of(run_id, key)
    asks = await recorded_asks(store, run_id)
    if asks is None:
        raise ConfigError(
            f"{type(store).__name__} does not know what runs wait for: pass the answer to "
            "resume(…, approvals=…), or keep the run in a database: store='runs.db'"
        )
    ask = open_ask(asks, run_id, key)
    return await answer_call(store, run_id, ask, answer=answer, now=now)


async def parameters_in(store: Store, run_id: str, ask: Ask) -> str:
    """Return what an edit has to be, as what is asked says, or the journal of the run that asks.

    Empty if neither tells.
    """
    if ask.takes:
        return ask.takes
    path = ask.key.rpartition("/")[0]
    events = await store.load(f"{run_id}/{path}" if path else run_id)
    setups = [
        event.setup
        for event in events
        if isinstance(event, Started | Steered) and event.setup is not None
    ]
    tools = setups[-1].tools if setups else ()
    return next((one.parameters for one in tools if one.name == ask.name), "")


@asynccontextmanager
async def opened_store(store: Store | str | Path | None) -> AsyncGenerator[Store]:
    """Open a store given by its path for a while; one that is open already stays so.

    Raises:
        ConfigError: there is none.
    """
    if store is None:
        raise ConfigError("a run is read by its id from a `store`: pass the one it is in")
    if not isinstance(store, str | Path):
        yield store
        return
    # What is read is told by each graph: runs below one have states of other types.
    opened = open_store(store)
    try:
        yield opened
    finally:
        if isinstance(opened, SqliteStore):
            await opened.aclose()


def typed(graph: Graph[S], events: Sequence[Event]) -> Sequence[Event]:
    """Return a graph's events with states of its type, whatever the store was told of them."""
    return typed_events(known_state_type(graph), events)


def _whole(number: int, events: Sequence[Event]) -> int:
    if not is_whole(number):
        raise ConfigError(
            "an event is named by its number, a whole one from 1 to "
            f"{len(events)}; found {number!r}"
        )
    return number


async def _record(store: Catalog, run_id: str) -> RunRecord:
    for one in await store.overview(run_id):
        if one.run_id == run_id:
            return one
    known = [one.run_id for one in await store.overview()]
    raise UnknownRun(f"no run {run_id!r} in this store.{nearest(run_id, known)}")
