"""trace: what runs did, laid over the diagram of their graph; loops are folded, not flattened.

Counts stand at the outcomes that were taken, time, tokens and cost in the nodes that waited; what
no run has done is pale, and where a run stands is lit. All of it is replayed from journals. The
runs that a node began are laid over the graphs that they ran, all of one node and agent together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar, final

from ..effects import AskHuman, CallTool, StartRun
from ..events import Event, Resumed
from ..graph import Graph
from ..replay import replay_steps
from ..run import Run
from ..temporal_journal import journal_happenings
from .drawing import visible
from .family import Family, kin
from .marks import Marks, Tone, Way
from .tally import Tally

__all__ = ["Answered", "Spending", "Trace", "Typed", "family_trace", "trace", "trace_marks"]

S = TypeVar("S")

Typed: TypeAlias = Callable[[Graph[Any], Sequence[Event]], Sequence[Event]]
"""What gives the events of a journal states of its graph's type."""

Answered: TypeAlias = Callable[[Run[Any], AskHuman | CallTool], str]
"""Tells how somebody has answered what a run waits for, before it was taken up; empty if not."""

WAITS_MAX: Final = 3


def _nobody(run: Run[Any], ask: AskHuman | CallTool) -> str:  # noqa: ARG001 - of no ask
    return ""


@final
@dataclass
class Spending:
    """What waiting at one node has come to."""

    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0


