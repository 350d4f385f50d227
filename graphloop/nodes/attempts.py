"""Attempts: helpers of the nodes that retry a failed node, or enter another one in its place.

A node that runs tools, adds to the history or asks a person is never tried again, because its
effects must not happen twice. A failed model call has added no message. A child is tried again as
a new run, whose calls go through its gates like the first run's. No node is tried again once the
budget is spent or the run is stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar, cast

from ..contract import Cap, ChildContract, Contract, Moves, contract_of
from ..effects import Tell
from ..errors import MISTAKES, ConfigError, NotDeterministic
from ..node_protocol import Kind, Node, node_flaw_of, nodes_within
from ..outcomes import Aborted, Calls, Outcome
from ..run import EndReason, History, Run, ended_by, evolve, with_count
from ..turn import Dialogue, Turn
from ..values import UserMessage

__all__ = ["attempted", "check_attempts", "counter_of", "either", "may_try_again", "repeated"]

S = TypeVar("S")

Outcomes: TypeAlias = frozenset[type[Outcome]]

NOTHING: Final[frozenset[Moves]] = frozenset()
UNSURE: Final[frozenset[Moves]] = frozenset({"perhaps"})

REPEATABLE: Final[frozenset[Kind]] = frozenset({"model", "graph", "check", "pure"})
NEVER: Final = frozenset({Aborted, Calls})
OPEN: Final = frozenset({EndReason.COMPLETED, EndReason.ERROR})
WRONG: Final = MISTAKES | {NotDeterministic.__name__}
"""Names of errors that show a mistake in the code; another attempt would hide the mistake."""


def check_attempts(
    wrapper: str, nodes: Iterable[Node[S, Outcome]], on: Iterable[type[Outcome]]
) -> frozenset[type[Outcome]]:
    """Check that nodes may be tried again after the outcomes `on`, and return these as a set.

    Args:
        wrapper: the name of the wrapping node's kind, for error messages.
        nodes: the wrapped nodes; `on` holds outcomes of the first.
        on: the outcomes after which a node is entered again, or another node in its place.

    Raises:
        ConfigError: a node must not be tried again, or `on` is empty or holds an outcome that the
            first node does not have or that allows no other attempt (`Aborted`, `Calls`).
    """
    wrapped = tuple(nodes)
    for node in wrapped:
        name = cast("object", node.name)  # No type checker has to have seen the caller's node.
        if flaw := node_flaw_of(name) if isinstance(name, str) else "it is no text":
            # No table checks a wrapped node's name, and the keys of its effects begin with it.
            raise ConfigError(f"{wrapper}: {name!r:.60} is not a node's name: {flaw}")
        if node.kind not in REPEATABLE:
            kinds = ", ".join(sorted(REPEATABLE))
            raise ConfigError(
                f"{wrapper} takes nodes that can be tried again ({kinds}); {node.name!r} is of the "
                f"kind {node.kind!r}: what it does must not happen twice"
            )
        judged = contract_of(node)
        if judged is not None and any("question" in moved for moved in judged.moves.values()):
            raise ConfigError(
                f"{wrapper} takes nodes that do the same each time; {node.name!r} goes by how the "
                "run has ended, and its failure is an ending: try again within its own function"
            )
    first = wrapped[0]
    chosen = frozenset(on if isinstance(on, Iterable) else ())  # pyright: ignore[reportUnnecessaryIsInstance] - no type checker has to have seen the caller's code.
    if not chosen or not chosen <= first.outcomes - NEVER:
        fit = ", ".join(sorted(one.__name__ for one in first.outcomes - NEVER))
        raise ConfigError(
            f"{wrapper}: expected `on` to be a tuple of outcomes of {first.name!r} after which "
            f"something else may be tried ({fit}), found {on!r:.80}"
        )
    return chosen


def counter_of(wrapper: str, name: str, *nodes: Node[S, Outcome]) -> str:
    """Return the name of a wrapper's attempt counter; wrappers within it have other counters.

    Args:
        wrapper: the kind of the wrapper, such as "retry".
        name: the wrapper's name, which a wrapped node may have as well.
        nodes: the wrapped nodes.
    """
    depth = max(map(_wrapper_depth, nodes))
    return f"{wrapper}{'+' * depth}:{name}"


def _wrapper_depth(node: Node[Any, Outcome]) -> int:
    """Return how deep wrappers are nested in a node; 0 for a node that wraps no other."""
    within = nodes_within(node)
    return 1 + max(map(_wrapper_depth, within)) if within else 0


def may_try_again(run: Run[S]) -> bool:
    """Whether the run may try again: it is not stopped, has budget, and met no mistake in code."""
    if run.inbox.stopping is not None or run.setup.budget.tripped(run.spent):
        return False
    if run.ending is None:
        return True
    failure = run.ending.failure
    return run.ending.reason in OPEN and (failure is None or failure.error not in WRONG)


def attempted(
    run: Run[S],
    counter: str,
    count: int,
    failed: Node[S, Outcome] | None,
    talked: Dialogue | None = None,
) -> Run[S]:
    """Return the run at the start of an attempt, without the notes and the ending of a failed one.

    Args:
        run: the run before the attempt.
        counter: the name of the attempt counter.
        count: the new value of the counter.
        failed: the node that failed; None at the first attempt.
        talked: the dialogue of a failed generator, whose `Tell` messages are removed; None for
            other nodes.
    """
    run = with_count(run, counter, count)
    if failed is None:
        return run
    run = _without_told(run, talked)
    return ended_by(evolve(run, turn=_clear_turn(run.turn, failed)), None)


def _without_told(run: Run[S], talked: Dialogue | None) -> Run[S]:
    """Return the run without a failed generator's `Tell` messages; these are the latest ones."""
    exchanges = () if talked is None else talked.exchanges
    count = sum(isinstance(one.ask, Tell) for one in exchanges)
    if not count:
        return run
    if run.turn.reply is not None:
        return evolve(run, turn=evolve(run.turn, notes=run.turn.notes[:-count]))
    record = evolve(run.record, added=History(run.record.added[:-count]))
    return evolve(run, messages=History(run.messages[:-count]), record=record)


