"""Compose: short words for nodes made of other nodes and agents.

Each function returns a plain node of `graphloop.nodes`, or rows of a table: a composed node can be
drawn, checked and bounded like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, TypeAlias

from typing_extensions import TypeVar

from ..contract import needs_turn
from ..errors import ConfigError
from ..graph import END, Edges, EndType, Row
from ..node_protocol import Node
from ..nodes import (
    Append,
    Branch,
    BranchJoin,
    Fallback,
    Limit,
    MapOver,
    Parallel,
    Retrying,
    Router,
)
from ..outcomes import (
    Accepted,
    Answered,
    Failed,
    Final,
    Go,
    Outcome,
    Rejected,
    Resend,
    Stop,
    outcome_name,
)
from .route_outcomes import route_outcomes

__all__ = ["fallback", "loop_until", "map_over", "parallel", "retry", "router"]

# A node of the library fits any state: alone, it stands in a graph without one.
S = TypeVar("S", default=None)
R = TypeVar("R", bound="type[Outcome] | str")

Target: TypeAlias = Node[S, Outcome] | Literal[EndType.END]


def router(
    routes: Mapping[R, str],
    prompt: str = "Which of the routes fits best?",
    *,
    model: str = "",
    name: str = "router",
) -> Router:
    """Return a node at which a model chooses one of several routes.

        desk = router({Billing: "invoices and refunds", Technical: "errors and outages"})

    It leaves by the outcome of the route, by `Unrouted` if the model chose none clearly, or by
    `Failed` or `Aborted`.

    Args:
        routes: the purpose of each outcome, or of each name of an outcome.
        prompt: the question to the model, after the whole conversation.
        model: the label of the model; empty for the run's own.
        name: the node's name.

    Raises:
        ConfigError: a route could not be chosen.
    """
    names = [route for route in routes if isinstance(route, str)]
    types = dict(zip(names, route_outcomes(names), strict=True))
    by_type: dict[type[Outcome], str] = {
        types[route] if isinstance(route, str) else route: words for route, words in routes.items()
    }
    return Router(by_type, prompt, name, model)


def parallel(
    *branches: str | Branch,
    join: BranchJoin = "collect",
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    name: str = "parallel",
) -> Parallel:
    """Return a node that runs agents side by side and joins their answers.

        vote = parallel("judge", "judge", "judge", join="majority")

    Args:
        branches: the names of agents, or `Branch` for one with a prompt of its own.
        join: "collect", "fail_fast", "first" or "majority": the answers to wait for.
        reducer: "concat", "majority" or "first"; by default, it goes with the join.
        callback: the name of a function that joins the answers instead.
        concurrency: how many agents may run at once.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.Parallel`.
    """
    listed = [Branch(branch) if isinstance(branch, str) else branch for branch in branches]
    return Parallel(tuple(listed), join, reducer, callback, concurrency, name)


map_over = MapOver
"""A node that runs an agent for each item of the latest answer: `map_over("w", max_items=8)`."""


def retry(
    node: Node[S, Outcome],
    times: int,
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Retrying[S]:
    """Return a node that is tried again, up to `times` times.

        writer = retry(Child("writer"), 2)

    Args:
        node: a model, an agent, a check or a pure node; no node that runs tools or asks people.
        times: how often it is tried again at most, each time the run comes here.
        on: the outcomes after which it is tried again.
        name: the name in the table; by default, the node's own.

    Raises:
        ConfigError: the node must not be tried again, or never leaves by an outcome of `on`.
    """
    return Retrying(node, times, frozenset(on), name)


def fallback(
    first: Node[S, Outcome],
    second: Node[S, Outcome],
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Fallback[S]:
    """Return a node that is `first`, and after its failure `second`.

        answer = fallback(Child("expert"), Child("generalist"))

    Args:
        first: a model, an agent, a check or a pure node.
        second: another node of the same kind.
        on: the outcomes of the first after which the second is entered.
        name: the name in the table; by default, the name of both.

    Raises:
        ConfigError: a node must not take another's place, or the first never leaves by an
            outcome of `on`.
    """
    return Fallback(first, second, frozenset(on), name)


def loop_until(
    body: Node[S, Outcome],
    check: Node[S, Outcome],
    times: int,
    *,
    after: Target[S] = END,
    given_up: Target[S] = END,
) -> Edges[S]:
    """Return the rows of a bounded loop: `body` answers until `check` accepts.

        graph = Graph("essay", writer, loop_until(writer, Critique("Is it good?"), 3))

    An answer is appended before it is checked; a rejection is appended, too, and leads to a `Limit`
    and from there back to the body. Every other outcome ends the run. To go on, name a node of
    your own table as `after`, and put these rows into it: `{**loop_until(…), node: {…}}`. The graph
    refuses the rows of a body that never answers, and of a check that never accepts.

    Args:
        body: an agent, or several in parallel.
        check: a node that leaves by `Accepted` or `Rejected`.
        times: how often the body may try again.
        after: the target of an accepted answer.
        given_up: the target of the last answer that was not accepted.

    Raises:
        ConfigError: the body needs a turn that another node has opened.
    """
    if needs_turn(body):
        raise ConfigError(
            "loop_until needs a body that opens its own turns, like Child and Parallel; "
            f"{body.name!r} asks a model in one that a PrepareStep has opened: make it an agent, "
            "or write the rows"
        )
    append, limit = Append(f"{body.name}_append"), Limit(times, f"{body.name}_limit")
    rows: dict[Node[Any, Outcome], Row[Any]] = {
        body: {**_ends(body), Answered: append},
        append: {**_ends(append), Final: check, Resend: limit},
        check: {**_ends(check), Accepted: after, Rejected: append},
        limit: {Go: body, Stop: given_up},
    }
    return rows


def _ends(node: Node[Any, Outcome]) -> dict[type[Outcome] | EllipsisType, Target[Any]]:
    by_name: list[type[Outcome]] = sorted(node.outcomes, key=outcome_name)
    return dict.fromkeys(by_name, END)