@final
@dataclass(frozen=True)
class Trace:
    """What one run has done so far.

    Attributes:
        visits: how often each node, and END, was entered.
        ways: how often each outcome was taken.
        spent: time, tokens and money, by the node that waited for them.
        node: where the run stands.
        ended: why it is over; empty if it is not.
        waits: what it waits for, in words, if that is a person, a client or another run.
        begun: the child runs that were wished for, each by its key, its node and its agent.
        children: what those have done whose journals are there, by node and agent.
    """

    visits: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[Way] = field(default_factory=Counter[Way])
    spent: dict[str, Spending] = field(default_factory=dict[str, Spending])
    node: str = ""
    ended: str = ""
    waits: tuple[str, ...] = ()
    begun: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    children: Mapping[tuple[str, str], tuple[Trace, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[Trace, ...]"]
    )


def trace(graph: Graph[S], events: Sequence[Event], answered: Answered = _nobody) -> Trace:
    """Return what the run of a journal has done, without its child runs.

    Args:
        graph: the run's graph.
        events: the run's journal.
        answered: tells what was answered, and is in no journal yet.

    Raises:
        StoreError: the journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    visits, ways = Counter((graph.start,)), Counter[Way]()
    spent: dict[str, Spending] = {}
    begun: dict[str, tuple[str, str]] = {}
    targets = {(one.source, one.outcome): one.target for one in graph.edges}
    place = graph.start
    run: Run[S] | None = None
    happened = journal_happenings(graph, events)
    for step, words in zip(replay_steps(graph, events), happened, strict=True):
        if run is not None:
            _add(spent.setdefault(run.node, Spending()), run, step.run, step.event)
        for one in words:
            # A name may hold any sign, also a dot: only a way out of where the run is counts.
            before = f"outcome:{place}."
            if one.words[0].startswith(before):
                way = (place, one.words[0].removeprefix(before))
                place = targets[way]
                ways[way] += 1
                visits[place] += 1
        run = step.run
        for effect in step.effects:
            if isinstance(effect, StartRun):
                begun[effect.key] = (run.node, effect.agent)
    if run is None:
        return Trace()
    ended = run.ending.reason if run.ended and run.ending is not None else ""
    return Trace(visits, ways, spent, run.node, ended, tuple(_waits(run, answered)), begun)


def family_trace(
    family: Family,
    events: Sequence[Event],
    below: Mapping[str, Sequence[Event]],
    typed: Typed = lambda _, events: events,
    answered: Answered = _nobody,
) -> Trace:
    """Return what the run of a journal has done, and what the child runs below it have.

    Args:
        family: the run's graph, with its agents.
        events: the run's journal.
        below: the journals of the runs below it, by their ids without the run's own.
        typed: gives the events of a journal states of its graph's type.
        answered: tells what was answered, and is in no journal yet.

    Raises:
        StoreError: a journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit its graph.
    """
    found = trace(family.graph, typed(family.graph, events), answered)
    known = {(one.node, one.name): one.family for one in kin(family)}
    children: dict[tuple[str, str], list[Trace]] = {}
    for key, place in found.begun.items():
        if place in known and key in below:
            inner = {
                one.removeprefix(f"{key}/"): journal
                for one, journal in below.items()
                if one.startswith(f"{key}/")
            }
            done = family_trace(known[place], below[key], inner, typed, answered)
            children.setdefault(place, []).append(done)
    told = {place: tuple(traces) for place, traces in children.items()}
    return replace(found, children=told)


def trace_marks(graph: Graph[S], traces: Sequence[Trace], family: Family | None = None) -> Marks:
    """Return what runs of `graph` did, as marks for its diagram.

    Args:
        graph: what the runs ran.
        traces: what they did.
        family: the graph with its agents, for what their child runs did.
    """
    ways = {(one.source, one.outcome) for one in graph.edges}
    names = (*graph.nodes, "END")
    seen_nodes = {name for one in traces for name in one.visits}
    seen_ways = {way for one in traces for way in one.ways}
    here = {one.node for one in traces if one.node and not one.ended}
    tones: dict[str, Tone] = {name: "weak" for name in names if name not in seen_nodes}
    lit: dict[str, Tone] = dict.fromkeys(here, "lit")
    return Marks(
        title=_title(traces),
        nodes={name: words for name in names if (words := "\n".join(_waiting(name, traces)))},
        node_tones=tones | lit,
        way_tones={way: "weak" for way in ways if way not in seen_ways},
        visits={name: _visits(name, traces) for name in names if name in seen_nodes},
        passages={way: Tally(tuple([one.ways[way] for one in traces])) for way in seen_ways},
        children=dict(_below(traces, family)),
    )


def _below(
    traces: Sequence[Trace], family: Family | None
) -> Iterator[tuple[tuple[str, str], Marks]]:
    """Yield what was done in each graph that nodes run; what no run has begun is pale."""
    for one in () if family is None else kin(family):
        place = (one.node, one.name)
        done = [each for above in traces for each in above.children.get(place, ())]
        yield place, trace_marks(one.family.graph, done, one.family)


def _add(spending: Spending, before: Run[S], after: Run[S], event: Event) -> None:
    # Until a run is taken up again, nobody works on it.
    if not isinstance(event, Resumed):
        spending.seconds += max(0.0, after.at - before.at)
    spending.tokens += after.spent.usage.total_tokens - before.spent.usage.total_tokens
    spending.usd += after.spent.cost_usd - before.spent.cost_usd


def _waits(run: Run[S], answered: Answered) -> Iterator[str]:
    for effect in run.pending.values():
        said = answered(run, effect) if isinstance(effect, AskHuman | CallTool) else ""
        match effect:
            case AskHuman(call=call) | CallTool(call=call, client=True) if said:
                yield f"{visible(call.name)}: {visible(said)}, not taken up yet"
            case AskHuman(call=call):
                yield f"waits for approval of {visible(call.name)}"
            case CallTool(call=call, client=True):
                yield f"waits for the client tool {visible(call.name)}"
            case StartRun(agent=agent):
                yield f"waits for the agent {visible(agent)}"
            case _:
                pass


def _title(traces: Sequence[Trace]) -> str:
    if len(traces) == 1:
        return traces[0].ended or "not over"
    endings = Counter(one.ended or "not over" for one in traces)
    told = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    return f"{len(traces)} runs: {told}" if traces else "no run"


def _visits(name: str, traces: Sequence[Trace]) -> Tally:
    spent = [one.spent[name] for one in traces if name in one.spent]
    return Tally(
        tuple([one.visits[name] for one in traces]),
        sum(one.seconds for one in spent),
        sum(one.tokens for one in spent),
        sum(one.usd for one in spent),
    )


def _waiting(name: str, traces: Sequence[Trace]) -> Iterator[str]:
    """Yield what runs wait for at a node."""
    waits = [wait for one in traces if one.node == name for wait in one.waits]
    yield from waits[:WAITS_MAX]
    if len(waits) > WAITS_MAX:
        yield f"and {len(waits) - WAITS_MAX} more"
