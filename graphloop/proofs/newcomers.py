"""Newcomers: what acts in a later graph, and did not, or was not come to, in the earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final, NamedTuple, TypeVar

from ..outcomes import Aborted, Accepted, Done, Failed, Go, Rejected, Settled
from .ground import Ground, Trail, Way, search, trail
from .guarding import guards_of

__all__ = ["Newcomer", "newcomers"]

S = TypeVar("S")

JUDGES: Final = {"gate": "gate", "check": "check", "human": "person"}
"""What may say no to what comes behind it, in words; a stop only says when."""


NO: Final = frozenset({Rejected, Aborted, Failed})
YES: Final = frozenset({Accepted, Settled, Go, Done})


class Newcomer(NamedTuple):
    """A node that acts and did not.

    Attributes:
        node: its name.
        weaker: whether less stands before it than the earlier graph lets one expect.
        message: what it is, in words.
        walked: a shortest way to it, around all guards if there is one.
    """

    node: str
    weaker: bool
    message: str
    walked: Trail


def newcomers(
    old: Ground[S], new: Ground[S], acted: Set[str], acting: Set[str]
) -> Iterator[Newcomer]:
    """Yield what acts now: weaker without any guard before it, or without one of a kind.

    The kinds are those that stand before each node of its class that acted in the earlier graph. A
    graph that guarded nothing loses nothing. What a guard's no leads to, it does not stand before.

    Args:
        old: the earlier graph.
        new: the later one.
        acted: what acted in the earlier graph, of what runs arrived at.
        acting: what acts in the later one.
    """
    come = [name for name in new.graph.nodes if name in acting and name not in acted]
    if not come:
        return
    usual = _usual(old, acted)
    guarded = bool(guards_of(old, JUDGES.keys()))
    lets = _letting(old, acted)
    open_to = {kind: _around(new, {kind}, lets) for kind in JUDGES}
    around = _around(new, JUDGES.keys(), lets)
    for name in come:
        shut = {kind for kind, found in open_to.items() if name not in found}
        missing = usual.get(_class(new, name), frozenset[str]()) - shut
        verb = "acts now" if name in old.parents else "becomes reachable"
        weaker = guarded and (name in around or bool(missing))
        if name in around:
            said = f"`{name}` {verb}, and no gate, check or person stands before it"
        elif missing:
            lacks = " or ".join(word for kind, word in JUDGES.items() if kind in missing)
            said = (
                f"`{name}` {verb}, and no {lacks} stands before it, as before others of its class"
            )
        else:
            said = f"`{name}` {verb}, behind {_behind(shut)}"
        walked = trail(around, name) if name in around else new.trail(name)
        yield Newcomer(name, weaker, said, walked)


def _usual(old: Ground[S], acted: Set[str]) -> Mapping[str, frozenset[str]]:
    """Return the kinds of guards that stood before all that acted, by the class of node."""
    open_to = {kind: _around(old, {kind}) for kind in JUDGES}
    usual: dict[str, frozenset[str]] = {}
    for name in acted:
        shut = frozenset(kind for kind, found in open_to.items() if name not in found)
        of = _class(old, name)
        usual[of] = usual.get(of, shut) & shut
    return usual


def _class(ground: Ground[S], name: str) -> str:
    return type(ground.graph.nodes[name]).__qualname__


def _letting(old: Ground[S], acted: Set[str]) -> Callable[[Way], bool]:
    """Return whether a guard that is left by a line has let the run through.

    Of outcomes that say neither yes nor no, it is not those by which the earlier graph came to
    nothing that acted, if it did so by another.
    """
    guards = {*guards_of(old, JUDGES.keys())}

    def steps(name: str) -> Iterator[tuple[Way, str]]:
        ways = () if name in guards else old.ways.get(name, ())
        return ((way, way.target) for way in ways)

    idle: set[tuple[str, str]] = set()
    for guard in guards:
        ways = old.ways[guard]
        some = [way for way in ways if acted.isdisjoint(search([way.target], steps))]
        idle |= {(guard, way.word) for way in some} if len(some) < len(ways) else set()

    def lets(way: Way) -> bool:
        neither = way.outcome not in NO and (way.source, way.word) not in idle
        return way.outcome in YES or neither

    return lets


def _around(
    ground: Ground[S], kinds: Set[str], lets: Callable[[Way], bool] = lambda _: True
) -> Mapping[str, tuple[Way, str] | None]:
    """Return what can be come to past no guard of some kinds that let the run through, and how."""
    guards = {*guards_of(ground, kinds)}

    def steps(name: str) -> Iterator[tuple[Way, str]]:
        ways = ground.ways.get(name, ())
        return ((way, way.target) for way in ways if not (name in guards and lets(way)))

    return search([ground.graph.start], steps)


def _behind(kinds: Set[str]) -> str:
    words = [f"a {word}" for kind, word in JUDGES.items() if kind in kinds]
    return " and ".join(words) or "a gate, check or person"
