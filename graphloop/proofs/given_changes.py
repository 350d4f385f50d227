"""given_changes: what is different about what the runs of two graphs are given beside the table.

Instructions, tools, a budget, how approvals are asked for, what of the checker is set aside: each
by its name, compared as the parameters of nodes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar, cast

from ..graph import Graph
from .likeness import alike
from .parameter_changes import Effect, ParameterChange, compared, in_words, limited

__all__ = ["given_changes"]

S = TypeVar("S")

GUARDING: Final = frozenset(
    {"approve_tool_call", "done_when", "gate", "needs_approval", "output_type", "stop_when"}
    | {"verify"}
)
"""What keeps something from happening, or an answer from being taken."""

LIMITING: Final = frozenset({"approval_ttl_s", "max_agent_depth", "max_tokens", "step_timeout_s"})

HOLDING: Final = frozenset({"signed"})


def given_changes(before: Graph[S], after: Graph[S]) -> Iterator[ParameterChange]:
    """Yield what differs of what two graphs' runs are given, and of what is set aside.

    Of temporal rules, their order alone: what becomes of each is told with the proofs.
    """
    yield from _ignored(before.ignore, after.ignore)
    kept, kept_now = tuple(before.rules), tuple(after.rules)
    if kept != kept_now and set(kept) == set(kept_now):
        yield ParameterChange(
            "rules", ("one order",), ("another order",), "changed", comparable=True
        )
    old, new = before.facts, after.facts
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if alike(was, now):
            continue
        if name in LIMITING:
            yield limited(name, cast("float | None", was), cast("float | None", now))
        elif name in HOLDING:
            effect: Effect = "stronger" if now else "weaker"
            sides = (in_words(bool(was)),), (in_words(bool(now)),)
            yield ParameterChange(name, *sides, effect, comparable=True)
        else:
            yield from _compared(name, was, now)


def _compared(name: str, was: object, now: object) -> Iterator[ParameterChange]:
    entries, entries_now = _entries_of(was), _entries_of(now)
    if entries is None or entries_now is None:
        yield from compared(name, was, now, guards=name in GUARDING)
    else:
        yield from _entries(name, entries, entries_now)


def _entries_of(value: object) -> Mapping[str, object] | None:
    # isinstance cannot tell what is in it.
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _entries(
    name: str, old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[ParameterChange]:
    gone, come = (
        tuple([one for one in some if one not in others])
        for some, others in ((old, new), (new, old))
    )
    if gone or come:
        effect: Effect = "weaker" if name in GUARDING and gone else "changed"
        yield ParameterChange(name, gone, come, effect, comparable=name not in GUARDING)
    for key in [one for one in old if one in new and not alike(old[one], new[one])]:
        yield from compared(f"{name}.{key}", old[key], new[key], guards=name in GUARDING)


def _ignored(
    old: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str]
) -> Iterator[ParameterChange]:
    come = [one for one in new if one not in old]
    gone = [one for one in old if one not in new]
    if come:
        yield ParameterChange("ignore", (), tuple(map(_aside, come)), "weaker", comparable=True)
    if gone:
        yield ParameterChange("ignore", tuple(map(_aside, gone)), (), "stronger", comparable=True)
    for key in [one for one in new if one in old and old[one] != new[one]]:
        yield from compared(f"ignore {_aside(key)}", old[key], new[key], guards=False)
    if not come and not gone and list(old) != list(new):
        sides = tuple(map(_aside, old)), tuple(map(_aside, new))
        yield ParameterChange("ignore", *sides, "changed", comparable=True)


def _aside(key: tuple[str, str]) -> str:
    node, code = key
    return f"{code} of {node or 'the graph'}"
