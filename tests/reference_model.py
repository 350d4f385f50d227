"""What a run must do, said in a page: no graph, no events, no journal, just the plan and the facts.

The facts are what the world outside decided: who answered what, which calls a dead process had
begun. From them and from the plan follows all that may be seen of a run: what it waits for, what
became of each call, what may have been executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from graphloop.values import ToolCall
from tests.planned_model import Line, call

__all__ = [
    "AGENTS",
    "GATED",
    "ONCE",
    "Answer",
    "Expected",
    "Facts",
    "Plan",
    "Wish",
    "follow",
    "lines",
    "written",
]

AGENTS = frozenset({"helper", "deep"})
GATED = frozenset({"pay", "sign"})
ONCE = frozenset({"send", "pay"})
"""Tools that may not run twice unasked."""


@dataclass(frozen=True)
class Wish:
    """One call that a model will make; an agent's has a plan of its own."""

    name: str
    plan: Plan = ()


Plan: TypeAlias = tuple[tuple[Wish, ...], ...]


@dataclass(frozen=True)
class Answer:
    """What somebody outside said of a call."""

    kind: Literal["approve", "deny", "result"]
    text: str = ""
    """The argument of an edited call, or a client tool's result; empty for the call's own."""


@dataclass
class Facts:
    """What has been decided outside, by the key of the call as the root's caller knows it.

    `again` are the answers to a question that was asked once more, in order; `interrupted` the
    effects that a dead process had begun. `stop_after` is the turn after which the run is to stop;
    `settled` are the agents' calls that were over before the run was copied, without their runs.
    """

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    again: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    interrupted: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    stop_after: int | None = None
    settled: set[str] = field(default_factory=set[str])


@dataclass
class Expected:
    """What follows: what is waited for ("c0.0#" where it is asked again), and the results.

    `results` maps the key of each call of a finished turn to its status, `ran` says how often each
    call may have run at most. `stopped` is whether the run ends because somebody wished so.
    """

    pending: list[str] = field(default_factory=list[str])
    results: dict[str, str] = field(default_factory=dict[str, str])
    ran: dict[str, int] = field(default_factory=dict[str, int])
    stopped: bool = False


def follow(plan: Plan, facts: Facts, path: str = "") -> Expected:
    """Follow a plan as far as the facts reach."""
    expected = Expected()
    for turn, wishes in enumerate(plan):
        keyed = {f"{path}c{turn}.{place}": wish for place, wish in enumerate(wishes)}
        for names in (GATED, frozenset({"client"})):
            asked = [key for key, wish in keyed.items() if wish.name in names]
            expected.pending = [key for key in asked if key not in facts.answers]
            if expected.pending:
                return expected
        results = {key: _became(key, wish, facts, expected) for key, wish in keyed.items()}
        if expected.pending:
            return expected
        expected.results |= {key: status or "" for key, status in results.items()}
        if not path and facts.stop_after == turn:
            expected.stopped = True
            return expected
    return expected


def _became(key: str, wish: Wish, facts: Facts, expected: Expected) -> str | None:
    """Return what became of one call; None if it waits."""
    answer, again = facts.answers.get(key), facts.again.get(key, [])
    if answer is not None and answer.kind == "deny":
        return "denied"
    if wish.name in AGENTS and key in facts.settled:
        return "ok"
    if wish.name in AGENTS:
        child = follow(wish.plan, facts, f"{key}/")
        expected.pending += child.pending
        expected.ran |= child.ran
        expected.results |= child.results
        return None if child.pending else "ok"
    interruptions = len(facts.interrupted.get(key, ()))
    if wish.name in ONCE:
        expected.ran[key] = 1 + sum(one.kind == "approve" for one in again)
    elif wish.name != "client":
        expected.ran[key] = 1_000
    if wish.name == "send" and interruptions:
        return "unknown"
    if wish.name == "pay":
        if any(one.kind == "deny" for one in again):
            return "unknown"
        if len(again) < interruptions:
            expected.pending.append(f"{key}#")
            return None
    return "error" if wish.name == "fail" else "ok"


def written(plan: Plan) -> str:
    """Return a plan as a prompt, which is where the model reads it."""
    return json.dumps(_plain(plan))


def _plain(plan: Plan) -> list[object]:
    return [[[wish.name, _plain(wish.plan)] for wish in wishes] for wishes in plan]


def lines(prompt: str) -> Sequence[Line]:
    """Return a written plan as what the model says."""
    return [list(_calls(wishes)) for wishes in json.loads(prompt)]


def _calls(wishes: Sequence[tuple[str, list[object]]]) -> Iterator[ToolCall]:
    for name, plan in wishes:
        yield call(name, prompt=json.dumps(plan)) if name in AGENTS else call(name, text=name)
