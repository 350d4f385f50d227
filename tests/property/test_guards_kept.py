"""No change passes that lets something act with less before it.

Against a search through all runs of small graphs that knows nothing of how the comparison works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Final, Literal, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.node_protocol import Kind
from graphloop.policy.policy import Rule, decide
from graphloop.proofs.guards import gate_changes, lost_guards
from graphloop.proofs.proof_graph import ProofGraph
from tests.honest_graphs import Table, graph_of
from tests.sizes import sized
from tests.strategies import unshadowed

Letter: TypeAlias = tuple[str, int]
Verdict: TypeAlias = Literal["allow", "ask", "deny"]

KINDS: Final[tuple[Kind, ...]] = (
    *("human", "gate", "check", "stop"),
    *("execute", "execute", "execute", "model", "model", "pure"),
)
GUARDS: Final = frozenset({"human", "gate", "check", "stop"})


@dataclass(frozen=True)
class Pair:
    """Two tables of the same nodes, of which the first is the start."""

    kinds: Mapping[str, Kind]
    old: Table
    new: Table

    @property
    def acting(self) -> frozenset[str]:
        """What acts and is come to in both."""
        both = reached(self.old) & reached(self.new)
        return frozenset(one for one in both if self.kinds.get(one) == "execute")


def pair_of(seed: int) -> Pair:
    rng = Random(seed)  # noqa: S311 - a test's graph, and no secret.
    names = [*"abcdef"[: rng.randint(2, 6)]]
    kinds: dict[str, Kind] = {one: rng.choice(KINDS) for one in names}
    targets = [*names, "END"]
    old = {one: [rng.choice(targets) for _ in range(rng.randint(1, 3))] for one in names}
    new = {one: [*row] for one, row in old.items()}
    for _ in range(rng.randint(1, 3)):
        row = new[rng.choice(names)]
        if rng.random() < 0.3 and len(row) < 3:
            row.append(rng.choice(targets))
        elif rng.random() < 0.2 and len(row) > 1:
            row.pop()
        else:
            row[rng.randrange(len(row))] = rng.choice(targets)
    return Pair(kinds, old, new)


def reached(table: Table, begin: str | None = None) -> set[str]:
    todo, found = [next(iter(table)) if begin is None else begin], set[str]()
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += table.get(here, ())
    return found


def ways(
    table: Table, begin: str, guards: frozenset[str]
) -> Iterator[tuple[str, frozenset[Letter]]]:
    """Yield every node that can be come to, with each set of guards that were passed, and how."""
    todo: list[tuple[str, frozenset[Letter]]] = [(begin, frozenset())]
    found = set(todo)
    while todo:
        here, passed = todo.pop()
        yield here, passed
        for number, target in enumerate(table.get(here, ())):
            more = passed | {(here, number)} if here in guards else passed
            if (target, more) not in found:
                found.add((target, more))
                todo.append((target, more))


def within(table: Table, begin: str, guards: frozenset[str], passed: frozenset[Letter]) -> set[str]:
    """Return what can be come to by way of no guards but these."""
    todo, found = [begin], set[str]()
    while todo:
        here = todo.pop()
        if here in found:
            continue
        found.add(here)
        row = enumerate(table.get(here, ()))
        todo += [one for number, one in row if here not in guards or (here, number) in passed]
    return found


def lost(pair: Pair, begins: tuple[str, str], guards: frozenset[str]) -> set[str]:
    """Return what some way of the later graph comes to with less, from a place of each graph."""
    known = {passed: None for _, passed in ways(pair.new, begins[1], guards)}
    could = {passed: within(pair.old, begins[0], guards, passed) for passed in known}
    return {one for one, passed in ways(pair.new, begins[1], guards) if one not in could[passed]}


def expected(pair: Pair) -> set[str]:
    """Return the nodes that some run of the later graph comes to with less."""
    here = reached(pair.old)
    by_kind = {
        kind: frozenset(one for one in here if pair.kinds.get(one) == kind) for kind in GUARDS
    }
    start = next(iter(pair.old))
    every = frozenset(one for kind in by_kind.values() for one in kind)
    found = lost(pair, (start, start), every) & pair.acting
    if "END" in here & reached(pair.new):
        judges = by_kind["human"] | by_kind["check"]
        found |= lost(pair, (start, start), judges) & {"END"}
    return found


@given(seed=st.integers(0, 10**9))
@settings(max_examples=sized(50), deadline=None)
def test_what_is_guarded_less_is_weaker_and_what_acts_newly_is_told(seed: int) -> None:
    """The promise itself: exit status 1, whichever sentence says why."""
    pair = pair_of(seed)
    new_acts = {
        one for one in reached(pair.new) - reached(pair.old) if pair.kinds.get(one) == "execute"
    }
    old, new = graph_of(pair.old, pair.kinds), graph_of(pair.new, pair.kinds)
    found = list(lost_guards(ProofGraph(old), ProofGraph(new)))

    assert found or not expected(pair)
    assert {"weaker"} >= {one.effect for one in found}
    assert new_acts == {one.node for one in found if one.subject == "acts"}
    lines = {(one.source, one.outcome, one.target) for one in new.edges}
    for one in found:
        steps = zip(one.witness, one.outcomes, one.witness[1:], strict=False)
        assert set(steps) <= lines


VERDICTS: Final[tuple[Verdict, ...]] = ("allow", "ask", "deny")
STRICT: Final = {"allow": 0, "ask": 1, "deny": 2}
PATTERNS: Final = (
    *("a", "b", "ab", "*", "a*", "*b", "a?", "*a*", "[ab]", "[!a]*", "?", "b*a", "ba", "aa"),
)
NAMES: Final = ["".join(letters) for size in range(1, 6) for letters in product("abx", repeat=size)]


def rules_of(rng: Random) -> tuple[Rule, ...]:
    """Return rules of a gate."""
    return unshadowed(
        [
            Rule(
                verdict,
                tuple(rng.sample(PATTERNS, rng.randint(1, 2))),
                ttl_s=rng.choice((None, 30.0, 60.0)) if verdict == "ask" else None,
            )
            for verdict in rng.choices(VERDICTS, k=rng.randint(1, 4))
        ]
    )


def edited(rng: Random, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return rules of which some came, went, or stand elsewhere."""
    new = [*rules]
    for _ in range(rng.randint(1, 2)):
        if new and rng.random() < 0.4:
            new.pop(rng.randrange(len(new)))
        elif rng.random() < 0.5:
            new.insert(rng.randint(0, len(new)), rules_of(rng)[0])
        else:
            rng.shuffle(new)
    return unshadowed(new) or rules


def is_open_longer(was: Rule, now: Rule) -> bool:
    """Whether a question stays open for longer than it did."""
    asks = was.verdict == now.verdict == "ask" and was.ttl_s is not None
    return asks and (now.ttl_s is None or now.ttl_s > (was.ttl_s or 0))


@given(seed=st.integers(0, 10**9))
@settings(max_examples=sized(50), deadline=None)
def test_a_gate_that_lets_some_name_through_is_weaker(seed: int) -> None:
    """Against all names of a few letters: none is missed."""
    rng = Random(seed)  # noqa: S311 - a test's rules, and no secret.
    old = rules_of(rng)
    new = edited(rng, old)
    pairs = [(decide(old, one, ()), decide(new, one, ())) for one in NAMES]
    softer = any(
        STRICT[now.verdict] < STRICT[was.verdict] or is_open_longer(was, now) for was, now in pairs
    )

    assert not softer or "weaker" in {one.effect for one in gate_changes("it", old, new)}
