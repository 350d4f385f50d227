"""Compose: functions that make nodes from other nodes, functions and agents.

Each function returns a node of `graphloop.nodes` or rows of a table. A composed node is therefore
drawn and checked, and has a bound, like any other node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Literal, TypeAlias, cast, overload

from typing_extensions import TypeVar

from ..agent import NamedAgent
from ..contract import needs_turn
from ..errors import ConfigError, not_among
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
from ..states import ItemsOf, PromptsOf
from .carrying_node import CarryingNode, plans_of
from .route_outcomes import route_outcomes

__all__ = [
    "fallback",
    "loop_until",
    "map_over",
    "parallel",
    "retry",
    "router",
]

# Library nodes accept any state. The default types a graph of library nodes as one without state.
S = TypeVar("S", default=None)
R = TypeVar("R", bound="type[Outcome] | str")

V = TypeVar("V", default=Any)

StatePrompt: TypeAlias = str | Callable[[Any], str]
Target: TypeAlias = Node[S, Outcome] | Literal[EndType.END]


def router(
    routes: Mapping[R, str],
    prompt: str = "",
    *,
    by: str = "",
    model: str = "",
    name: str = "router",
) -> Router:
    """Return a node that leaves by one of several routes, as a model or the state says.

        desk = router({Billing: "invoices and refunds", Technical: "errors and outages"})
        desk = router({"billing": "invoices", "technical": "errors"}, by="topic")

    The node leaves by the outcome of the chosen route, by `Unrouted` if the choice is not clear or
    names no route, by `Failed`, or by `Aborted`.

    Args:
        routes: for each outcome type or outcome name, a description of the route for the model.
        prompt: the question that the model gets after the whole conversation.
        by: the field of the state whose value is the name of a route, such as a `Literal` or an
            enum of texts that an agent's `output_type` filled; then no model is asked.
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
    asked = prompt or ("" if by else "Which of the routes fits best?")
    return Router(by_type, asked, name, model, by)


@overload
def parallel(
    *branches: str | Branch,
    join: BranchJoin | None = None,
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    into: str | Mapping[str, str] = "",
    name: str = "parallel",
) -> Parallel: ...
@overload
def parallel(
    first: NamedAgent,
    /,
    *branches: str | Branch | NamedAgent,
    join: BranchJoin | None = None,
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    into: str | Mapping[str, str] = "",
    prompt: StatePrompt | Mapping[str, StatePrompt] = "",
    reads: Collection[str] | None = None,
    name: str = "parallel",
) -> CarryingNode: ...
def parallel(  # noqa: PLR0913 - the fields of the node
    *branches: str | Branch | NamedAgent,
    join: BranchJoin | None = None,
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    into: str | Mapping[str, str] = "",
    prompt: StatePrompt | Mapping[str, StatePrompt] = "",
    reads: Collection[str] | None = None,
    name: str = "parallel",
) -> Parallel | CarryingNode:
    """Return a node that runs agents concurrently and joins their answers.

        vote = parallel("judge", "judge", "judge", join="majority")
        review = parallel(critic, checker, into={"critic": "style", "checker": "facts"})

    Args:
        branches: agents, or names of agents; a `Branch` gives a named agent a separate prompt.
        join: when to stop waiting for answers: "collect", "fail_fast", "first" or "majority"; by
            default "collect", and "fail_fast" with `into`.
        reducer: how to join the answers: "concat", "majority" or "first"; the default depends on
            `join`.
        callback: the name of a function that joins the answers in place of `reducer`.
        concurrency: the largest number of agents that run at the same time.
        into: the field of the state that gets all results as a list, in branch order; or, by the
            name of a branch, the field that gets its result. The results have the type of the
            agent's `output_type`.
        prompt: a text, or a pure function of the state, that makes the prompt of every branch; or
            such a prompt by the name of a branch.
        reads: the fields of the state that these functions read; the checker uses them.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.Parallel`; or `into` or `prompt` names no branch.
    """
    given = [one for one in branches if not isinstance(one, Branch)]
    plans = plans_of(name, given)
    listed = [
        one if isinstance(one, Branch) else Branch(one if isinstance(one, str) else one.name)
        for one in branches
    ]
    field = into if isinstance(into, str) else ""
    node = Parallel(tuple(listed), join, reducer, callback, concurrency, name, into=field)
    known = [one.name for one in node.branches]
    functions: dict[str, PromptsOf] = {}
    if prompt:
        by_name: dict[str, StatePrompt] = _by_branch("prompt", prompt, known, name)
        asked = [by_name.get(one.name, one.prompt) for one in node.branches]
        functions[f"{name}:prompts"] = PromptsOf(tuple(asked))
    if not isinstance(into, str):
        fields = _by_branch("into", into, known, name)
        led = [replace(one, into=fields.get(one.name, one.into)) for one in node.branches]
        node = replace(node, branches=tuple(led), join=join, reducer=reducer)
    if functions:
        node = replace(node, prompts=next(iter(functions)), join=node.join)
    return CarryingNode.of(node, functions, plans, reads) if plans or functions else node


