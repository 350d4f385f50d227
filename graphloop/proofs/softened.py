"""Softened: what gates let through that they asked about, or denied, before; and the reverse.

Compared by a name for each way in which their patterns can match one, so by all names there are.
Rules that ask functions are compared as text only: nobody can tell what a function says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from ..graph import Graph
from ..nodes.gate import Gate
from ..policy import Rule, decide
from ..spending import Budget
from .children import LIMITS, STRICTNESS, tools_of
from .heirs import heirs, namesakes
from .tool_samples import tool_samples

__all__ = ["Softened", "softened"]

S = TypeVar("S")

Rules: TypeAlias = tuple[Rule, ...]

NOW: Final = {"allow": "allows", "ask": "asks about", "deny": "denies"}
WAS: Final = {"allow": "allowed", "ask": "asked about", "deny": "denied"}


class Softened(NamedTuple):
    """One gate or child that got softer, or stricter; a consequence without a witness."""

    effect: Literal["weaker", "changed", "stronger"]
    subject: str
    message: str


def softened(before: Graph[S], after: Graph[S]) -> Iterator[Softened]:
    """Yield how the gates, and the children's gates and budgets, of two graphs differ."""
    known = before.tool_names
    come = frozenset[str]() if known is None else frozenset(after.tool_names or ()) - {*known}
    for name, new in after.nodes.items():
        old = before.nodes.get(name)
        if isinstance(old, Gate) and isinstance(new, Gate):
            yield from _rules(f"`{name}`", old.rules, new.rules, come)
    for _, earlier, child in (*namesakes(before, after), *heirs(before, after)):
        who = f"the gate of the child `{child.name}`"
        yield from _rules(who, earlier.gate_rules or (), child.gate_rules or ())
        yield from _budgets(child.name, earlier.budget or Budget(), child.budget or Budget())


def _rules(
    who: str, old: Rules, new: Rules, come: frozenset[str] = frozenset()
) -> Iterator[Softened]:
    """Yield what became of rules; `come` are tools that there were not when the old ones held."""
    if old == new:
        return
    if not old or not new:
        # Without rules, a call waits for a person only if its tool says so.
        said = f"{who} has no rules any more" if old else f"{who} has rules now"
        yield Softened("weaker" if old else "stronger", "rules", said)
        return
    if _unreasoned(old) == _unreasoned(new):
        yield Softened("changed", "rules", f"{who} gives other reasons for what it decides")
        return
    if any(rule.condition for rule in (*old, *new)):
        said = f"{who} has other rules, some of which ask functions, which nobody can compare"
        yield Softened("weaker", "rules", said)
        return
    asked = frozenset(one for one in come if _asks_first(one, old, new))
    if asked:
        said = f"{who} asks about {', '.join(map(repr, sorted(asked)))}, which is new"
        yield Softened("changed", "rules", said)
        new = _without(new, asked)
        if old == new:
            return
    yield from _decisions(who, old, new)


def _decisions(who: str, old: Rules, new: Rules) -> Iterator[Softened]:
    """Yield of which tools rules decide otherwise."""
    samples = tool_samples(one for rule in (*old, *new) for one in rule.tools)
    tools = [*tools_of((*old, *new))]
    known = {(decide(old, one, ()), decide(new, one, ())) for one in tools}
    for one in samples or ():
        pair = decide(old, one, ()), decide(new, one, ())
        tools += [] if pair in known else [one]
        known.add(pair)
    kinder = next((one for one in tools if _kinder(one, old, new)), None)
    stricter = next((one for one in tools if _kinder(one, new, old)), None)
    if kinder is not None:
        yield Softened("weaker", "rules", _told(who, kinder, old, new))
    if stricter is not None:
        yield Softened("stronger", "rules", _told(who, stricter, old, new))
    longer = _open_longer(who, tools, old, new)
    yield from longer
    if kinder is None and samples is None:
        said = f"{who} has other rules, whose patterns may overlap in ways that nobody has compared"
        yield Softened("weaker", "rules", said)
    elif kinder is None and stricter is None and not longer:
        said = f"{who} has other rules, which say the same of every tool"
        yield Softened("changed", "rules", said)


def _unreasoned(rules: Rules) -> list[Rule]:
    return [replace(one, reason="") for one in rules]


def _kinder(tool: str, old: Rules, new: Rules) -> bool:
    """Whether the later rules treat a tool more kindly."""
    was, now = decide(old, tool, ()).verdict, decide(new, tool, ()).verdict
    return STRICTNESS[now] < STRICTNESS[was]


def _asks_first(tool: str, old: Rules, new: Rules) -> bool:
    """Whether a new tool, which no earlier rule was about, is asked about by its name."""
    named = any(tool in rule.tools for rule in new)
    unknown = not any(rule.covers(tool) for rule in old)
    return named and unknown and decide(new, tool, ()).verdict == "ask"


def _without(rules: Rules, names: frozenset[str]) -> Rules:
    """Return rules that do not name some tools."""
    kept = [
        replace(rule, tools=tuple([one for one in rule.tools if one not in names]))
        for rule in rules
    ]
    return tuple([one for one in kept if one.tools])


def _open_longer(who: str, tools: Iterable[str], old: Rules, new: Rules) -> list[Softened]:
    """Return for which tools a question stays open for another time."""
    found: list[Softened] = []
    for tool in tools:
        was, now = decide(old, tool, ()), decide(new, tool, ())
        if was.verdict != "ask" or now.verdict != "ask" or was.ttl_s == now.ttl_s:
            continue
        more = was.ttl_s is not None and (now.ttl_s is None or now.ttl_s > was.ttl_s)
        said = f"{who} keeps a question about {tool!r} open {_for(now)}, {_for(was)} before"
        found.append(Softened("weaker" if more else "stronger", "rules", said))
    return found


def _for(rule: Rule) -> str:
    return "for ever" if rule.ttl_s is None else f"for {rule.ttl_s:g} s"


def _told(who: str, tool: str, old: Rules, new: Rules) -> str:
    was, now = decide(old, tool, ()).verdict, decide(new, tool, ()).verdict
    return f"{who} {NOW[now]} {tool!r}, which it {WAS[was]} before"


def _budgets(name: str, old: Budget, new: Budget) -> Iterator[Softened]:
    for limit in LIMITS:
        was: float | None = getattr(old, limit)
        now: float | None = getattr(new, limit)
        if was == now:
            continue
        more = was is not None and (now is None or now > was)
        said = f"the child `{name}` may spend {_most(now)} {limit}, {_most(was)} before"
        yield Softened("weaker" if more else "stronger", "budget", said)


def _most(limit: float | None) -> str:
    return "any number of" if limit is None else f"at most {limit:,}"
