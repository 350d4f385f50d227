"""Served: what the servers share: who calls, which store, and what an answer decides.

A server of each protocol reads its own messages; this module needs no protocol's SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ..agent import Agent, RunResult, StoreInput
from ..errors import ConfigError
from ..policy import AS_IT_WAS, Approval, approve, decline, digest
from ..questions import Pending, question_in, unfit
from ..run import EndReason
from ..stores import Closes, MemoryStore, Store, open_store

__all__ = [
    "WHOLE",
    "RequestRefused",
    "by_authorization",
    "decision_of",
    "deps_options",
    "ended_result",
    "question_about",
    "served_store",
]

WHOLE: Final = {EndReason.COMPLETED, EndReason.STOP_CONDITION}
"""The end reasons of a run whose answer is complete."""


class RequestRefused(Exception):
    """A request that is answered by an error; the message is for the client."""


def by_authorization(headers: Mapping[str, str]) -> str:
    """Return a digest of the `Authorization` header; without one, all clients are one caller."""
    return digest(headers.get("authorization", ""))


def served_store(
    store: StoreInput | None, agents: Iterable[Agent[Any, Any]]
) -> tuple[Store, Closes | None]:
    """Return the store of a server's runs, and the store that the server closes at its end.

    Without a given store it is the store of the agents; without any, the memory of this process.
    A store that the caller has opened is the caller's to close.

    Raises:
        ConfigError: the agents have different stores, or the store cannot be opened.
    """
    if store is None:
        own = [agent.options.get("store") for agent in agents]
        given = [one for one in own if one is not None]
        if any(one != given[0] for one in given):
            # A store may be a URL with a password.
            raise ConfigError(
                "`store`: expected agents that share a store, found several stores. Fix: give the "
                "server a store for all of them."
            )
        store = given[0] if given else MemoryStore()
    if not isinstance(store, str | Path):
        return store, None
    opened = open_store(store)
    return opened, opened if isinstance(opened, Closes) else None


def deps_options(
    agent: Agent[Any, Any], deps: Callable[[str], object] | None, run_id: str
) -> dict[str, Any]:
    """Return the options of a run: its `deps`, which the user's function returns, if it has any."""
    if deps is None or "deps_type" not in agent.options:
        return {}
    return {"deps": deps(run_id)}


async def ended_result(
    agent: Agent[Any, Any], store: Store, run_id: str
) -> RunResult[Any, Any] | None:
    """Return the result of a run that the store has; None if the run is not over.

    Raises:
        UnknownRun: there is no such run.
    """
    run = await agent.runs(store).replay(run_id)
    return RunResult[Any, Any](run, store) if run.ended else None


def question_about(asked: Pending) -> str:
    """Return the words that ask a client about a call, or that a tool or a node asks."""
    asker = f"{asked.name} of {asked.server}" if asked.server else asked.name
    if (question := question_in(asked)) is not None:
        return f"{asker} asks: {question}"
    again = " It may have run already." if asked.unknown else ""
    return f"Run {asker} with {asked.arguments}?{again}"


def decision_of(asked: Pending, yes: object, reason: object, edit: object) -> Approval:
    """Return the decision in a client's answer; all but a clear yes denies the call.

    Args:
        asked: the call.
        yes: True approves; any other value denies.
        reason: a text that the model reads; any other value is no reason.
        edit: arguments in place of the call's own, as JSON text; any other value is no edit. Of a
            question in words it is the answer.

    Raises:
        RequestRefused: the edit does not fit, or the call may have run already.
    """
    said = reason if isinstance(reason, str) else ""
    if yes is not True:
        return decline(said)
    if not isinstance(edit, str) or not edit.strip():
        if question_in(asked) is None:
            return approve(reason=said, token=asked.token)
        edit = "{}"
    problem = AS_IT_WAS if asked.unknown else unfit(asked.name, asked.parameters, edit)
    if problem is not None:
        raise RequestRefused(f"`edit` of {asked.key}: {problem}")
    return approve(edit=edit, reason=said, token=asked.token)
