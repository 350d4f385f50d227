"""parameter_changes: what is different about two nodes of one name, parameter by parameter.

Every parameter is compared, of nodes that nobody here has heard of, too. Which way is stricter is
known of some: of limits, of what holds a batch, of conditions to stop. Of all others it can only be
said that they differ, which counts as weaker where the node guards something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from ..contract import contract_of
from ..model_price import ModelPrice
from ..node_protocol import Node
from ..nodes.approve import Approve
from ..nodes.critique import Critique
from ..nodes.gate import Gate
from ..nodes.router import Router
from ..nodes.stop_check import StopCheck
from ..nodes.verify import Verify
from ..outcomes import Outcome, outcome_name
from ..spending import Budget
from ..stop import AnyOf
from ..temporal import Rules
from .known_changes import (
    are_numbers,
    asked,
    capped,
    caps_of,
    checks_changed,
    offered,
    reordered,
    ruled,
)
from .likeness import alike, behave_alike
from .parameter_change import Effect, ParameterChange, in_words, limited, ordered, unknown
from .shown import parts_of

__all__ = ["GUARDS", "compared", "is_guard", "options_changes", "parameter_changes"]

GUARDS: Final = frozenset({"gate", "check", "human", "stop"})
"""The kinds of nodes that keep something from happening."""

LIMITS: Final = frozenset(
    {
        *("max_steps", "max_tool_errors", "max_denials", "max_pauses", "max_items", "times"),
        *("count", "tokens_max", "usd_max", "seconds_max", "ttl_s", "timeout_s", "attempts_max"),
    }
)
"""What lets more happen the higher it is; None is no limit."""

TIMES: Final = frozenset({"connect_s", "first_content_s", "silence_s", "total_s"})
"""Limits of which 0 is none."""

OPTION_GUARDS: Final = frozenset(
    {
        *("approve_tool_call", "argument_checks", "done_when", "gate", "needs_approval"),
        *("output_type", "price", "prices", "reconcile", "verify"),
    }
)
"""Options of runs and tools that keep something from happening, or an answer from being taken.

