"""What the nodes of the library promise, they keep: counted along simulated runs.

The proofs believe contracts. So each visit of runs through graphs of every kind of node, safe ones
and ones of which some lines lead anywhere, is held against the contract of its node
(`tests/contract_monitor.py`); and a wrong contract, of each kind, must be noticed there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import nodes as library
from graphloop.contract import Cap, ChildContract, Contract, Moves, contract_of
from graphloop.errors import GraphError
from graphloop.nodes import (
    Append,
    Approve,
    Child,
    Compact,
    Critique,
    Execute,
    Extend,
    Function,
    Gate,
    Limit,
    ModelCall,
    Parallel,
    PrepareStep,
    StopCheck,
    Verify,
)
from graphloop.outcomes import (
    Aborted,
    Accepted,
    Answered,
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Cannot,
    Compacted,
    Failed,
    FollowUp,
    Go,
    Outcome,
    Ready,
    Refused,
    Rejected,
    Retry,
    Settled,
    Unplanned,
)
from graphloop.outcomes import Final as FinalOutcome
from graphloop.run import evolve
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer
from tests.contract_monitor import Visit, broken_promises, visits_of
from tests.sizes import sized
from tests.strategies import fresh
from tests.varied_graphs import Again, seeded, varied

EVENTS_MAX: Final = 150
"""After how many events a run is given up: where lines lead anywhere it may have no end."""

NOTHING: Final = frozenset[Any]()
PROMISED: Final[set[tuple[str, type[Outcome]]]] = {
    *(("caps", one) for one in (Again, Compacted, Go, ApprovalNeeded, Rejected, Retry)),
    *(("note", one) for one in (Rejected, Unplanned)),
    *(("keeps", one) for one in (Again, Go, Settled)),
    *(("turn", one) for one in (Ready, Answered)),
    *(("close", one) for one in (AnsweredCalls, FinalOutcome, Refused)),
    *(("question", FollowUp), ("end", Cannot), ("broken", Aborted), ("broken", Failed)),
}
"""The outcomes of which something is promised; a run has to have taken each."""
WORDS: Final = {"asks", "caps", "children", "functions", "model_calls", "moves", "tools", "writes"}
BY_WORD_ONLY: Final = {"writes"}
"""What no simulated run shows, for nothing in a simulation writes to the state."""

UNSEEN: Final = {"reads"}
"""A term that no run shows: what a function reads."""

MOVES: Final = {"again", "broken", "close", "end", "note", "question", "turn"}
"""The moves that a visit may be sure of; of a reply it only matters that there may be one."""


def journeys(seed: int, *, wild: bool) -> list[list[Visit]]:
    """Return the visits of two runs through a graph."""
    try:
        made = varied(seeded(seed), wild=wild)
    except GraphError:
        return []
    fuzzer = Fuzzer(made.subject)
    trials = [fuzzer.tried(Choices.seeded(seed + at), EVENTS_MAX)[0] for at in range(2)]
    return [visits_of(made.graph, one.events, None) for one in trials]


@cache
def known_journeys() -> tuple[list[Visit], ...]:
    """Return the visits of the same runs every time."""
    return tuple([one for seed in range(250) for one in journeys(seed, wild=False)])


@pytest.mark.parametrize("wild", [False, True])
@settings(max_examples=sized(10), deadline=None)
@example(seed=175)
@example(seed=649)
@given(seed=st.integers(0, 2**32))
def test_every_promise_is_kept(wild: bool, seed: int) -> None:
    """In a graph that nobody would let pass, too: a contract is a node's, not its table's."""
    for visits in journeys(seed, wild=wild):
        assert [] == [one for one in broken_promises(visits) if not is_known(visits, one)]


def is_known(visits: Sequence[Visit], problem: str) -> bool:
    """Whether calls are held again as no gate was passed in between: GL2 refuses that."""
    if not (problem.startswith("caps:") and problem.endswith("held)")):
        return False
    held = [at for at, one in enumerate(visits) if one.outcome is ApprovalNeeded]
    between = [visits[one + 1 : other] for one, other in pairwise(held)]
    return any(not any(one.node.kind == "gate" for one in some) for some in between)


def test_every_promise_of_the_library_is_put_to_the_test() -> None:
    """A promise that nobody has watched is a wish."""
    visits = [visit for one in known_journeys() for visit in one]
    promising = {name for name in library.__all__ if hasattr(getattr(library, name), "contract")}
    taken = {
        (word, visit.outcome)
        for visit in visits
        if visit.outcome is not None
        for word in (
            *visit.contract.moved(visit.outcome),
            *(["caps"] if visit.outcome in visit.contract.caps else []),
            *(["keeps"] if visit.contract.keeps(visit.outcome) else []),
        )
    }

    assert promising <= {type(visit.node).__name__ for visit in visits}
    assert PROMISED <= taken


@dataclass(frozen=True)
class Lying:
    """A node that promises something else than it does."""

    node: Any
    contract: Contract

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def kind(self) -> str:
        return str(self.node.kind)


def wrong(**terms: Any) -> Callable[[Contract], Contract]:
    return lambda promised: replace(promised, **terms)


def moving(outcome: type[Outcome], *moved: Moves) -> Callable[[Contract], Contract]:
    """Return what makes a contract promise that an outcome has moved this, and other no less."""
    return lambda one: replace(one, moves={**one.moves, outcome: frozenset(moved)})


def needing(times: int, child: ChildContract) -> ChildContract:
    return replace(child, needs=times)


AGAIN: Final[frozenset[Moves]] = frozenset({"again"})
PLANTED: Final[tuple[tuple[str, type[Any], Callable[[Contract], Contract]], ...]] = (
    ("model_calls", ModelCall, wrong(model_calls=0)),
    ("model_calls", Critique, wrong(model_calls=0)),
    ("tools", Execute, wrong(tools=False)),
    ("asks", Execute, wrong(asks=False)),
    ("asks", Gate, wrong(asks=False)),
    ("asks", Approve, wrong(asks=False)),
    ("children", Child, wrong(children=())),
    ("children", Parallel, lambda one: replace(one, children=one.children[:1])),
    ("children", Parallel, lambda one: replace(one, children=(needing(9, one.children[0]),))),
    ("moves", PrepareStep, wrong(moves={})),
    ("moves", Append, wrong(moves={})),
    ("moves", ModelCall, wrong(moves={})),
    ("moves", Verify, wrong(moves={})),
    ("turn", Append, moving(AnsweredCalls, "turn")),
    ("close", Compact, moving(Compacted, "close")),
    ("question", Append, moving(AnsweredCalls, "question")),
    ("takes_up", Gate, moving(Calls, "turn")),
    ("again", Critique, wrong(moves={Accepted: frozenset({"end"}), Rejected: AGAIN})),
    ("end", Gate, moving(Settled, "end")),
    ("broken", Gate, moving(Settled, "broken")),
    ("note", Append, moving(FinalOutcome, "note")),
    ("keeps", Append, wrong(moves={})),
    ("caps", Limit, wrong(caps={Go: Cap(0)})),
    ("caps", Extend, wrong(caps={Retry: Cap(0, resets=frozenset({"turn"}))})),
    ("caps", Compact, wrong(caps={Compacted: Cap(0, resets=frozenset({"close"}))})),
    ("caps", Verify, wrong(caps={Rejected: Cap(0, resets=frozenset({"question"}))})),
    ("caps", StopCheck, wrong(caps={Go: Cap(0, counts=frozenset({"turn"}))})),
    ("caps", Execute, wrong(caps={ApprovalNeeded: Cap(0, resets=frozenset({"turn"}))})),
    ("caps", Function, wrong(caps={Again: Cap(0)})),
    ("instead", Append, wrong(caps={AnsweredCalls: Cap(99, instead=Aborted)})),
    ("instead", Gate, wrong(caps={Settled: Cap(99, instead=Aborted)})),
    ("functions", Function, wrong(functions=())),
    ("functions", Verify, wrong(functions=())),
)
"""Wrong contracts: the promise that is not kept, and the node that does not keep it."""


@pytest.mark.parametrize(
    ("word", "kind", "lie"), PLANTED, ids=[f"{word}-{kind.__name__}" for word, kind, _ in PLANTED]
)
def test_a_wrong_contract_is_noticed(
    word: str, kind: type[Any], lie: Callable[[Contract], Contract]
) -> None:
    """A monitor that never fires proves nothing."""
    fired = {
        one.partition(":")[0]
        for visits in known_journeys()
        if any(isinstance(visit.node, kind) for visit in visits)
        for one in broken_promises([_lied(visit, kind, lie) for visit in visits])
    }

    assert word in fired


def _lied(visit: Visit, kind: type[Any], lie: Callable[[Contract], Contract]) -> Visit:
    promised = contract_of(visit.node)
    if not isinstance(visit.node, kind) or promised is None:
        return visit
    liar: Any = Lying(visit.node, lie(promised))
    return replace(visit, node=liar)


def test_a_state_that_was_not_to_be_written_is_noticed() -> None:
    """In a simulation nothing writes, so this run is made by hand."""
    run = fresh()
    visit = Visit(Limit(1), run, evolve(run, state=wrong_state()), Go)

    assert ["writes"] == [one.partition(":")[0] for one in broken_promises([visit])]


def wrong_state() -> Any:
    """Return another state, as of any type."""
    return object()


def test_every_term_of_a_contract_is_watched_or_said_not_to_be() -> None:
    """A term that comes later must not go unwatched."""
    planted = {word for word, _, _ in PLANTED}

    assert WORDS | MOVES | {"keeps", "takes_up", "instead"} == planted | BY_WORD_ONLY
    assert set(Contract.__dataclass_fields__) == WORDS | UNSEEN
