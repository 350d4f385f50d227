"""parameter_changes: what is different about two nodes of one name, parameter by parameter.

Every parameter is compared, of nodes that nobody here has heard of, too. Which way is stricter is
known of some: of limits, of what holds a batch, of conditions to stop. Of all others it can only be
said that they differ, which counts as weaker where the node guards something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from ..contract import Cap, contract_of
from ..node_protocol import Node
from ..nodes.approve import Approve
from ..nodes.critique import Critique
from ..nodes.gate import Gate
from ..nodes.router import Router
from ..nodes.stop_check import StopCheck
from ..nodes.verify import AnswerCheck, Verify
from ..outcomes import Outcome, outcome_name
from ..spending import Budget
from ..temporal import Rules, describe_rule
from .implication import implies
from .likeness import alike, parts_of
from .parameter_change import Effect, ParameterChange, in_words, limited, ordered

__all__ = ["GUARDS", "compared", "is_guard", "option_changes", "parameter_changes"]

GUARDS: Final = frozenset({"gate", "check", "human", "stop"})
"""The kinds of nodes that keep something from happening."""

LIMITS: Final = frozenset(
    {
        *("max_steps", "max_tool_errors", "max_denials", "max_pauses", "max_items", "times"),
        *("count", "tokens_max", "usd_max", "seconds_max", "ttl_s", "timeout_s"),
    }
)
"""What lets more happen the higher it is; None is no limit."""

OPTION_GUARDS: Final = frozenset(
    {
        "approve_tool_call",
        "argument_checks",
        "done_when",
        "gate",
        "needs_approval",
        "output_type",
        "reconcile",
    }
    | {"stop_when", "verify"}
)
"""Options of runs and tools that keep something from happening, or an answer from being taken."""

ADDED: Final = frozenset({"done_when", "output_type", "stop_when", "verify"})
"""Options that only refuse, or stop, what nothing did before they were given."""

OPTION_LIMITS: Final = frozenset(
    {"approval_ttl_s", "max_agent_depth", "max_tokens", "step_timeout_s", "timeout_s"}
)

HOLDING: Final = frozenset({"signed"})

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
        yield _unknown(path or "class", old, new, guards=guards)
        return
    if hasattr(old, "kind") and hasattr(old, "outcomes"):
        guards = is_guard(old)
    own = type(old).__module__.partition(".")[0] == __name__.partition(".")[0]
    for name in dict.fromkeys([*was, *now]):
        one, other = was.get(name), now.get(name)
        if alike(one, other) and (name in was) is (name in now):
            continue
        inner = path if name in THROUGH else f"{path}.{name}".lstrip(".")
        known = _known(old, name, inner, one, other) if own else None
        if known is not None:
            yield from known
        elif own:
            yield from option_changes(name, inner or name, one, other, guards=guards)
        else:
            yield from compared(inner or name, one, other, guards=guards)


def option_changes(
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
    if alike(was, now):
        return
    match name:
        case _ if name in OPTION_LIMITS and _numbers(was, now):
            yield limited(path, cast("float | None", was), cast("float | None", now))
        case _ if name in ADDED and was is None:
            yield ordered(path, was, now, more=True)
        case _ if name in HOLDING:
            yield ordered(path, was, now, more=bool(now))
        case "effect" if was in CARE and now in CARE:
            care, care_now = CARE[str(was)], CARE[str(now)]
            one = ordered(path, was, now, more=care_now > care)
            yield one._replace(effect="changed") if care == care_now else one
        case "rules" if isinstance(was, Rules | None) and isinstance(now, Rules | None):
            yield _ruled(path, was or Rules(), now or Rules())
        case _:
            yield from compared(path, was, now, guards=guards or name in OPTION_GUARDS)


def _ruled(path: str, was: Rules, now: Rules) -> ParameterChange:
    """Return what it means that a child's runs are kept to other rules."""
    lost = [one for one in was if not any(implies(other, one) for other in now)]
    come = [one for one in now if not any(implies(other, one) for other in was)]
    effect: Effect = "weaker" if lost else "stronger" if come else "changed"
    sides = tuple(map(describe_rule, was)), tuple(map(describe_rule, now))
    return ParameterChange(path, *sides, effect, comparable=True)


def _entries_of(value: object) -> Mapping[str, object] | None:
    # isinstance cannot tell what is in it.
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _entries(
    path: str, old: Mapping[str, object], new: Mapping[str, object], *, guards: bool
) -> Iterator[ParameterChange]:
    """Yield by what two mappings differ, entry by entry; one that says how an option is, too."""
    gone, come = (
        tuple([one for one in some if one not in others and not _is_option(one)])
        for some, others in ((old, new), (new, old))
    )
    if gone or come:
        effect: Effect = "weaker" if guards and gone else "changed"
        yield ParameterChange(path, gone, come, effect, comparable=not guards)
    for key in dict.fromkeys([*old, *new]):
        if (key in old and key in new) or _is_option(key):
            one, other = old.get(key), new.get(key)
            yield from option_changes(key, f"{path}.{key}", one, other, guards=guards)


def _is_option(name: str) -> bool:
    return name in OPTION_GUARDS | OPTION_LIMITS | HOLDING or name == "rules"


