"""Calls of agents in a conversation that is handed in: what has begun must not begin again.

A run that waits in a child is parked with the agent's call open, and its conversation looks as if
the call had not begun. Issued again, it would run all that its child has run already.
"""

from __future__ import annotations

from typing import TypeVar

from ..approvals import claimed
from ..errors import ConfigError, GraphloopError
from ..graph import Graph
from ..repair import open_calls
from ..stores.base import Store
from ..values import call_key
from .answers import approval_of
from .handed_in import HandedIn, conversation_digest
from .journals import opening_of, state_after
from .result import RunResult
from .world import World

__all__ = ["refuse_begun"]

S = TypeVar("S")


async def refuse_begun(
    handed: HandedIn,
    store: Store,
    graph: Graph[S],
    world: World,
) -> None:
    """Refuse open calls of agents that may have begun: all but those whose beginning was asked for.

    Args:
        handed: the conversation, and the answers to its calls.
        store: may hold the run that it comes from.
        graph: what that run would be a run of.
        world: the agents that can be called.

    Raises:
        ConfigError: a call of an agent has begun, or may have.
        StoreError: the store cannot be read.
    """
    for place, call in open_calls(handed.messages):
        if call.name not in world.children:
            continue
        key = call_key(-1, place)
        given = handed.answer(key)
        approval = None if given is None else approval_of(given)
        if approval is not None and not approval.approved and call.name in world.asked:
            continue
        told = f"the open call {key} of agent {call.name!r}"
        claim = claimed(approval.token) if approval is not None else None
        if claim is not None and handed.is_approved(key):
            child = f"{claim.run_id}/{claim.key.partition('#')[0]}"
            if child not in await store.runs():
                continue
            run_id: str | None = claim.run_id
        else:
            run_id = await _run_of(handed, store, graph, place)
        if run_id is not None:
            raise ConfigError(
                f"{told} has begun, as a child of run {run_id!r} in the store: resume that run "
                f"instead, by resume({run_id!r}, approvals=…) with the keys of its `pending`"
            )
        raise ConfigError(
            f"{told} may have begun, which its conversation does not tell, and must not begin "
            "twice: resume the run that it comes from, by resume(result, approvals=…). If that is "
            "gone, answer the call in the conversation, by a message of role tool. (If the run "
            "waits for this very call, and not for one in its child, `pending.approve()` says so)"
        )


async def _run_of(handed: HandedIn, store: Store, graph: Graph[S], place: int) -> str | None:
    """Return the run in the store that ends in this conversation, and has a child at this place."""
    digest = conversation_digest(handed.messages)
    for child in await store.runs():
        parent, slash, key = child.rpartition("/")
        if not slash or "/" in parent or not key.endswith(f".{place}"):
            continue
        events = await store.load(parent)
        try:
            run = state_after(graph, events)
        except GraphloopError:
            continue  # Of another graph.
        opening = opening_of(events)
        said = RunResult(run, store, opening=opening).messages
        if digest == conversation_digest((*opening, *said)):
            return parent
    return None
