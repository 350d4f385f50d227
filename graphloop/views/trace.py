"""trace: the paths of runs, as marks for the diagram of their graph.

Counts stand at the outcomes that runs took; time, tokens and cost stand in the nodes that waited.
Parts that no run reached are pale, and the node where a run stands is lit. All of it is replayed
from journals. The child runs of a node and an agent lie together over that agent's graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar, final

from ..effects import AskHuman, CallTool, StartRun
from ..events import Event, Resumed
from ..graph import Graph
from ..replay import journal_happenings, replay_steps
from ..run import Run
from .drawing import visible
from .family import Family, members
from .marks import Marks, Tally, Tone, Way

__all__ = ["Answered", "RunTrace", "Typed", "family_trace", "trace", "trace_marks"]

S = TypeVar("S")

Typed: TypeAlias = Callable[[Graph[Any], Sequence[Event]], Sequence[Event]]
"""Gives the events of a journal states of its graph's type."""

Answered: TypeAlias = Callable[[Run[Any], AskHuman | CallTool], str]
"""Returns the stored answer to a question of a parked run; empty if there is none."""

_WAITS_MAX: Final = 3


def _unanswered(run: Run[Any], ask: AskHuman | CallTool) -> str:  # noqa: ARG001 - none is stored
    return ""


