"""An error of somebody else's that is only called as one of ours is: it is what it is.

`GraphError` of a graph database's client was taken for the developer's mistake, because a journal
tells errors by their names: nothing was tried again, and no other branch went on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from graphloop import END, EndReason, Graph, RunResult, node
from graphloop.errors import GraphError
from graphloop.outcomes import Outcome
from graphloop.own_nodes import retry


@dataclass(frozen=True)
class Found(Outcome):
    """It was there."""


async def asked(error: Exception) -> RunResult[str, int]:
    """Return what comes of a node that fails twice with this error, and is tried three times."""
    tries: list[int] = []

    @node
    async def look(state: int) -> tuple[Found, int]:
        tries.append(state)
        if len(tries) <= 2:
            raise error
        return Found(), state + 1

    again = retry(look, times=3)
    graph: Graph[int] = Graph("g", start=again, edges={again: {...: END}})
    return await graph.run(0)


@pytest.mark.parametrize("name", ["Busy", "GraphError", "ConfigError", "NotDeterministic"])
def test_what_is_only_called_a_mistake_is_tried_again(name: str) -> None:
    """As every other failure is."""
    foreign = type(name, (Exception,), {"__module__": "graph_db"})

    result = asyncio.run(asked(foreign("the server is busy")))

    assert (EndReason.COMPLETED, 1) == (result.end_reason, result.state)


def test_a_mistake_is_not_tried_again() -> None:
    """Whoever made it has to mend it."""
    with pytest.raises(GraphError):
        asyncio.run(asked(GraphError("g", ())))
