"""trace: turns the journals of runs into marks for the diagram of their graph.

Each edge shows how often runs took it. Each node shows the time, tokens and cost that runs spent
there. Nodes and edges that no run reached are pale, and the current node of an unfinished run is
highlighted. All child runs of one agent at one node are shown together on the agent's graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, final

from ..effects import AskHuman, CallTool, StartRun
from ..events import Event, Resumed
from ..graph import NodeGraph
from ..replay import journal_happenings, replay_steps
from ..run import Run
from .drawing import visible
from .levels import child_graphs
from .marks import Marks, Tally, Tone, Way, total

__all__ = ["Answered", "RunTrace", "Typed", "run_trace", "trace_marks"]

S = TypeVar("S")

Typed: TypeAlias = Callable[[NodeGraph[Any], Sequence[Event]], Sequence[Event]]
"""A function that returns a journal's events with the user's state in the graph's state type."""

Answered: TypeAlias = Callable[[Run[Any], AskHuman | CallTool], str]
"""A function that returns the stored answer to a pending effect of a parked run, or ""."""

_WAITS_MAX: Final = 3
_NO_JOURNALS: Final[Mapping[str, Sequence[Event]]] = MappingProxyType({})


@final
@dataclass(frozen=True)
class RunTrace:
    """How often one run reached each node and transition so far, and its cost at each node.

    Attributes:
        visits: how often the run entered each node, and END.
        ways: how often the run took each transition.
        spent: maps the name of a node to the time, tokens and money that the run spent there.
        node: the name of the run's current node.
        ended: the reason why the run ended; empty while it has not ended.
        waits: a text for each person, client tool or child run that the run waits for.
        children: maps a node and an agent to the traces of the child runs with known journals.
    """

    visits: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[Way] = field(default_factory=Counter[Way])
    spent: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    node: str = ""
    ended: str = ""
    waits: tuple[str, ...] = ()
    children: Mapping[Way, Sequence[RunTrace]] = field(
        default_factory=dict[Way, "Sequence[RunTrace]"]
    )


def run_trace(
    graph: NodeGraph[Any],
    events: Sequence[Event],
    journals: Mapping[str, Sequence[Event]] = _NO_JOURNALS,
    *,
    typed: Typed = lambda _, events: events,
    answered: Answered = lambda _, __: "",
) -> RunTrace:
    """Replay a journal, and return how often the run reached each node and transition.

    Args:
        graph: the run's graph.
        events: the run's journal.
        journals: maps the id of each descendant run, without the prefix of this run's id, to its
            journal.
        typed: converts the user's state in a journal's events to the graph's state type.
        answered: returns the stored answer to a pending effect that the journal lacks so far.

    Raises:
        StoreError: a journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit its graph.
    """
    events = typed(graph, events)
    targets = {(edge.source, edge.outcome): edge.target for edge in graph.edges}
    place, visits, ways = graph.start, Counter((graph.start,)), Counter[Way]()
    spent: dict[str, Tally] = {}
    started: dict[str, Way] = {}
    run: Run[Any] | None = None
    happened = journal_happenings(graph, events)
    for step, happenings in zip(replay_steps(graph, events), happened, strict=True):
        if run is not None:
            spent[run.node] = spent.get(run.node, Tally()) + _spent_between(
                run, step.run, step.event
            )
        for happening in happenings:
            # Splitting at the dot would fail, because names may contain dots.
            name = happening.words[0].removeprefix(f"outcome:{place}.")
            if name != happening.words[0]:
                way = (place, name)
                place = targets[way]
                ways[way] += 1
                visits[place] += 1
        run = step.run
        for effect in step.effects:
            if isinstance(effect, StartRun):
                started[effect.key] = (run.node, effect.agent)
    if run is None:
        return RunTrace()
    children: dict[Way, list[RunTrace]] = {}
    known = {child[:2]: child.graph for child in child_graphs(graph)} if journals else {}
    for key, way in started.items():
        if way in known and key in journals:
            below = {
                run_id.removeprefix(f"{key}/"): journal
                for run_id, journal in journals.items()
                if run_id.startswith(f"{key}/")
            }
            child = run_trace(known[way], journals[key], below, typed=typed, answered=answered)
            children.setdefault(way, []).append(child)
    ended = run.ending.reason if run.ended and run.ending is not None else ""
    return RunTrace(
        visits, ways, spent, run.node, ended, tuple(_wait_texts(run, answered)), children
    )


def trace_marks(graph: NodeGraph[Any], traces: Sequence[RunTrace]) -> Marks:
    """Return marks that show the traces of one or several runs on the diagram of their graph."""
    names = (*graph.nodes, "END")
    visited = {name for run in traces for name in run.visits}
    taken = {way for run in traces for way in run.ways}
    unvisited: dict[str, Tone] = {name: "weak" for name in names if name not in visited}
    here: dict[str, Tone] = {run.node: "lit" for run in traces if run.node and not run.ended}
    return Marks(
        title=_title_of(traces),
        nodes={name: words for name in names if (words := "\n".join(_waiting_runs(name, traces)))},
        node_tones=unvisited | here,
        way_tones={
            (edge.source, edge.outcome): "weak"
            for edge in graph.edges
            if (edge.source, edge.outcome) not in taken
        },
        visits={name: _visits_of(name, traces) for name in names if name in visited},
        passages={way: Tally(tuple([run.ways[way] for run in traces])) for way in taken},
        children={
            (node, name): trace_marks(
                child, [below for run in traces for below in run.children.get((node, name), ())]
            )
            for node, name, child in child_graphs(graph)
        },
    )


def _spent_between(before: Run[S], after: Run[S], event: Event) -> Tally:
    """Return the time, tokens and money that a run spent between two of its snapshots."""
    return Tally(
        # The time before `Resumed` does not count, because no driver worked on the run.
        seconds=0.0 if isinstance(event, Resumed) else max(0.0, after.at - before.at),
        tokens=after.spent.usage.total_tokens - before.spent.usage.total_tokens,
        usd=after.spent.cost_usd - before.spent.cost_usd,
    )


def _wait_texts(run: Run[S], answered: Answered) -> Iterator[str]:
    for effect in run.pending.values():
        match effect:
            case AskHuman(call=call) | CallTool(call=call, client=True):
                is_ask, name = isinstance(effect, AskHuman), visible(call.name)
                if answer := answered(run, effect):
                    yield f"{name}: {visible(answer)}, not resumed yet"
                else:
                    yield f"waits for {'approval of' if is_ask else 'the client tool'} {name}"
            case StartRun(agent=agent):
                yield f"waits for the agent {visible(agent)}"
            case _:
                pass


def _title_of(traces: Sequence[RunTrace]) -> str:
    if len(traces) == 1:
        return traces[0].ended or "not over"
    endings = Counter(run.ended or "not over" for run in traces)
    counts = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    return f"{len(traces)} runs: {counts}" if traces else "no run"


def _visits_of(name: str, traces: Sequence[RunTrace]) -> Tally:
    spent = total(run.spent[name] for run in traces if name in run.spent)
    return replace(spent, times=tuple([run.visits[name] for run in traces]))


def _waiting_runs(name: str, traces: Sequence[RunTrace]) -> Iterator[str]:
    """Yield the wait texts of the runs at a node: at most three, and the number of the others."""
    waits = [wait for run in traces if run.node == name for wait in run.waits]
    yield from waits[:_WAITS_MAX]
    if len(waits) > _WAITS_MAX:
        yield f"and {len(waits) - _WAITS_MAX} more"
