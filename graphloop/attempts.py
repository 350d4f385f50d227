"""Attempts: which nodes may be entered again after they have failed, and what stops even that.

What runs tools, adds to the history or asks a person is never tried again: it has happened. A model
that failed has said nothing. A child that is tried again is a new run, whose calls go through its
gates like the first one's. Nothing is tried again once the budget is spent or somebody stops the
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from .contract import Cap, Contract
from .errors import ConfigError
from .node_protocol import Kind, Node
from .outcomes import Aborted, Calls, Outcome
from .run import EndReason, Run, Turn, evolve
from .values import UserMessage

__all__ = ["attempted", "check_attempts", "either", "may_try_again", "repeated"]

S = TypeVar("S")

REPEATABLE: Final[frozenset[Kind]] = frozenset({"model", "graph", "check", "pure"})
NEVER: Final = frozenset({Aborted, Calls})
OPEN: Final = frozenset({EndReason.COMPLETED, EndReason.ERROR})


def check_attempts(
    wrapper: str, nodes: Iterable[Node[S, Outcome]], on: Iterable[type[Outcome]]
) -> frozenset[type[Outcome]]:
    """Return the outcomes after which something is tried again.

    Args:
        wrapper: what asks, for messages.
        nodes: the nodes that would be entered; the first is the one that may leave so.
        on: the outcomes.

    Raises:
        ConfigError: a node must not be tried again, or is never left so, or an outcome is one
            that has to stand.
    """
    wrapped = tuple(nodes)
    for node in wrapped:
        if node.kind not in REPEATABLE:
            kinds = ", ".join(sorted(REPEATABLE))
            raise ConfigError(
                f"{wrapper} takes nodes that can be tried again ({kinds}); {node.name!r} is of the "
                f"kind {node.kind!r}: what it does must not happen twice"
            )
    first = wrapped[0]
    chosen = frozenset(on)
    if not chosen or not chosen <= first.outcomes - NEVER:
        fit = ", ".join(sorted(one.__name__ for one in first.outcomes - NEVER))
        raise ConfigError(
            f"{wrapper}: `on` is a tuple of outcomes of {first.name!r} after which something "
            f"else may be tried ({fit}); found {chosen!r:.80}"
        )
    return chosen


def may_try_again(run: Run[S]) -> bool:
    """Whether a run that has failed may try anything else."""
    if run.stopping is not None or run.setup.budget.tripped(run.spent):
        return False
    return run.ending is None or run.ending.reason in OPEN


def attempted(run: Run[S], counter: str, count: int, failed: Node[S, Outcome] | None) -> Run[S]:
    """Return the run with an attempt counted, and without what the failed one has left behind.

    Args:
        run: the run.
        counter: what counts the attempts.
        count: how many there have been.
        failed: the node that failed; None at the first attempt.
    """
    run = evolve(run, counts={**run.counts, counter: count})
    if failed is None:
        return run
    return evolve(run, ending=None, turn=_cleared(run.turn, failed))


def _cleared(turn: Turn, failed: Node[S, Outcome]) -> Turn:
    notes = tuple(
        [
            one
            for one in turn.notes
            if not (isinstance(one, UserMessage) and one.origin == failed.name)
        ]
    )
    turn = evolve(turn, notes=notes, fallbacks=0)
    # Calls that nobody has answered may stand in the turn where any other node is tried again.
    return evolve(turn, reply=None, calls=()) if failed.kind == "model" else turn


def repeated(contract: Contract, times: int, on: frozenset[type[Outcome]]) -> Contract:
    """Return what a node promises that is entered up to `times` times a visit."""
    moves = contract.moves.union(*map(contract.may_move, on))
    children = tuple(
        [
            replace(one, runs=None if one.runs is None else one.runs * times)
            for one in contract.children
        ]
    )
    calls = None if contract.model_calls is None else contract.model_calls * times
    return replace(contract, moves=moves, model_calls=calls, children=children)


def either(first: Contract, second: Contract, on: frozenset[type[Outcome]]) -> Contract:
    """Return what a node promises that is `first`, and then perhaps `second`."""
    calls = (first.model_calls, second.model_calls)
    surely = {
        outcome: first.moved(outcome) & second.moved(outcome)
        for outcome in (*first.surely, *second.surely)
    }
    return Contract(
        caps=_both(first.caps, second.caps),
        moves=first.moves.union(second.moves, *map(first.may_move, on)),
        moves_by={
            outcome: first.may_move(outcome) | second.may_move(outcome)
            for outcome in (*first.moves_by, *second.moves_by, *surely)
        },
        surely=surely,
        model_calls=None if calls[0] is None or calls[1] is None else calls[0] + calls[1],
        agents=(*first.agents, *second.agents),
        tools=first.tools or second.tools,
        asks=first.asks or second.asks,
        reads=_fields(first.reads, second.reads),
        writes=_fields(first.writes, second.writes),
        children=(*first.children, *second.children),
        join=first.join or second.join,
        reducers=first.reducers | second.reducers,
    )


def _both(
    first: Mapping[type[Outcome], Cap], second: Mapping[type[Outcome], Cap]
) -> dict[type[Outcome], Cap]:
    """Return the caps that hold of both; two that count alike add up, others are unknown."""
    return {
        outcome: replace(cap, times=cap.times + second[outcome].times)
        for outcome, cap in first.items()
        if outcome in second and replace(second[outcome], times=cap.times) == cap
    }


def _fields(first: frozenset[str] | None, second: frozenset[str] | None) -> frozenset[str] | None:
    return None if first is None or second is None else first | second
