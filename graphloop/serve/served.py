"""Served: what the servers share: who calls, which store, and what an answer decides.

A server of each protocol reads its own messages; this module needs no protocol's SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..agent import StoreInput
from ..policy import AS_IT_WAS, Approval, approve, decline, digest
from ..questions import Pending, unfit
from ..stores import Closes, MemoryStore, Store, open_store

__all__ = [
    "RequestRefused",
    "by_authorization",
    "decision_of",
    "question_about",
    "served_store",
]


class RequestRefused(Exception):
    """A request that is answered by an error; the message is for the client."""


def by_authorization(headers: Mapping[str, str]) -> str:
    """Return a digest of the `Authorization` header; without one, all clients are one caller."""
    return digest(headers.get("authorization", ""))


def served_store(store: StoreInput | None) -> tuple[Store, Closes | None]:
    """Return the store of a server's runs, and the store that the server closes at its end.

    Without a given store the runs are in the memory of this process. A store that the caller has
    opened is the caller's to close.
    """
    if store is None:
        return MemoryStore(), None
    if not isinstance(store, str | Path):
        return store, None
    opened = open_store(store)
    return opened, opened if isinstance(opened, Closes) else None


def question_about(asked: Pending) -> str:
    """Return the question about a call, in words."""
    again = " It may have run already." if asked.unknown else ""
    return f"May {asked.name} run with {asked.arguments}?{again}"


def decision_of(asked: Pending, yes: object, reason: object, edit: object) -> Approval:
    """Return the decision in a client's answer; all but a clear yes denies the call.

    Args:
        asked: the call.
        yes: True approves; any other value denies.
        reason: a text that the model reads; any other value is no reason.
        edit: arguments in place of the call's own, as JSON text; any other value is no edit.

    Raises:
        RequestRefused: edited arguments do not fit the tool, or the call may have run already.
    """
    said = reason if isinstance(reason, str) else ""
    if yes is not True:
        return decline(said)
    if not isinstance(edit, str) or not edit.strip():
        return approve(reason=said, token=asked.token)
    problem = AS_IT_WAS if asked.unknown else unfit(asked.name, asked.parameters, edit)
    if problem is not None:
        raise RequestRefused(f"`edit` of {asked.key}: {problem}")
    return approve(edit=edit, reason=said, token=asked.token)