def _known(  # noqa: PLR0911 - a parameter a line
    owner: object, name: str, path: str, was: object, now: object
) -> list[ParameterChange] | None:
    """Return what a change means, where the direction is known; None where it is not."""
    match owner, name:
        case Gate(), "rules":
            return []
        case Verify(), "checks" if _listed(was) and _listed(now):
            return list(_checks(was, now))
        case StopCheck(), "conditions" if _listed(was) and _listed(now):
            return list(_conditions(was, now))
        case _, "hold":
            return [ordered(path, was, now, more=bool(now))]
        case _, "active_tools" if _listed(was) and _listed(now):
            return [_offered(path, was, now)]
        case _, "caps" if _listed(was) and _listed(now):
            return list(_capped(_pairs(was), _pairs(now)))
        case _ if (name in LIMITS or isinstance(owner, Budget)) and _numbers(was, now):
            return [limited(path, cast("float | None", was), cast("float | None", now))]
        case _:
            return None


def _checks(was: object, now: object) -> Iterator[ParameterChange]:
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
            yield _unknown(f"checks.{name}.given_up", one.given_up, other.given_up, guards=False)
    if kept != [name for name in new if name in old]:
        yield ParameterChange("checks", (", ".join(old),), (", ".join(new),), "changed")


def _conditions(was: object, now: object) -> Iterator[ParameterChange]:
    """Yield what becomes of conditions to stop, of which any one stops."""
    old, new = (cast("tuple[object, ...]", side) for side in (was, now))
    gone = [one for one in old if not any(alike(one, other) for other in new)]
    come = [one for one in new if not any(alike(one, other) for other in old)]
    for one in gone:
        heir = next((other for other in come if _one_number(one, other)), None)
        if heir is None:
            yield ParameterChange("conditions", (in_words(one),), (), "weaker", comparable=True)
            continue
        come.remove(heir)
        yield from compared("conditions", one, heir, guards=True)
    for one in come:
        yield ParameterChange("conditions", (), (in_words(one),), "stronger", comparable=True)
    if not gone and len(new) == len(old):
        yield ParameterChange("conditions", (in_words(was),), (in_words(now),), "changed")


def _one_number(one: object, other: object) -> bool:
    """Whether two conditions are of one kind that is a limit; what holds others, is not."""
    was = parts_of(one)
    return was is not None and _class(one) == _class(other) and bool(LIMITS & set(was))


def _offered(path: str, was: object, now: object) -> ParameterChange:
    """Return what it means that other tools are offered; None offers all."""
    old = None if was is None else set(cast("tuple[str, ...]", was))
    new = None if now is None else set(cast("tuple[str, ...]", now))
    less = new is not None and (old is None or new <= old)
    effect: Effect = "stronger" if less and old != new else "changed" if less else "weaker"
    return ParameterChange(path, (in_words(was),), (in_words(now),), effect, comparable=True)


def _capped(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[ParameterChange]:
    """Yield what becomes of the bounds of outcomes."""
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        words = f"{name} at most"
        if _numbers(was, now):
            yield limited("", cast("float | None", was), cast("float | None", now), words=words)
        else:
            yield _unknown(words, was, now, guards=True)


def _hidden(old: object, new: object) -> Iterator[ParameterChange]:
    """Yield what differs of what no parameter says: what is promised, and what the class does."""
    was, now = (contract_of(cast("Node[Any, Outcome]", one)) for one in (old, new))
    if was is not None and now is not None:
        caps = list(_capped(_caps(was.caps), _caps(now.caps)))
        yield from caps
        if caps:
            return
    known = {type(old).__module__.partition(".")[0]} == {__name__.partition(".")[0]}
    if known:
        return
    if not alike(was, now):
        yield _unknown("contract", was, now, guards=is_guard(old))
    elif not alike(_body(type(old)), _body(type(new))):
        yield _unknown("class", type(old), type(new), guards=is_guard(old))


def _body(kind: type) -> dict[str, object]:
    """Return what a class says and does, its bases among what it does."""
    said: dict[str, object] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.partition(".")[0] == __name__.partition(".")[0]:
            continue
        for name, one in vars(base).items():
            if isinstance(one, property):
                said[name] = one.fget
            elif callable(one) or isinstance(one, str | int | float | frozenset | tuple):
                said[name] = one
    made = _MADE if is_dataclass(kind) else frozenset[str]()
    return {name: one for name, one in said.items() if name not in made | _WHERE}


_WHERE: Final = frozenset({"__module__", "__firstlineno__", "__doc__"})
_MADE: Final = frozenset(
    {"__init__", "__eq__", "__repr__", "__hash__", "__setattr__", "__delattr__", "__replace__"}
)


def _unwrapped(value: object) -> object:
    """Return the node itself of one that is held together with the graphs of its agents."""
    if is_dataclass(value) and {one.name for one in fields(value)} == {"node", "graphs"}:
        return cast("object", getattr(value, "node"))  # noqa: B009 - of what class, is not known
    return value


def _unknown(path: str, was: object, now: object, *, guards: bool) -> ParameterChange:
    effect: Effect = "weaker" if guards else "changed"
    before, after = in_words(was), in_words(now)
    if before == after:
        after = f"another {after}"
    return ParameterChange(path, (before,), (after,), effect)


def _class(value: object) -> str:
    return type(value).__qualname__


def _listed(value: object) -> bool:
    return value is None or isinstance(value, tuple | list)


def _numbers(was: object, now: object) -> bool:
    return all(
        one is None or (isinstance(one, int | float) and not isinstance(one, bool))
        for one in (was, now)
    )


def _pairs(value: object) -> dict[str, object]:
    given = cast("tuple[tuple[type, object], ...]", value)
    return {outcome_name(kind): times for kind, times in given}


def _caps(caps: Mapping[type, Cap]) -> dict[str, object]:
    return {
        outcome_name(kind): one.times if not (one.counts or one.resets) else one
        for kind, one in caps.items()
    }