@final
@dataclass(frozen=True)
class RunTrace:
    """The path of one run so far, and its cost.

    Attributes:
        visits: how often the run entered each node, and END.
        ways: how often it took each outcome.
        spent: time, tokens and money, by the node that waited for them.
        node: where the run stands.
        ended: why the run ended; empty if it has not.
        waits: the people, clients and child runs that it waits for, in words.
        started: the node and the agent of each child run, by its key.
        children: the traces of child runs whose journals are there, by node and agent.
    """

    visits: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[Way] = field(default_factory=Counter[Way])
    spent: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    node: str = ""
    ended: str = ""
    waits: tuple[str, ...] = ()
    started: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    children: Mapping[tuple[str, str], tuple[RunTrace, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[RunTrace, ...]"]
    )


def trace(graph: Graph[S], events: Sequence[Event], answered: Answered = _unanswered) -> RunTrace:
    """Return the path of the run of a journal, without its child runs.

    Args:
        graph: the run's graph.
        events: the run's journal.
        answered: looks up stored answers that the journal does not hold yet.

    Raises:
        StoreError: the journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    visits, ways = Counter((graph.start,)), Counter[Way]()
    spent: dict[str, Tally] = {}
    started: dict[str, tuple[str, str]] = {}
    targets = {(edge.source, edge.outcome): edge.target for edge in graph.edges}
    place = graph.start
    run: Run[S] | None = None
    happened = journal_happenings(graph, events)
    for step, happenings in zip(replay_steps(graph, events), happened, strict=True):
        if run is not None:
            spent[run.node] = spent.get(run.node, Tally()) + _cost(run, step.run, step.event)
        for happening in happenings:
            # A name may hold any sign, also a dot: only an outcome of the current node counts.
            before = f"outcome:{place}."
            if happening.words[0].startswith(before):
                way = (place, happening.words[0].removeprefix(before))
                place = targets[way]
                ways[way] += 1
                visits[place] += 1
        run = step.run
        for effect in step.effects:
            if isinstance(effect, StartRun):
                started[effect.key] = (run.node, effect.agent)
    if run is None:
        return RunTrace()
    ended = run.ending.reason if run.ended and run.ending is not None else ""
    return RunTrace(visits, ways, spent, run.node, ended, tuple(_waits(run, answered)), started)


def family_trace(
    family: Family,
    events: Sequence[Event],
    descendants: Mapping[str, Sequence[Event]],
    typed: Typed = lambda _, events: events,
    answered: Answered = _unanswered,
) -> RunTrace:
    """Return the path of the run of a journal, and of all its child runs.

    Args:
        family: the run's graph, with its agents.
        events: the run's journal.
        descendants: the journals of its child runs and theirs, by their ids without the run's.
        typed: gives the events of a journal states of its graph's type.
        answered: looks up stored answers that no journal holds yet.

    Raises:
        StoreError: a journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit its graph.
    """
    found = trace(family.graph, typed(family.graph, events), answered)
    known = {(member.node, member.name): member.family for member in members(family)}
    children: dict[tuple[str, str], list[RunTrace]] = {}
    for key, place in found.started.items():
        if place in known and key in descendants:
            within = {
                run_id.removeprefix(f"{key}/"): journal
                for run_id, journal in descendants.items()
                if run_id.startswith(f"{key}/")
            }
            child = family_trace(known[place], descendants[key], within, typed, answered)
            children.setdefault(place, []).append(child)
    return replace(found, children={place: tuple(some) for place, some in children.items()})


def trace_marks(graph: Graph[S], traces: Sequence[RunTrace], family: Family | None = None) -> Marks:
    """Return the traces of runs of `graph` as marks for its diagram.

    Args:
        graph: the graph of the runs.
        traces: the paths of the runs.
        family: the graph with its agents, for the traces of child runs.
    """
    ways = {(edge.source, edge.outcome) for edge in graph.edges}
    names = (*graph.nodes, "END")
    seen_nodes = {name for run in traces for name in run.visits}
    seen_ways = {way for run in traces for way in run.ways}
    here = {run.node for run in traces if run.node and not run.ended}
    tones: dict[str, Tone] = {name: "weak" for name in names if name not in seen_nodes}
    lit: dict[str, Tone] = dict.fromkeys(here, "lit")
    children = () if family is None else members(family)
    return Marks(
        title=_title(traces),
        nodes={name: words for name in names if (words := "\n".join(_waiting(name, traces)))},
        node_tones=tones | lit,
        way_tones={way: "weak" for way in ways if way not in seen_ways},
        visits={name: _visits(name, traces) for name in names if name in seen_nodes},
        passages={way: Tally(tuple([run.ways[way] for run in traces])) for way in seen_ways},
        children={
            (node, name): trace_marks(
                child.graph,
                [trace for run in traces for trace in run.children.get((node, name), ())],
                child,
            )
            for node, name, child in children
        },
    )


def _cost(before: Run[S], after: Run[S], event: Event) -> Tally:
    """Return the time, tokens and money between two states of a run."""
    return Tally(
        # Between its last driver and `Resumed`, no driver works on the run.
        seconds=0.0 if isinstance(event, Resumed) else max(0.0, after.at - before.at),
        tokens=after.spent.usage.total_tokens - before.spent.usage.total_tokens,
        usd=after.spent.cost_usd - before.spent.cost_usd,
    )


def _waits(run: Run[S], answered: Answered) -> Iterator[str]:
    for effect in run.pending.values():
        said = answered(run, effect) if isinstance(effect, AskHuman | CallTool) else ""
        match effect:
            case AskHuman(call=call) | CallTool(call=call, client=True) if said:
                yield f"{visible(call.name)}: {visible(said)}, not resumed yet"
            case AskHuman(call=call):
                yield f"waits for approval of {visible(call.name)}"
            case CallTool(call=call, client=True):
                yield f"waits for the client tool {visible(call.name)}"
            case StartRun(agent=agent):
                yield f"waits for the agent {visible(agent)}"
            case _:
                pass


def _title(traces: Sequence[RunTrace]) -> str:
    if len(traces) == 1:
        return traces[0].ended or "not over"
    endings = Counter(run.ended or "not over" for run in traces)
    counts = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    return f"{len(traces)} runs: {counts}" if traces else "no run"


def _visits(name: str, traces: Sequence[RunTrace]) -> Tally:
    spent = sum([run.spent[name] for run in traces if name in run.spent], Tally())
    return replace(spent, times=tuple([run.visits[name] for run in traces]))


def _waiting(name: str, traces: Sequence[RunTrace]) -> Iterator[str]:
    """Yield the waits of the runs that stand at a node."""
    waits = [wait for run in traces if run.node == name for wait in run.waits]
    yield from waits[:_WAITS_MAX]
    if len(waits) > _WAITS_MAX:
        yield f"and {len(waits) - _WAITS_MAX} more"