What a reply costs is what budgets are counted in.
"""

ADDED: Final = frozenset({"done_when", "output_type", "verify"})
"""Options that only refuse what nothing did before they were given."""

OPTION_LIMITS: Final = frozenset(
    {"approval_ttl_s", "max_agent_depth", "max_tokens", "step_timeout_s", "timeout_s"}
)

DEFAULTED: Final = frozenset({"retries", "timeouts"})
"""Options that are what their classes say where they are not given."""

CARE: Final = {"at_least_once": 0, "idempotent": 1, "pure": 1, "at_most_once": 2, "reconcile": 2}
"""How far a tool is kept from doing twice, after a crash, what is to be done once."""

THROUGH: Final = frozenset({"kernel", "call", "plan"})
"""Parts that a reader need not hear of: they hold what a node is given."""


def is_guard(node: object) -> bool:
    """Whether a node keeps something from happening."""
    if isinstance(node, Verify | Approve | Critique | StopCheck | Gate):
        return True
    return getattr(node, "kind", "") in GUARDS and not isinstance(node, Router)


def parameter_changes(old: object, new: object) -> Iterator[ParameterChange]:
    """Yield the parameters by which two nodes of one name and class differ.

    The rules of gates are not among them, nor the graphs that nodes run.
    """
    found = list(compared("", old, new, guards=is_guard(old)))
    if not found:
        found = list(_hidden(old, new))
    yield from found


def compared(path: str, old: object, new: object, *, guards: bool) -> Iterator[ParameterChange]:
    """Yield by what two values differ that stand at a path; `guards` says in what they stand."""
    old, new = _unwrapped(old), _unwrapped(new)
    if alike(old, new):
        return
    entries, entries_now = _entries_of(old), _entries_of(new)
    if entries is not None and entries_now is not None:
        yield from _entries(path, entries, entries_now, guards=guards)
        return
    was, now = parts_of(old), parts_of(new)
    if was is None or now is None or _class(old) != _class(new):
        yield unknown(path or "class", old, new, guards=guards)
        return
    if _has(old, "kind") and _has(old, "outcomes"):
        guards = is_guard(old)
    own = type(old).__module__.partition(".")[0] == __name__.partition(".")[0]
    earlier = _still_asked(was, now) if own else was
    for name in dict.fromkeys([*earlier, *now]):
        one, other = earlier.get(name), now.get(name)
        if alike(one, other) and (name in earlier) is (name in now):
            continue
        inner = path if name in THROUGH else f"{path}.{name}".lstrip(".")
        known = _known(old, name, inner, one, other) if own else None
        if known is not None:
            yield from known
        elif own:
            yield from _option(name, inner or name, one, other, guards=guards)
        else:
            yield from compared(inner or name, one, other, guards=guards)
    if path and not behave_alike(type(old), type(new)):
        yield unknown(path, type(old), type(new), guards=guards)


def options_changes(
    path: str, was: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[ParameterChange]:
    """Yield by what the options of runs differ, by their names; what is not given is None.

    Args:
        path: where they stand; empty for the outermost.
        was: the earlier ones.
        now: the later ones.
    """
    was = _still_asked(was, now)
    for name in dict.fromkeys([*was, *now]):
        yield from _option(name, f"{path}.{name}".lstrip("."), was.get(name), now.get(name))


def _still_asked(was: Mapping[str, object], now: Mapping[str, object]) -> Mapping[str, object]:
    """Return options without who had to agree to calls of tools that are not there any more."""
    asking, tools = _entries_of(was.get("needs_approval")), _entries_of(now.get("tools"))
    if asking is None or tools is None:
        return was
    there = {*tools, *(_entries_of(now.get("agents")) or {})}
    return {**was, "needs_approval": {name: one for name, one in asking.items() if name in there}}


def _option(  # noqa: C901, PLR0912 - an option a line
    name: str, path: str, was: object, now: object, *, guards: bool = False
) -> Iterator[ParameterChange]:
    """Yield by what an option differs, of a run or a tool; or any other parameter.

    Args:
        name: the option.
        path: where it stands.
        was: its earlier value; None if it was not given.
        now: its later one.
        guards: whether what it stands in keeps something from happening.
    """
    if name == "tools":
        yield from reordered(path, _entries_of(was), _entries_of(now))
    if alike(was, now):
        return
    entries, entries_now = _entries_of(was or {}), _entries_of(now or {})
    match name:
        case _ if name in OPTION_LIMITS and are_numbers(was, now):
            yield limited(path, cast("float | None", was), cast("float | None", now))
        case _ if name in ADDED and (was is None or now is None):
            yield ordered(path, was, now, more=was is None)
        case "signed":
            yield ordered(path, was, now, more=bool(now))
        case "effect" if was in CARE and now in CARE:
            care, care_now = CARE[str(was)], CARE[str(now)]
            one = ordered(path, was, now, more=care_now > care)
            yield one._replace(effect="changed") if care == care_now else one
        case "rules" if isinstance(was, Rules | None) and isinstance(now, Rules | None):
            yield ruled(path, was or Rules(), now or Rules())
        case "stop_when":
            yield from _conditions(path, _several(was), _several(now))
        case "needs_approval" if entries is not None and entries_now is not None:
            yield from asked(path, entries, entries_now)
        case "agents" if entries is not None and entries_now is not None:
            yield from _agents(path, entries, entries_now)
        case "prices" if entries is not None and entries_now is not None:
            yield from compared(path, entries, entries_now, guards=True)
        case _ if name in DEFAULTED and (was is None or now is None):
            default = type(was or now)()
            yield from compared(path, was or default, now or default, guards=guards)
        case _:
            yield from compared(path, was, now, guards=guards or name in OPTION_GUARDS)


def _agents(
    path: str, was: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[ParameterChange]:
    """Yield by what the runs of agents differ; their graphs are told by themselves."""
    gone = tuple([name for name in was if name not in now])
    come = tuple([name for name in now if name not in was])
    if gone or come:
        yield ParameterChange(path, gone, come, "changed", comparable=True)
    for name in [one for one in was if one in now]:
        given, given_now = _entries_of(was[name]), _entries_of(now[name])
        inner = f"{path}.{name}"
        if given is not None and given_now is not None:
            yield from options_changes(inner, given, given_now)
        else:
            yield from compared(inner, was[name], now[name], guards=False)


def _entries_of(value: object) -> Mapping[str, object] | None:
    # isinstance cannot tell what is in it.
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _entries(
    path: str, old: Mapping[str, object], new: Mapping[str, object], *, guards: bool
) -> Iterator[ParameterChange]:
    """Yield by what two mappings differ, entry by entry."""
    was, now = ({_word(key): one for key, one in side.items()} for side in (old, new))
    gone, come = (
        tuple([one for one in some if one not in others])
        for some, others in ((was, now), (now, was))
    )
    if gone or come:
        effect: Effect = "weaker" if guards and gone else "changed"
        yield ParameterChange(path, gone, come, effect, comparable=not guards)
    for key in [one for one in was if one in now]:
        yield from compared(f"{path}.{key}", was[key], now[key], guards=guards)


def _word(key: object) -> str:
    """Return a key of a mapping as a reader knows it."""
    if isinstance(key, str):
        return key
    kind: object = key
    if isinstance(key, type) and issubclass(key, Outcome):
        return outcome_name(key)
    return in_words(kind)


def _known(  # noqa: C901, PLR0911 - a parameter a line
    owner: object, name: str, path: str, was: object, now: object
) -> list[ParameterChange] | None:
    """Return what a change means, where the direction is known; None where it is not."""
    match owner, name:
        case Gate(), "rules":
            return []
        case Verify(), "checks" if _listed(was) and _listed(now):
            return list(checks_changed(was, now))
        case StopCheck(), "conditions" if _listed(was) and _listed(now):
            return list(_conditions(path, _several(was), _several(now)))
        case StopCheck(), "callback" if not was or not now:
            return [ordered(path, was or None, now or None, more=bool(now))]
        case ModelPrice(), _ if was is not None and now is not None and are_numbers(was, now):
            # The dearer a reply is counted, the sooner a budget ends.
            return [ordered(path, was, now, more=cast("float", now) > cast("float", was))]
        case _, _ if name in TIMES and are_numbers(was, now):
            return [limited(path, cast("float", was) or None, cast("float", now) or None)]
        case _, "hold":
            return [ordered(path, was, now, more=bool(now))]
        case _, "active_tools" if _listed(was) and _listed(now):
            return [offered(path, was, now)]
        case _, "caps" if _listed(was) and _listed(now):
            return list(capped(caps_of(was), caps_of(now)))
        case _ if (name in LIMITS or isinstance(owner, Budget)) and are_numbers(was, now):
            return [limited(path, cast("float | None", was), cast("float | None", now))]
        case _:
            return None


def _conditions(
    path: str, was: tuple[object, ...], now: tuple[object, ...]
) -> Iterator[ParameterChange]:
    """Yield what becomes of conditions to stop, of which any one stops."""
    old, new = [*_flat(was)], [*_flat(now)]
    gone = [one for one in old if not any(alike(one, other) for other in new)]
    come = [one for one in new if not any(alike(one, other) for other in old)]
    if not gone and not come:
        yield ParameterChange(path, (in_words(was),), (in_words(now),), "changed")
    for one in gone:
        heir = next((other for other in come if _one_number(one, other)), None)
        if heir is None:
            yield ParameterChange(path, (in_words(one),), (), "weaker", comparable=True)
            continue
        come.remove(heir)
        yield from compared(path, one, heir, guards=True)
    for one in come:
        yield ParameterChange(path, (), (in_words(one),), "stronger", comparable=True)


def _flat(conditions: Iterable[object]) -> Iterator[object]:
    """Yield conditions, and in the place of one that any of some makes hold, these."""
    for one in conditions:
        yield from _flat(one.conditions) if isinstance(one, AnyOf) else (one,)


def _several(value: object) -> tuple[object, ...]:
    """Return what is given once or many times as many."""
    if value is None:
        return ()
    # isinstance cannot tell what is in it.
    return tuple(cast("list[object]", value)) if isinstance(value, list | tuple) else (value,)


def _one_number(one: object, other: object) -> bool:
    """Whether two conditions are of one kind that is a limit; what holds others, is not."""
    was = parts_of(one)
    return was is not None and _class(one) == _class(other) and bool(LIMITS & set(was))


def _hidden(old: object, new: object) -> Iterator[ParameterChange]:
    """Yield what differs of what no parameter says: what is promised, and what the class does."""
    was, now = (contract_of(cast("Node[Any, Outcome]", one)) for one in (old, new))
    if was is not None and now is not None:
        caps = list(capped(caps_of(was.caps), caps_of(now.caps)))
        yield from caps
        if caps:
            return
    known = {type(old).__module__.partition(".")[0]} == {__name__.partition(".")[0]}
    if known:
        return
    if not alike(was, now):
        yield unknown("contract", was, now, guards=is_guard(old))
    elif not behave_alike(type(old), type(new)):
        yield unknown("class", type(old), type(new), guards=is_guard(old))


def _unwrapped(value: object) -> object:
    """Return the node itself of one that is held together with the graphs of its agents."""
    if is_dataclass(value) and {one.name for one in fields(value)} == {"node", "graphs"}:
        return cast("object", getattr(value, "node"))  # noqa: B009 - of what class, is not known
    return value


def _has(value: object, name: str) -> bool:
    """Whether an object has an attribute; one of anybody's may answer with any error."""
    try:
        return hasattr(value, name)
    except Exception:  # noqa: BLE001 - what stands in a graph may be anybody's.
        return False


def _class(value: object) -> str:
    return type(value).__qualname__


def _listed(value: object) -> bool:
    return value is None or isinstance(value, tuple | list)
