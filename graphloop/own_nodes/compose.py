"""Compose: functions that make nodes from other nodes and agents.

Each function returns a node of `graphloop.nodes` or rows of a table. A composed node is therefore
drawn and checked, and has a bound, like any other node.
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

# Library nodes accept any state. The default types a graph of library nodes as one without state.
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
    """Return a node that asks a model to choose one of several routes.

        desk = router({Billing: "invoices and refunds", Technical: "errors and outages"})

    The node leaves by the outcome of the chosen route, by `Unrouted` if the model's choice is not
    clear, by `Failed`, or by `Aborted`.

    Args:
        routes: for each outcome type or outcome name, a description of the route for the model.
        prompt: the question that the model gets after the whole conversation.
        model: the label of the model; empty for the run's own model.
        name: the node's name.

    Raises:
        ConfigError: a route is defined in such a way that no model could choose it.
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
    """Return a node that runs agents concurrently and joins their answers.

        vote = parallel("judge", "judge", "judge", join="majority")

    Args:
        branches: agent names; a `Branch` gives its agent a separate prompt.
        join: when to stop waiting for answers: "collect", "fail_fast", "first" or "majority".
        reducer: how to join the answers: "concat", "majority" or "first"; the default depends on
            `join`.
        callback: the name of a function that joins the answers in place of `reducer`.
        concurrency: the largest number of agents that run at the same time.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.Parallel`.
    """
    listed = [Branch(branch) if isinstance(branch, str) else branch for branch in branches]
    return Parallel(tuple(listed), join, reducer, callback, concurrency, name)


map_over = MapOver
"""Makes a node that runs an agent for each item of the latest answer: `map_over("w", max_items=8)`.
"""


def retry(
    node: Node[S, Outcome],
    times: int,
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Retrying[S]:
    """Return a node that runs `node`, and retries it up to `times` times.

        writer = retry(Child("writer"), 2)

    Args:
        node: a model, agent, check or pure node; nodes that run tools or ask people are refused.
        times: the largest number of retries in one visit of the node.
        on: the outcomes after which the node is retried.
        name: the new node's name; by default, the name of `node`.

    Raises:
        ConfigError: the node must not be retried, or does not have an outcome in `on`.
    """
    return Retrying(node, times, frozenset(on), name)


def fallback(
    first: Node[S, Outcome],
    second: Node[S, Outcome],
    on: Sequence[type[Outcome]] = (Failed,),
    *,
    name: str = "",
) -> Fallback[S]:
    """Return a node that runs `first`, and runs `second` if `first` fails.

        answer = fallback(Child("expert"), Child("generalist"))

    Args:
        first: a model, agent, check or pure node.
        second: another node of the same kind.
        on: the outcomes of `first` after which `second` runs.
        name: the new node's name; by default, made from the names of both nodes.

    Raises:
        ConfigError: `second` must not replace `first`, or `first` does not have an outcome in `on`.
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
    """Return the table rows of a bounded loop: `body` runs until `check` accepts its answer.

        graph = Graph("essay", writer, loop_until(writer, Critique("Is it good?"), 3))

    Each answer is appended to the conversation and then checked. A rejection is appended, too, and
    leads to a `Limit` node, and from there back to `body`. Every other outcome ends the run.

    To continue after the loop, pass a node of your own table as `after`, and include these rows in
    that table: `{**loop_until(…), node: {…}}`. `Graph` refuses the rows if `body` has no outcome
    `Answered`, or `check` has no outcome `Accepted`.

    Args:
        body: a node that runs one agent, or several in parallel.
        check: a node with the outcomes `Accepted` and `Rejected`.
        times: the largest number of retries of the body.
        after: the target after an accepted answer.
        given_up: the target after the last retry, if its answer is not accepted.

    Raises:
        ConfigError: another node must begin a turn before the body, for example a model node.
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