def _by_branch(
    option: str, given: V | Mapping[str, V], known: Sequence[str], node: str
) -> dict[str, V]:
    """Return the values of an option by branch; one value that is no mapping is for all of them.

    Raises:
        ConfigError: the option names no branch of the node.
    """
    if not isinstance(given, Mapping):
        return dict.fromkeys(known, given)
    # isinstance leaves the types of keys and values open.
    named = cast("Mapping[str, V]", given)
    if unknown := [one for one in named if one not in known]:
        raise ConfigError(
            f"node {node!r}: `{option}`: expected names of branches ({', '.join(known)}), found "
            f"{not_among(unknown, known)} Fix: name the branches"
        )
    return dict(named)


@overload
def map_over(
    agent: str,
    max_items: int,
    *,
    items: str = "json",
    prompt: str = "",
    join: BranchJoin | None = None,
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    conversation: bool = False,
    into: str = "",
    name: str = "map_over",
) -> MapOver: ...
@overload
def map_over(
    agent: NamedAgent,
    max_items: int,
    *,
    items: str | Callable[[Any], Sequence[object]] = "json",
    prompt: str | Callable[[Any], str] = "",
    join: BranchJoin | None = None,
    reducer: str = "",
    concurrency: int = 5,
    conversation: bool = False,
    into: str = "",
    reads: Collection[str] | None = None,
    name: str = "map_over",
) -> CarryingNode: ...
def map_over(  # noqa: PLR0913 - the fields of the node
    agent: str | NamedAgent,
    max_items: int,
    *,
    items: str | Callable[[Any], Sequence[object]] = "json",
    prompt: str | Callable[[Any], str] = "",
    join: BranchJoin | None = None,
    reducer: str = "",
    callback: str = "",
    concurrency: int = 5,
    conversation: bool = False,
    into: str = "",
    reads: Collection[str] | None = None,
    name: str = "map_over",
) -> MapOver | CarryingNode:
    """Return a node that runs an agent for each item of the state or of the latest answer.

        research = map_over(researcher, max_items=8, items="questions", into="notes")
        again = map_over("worker", max_items=8)  # the items of the latest answer

    With `into`, the results are values of the agent's `output_type`, in the order of the items. An
    item that is no text reaches the agent as JSON.

    Args:
        agent: the agent that works on each item, or the name of an agent that the run knows.
        max_items: the most items; a longer list is refused as a whole.
        items: with `into` the field of the state that holds the items, or a pure function of the
            state; else "json" or "lines", the form of the latest answer.
        prompt: a text that the agent reads before its item; with `into`, also a pure function of
            the item that returns the agent's prompt.
        join: as for `parallel`.
        reducer: as for `parallel`; the text of all results is the turn's reply.
        callback: the name of a function that joins the answers; not beside `into`.
        concurrency: the largest number of agents that run at the same time.
        conversation: whether an agent reads the conversation before its item.
        into: the field of the state that gets the results as a list; empty for none.
        reads: the fields of the state that a function `items` reads; the checker uses them.
        name: the node's name.

    Raises:
        ConfigError: see `graphloop.nodes.MapOver`; or a function stands where `into` is missing.
    """
    by_function = callable(items) or callable(prompt)
    if by_function and not into:
        raise ConfigError(
            f"node {name!r}: functions of `items` and `prompt` read the state, and `into` is "
            "missing. Fix: give `into` the field that gets the results"
        )
    text = prompt if isinstance(prompt, str) else ""
    field = "" if by_function else cast("str", items)
    known = agent if isinstance(agent, str) else agent.name
    node = MapOver(
        *(known, max_items, field, text, join, reducer, callback, concurrency, conversation),
        name=name,
        into=into,
    )
    functions: dict[str, ItemsOf] = {}
    if by_function:
        functions[node.lister] = ItemsOf(items, prompt if callable(prompt) else None)
    plans = plans_of(name, [agent])
    return CarryingNode.of(node, functions, plans, reads) if plans or functions else node


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
        body: {**_end_targets(body), Answered: append},
        append: {**_end_targets(append), Final: check, Resend: limit},
        check: {**_end_targets(check), Accepted: after, Rejected: append},
        limit: {Go: body, Stop: given_up},
    }
    return rows


def _end_targets(node: Node[Any, Outcome]) -> dict[type[Outcome] | EllipsisType, Target[Any]]:
    by_name: list[type[Outcome]] = sorted(node.outcomes, key=outcome_name)
    return dict.fromkeys(by_name, END)
