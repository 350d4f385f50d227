"""StoredRuns: the questions of the runs in an open store, and the answers to them.

`Runs` uses it with an agent, and `workers.Client` without: then the run, which has the tool,
checks an edit of its arguments again.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from time import time
from typing import Generic, TypeVar, final

from msgspec import Struct

from ..errors import ConfigError, nearest
from ..events import Started, Steered
from ..policy import Approval, claimed, issue, refuse_edit, verify
from ..questions import bad_yes, unfit
from ..stores import (
    Ask,
    Catalog,
    Leases,
    Mailbox,
    Posted,
    RunRecord,
    Store,
    root_of,
    state_after,
)
from .answers import Answers, approval_from, check_given_answer
from .resumption import refuse_edits, waiting
from .terms import RunTerms

__all__ = ["StoredRuns", "parameters_in"]

S = TypeVar("S")


@final
class StoredRuns(Struct, Generic[S], frozen=True):
    """The runs of an open store.

    Args:
        store: the store.
        terms: the terms on which the runs are resumed; None in a process without their agent.
    """

    store: Store
    terms: RunTerms[S] | None = None

    async def pending(self, run_id: str) -> tuple[Ask, ...]:
        """Return the pending questions of a parked run; see `Runs.pending`."""
        store, terms = self.store, self.terms
        if isinstance(store, Catalog) and isinstance(store, Leases):
            return _asks_of(await store.record(run_id))
        if terms is None:
            raise ConfigError(
                f"{type(store).__name__} does not keep the questions of runs. Fix: pass the answer "
                "to resume(…, approvals=…), or keep the run in a database, store='runs.db'."
            )
        run = state_after(terms.graph, await store.load(run_id))
        return tuple([asked.ask for asked in await waiting(run, terms.ports(store))])

    async def approve(self, run_id: str, key: str, answer: bool | Approval) -> Posted:  # noqa: FBT001 - as `Runs.approve`
        """Store the answer to a pending call of a parked run; see `Runs.approve`."""
        run_id, key = root_of(run_id, key)
        store, terms = self.store, self.terms
        given = approval_from(answer)
        signal_id = answer.signal_id if isinstance(answer, Approval) else ""
        signal_id = signal_id or f"{given.approved} {given.reason} {given.edit}"
        if isinstance(store, Mailbox) and key in await store.posted(run_id):
            # The run may have gone on since, so that it no longer asks.
            return await store.post(run_id, key, signal_id, "")
        ask = _ask_of(await self.pending(run_id), run_id, key)
        if not isinstance(store, Mailbox):
            raise ConfigError(
                f"{type(store).__name__} keeps no answers for later. Fix: pass them to "
                "resume(…, approvals=…), or keep the run in a database, store='runs.db'."
            )
        if terms is not None and given.edit:
            run = state_after(terms.graph, await store.load(run_id))
            await refuse_edits(run, terms.ports(store), Answers({key: answer}))
        check_given_answer(f"the answer to {key!r}", answer)
        _check_token(ask, given, None if terms is None else terms.secret)
        refuse_edit(f"{key!r} of run {run_id!r}", given, unknown=ask.unknown)
        problem = None
        if given.edit:
            # The run, which has the tool, checks the edit again.
            problem = unfit(ask.name, await parameters_in(store, run_id, ask), given.edit)
        elif given.approved:
            problem = bad_yes(ask)
        if problem is not None:
            raise ConfigError(problem)
        now = time() if terms is None else terms.clock()
        if given.approved and ask.expires_at is not None and now >= ask.expires_at:
            raise ConfigError(
                f"the approval of {key!r} of run {run_id!r} comes too late, by "
                f"{now - ask.expires_at:.0f} seconds. Fix: decline it; the model may ask again."
            )
        token = given.token or ask.token
        approval = Approval(given.approved, given.reason, given.edit or None, token)
        ((key, data),) = Answers({key: approval}).posts(now)
        return await store.post(run_id, key, signal_id, data)


def _asks_of(record: RunRecord) -> tuple[Ask, ...]:
    """Return the questions in the stored record of a parked run.

    Raises:
        ConfigError: the run is not parked.
    """
    match record.status:
        case "parked" | "ready" | "running" if record.asks:
            return record.asks
        case "running":
            problem = "is being driven. Answer its driver, or wait until it parks"
        case "parked":
            return ()
        case "blocked":
            problem = "is blocked: the code here does not fit its journal. Resume it with its own"
        case "interrupted" | "ready":
            problem = "waits for a driver. Resume it first; then it asks its questions"
        case "done" | "failed" | "cancelled":
            problem = f"is over ({record.status})"
    raise ConfigError(f"run {record.run_id!r} takes no answers: it {problem}.")


def _ask_of(asks: Iterable[Ask], run_id: str, key: str) -> Ask:
    """Return the question with this key, after a check that an approval can answer it.

    Raises:
        ConfigError: the run has no such question, or it waits for the result of a client tool.
    """
    known = {ask.key: ask for ask in asks}
    ask = known.get(key)
    if ask is None:
        raise ConfigError(
            f"run {run_id!r} does not wait for {key!r}; it waits for "
            f"{', '.join(known) or 'nothing'}.{nearest(key, known)}"
        )
    if ask.kind != "approval":
        raise ConfigError(
            f"{key!r} of run {run_id!r} waits for the result of the client tool {ask.name!r}, not "
            f"for an approval. Fix: resume(…, tool_results={{{key!r}: …}})."
        )
    return ask


def _check_token(ask: Ask, given: Approval, secret: bytes | None) -> None:
    """Refuse an approval whose token belongs to another question, before it is stored.

    Raises:
        ConfigError: the token is not valid for this question.
    """
    asked = claimed(ask.token)
    if not (given.approved and given.token) or asked is None:
        return
    found = claimed(given.token)
    refusal: str = "malformed"
    if secret is not None:
        refusal = verify(given.token, asked, secret=secret, now=-inf)
    elif found is not None:
        # Without the secret the signature cannot be checked, only the claim in the token.
        refusal = verify(issue(found, None), asked, secret=None, now=-inf)
    if refusal:
        raise ConfigError(
            f"the approval of {ask.key!r} has a token that is {refusal}. Fix: answer with the "
            "`pending.approve()` of this call, or without a token."
        )


async def parameters_in(store: Store, run_id: str, ask: Ask) -> str:
    """Return the JSON Schema that edited arguments of a call must fit; empty if unknown.

    The question has the schema, or else the tools in the run's journal have it.
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
    return next((tool.parameters for tool in tools if tool.name == ask.name), "")
