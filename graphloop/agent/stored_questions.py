"""Stored questions: those of a stored run, the checks of an answer, and the submission of a run."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from ..errors import ConfigError, StoreError, nearest
from ..events import Started, Steered
from ..policy import Approval, claimed, issue, verify
from ..spending import whole_number
from ..stores import Ask, Backlog, RunRecord, Store, Submission, has_run

__all__ = ["ask_of", "asks_of", "check_token", "enlist", "parameters_in"]

PRIORITY_MAX: Final = 100


def asks_of(record: RunRecord) -> tuple[Ask, ...]:
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


def ask_of(asks: Iterable[Ask], run_id: str, key: str) -> Ask:
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


def check_token(ask: Ask, given: Approval, secret: bytes | None) -> None:
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


async def enlist(store: Store, started: Started, place: Submission) -> None:
    """Save the first event of a submitted run with its place, unless the store has both.

    Raises:
        ConfigError: the place is invalid, the store has no line of runs for it, or the run id has
            another question.
    """
    _check(place)
    try:
        if isinstance(store, Backlog):
            await store.enlist(started, place)
        elif place == Submission():
            await store.append(started.run_id, 1, started)
        else:
            raise ConfigError(
                "`tenant`, `priority`, `deadline_s` and `queue`: expected a store that workers "
                f"share, found {store!r}. Fix: keep the runs in a database, store='runs.db'."
            )
    except StoreError:
        if not await _is_submitted(store, started):
            raise


def _check(place: Submission) -> None:
    whole_number("priority", place.priority, least=-PRIORITY_MAX)
    if place.priority > PRIORITY_MAX:
        raise ConfigError(f"`priority`: expected at most {PRIORITY_MAX}, found {place.priority}.")
    if not place.queue:
        raise ConfigError("`queue`: expected a name, found ''. Fix: leave it out.")
    deadline_s = place.deadline_s
    if deadline_s is not None and not 0 < deadline_s < inf:
        raise ConfigError(f"`deadline_s`: expected a positive number, found {deadline_s!r}.")


async def _is_submitted(store: Store, started: Started) -> bool:
    """Whether a store has a run with this id and this question already.

    Raises:
        ConfigError: the run with this id has another question.
    """
    if not await has_run(store, started.run_id):
        return False
    first = (await store.load(started.run_id))[0]
    same = isinstance(first, Started) and (first.graph, [*first.messages]) == (
        started.graph,
        [*started.messages],
    )
    if not same:
        raise ConfigError(
            f"`run_id`: expected an id that no other question has, found {started.run_id!r}, "
            "whose run was asked something else. Fix: give another id."
        )
    return True
