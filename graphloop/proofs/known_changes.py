"""known_changes: what changes of parameters mean of which it is known which way is stricter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from ..contract import Cap
from ..nodes.verify import AnswerCheck
from ..outcomes import Outcome, outcome_name
from ..temporal import Rules, describe_rule
from .implication import implies
from .likeness import alike
from .parameter_change import Effect, ParameterChange, in_words, limited, ordered, unknown

__all__ = [
    "are_numbers",
    "asked",
    "capped",
    "caps_of",
    "checks_changed",
    "offered",
    "reordered",
    "ruled",
]


def checks_changed(was: object, now: object) -> Iterator[ParameterChange]:
    """Yield what becomes of the checks of an answer, by the functions that judge."""
    old = {one.callback: one for one in cast("tuple[AnswerCheck, ...]", was)}
    new = {one.callback: one for one in cast("tuple[AnswerCheck, ...]", now)}
    for name in [one for one in old if one not in new]:
        yield ParameterChange("checks", (name,), (), "weaker", comparable=True)
    for name in [one for one in new if one not in old]:
        yield ParameterChange("checks", (), (name,), "stronger", comparable=True)
    kept = [name for name in old if name in new]
    for name in kept:
        one, other = old[name], new[name]
        if one.retries != other.retries:
            # Fewer: a bad answer is taken sooner. More: it costs more to be refused one.
            yield ParameterChange(
                f"checks.{name}.retries", (str(one.retries),), (str(other.retries),), "weaker"
            )
        if one.failure != other.failure:
            effect: Effect = "changed" if one.failure and other.failure else "stronger"
            yield ParameterChange(
                f"checks.{name}.failure",
                (in_words(one.failure),),
                (in_words(other.failure),),
                effect if other.failure else "weaker",
                comparable=True,
            )
        if one.given_up != other.given_up:
            yield unknown(f"checks.{name}.given_up", one.given_up, other.given_up, guards=False)
    if kept != [name for name in new if name in old]:
        yield ParameterChange("checks", (", ".join(old),), (", ".join(new),), "changed")


def offered(path: str, was: object, now: object) -> ParameterChange:
    """Return what it means that other tools are offered; None offers all."""
    old = None if was is None else set(cast("tuple[str, ...]", was))
    new = None if now is None else set(cast("tuple[str, ...]", now))
    less = new is not None and (old is None or new <= old)
    effect: Effect = "stronger" if less and old != new else "changed" if less else "weaker"
    return ParameterChange(path, (in_words(was),), (in_words(now),), effect, comparable=True)


def capped(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[ParameterChange]:
    """Yield what becomes of the bounds of outcomes."""
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        words = f"{name} at most"
        if are_numbers(was, now):
            yield limited("", cast("float | None", was), cast("float | None", now), words=words)
        else:
            yield unknown(words, was, now, guards=True)


def ruled(path: str, was: Rules, now: Rules) -> ParameterChange:
    """Return what it means that a child's runs are kept to other rules."""
    lost = [one for one in was if not any(implies(other, one) for other in now)]
    come = [one for one in now if not any(implies(other, one) for other in was)]
    effect: Effect = "weaker" if lost else "stronger" if come else "changed"
    sides = tuple(map(describe_rule, was)), tuple(map(describe_rule, now))
    return ParameterChange(path, *sides, effect, comparable=True)


def are_numbers(was: object, now: object) -> bool:
    """Whether two values are numbers, or none."""
    return all(
        one is None or (isinstance(one, int | float) and not isinstance(one, bool))
        for one in (was, now)
    )


def reordered(
    path: str, was: Mapping[str, object] | None, now: Mapping[str, object] | None
) -> Iterator[ParameterChange]:
    """Yield that the same things stand in another order, in which models are told of them."""
    if was is not None and now is not None and [*was] != [*now] and {*was} == {*now}:
        yield ParameterChange(
            path, (", ".join(was),), (", ".join(now),), "changed", comparable=True
        )


def asked(
    path: str, was: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[ParameterChange]:
    """Yield for which tools somebody else has to agree to a call; where nothing is said, nobody."""
    for name in dict.fromkeys([*was, *now]):
        one, other = was.get(name, False), now.get(name, False)
        if alike(one, other):
            continue
        if one is False or other is False or other is True:
            more = one is False or other is True
            yield ordered(f"{path}.{name}", one or None, other or None, more=more)
        else:
            yield unknown(f"{path}.{name}", one, other, guards=True)


def caps_of(value: object) -> dict[str, object]:
    """Return bounds of outcomes by their names, as a contract or a function's node has them."""
    if isinstance(value, Mapping):
        # isinstance cannot tell what is in it.
        caps = cast("Mapping[type[Outcome], Cap]", value)
        return {
            outcome_name(kind): one.times if not (one.counts or one.resets) else one
            for kind, one in caps.items()
        }
    given = cast("tuple[tuple[type[Outcome], object], ...]", value)
    return {outcome_name(kind): times for kind, times in given}
