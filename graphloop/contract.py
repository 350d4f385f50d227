"""Contract: what a node promises to the proofs, beside its kind and its outcomes.

A proof about a graph is only as good as what is known of its nodes. The nodes of this package say
what they do; a node of one's own says it with a `contract` attribute or is taken at the worst:
what nobody has promised is unknown, and unknown is never proven (DESIGN §6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, final

from .graph import NodeGraph
from .node_protocol import Node
from .outcomes import Outcome
from .policy import Rule
from .spending import Budget

__all__ = ["Cap", "ChildContract", "Contract", "Join", "Moves", "contract_of", "needs_turn"]

S = TypeVar("S")

Moves: TypeAlias = Literal["turn", "step", "reply", "close", "again", "question"]
"""What a visit moves on.

`turn`: a turn is opened, with no calls and no verdicts. `step`: a step is added to the run's
record. `reply`: a model's new reply takes the place of the turn's. `close`: the turn in progress
is closed, its calls answered. `again`: if its model was asked, the turn is opened once more, as the
same one, unless it is closed before. `question`: somebody has asked anew, and the answer to that is
judged as a first one.
"""

Join: TypeAlias = Literal["all", "first", "collect"]
"""Which children a node waits for: all (one failure fails it), the first, all whatever they do."""


@final
@dataclass(frozen=True, slots=True)
class Cap:
    """How often one outcome is taken at most.

    Args:
        times: at most so often, from the run's beginning or since the counter was set back.
        counts: what the counter counts. Empty: it counts the outcome itself. Otherwise the bound
            holds only where every way from the outcome back to itself surely moves one of these;
            and a run that comes to the outcome before any of them has moved has one time more.
        resets: what sets the counter back; empty for nothing.
    """

    times: int
    counts: frozenset[Moves] = frozenset()
    resets: frozenset[Moves] = frozenset()

    @property
    def never(self) -> bool:
        """Whether the outcome is never taken at all."""
        return self.times <= 0 and not self.counts


@final
@dataclass(frozen=True, slots=True)
class ChildContract:
    """What is known of a child that a node runs.

    Args:
        name: the child's name within its node.
        graph: its graph, if that is known; it is proven, and bounded, as well.
        reads: the fields of the parent's state that it reads; None if that is not known.
        writes: the fields of the parent's state that it writes; None if that is not known.
        gate_rules: its own gate's rules, which apply beside those of its parents; None for none.
        budget: what it may spend, if that differs from what its parent has left.
        many: whether several runs of it may be under way at once.
        runs: how many runs of it one visit begins at most; None if that is not known.
    """

    name: str
    graph: NodeGraph[Any] | None = None  # A child's state is of its own type.
    reads: frozenset[str] | None = frozenset()
    writes: frozenset[str] | None = frozenset()
    gate_rules: tuple[Rule, ...] | None = None
    budget: Budget | None = None
    many: bool = False
    runs: int | None = 1


@final
@dataclass(frozen=True, slots=True)
class Contract:
    """What a node promises.

    Args:
        caps: for the outcomes that the node itself takes a bounded number of times.
        moves: what one visit may move on, whatever outcome it leaves by.
        moves_by: what only a visit that leaves by that outcome may move on as well.
        surely: what a visit that leaves by that outcome has moved on for sure.
        at_first: the outcomes by which a run may once leave without having moved what a visit that
            leaves by them surely moves: with a conversation that it was handed.
        only_asked: the outcomes it leaves by only if the turn's model was asked.
        ends_by: the outcomes with which the run has an ending that is no answer.
        breaks_by: those with which it is broken off: it failed, or was stopped.
        once_ended: entered by a run that has such an ending, the node leaves by these alone, and
            leaves the ending as it is; None if it may do anything.
        once_broken: the same for a run that is broken off.
        notes: the outcomes with which feedback is noted for the turn, and no ending is left.
        keeps: the outcomes with which noted feedback is still noted, and a run that had no ending
            has none.
        once_noted: entered straight from an outcome that `notes`, or with nothing in between but
            visits that left by what `keeps`, the node leaves by these alone; None if it may do
            anything.
        settles: entered with open calls, the node opens a turn of these calls and leaves by
            `Calls`, and by nothing else.
        model_calls: how many models one visit asks at most; None if that is not known.
        agents: the agents whose runs a visit may start, by name.
        tools: whether a visit may run tools.
        asks: whether a visit may wait for a person.
        reads: the fields of the user's state that a visit reads; None if that is not known.
        writes: those that it writes, whatever outcome it leaves by; None if that is not known.
        unwritten: those among them that a visit may not have written that leaves by that outcome.
        children: the graphs that a visit runs, as far as they are known.
        join: which of its children it waits for; None for a node without parallel children.
        needs: how many children must succeed; None for what `join` says.
        reducers: the fields that several children may write, since a reducer puts them together.
        functions: the names of the functions that a visit may invoke: looked up before a run.
    """

    caps: Mapping[type[Outcome], Cap] = field(default_factory=dict[type[Outcome], Cap])
    moves: frozenset[Moves] = frozenset()
    model_calls: int | None = 0
    agents: tuple[str, ...] = ()
    tools: bool = False
    asks: bool = False
    reads: frozenset[str] | None = frozenset()
    writes: frozenset[str] | None = frozenset()
    moves_by: Mapping[type[Outcome], frozenset[Moves]] = field(
        default_factory=dict[type[Outcome], frozenset[Moves]]
    )
    surely: Mapping[type[Outcome], frozenset[Moves]] = field(
        default_factory=dict[type[Outcome], frozenset[Moves]]
    )
    at_first: frozenset[type[Outcome]] = frozenset()
    only_asked: frozenset[type[Outcome]] = frozenset()
    ends_by: frozenset[type[Outcome]] = frozenset()
    breaks_by: frozenset[type[Outcome]] = frozenset()
    once_ended: frozenset[type[Outcome]] | None = None
    once_broken: frozenset[type[Outcome]] | None = None
    notes: frozenset[type[Outcome]] = frozenset()
    keeps: frozenset[type[Outcome]] = frozenset()
    once_noted: frozenset[type[Outcome]] | None = None
    settles: bool = False
    unwritten: Mapping[type[Outcome], frozenset[str]] = field(
        default_factory=dict[type[Outcome], frozenset[str]]
    )
    children: tuple[ChildContract, ...] = ()
    join: Join | None = None
    needs: int | None = None
    reducers: frozenset[str] = frozenset()
    functions: tuple[str, ...] = ()

    def never(self, outcome: type[Outcome]) -> bool:
        """Return whether no visit ever leaves by `outcome`."""
        cap = self.caps.get(outcome)
        return cap is not None and cap.never

    def may_move(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return what a visit that leaves by `outcome` may have moved on."""
        return self.moves | self.moves_by.get(outcome, frozenset()) | self.moved(outcome)

    def moved(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return what a visit that leaves by `outcome` has moved on for sure."""
        return self.surely.get(outcome, frozenset())

    def written(self, outcome: type[Outcome]) -> frozenset[str]:
        """Return what a visit that leaves by `outcome` has written for sure."""
        return (self.writes or frozenset()) - self.unwritten.get(outcome, frozenset())


def contract_of(node: Node[S, Outcome]) -> Contract | None:
    """Return what `node` promises, or None if it promises nothing."""
    promised = getattr(node, "contract", None)
    return promised if isinstance(promised, Contract) else None


def needs_turn(node: Node[S, Outcome]) -> bool:
    """Whether a node asks a model in a turn that another node must have opened."""
    promised = contract_of(node)
    return node.kind == "model" and promised is not None and "turn" not in promised.moves
