"""trace: what runs did, laid over the diagram of their graph; loops are folded, not flattened.

Counts stand at the outcomes that were taken, time, tokens and cost in the nodes that waited; what
no run has done is pale, and where a run stands is lit. All of it is replayed from journals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, final

from ..effects import AskHuman, CallTool, StartRun
from ..events import Event, Resumed
from ..graph import Graph
from ..replay import replay_steps
from ..run import Run
from ..temporal_journal import journal_happenings
from .drawing import visible
from .marks import Marks, Tone, Way

__all__ = ["Spending", "Trace", "trace", "trace_marks"]

S = TypeVar("S")

APART_MAX: Final = 4
"""Up to how many runs each one's count is told beside their sum."""

WAITS_MAX: Final = 3


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
    """

    visits: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[Way] = field(default_factory=Counter[Way])
    spent: dict[str, Spending] = field(default_factory=dict[str, Spending])
    node: str = ""
    ended: str = ""
    waits: tuple[str, ...] = ()


def trace(graph: Graph[S], events: Sequence[Event]) -> Trace:
    """Return what the run of a journal has done.

    Raises:
        StoreError: the journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    visits, ways = Counter((graph.start,)), Counter[Way]()
    spent: dict[str, Spending] = {}
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
    if run is None:
        return Trace()
    ended = run.ending.reason if run.ended and run.ending is not None else ""
    return Trace(visits, ways, spent, run.node, ended, tuple(_waits(run)))


def trace_marks(graph: Graph[S], traces: Sequence[Trace]) -> Marks:
    """Return what runs of `graph` did, as marks for its diagram."""
    ways = {(one.source, one.outcome) for one in graph.edges}
    names = (*graph.nodes, "END")
    seen_nodes = {name for one in traces for name in one.visits}
    seen_ways = {way for one in traces for way in one.ways}
    here = {one.node for one in traces if one.node and not one.ended}
    tones: dict[str, Tone] = {name: "weak" for name in names if name not in seen_nodes}
    lit: dict[str, Tone] = dict.fromkeys(here, "lit")
    return Marks(
        title=_title(traces),
        nodes={name: "\n".join(_lines(name, traces)) for name in names if name in seen_nodes},
        ways={way: _times([one.ways[way] for one in traces]) for way in seen_ways},
        node_tones=tones | lit,
        way_tones={way: "weak" for way in ways if way not in seen_ways},
    )


def _add(spending: Spending, before: Run[S], after: Run[S], event: Event) -> None:
    # Until a run is taken up again, nobody works on it.
    if not isinstance(event, Resumed):
        spending.seconds += max(0.0, after.at - before.at)
    spending.tokens += after.spent.usage.total_tokens - before.spent.usage.total_tokens
    spending.usd += after.spent.cost_usd - before.spent.cost_usd


def _waits(run: Run[S]) -> Iterator[str]:
    for effect in run.pending.values():
        match effect:
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
    return f"{len(traces)} runs: {told}"


def _lines(name: str, traces: Sequence[Trace]) -> Iterator[str]:
    """Yield what stands under a node's name."""
    yield _times([one.visits[name] for one in traces])
    spent = [one.spent[name] for one in traces if name in one.spent]
    facts = [
        _time(sum(one.seconds for one in spent)),
        _tokens(sum(one.tokens for one in spent)),
        _money(sum(one.usd for one in spent)),
    ]
    if told := ", ".join(fact for fact in facts if fact):
        yield told
    waits = [wait for one in traces if one.node == name for wait in one.waits]
    yield from waits[:WAITS_MAX]
    if len(waits) > WAITS_MAX:
        yield f"and {len(waits) - WAITS_MAX} more"


def _times(counts: Sequence[int]) -> str:
    each = f" ({'+'.join(f'{one:,}' for one in counts)})"
    return f"{sum(counts):,}x{each if 1 < len(counts) <= APART_MAX else ''}"


def _time(seconds: float) -> str:
    if seconds < 0.001:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _tokens(tokens: int) -> str:
    return f"{tokens:,} tokens" if tokens else ""


def _money(usd: float) -> str:
    return f"${usd:.4f}" if usd else ""
