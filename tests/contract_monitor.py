"""Watches what nodes promise: each visit of a journal, told again, is held against its contract.

Nothing here looks at how a node decides: only at the run before and after each visit, at what was
wished for meanwhile, and at what came back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from graphloop.contract import Cap, Contract, Moves, contract_of
from graphloop.effects import AskHuman, CallModel, CallTool, Effect, Invoke, StartRun
from graphloop.events import Event, Started
from graphloop.graph import NodeGraph
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.outcomes import Answered, Calls, Outcome, outcome_name
from graphloop.proofs.ranking import EntryState, outcomes_after
from graphloop.run import Ending, EndReason, Run
from graphloop.step import begin, step

__all__ = ["Visit", "broken_promises", "visits_of"]

BROKEN: Final = frozenset({EndReason.ABORTED, EndReason.TIMEOUT, EndReason.ERROR})


@dataclass
class Visit:
    """One visit: the run that came, the run that left, and what happened in between."""

    node: Node[Any, Outcome]
    before: Run[Any]
    after: Run[Any]
    outcome: type[Outcome] | None = None
    effects: list[Effect] = field(default_factory=list[Effect])
    events: list[Event] = field(default_factory=list[Event])

    @cached_property
    def contract(self) -> Contract:
        """What the node promises; the monitor is for nodes that promise something."""
        promised = contract_of(self.node)
        return Contract() if promised is None else promised


@dataclass(frozen=True)
class Watched:
    """A node that notes what it does, and changes nothing."""

    node: Node[Any, Outcome]
    visits: list[Visit] = field(repr=False)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes

    def enter(self, run: Run[Any], /) -> Reaction[Any, Outcome]:
        self.visits.append(Visit(self.node, run, run))
        return self._noted(self.node.enter(run))

    def on(self, run: Run[Any], event: Event, answered: Effect | None, /) -> Reaction[Any, Outcome]:
        self.visits[-1].events.append(event)
        return self._noted(self.node.on(run, event, answered))

    def _noted(self, reaction: Reaction[Any, Outcome]) -> Reaction[Any, Outcome]:
        visit = self.visits[-1]
        visit.after = reaction.run
        if isinstance(reaction, Leave):
            visit.outcome = type(reaction.outcome)
        else:
            visit.effects += reaction.effects
        return reaction


def visits_of(graph: NodeGraph[Any], events: Sequence[Event], state: object) -> list[Visit]:
    """Return the visits of a journal; up to where a node, or the kernel, raises."""
    visits: list[Visit] = []
    watched: NodeGraph[Any] = NodeGraph.__new__(type(graph))
    nodes = {name: Watched(node, visits) for name, node in graph.nodes.items()}
    vars(watched).update(vars(graph), nodes=nodes)
    started = events[0]
    assert isinstance(started, Started)
    with suppress(Exception):
        run = begin(watched, started, state).run
        for event in events[1:]:
            run = step(watched, run, event).run
    return visits


def broken_promises(visits: Sequence[Visit]) -> Iterator[str]:
    """Yield every promise that is not kept: the word of it, the node, and what was seen."""
    for visit in visits:
        for problem in (*_wishes(visit), *_moved(visit), *_over(visit), *_joined(visit)):
            yield f"{problem} ({_named(visit)})"
    for at, visit in enumerate(visits[1:], 1):
        if visit.outcome is not None:
            yield from (f"{one} ({_named(visit)})" for one in _once(visits[:at], visit))
    yield from _capped(visits)


def _named(visit: Visit) -> str:
    left = "stays" if visit.outcome is None else outcome_name(visit.outcome)
    return f"{visit.node.name} {left}"


def _wishes(visit: Visit) -> Iterator[str]:
    promised, effects = visit.contract, visit.effects
    asked = sum(isinstance(one, CallModel) for one in effects)
    if promised.model_calls is not None and asked > promised.model_calls:
        yield f"model_calls: {asked} models are asked"
    if not promised.tools and any(isinstance(one, CallTool) for one in effects):
        yield "tools: a tool runs"
    waits = (isinstance(one, AskHuman) or getattr(one, "client", False) for one in effects)
    if not promised.asks and any(waits):
        yield "asks: somebody is asked"
    invoked = {one.callback for one in effects if isinstance(one, Invoke)}
    yield from (f"functions: {one} is invoked" for one in sorted(invoked - {*promised.functions}))
    started = Counter(one.agent for one in effects if isinstance(one, StartRun))
    if not promised.tools:
        most: Counter[str] = Counter()
        for child in promised.children:
            most[child.name] += child.runs or 0
        yield from (
            f"children: {one} runs {times} times"
            for one, times in started.items()
            if times > most[one]
        )


def _moved(visit: Visit) -> Iterator[str]:
    """Yield what has moved that must not, and what must have and has not."""
    if visit.outcome is None:
        return
    promised, outcome = visit.contract, visit.outcome
    before, after = visit.before, visit.after
    may, surely = promised.may_move(outcome), promised.moved(outcome)
    same, asked = before.turn.number == after.turn.number, before.turn.asked
    takes_up = promised.takes_up_calls
    first = takes_up and outcome is Calls and before.turn.number < 0
    over = surely & {"end", "broken"}
    seen: dict[Moves, bool] = {
        "turn": not same or after.turn.retries < before.turn.retries,
        "reply": same and not first and after.turn.reply not in (None, before.turn.reply),
        "close": before.turn.compacted and not after.turn.compacted,
        # Of a turn that is over nobody counts on anything.
        "again": not over and asked and after.turn.compacted and not before.turn.compacted,
        "question": any(
            after.counters.rejections.get(k, 0) < n for k, n in before.counters.rejections.items()
        ),
    }
    yield from (f"moves: {one} has moved" for one, so in seen.items() if so and one not in may)
    again = before.turn.compacted and asked
    if "turn" in surely and same and not first and not again:
        yield "turn: no turn is opened"
    left_over = after.turn.calls or after.turn.verdicts
    if {"turn", "close"} & surely and outcome is not Calls and left_over:
        yield "close: calls are left over"
    if "close" in surely and after.turn.compacted:
        yield "close: the turn is not closed"
    if "question" in surely and after.counters.rejections:
        yield "question: the rejections still count"
    taken_up = issubclass(outcome, Calls) and after.turn.calls == before.turn.calls
    if before.turn.calls and takes_up and not taken_up:
        yield "takes_up: open calls are not taken up"
    cap = promised.caps.get(outcome)
    if cap is not None and cap.instead is not None:
        spent = before.setup.budget.tripped(before.spent)
        if spent or before.was_stopped:
            yield "instead: it goes on, though the budget is spent or the run was stopped"
    if promised.writes == {} and after.state is not before.state:
        yield "writes: the state is another"


def _over(visit: Visit) -> Iterator[str]:
    promised, outcome, after = visit.contract, visit.outcome, visit.after
    if outcome is None:
        return
    moved, reason = promised.moved(outcome), None if after.ending is None else after.ending.reason
    if "end" in moved and promised.opens_again and not visit.before.turn.asked:
        yield "again: no model was asked"
    if "end" in moved and (reason in BROKEN or reason in {None, EndReason.COMPLETED}):
        yield f"end: the ending is {reason}"
    if "broken" in moved and reason not in BROKEN:
        yield f"broken: the ending is {reason}"
    if "note" in moved and not (after.turn.notes and after.ending is None):
        yield "note: no feedback is noted, or the run is ending"
    had = visit.before.turn.notes
    lost = after.turn.notes[: len(had)] != had
    ended = visit.before.ending is None and after.ending is not None
    if promised.keeps(outcome) and (lost or ended):
        yield "keeps: feedback is gone, or the run is ending"


def _once(earlier: Sequence[Visit], visit: Visit) -> Iterator[str]:
    """Yield what a node must not do after what came before it."""
    ending = visit.before.ending
    overs: tuple[tuple[Moves, EntryState], ...] = (("end", "ended"), ("broken", "broken"))
    for word, come in overs:
        only = outcomes_after(visit.node, come) if _by(earlier, word, ending) else None
        if only is not None and (visit.outcome not in only or visit.after.ending != ending):
            yield f"{come}: the ending was {ending}"
    noted = False
    for last in reversed(earlier):
        noted = last.outcome is not None and "note" in last.contract.moved(last.outcome)
        if noted or last.outcome is None or not last.contract.keeps(last.outcome):
            break
    only = outcomes_after(visit.node, "noted")
    if noted and only is not None and visit.outcome not in only:
        yield "noted: it was entered with feedback just noted"


def _by(earlier: Sequence[Visit], word: str, ending: Ending | None) -> bool:
    """Whether the ending that a run has came with an outcome that moves this."""
    for one in reversed(earlier):
        if ending is None or one.after.ending != ending:
            return False
        if one.outcome is not None and word in one.contract.moved(one.outcome):
            return True
    return False


def _joined(visit: Visit) -> Iterator[str]:
    # The branches are those of the last attempt; what failed before it does not count.
    ended = [one.status for one in visit.after.turn.branches]
    needs = sum(child.needs for child in visit.contract.children)
    if visit.outcome is Answered and ended.count("ok") < needs:
        yield f"children: {ended.count('ok')} have answered"


def _capped(visits: Sequence[Visit]) -> Iterator[str]:
    nodes = {visit.node.name: visit.contract for visit in visits}
    for name, promised in nodes.items():
        for outcome, cap in promised.caps.items():
            times = (
                _counted(visits, name, outcome, cap)
                if cap.counts
                else _taken(visits, name, outcome, cap)
            )
            if times > cap.times:
                word = outcome_name(outcome)
                yield f"caps: taken {times} times, promised are {cap.times} ({name} {word})"


def _taken(visits: Sequence[Visit], name: str, outcome: type[Outcome], cap: Cap) -> int:
    """Return how often an outcome was taken at most before its counter might be set back."""
    most = times = 0
    for visit in visits:
        if visit.outcome is None:
            continue
        if visit.node.name == name and visit.outcome is outcome:
            times += 1
            most = max(most, times)
        if visit.contract.may_move(visit.outcome) & cap.resets:
            times = 0
    return most


def _counted(visits: Sequence[Visit], name: str, outcome: type[Outcome], cap: Cap) -> int:
    """Return how often an outcome was taken at most in a row between which a turn was opened.

    The time that a run has more, before anything has moved, is not counted.
    """
    most = times = 0
    number: int | None = None
    for visit in visits:
        if visit.node.name != name or visit.outcome is not outcome:
            continue
        opened = visit.after.turn.number
        times = times + 1 if number is not None and opened > number else 1
        times -= opened < 0
        most, number = max(most, times), opened
    return most
