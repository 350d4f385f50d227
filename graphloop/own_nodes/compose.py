"""Compose: nodes made of other nodes and of whole agents, in words short enough for a table.

Each of these returns a plain node of `graphloop.nodes`, or rows of a table: what is composed can be
drawn, checked and bounded like anything else.
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
    ItemForm,
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

# Nodes of the library fit any state: alone, they are taken for those of a graph without one.
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
    """Return a node at which a model chooses one of several ways on.

        desk = router({Billing: "invoices and refunds", Technical: "errors and outages"})

    It leaves by the outcome of the route, by `Unrouted` if no route was clearly chosen, or by
    `Failed` or `Aborted`.

    Args:
        routes: for each outcome, or for each name of one, what it is for.
        prompt: what the model is asked, after the whole conversation.
        model: the label of the model to ask; empty for the run's own.
        name: the node's name.

    Raises:
        ConfigError: a route could not be chosen.
    """
    named = [route for route in routes if isinstance(route, str)]
    types = dict(zip(named, route_outcomes(named), strict=True))
    by_type: dict[type[Outcome], str] = {
        types[one] if isinstance(one, str) else one: words for one, words in routes.items()
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
    """Return a node that runs several agents side by side, and joins their answers to one.

        vote = parallel("judge", "judge", "judge", join="majority")

    Args:
        branches: the names of agents, or `Branch` for one with a prompt of its own.
        join: "collect", "fail_fast", "first" or "majority": what to wait for.
        reducer: "concat", "majority" or "first"; if empty, the one that goes with the join.
        callback: the name of a function that joins the answers instead.
        concurrency: how many agents may run at once.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.Parallel`.
    """
    listed = tuple([Branch(one) if isinstance(one, str) else one for one in branches])
    return Parallel(listed, join, reducer, callback, concurrency, name)


def map_over(  # noqa: PLR0913 - what is done with the items, and with their answers
    agent: str,
    *,
    max_items: int,
    items: ItemForm = "json",
    prompt: str = "",
    join: BranchJoin = "collect",
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    conversation: bool = False,
    name: str = "map_over",
) -> MapOver:
    """Return a node that runs an agent for each item of the latest answer.

        work = map_over("worker", max_items=8)

    Args:
        agent: the agent's name.
        max_items: how many items there may be.
        items: "json" for an array of texts, "lines" for one item a line.
        prompt: what the agent is told before its item.
        join: what to wait for, as for `parallel`.
        reducer: how the answers become one, as for `parallel`.
        callback: the name of a function that joins the answers instead.
        concurrency: how many agents may run at once.
        conversation: whether an agent reads the conversation before its item.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.MapOver`.
    """
    return MapOver(
        agent,
        max_items,
        items,
        prompt,
        join,
        reducer,
        callback,
        concurrency,
        conversation,
        name,
    )


def retry(
    node: Node[S, Outcome],
    times: int,
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Retrying[S]:
    """Return a node that is tried again when it has failed, up to `times` times.

        writer = retry(Child("writer"), 2)

    Args:
        node: a model, an agent, a check or a pure node; nothing that runs tools or asks people.
        times: how often it is tried again at most, each time the run comes here.
        on: the outcomes after which it is tried again.
        name: the name in the table; the node's own if not given.

    Raises:
        ConfigError: the node must not be tried again, or is never left so.
    """
    return Retrying(node, times, frozenset(on), name)


def fallback(
    first: Node[S, Outcome],
    second: Node[S, Outcome],
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Fallback[S]:
    """Return a node that is `first`, and `second` when the first has failed.

        answer = fallback(Child("expert"), Child("generalist"))

    Args:
        first: a model, an agent, a check or a pure node.
        second: another of the same kind.
        on: the outcomes of the first after which the second is entered.
        name: the name in the table; that of both if not given.

    Raises:
        ConfigError: a node must not stand in for another, or the first is never left so.
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
    """Return the rows of a loop: `body` answers until `check` accepts, a bounded number of times.

        graph = Graph("essay", writer, loop_until(writer, Critique("Is it good?"), 3))

    An answer is appended before it is checked; a rejection is appended, too, and leads to a `Limit`
    and from there back to the body. Every other outcome ends the run. To go on, name a node of
    your own table as `after`, and put these rows into it: `{**loop_until(…), node: {…}}`.

    Args:
        body: what answers: an agent, or several in parallel.
        check: what is left by `Accepted` or `Rejected`.
        times: how often the body may try again.
        after: where an accepted answer leads.
        given_up: where the last answer leads that was not accepted.

    Raises:
        ConfigError: the body never answers, or the check does not check.
    """
    if needs_turn(body):
        raise ConfigError(
            "loop_until needs a body that opens its own turns, like Child and Parallel; "
            f"{body.name!r} asks a model in one that a PrepareStep has opened: make it an agent, "
            "or write the rows"
        )
    _leaves_by(body, Answered)
    _leaves_by(check, Accepted)
    _leaves_by(check, Rejected)
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


def _leaves_by(node: Node[S, Outcome], outcome: type[Outcome]) -> None:
    if outcome not in node.outcomes:
        raise ConfigError(
            f"loop_until needs a node that is left by {outcome.__name__}; {node.name!r} is left by "
            f"{', '.join(sorted(one.__name__ for one in node.outcomes))}"
        )
