"""rule_changes: what becomes of temporal rules when a graph is changed, or when the rules are.

Every rule of either side is decided on both graphs. One that was proven and can be broken now, or
that only the monitor keeps, is told with a shortest way that breaks it, or may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeVar, assert_never, final

from ..errors import ConfigError
from ..graph import Graph
from ..temporal import AtMost, Followed, Never, OnlyAfter, Rules, TemporalRule, describe_rule
from ..temporal_names import names_of, resolve
from .ground import Ground, Trail
from .implication import bare, implies
from .temporal import Decision, decided

__all__ = ["RuleChange", "RuleEffect", "refuse_unknown", "rule_changes", "rule_effects"]

S = TypeVar("S")

RANK: Final = {"violated": 0, "unknown": 1, "proven": 2}


@final
@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule about the same happening that says something else now; both in words."""

    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.after} (was {self.before})"


class RuleEffect(NamedTuple):
    """What has become of one rule; the way is one of the later graph."""

    effect: Literal["weaker", "changed", "stronger"]
    message: str
    walked: Trail = ()


def refuse_unknown(before: Graph[S], after: Graph[S], rules: Rules) -> None:
    """Refuse rules for two graphs that mean nothing on either: they would guard nothing.

    Raises:
        ConfigError: with every word of such a rule that means nothing on the later graph.
    """
    problems: list[str] = []
    for rule in rules:
        found: list[str] = []
        for graph in (after, before):
            try:
                resolve(Rules((rule,)), names_of(graph))
            except ConfigError as error:
                found.append(str(error))
        problems += found[:1] if len(found) > 1 else []
    if problems:
        raise ConfigError("\n".join(problems))


def rule_changes(
    before: Rules, after: Rules
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[RuleChange, ...]]:
    """Return the rules that were added, those that were removed, and those that were changed."""
    new = [one for one in after if one not in before.rules]
    changed: list[RuleChange] = []
    removed: list[str] = []
    for old in before:
        if old in after.rules:
            continue
        heir = next((one for one in new if type(one) is type(old) and one.what == old.what), None)
        if heir is None:
            removed.append(describe_rule(old))
        else:
            new.remove(heir)
            changed.append(RuleChange(describe_rule(old), describe_rule(heir)))
    return tuple([describe_rule(one) for one in new]), tuple(removed), tuple(changed)


def rule_effects(
    old: Ground[S], new: Ground[S], before: Rules, after: Rules
) -> Iterator[RuleEffect]:
    """Yield what becomes of each rule of either side, those of the earlier one first.

    A rule that the later side does not have is kept all the same where one of its rules forbids as
    much. One that both have is another where its words have come to mean something else.
    """
    gone, come = _meanings(old, before), _meanings(new, after)
    every = [one.meant for one in (*gone.values(), *come.values())]
    was, now = _decisions(old, every), _decisions(new, every)
    for key, one in gone.items():
        heir = come.get(key)
        if heir is not None and heir.rule.reason != one.rule.reason:
            yield RuleEffect("changed", f"{_said(one.rule)} has another reason")
        sides = was[one.meant], now[one.meant if heir is None else heir.meant]
        if any(implies(other.meant, one.meant) for other in come.values()):
            yield from _kept(one.rule, was[one.meant], now[one.meant])
        elif heir is None:
            yield from _dropped(one.rule, *sides)
        elif isinstance(sides[0], str) or isinstance(sides[1], str):
            yield from _kept(one.rule, *sides)
        else:
            meant, means = describe_rule(one.meant), describe_rule(heir.meant)
            yield RuleEffect(
                "weaker", f"{_said(one.rule)} means {means!r} now, and meant {meant!r}"
            )
    for key, one in come.items():
        if key in gone:
            continue
        if any(implies(other.meant, one.meant) for other in gone.values()):
            yield from _kept(one.rule, was[one.meant], now[one.meant])
        else:
            yield from _added(one.rule, was[one.meant], now[one.meant])


class _Given(NamedTuple):
    """A rule as it was given, and what its words mean; as it was given, if they mean nothing."""

    rule: TemporalRule
    meant: TemporalRule


def _meanings(ground: Ground[S], rules: Rules) -> dict[TemporalRule, _Given]:
    """Return what rules mean on a graph, by the rules without their reasons."""
    found: dict[TemporalRule, _Given] = {}
    for rule in rules:
        key = bare(rule)
        meant = _resolved(ground, key)
        found.setdefault(key, _Given(rule, key if isinstance(meant, str) else meant))
    return found


