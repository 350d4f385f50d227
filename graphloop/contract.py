"""Contract: what a node promises to the proofs, beside its kind and its outcomes.

The proofs believe contracts, so a proof is as good as what its contracts say. The nodes of this
package have contracts. A node of your own has one in its attribute `contract`. Without it, the
proofs take it that the node may do anything, and prove nothing that depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, final

from .graph import NodeGraph
from .node_protocol import Node
from .outcomes import Aborted, Calls, Failed, Outcome
from .policy import Rule
from .spending import Budget

__all__ = ["BROKEN", "Cap", "ChildContract", "Contract", "Moves", "contract_of", "needs_turn"]

S = TypeVar("S")

Moves: TypeAlias = Literal[
    "turn", "close", "reply", "again", "question", "note", "end", "broken", "perhaps"
]
"""What a visit moves on.

- `turn`: it opens a turn, which has no calls and no verdicts.
- `close`: it closes the turn in progress; all calls of the turn are answered.
- `reply`: a new reply of a model takes the place of the turn's.
- `again`: the same turn is opened once more if its model was asked, unless it is closed before. A
  node with such an outcome leaves by an outcome that moves `end` only if the model was asked.
- `question`: the run has a new question; its answer is judged as a first one.
- `note`: it notes feedback for the turn, and the run has no ending.
- `end`: the run has an ending that is no answer.
- `broken`: the run has failed, or was stopped.
- `perhaps`: none of the moves beside it is sure, and noted feedback may be gone.
"""

BROKEN: Final[frozenset[Moves]] = frozenset({"broken"})
"""The moves of an outcome by which a run fails, or is stopped."""

NONE: Final[frozenset[Moves]] = frozenset()
BREAKS: Final = frozenset({Failed, Aborted})


@final
@dataclass(frozen=True, slots=True)
class Cap:
    """How often a node leaves by one outcome at most.

    Args:
        times: the most visits that leave by it, in a run or since a reset.
        counts: the moves that are counted; if empty, the visits themselves. A counter of moves
            bounds the outcome only where each way from it back to it surely moves one of them.
            Before the first move, a run may leave by the outcome one time more.
        resets: the moves that set the counter back; if empty, nothing does.
    """

    times: int
    counts: frozenset[Moves] = frozenset()
    resets: frozenset[Moves] = frozenset()

    @property
    def never(self) -> bool:
        """Whether no visit leaves by the outcome."""
        return self.times <= 0 and not self.counts


@final
@dataclass(frozen=True, slots=True)
class ChildContract:
    """The known facts of a child that a node runs.

    Args:
        name: the child's name; for an agent, the name that runs know it by.
        graph: its graph, which is proven and bounded as well; None if it is not known.
        reads: the fields of the parent's state that it reads; None if they are not known.
        writes: the fields of the parent's state that it replaces; None if they are not known. A
            field that a reducer puts together is not among them.
        gate_rules: the rules of its own gate, beside those of its parents; None for no gate.
        budget: what it may spend, if that is not what its parent has remaining.
        many: whether other runs, of it or of another child, may be under way beside it.
        runs: how many runs of it one visit starts at most; None if that is not known.
        needs: how many of its runs must succeed.
    """

    name: str
    graph: NodeGraph[Any] | None = None  # A child's state is of its own type.
    reads: frozenset[str] | None = frozenset()
    writes: frozenset[str] | None = frozenset()
    gate_rules: tuple[Rule, ...] | None = None
    budget: Budget | None = None
    many: bool = False
    runs: int | None = 1
    needs: int = 0


@final
@dataclass(frozen=True, slots=True)
class Contract:
    """The promise of a node.

    A node that leaves by `Calls` and opens a turn takes up open calls: entered with some, it
    leaves by nothing else.

    Args:
        caps: for outcomes that the node takes a bounded number of times, their bounds.
        moves: what a visit has moved on, by the outcome that it leaves by; nothing by others. By
            `Failed` and `Aborted`, it may have moved what any of its outcomes moves.
        model_calls: how many models one visit asks at most; None if that is not known.
        tools: whether a visit may run tools.
        asks: whether a visit may wait for a person.
        children: the agents and graphs that a visit may run.
        reads: the fields of the user's state that a visit reads; None if they are not known.
        writes: the fields that a visit has written for sure, by outcome; None if they are not
            known. An empty mapping: no visit writes anything.
        functions: the names of the functions that a visit may invoke; a run looks them up before
            it starts.
    """

    caps: Mapping[type[Outcome], Cap] = field(default_factory=dict[type[Outcome], Cap])
    moves: Mapping[type[Outcome], frozenset[Moves]] = field(
        default_factory=dict[type[Outcome], frozenset[Moves]]
    )
    model_calls: int | None = 0
    tools: bool = False
    asks: bool = False
    children: tuple[ChildContract, ...] = ()
    reads: frozenset[str] | None = frozenset()
    writes: Mapping[type[Outcome], frozenset[str]] | None = field(
        default_factory=dict[type[Outcome], frozenset[str]]
    )
    functions: tuple[str, ...] = ()

    @property
    def takes_up_calls(self) -> bool:
        """Whether a visit that begins with open calls opens a turn of them."""
        return "turn" in self.moved(Calls)

    @property
    def opens_again(self) -> bool:
        """Whether a visit may have the same turn opened once more."""
        return any("again" in moved for moved in self.moves.values())

    @property
    def fields_written(self) -> frozenset[str]:
        """The fields that some outcome has surely written."""
        return frozenset[str]().union(*(self.writes or {}).values())

    def never(self, outcome: type[Outcome]) -> bool:
        """Return whether no visit leaves by `outcome`."""
        cap = self.caps.get(outcome)
        return cap is not None and cap.never

    def may_move(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return what a visit that leaves by `outcome` may have moved on."""
        moved = self.moves.get(outcome, NONE)
        return (moved.union(*self.moves.values()) if outcome in BREAKS else moved) - {"perhaps"}

    def moved(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return what a visit that leaves by `outcome` has moved on for sure."""
        moved = self.moves.get(outcome, NONE)
        return NONE if "perhaps" in moved else moved

    def keeps(self, outcome: type[Outcome]) -> bool:
        """Return whether noted feedback is still noted, and the ending is as before."""
        return not self.moves.get(outcome) and outcome not in BREAKS

    def written(self, outcome: type[Outcome]) -> frozenset[str]:
        """Return the fields that a visit that leaves by `outcome` has written for sure."""
        return (self.writes or {}).get(outcome, frozenset())


def contract_of(node: Node[S, Outcome]) -> Contract | None:
    """Return what `node` promises, or None if it promises nothing."""
    promised = getattr(node, "contract", None)
    return promised if isinstance(promised, Contract) else None


def needs_turn(node: Node[S, Outcome]) -> bool:
    """Return whether a node asks a model in a turn that another node opens."""
    promised = contract_of(node)
    if node.kind != "model" or promised is None:
        return False
    return not any("turn" in moved for moved in promised.moves.values())