def _clear_turn(turn: Turn, failed: Node[S, Outcome]) -> Turn:
    notes = tuple(
        [
            one
            for one in turn.notes
            if not (isinstance(one, UserMessage) and one.origin == failed.name)
        ]
    )
    turn = evolve(turn, notes=notes, fallbacks=0)
    # Only a retried model loses its reply: for other nodes the turn may hold calls without results.
    return turn.without_reply() if failed.kind == "model" else turn


def repeated(contract: Contract, node: Node[S, Outcome], times: int, on: Outcomes) -> Contract:
    """Return the contract of a node that is entered up to `times` times, after outcomes `on`."""
    again = [
        replace(one, runs=None if one.runs is None else one.runs * times)
        for one in contract.children
    ]
    calls = None if contract.model_calls is None else contract.model_calls * times
    before = _left_behind(contract, on)
    moves = {
        one: _joined_moves([contract.moves.get(one, NOTHING)], before) for one in node.outcomes
    }
    return replace(contract, moves=moves, model_calls=calls, children=tuple(again))


def either(first: Node[S, Outcome], second: Node[S, Outcome], on: Outcomes) -> Contract | None:
    """Return the contract of a node that enters `first` and, after an outcome of `on`, `second`.

    None if either node has no contract.
    """
    one, other = contract_of(first), contract_of(second)
    if one is None or other is None:
        return None
    calls = (one.model_calls, other.model_calls)
    pairs = ((first, one), (second, other))
    before = _left_behind(one, on)
    outcomes = first.outcomes | second.outcomes
    moved = {
        out: [known.moves.get(out, NOTHING) for node, known in pairs if out in node.outcomes]
        for out in outcomes
    }
    return Contract(
        caps=_common_caps(one.caps, other.caps),
        moves={out: _joined_moves(moved[out], before) for out in outcomes},
        model_calls=None if calls[0] is None or calls[1] is None else calls[0] + calls[1],
        tools=one.tools or other.tools,
        asks=one.asks or other.asks,
        children=tuple([_not_needed(child) for child in (*one.children, *other.children)]),
        reads=None if one.reads is None or other.reads is None else one.reads | other.reads,
        writes=_surely_written(pairs, on),
        functions=(*one.functions, *other.functions),
    )


def _not_needed(child: ChildContract) -> ChildContract:
    """Return the child contract with `needs=0`, because another node may answer in its place.

    A child that needs more successful runs than it starts is returned unchanged: it always fails.
    """
    hopeless = child.runs is not None and child.needs > child.runs
    return child if hopeless else replace(child, needs=0)


def _left_behind(contract: Contract, on: Outcomes) -> frozenset[Moves]:
    """Return the moves that failed attempts may have left: their endings and notes are undone."""
    return NOTHING.union(*map(contract.may_move, on)) - {"note", "end", "broken"}


def _joined_moves(ways: Sequence[frozenset[Moves]], before: frozenset[Moves]) -> frozenset[Moves]:
    """Return the moves of a visit that makes one of the sets `ways`, after failed attempts.

    The attempts may have made the moves `before`. `perhaps` is added unless all moves are sure.
    """
    moved = before.union(*ways)
    sure = moved and all(moved == way for way in ways)
    return moved if sure else moved | UNSURE


def _surely_written(
    pairs: Sequence[tuple[Node[S, Outcome], Contract]], on: Outcomes
) -> dict[type[Outcome], frozenset[str]] | None:
    """Return, by outcome, the state fields that are surely written, whichever node leaves by it.

    None if the fields of either node are unknown.
    """
    (first, one), (second, other) = pairs
    if one.writes is None or other.writes is None:
        return None
    if not (one.writes or other.writes):
        return {}
    tried = _in_all([one.written(out) for out in on & first.outcomes])
    return {
        out: _in_all(
            [
                *([one.written(out)] if out in first.outcomes else []),
                *([other.written(out) | tried] if out in second.outcomes else []),
            ]
        )
        for out in first.outcomes | second.outcomes
    }


def _in_all(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    return sets[0].intersection(*sets)


def _common_caps(
    first: Mapping[type[Outcome], Cap], second: Mapping[type[Outcome], Cap]
) -> dict[type[Outcome], Cap]:
    """Return the caps of outcomes that both nodes cap with the same counts and resets.

    The times of both caps add up; no other outcome has a known cap.
    """
    return {
        outcome: evolve(cap, times=cap.times + second[outcome].times)
        for outcome, cap in first.items()
        if outcome in second and evolve(second[outcome], times=cap.times) == cap
    }