def _resolved(ground: Ground[S], rule: TemporalRule) -> TemporalRule | str:
    """Return a rule with its words looked up; or why they mean nothing."""
    try:
        (found,) = resolve(Rules((rule,)), names_of(ground.graph))
    except ConfigError as error:
        return str(error)
    return found


def _decisions(
    ground: Ground[S], rules: Iterable[TemporalRule]
) -> dict[TemporalRule, Decision | str]:
    """Return what can be said of each rule on a graph; or why it means nothing there."""
    looked_up = {rule: _resolved(ground, rule) for rule in rules}
    known = dict.fromkeys([one for one in looked_up.values() if not isinstance(one, str)])
    said = dict(zip(known, decided(ground, Rules((*known,))), strict=True))
    return {rule: one if isinstance(one, str) else said[one] for rule, one in looked_up.items()}


def _kept(rule: TemporalRule, was: Decision | str, now: Decision | str) -> Iterator[RuleEffect]:
    if isinstance(was, str):
        if not isinstance(now, str):
            yield RuleEffect("changed", f"{_said(rule)} meant nothing, and {_standing(now)} now")
        return
    if isinstance(now, str):
        yield RuleEffect("weaker", f"{_said(rule)} means nothing any more: {now.rstrip('.')}")
    elif RANK[now.status] < RANK[was.status]:
        yield RuleEffect("weaker", _worse(rule, was, now), now.walked)
    elif RANK[now.status] > RANK[was.status]:
        yield RuleEffect("stronger", f"{_said(rule)} {_standing(now)}, and {_stood(was)}")


def _dropped(rule: TemporalRule, was: Decision | str, now: Decision | str) -> Iterator[RuleEffect]:
    """Yield what it means that a rule is not given any more: nobody keeps a run to it."""
    if isinstance(was, str) or was.status == "violated":
        return
    if isinstance(now, Decision) and now.status == "proven":
        yield RuleEffect("changed", f"{_said(rule)} is not given any more, and still holds")
    elif isinstance(now, Decision):
        said = f"{_broken(rule)}: {_said(rule)} is not given any more, and {_stood(was)}"
        yield RuleEffect("weaker", said, now.walked)
    else:
        yield RuleEffect("weaker", f"{_said(rule)} is not given any more, and {_stood(was)}")


def _added(rule: TemporalRule, was: Decision | str, now: Decision | str) -> Iterator[RuleEffect]:
    if isinstance(now, str):
        yield RuleEffect("changed", f"{_said(rule)} is new, and means nothing: {now.rstrip('.')}")
    elif now.status != "violated":
        yield RuleEffect("stronger", f"{_said(rule)} is new, and {_standing(now)}")
    elif isinstance(was, Decision) and RANK[was.status] > RANK[now.status]:
        yield RuleEffect("weaker", _worse(rule, was, now), now.walked)
    else:
        yield RuleEffect("changed", f"{_said(rule)} is new, and can be broken", now.walked)


def _worse(rule: TemporalRule, was: Decision, now: Decision) -> str:
    if now.status == "violated":
        return f"{_broken(rule)}: {_said(rule)} {_stood(was)}, and can be broken now"
    return f"{_said(rule)} {_stood(was)}, and cannot be proven any more: {now.reason.rstrip('.')}"


def _said(rule: TemporalRule) -> str:
    return f"the rule {describe_rule(rule)!r}"


def _standing(now: Decision) -> str:
    match now.status:
        case "proven":
            return "is proven"
        case "violated":
            return "can be broken"
        case "unknown":
            return "is kept by the monitor"
        case _:
            assert_never(now.status)


def _stood(was: Decision) -> str:
    match was.status:
        case "proven":
            return "was proven"
        case "violated":
            return "could be broken"
        case "unknown":
            return "was kept by the monitor"
        case _:
            assert_never(was.status)


def _broken(rule: TemporalRule) -> str:
    """Return what can happen where a rule is broken."""
    what = f"`{rule.what}`"
    match rule:
        case Never(before=""):
            return f"{what} becomes reachable"
        case Never(before=first):
            return f"{what} becomes reachable without `{first}`"
        case OnlyAfter(after=first, since=""):
            return f"{what} becomes reachable without `{first}`"
        case OnlyAfter(after=first, since=last):
            return f"{what} becomes reachable without `{first}` since the last `{last}`"
        case AtMost(times=times, per=per):
            often = "once" if times == 1 else f"{times} times"
            return f"{what} can happen more than {often}{f' per `{per}`' if per else ''}"
        case Followed(by=last):
            return f"a run can end after {what} without `{last}`"
        case _:
            assert_never(rule)
