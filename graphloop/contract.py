"""Contract: facts about a node that proofs rely on, in addition to its kind and its outcomes.

Proofs take contracts as true, so a wrong contract can make a proof wrong. The nodes of this package
have contracts. A node of your own has its contract in the attribute `contract`. Without a contract,
proofs assume that the node may do anything, and prove nothing that depends on the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, final

from msgspec import Struct

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
"""The changes ("moves") that a visit of a node can make to a run, as far as proofs track them.

- `turn`: the visit opens a turn, which has no calls and no verdicts.
- `close`: the visit closes the turn in progress; all calls of the turn have results.
- `reply`: a new reply of a model replaces the reply of the turn.
- `again`: the turn in progress will be opened once more if its model was asked, unless a node
  closes the turn first. A node with this move makes the move `end` only if the model was asked.
- `question`: the run has a new user question; checks treat its answer as a first answer.
- `note`: the visit notes feedback for the turn, and removes the run's ending.
- `end`: the run gets an ending that is not an answer.
- `broken`: the run has failed, or was stopped.
- `perhaps`: each other move in the set may be missing, and noted feedback may be lost.
"""

BROKEN: Final[frozenset[Moves]] = frozenset({"broken"})
"""The moves of an outcome by which a run fails or is stopped."""

NONE: Final[frozenset[Moves]] = frozenset()
BREAKS: Final = frozenset({Failed, Aborted})


@final
class Cap(Struct, frozen=True, gc=False):
    """The limit on how often a node leaves by one outcome.

    Args:
        times: the maximum number of exits by the outcome, in a run or since the last reset.
        counts: the moves that are counted in place of exits; empty to count exits. Counted moves
            bound the outcome only if every path from the outcome back to itself surely makes one
            of them. Before the first counted move, one extra exit is possible.
        resets: the moves that set the counter back to 0; empty for none.
        instead: the outcome by which the node leaves a run that was stopped. The node then never
            leaves by the capped outcome, nor once the run's budget is spent. None for no such
            promise.
    """

    times: int
    counts: frozenset[Moves] = frozenset()
    resets: frozenset[Moves] = frozenset()
    instead: type[Outcome] | None = None

    @property
    def never(self) -> bool:
        """Whether the limit rules out every exit by the outcome."""
        return self.times <= 0 and not self.counts


@final
@dataclass(frozen=True, slots=True)
class ChildContract:
    """The facts about a child agent or graph of a node that are known before a run.

    Args:
        name: the child's name; for an agent, the name that runs use for the agent.
        graph: the child's graph, which is proven and bounded as well; None if unknown.
        reads: the fields of the parent's state that the child reads; None if unknown.
        writes: the fields of the parent's state that the child replaces; None if unknown. Fields
            that a reducer combines are not included.
        gate_rules: the rules of the child's own gate, in addition to its parents' rules; None for
            no gate.
        budget: the child's own budget; None for the budget that its parent has remaining.
        many: whether other child runs may be in progress at the same time.
        runs: the maximum number of runs of this child per visit; None if unknown.
        needs: the number of runs of this child that must succeed.
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
    """The facts about a node that proofs rely on; the author of the node guarantees them.

    If the outcome `Calls` has the move `turn`, the node resumes unanswered calls: a run that enters
    the node with such calls always leaves by `Calls`.

    Args:
        caps: for each outcome with a limited number of exits, its limit.
        moves: for each outcome, the `Moves` of a visit that leaves by it; none for the others.
            A visit that leaves by `Failed` or `Aborted` may have made the moves of any outcome.
        model_calls: the maximum number of model calls per visit; None if unknown.
        tools: whether a visit may run tools.
        asks: whether a visit may wait for a person.
        children: the agents and graphs that a visit may run.
        reads: the fields of the user's state that a visit reads; None if unknown.
        writes: for each outcome, the fields that a visit has surely written; None if unknown. An
            empty mapping means that no visit writes any field.
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
        """Whether a visit that begins with unanswered calls opens a turn for these calls."""
        return "turn" in self.moved(Calls)

    @property
    def opens_again(self) -> bool:
        """Whether a visit may cause the turn in progress to be opened once more."""
        return any("again" in moved for moved in self.moves.values())

    @property
    def fields_written(self) -> frozenset[str]:
        """The fields that a visit surely writes by at least one of the outcomes."""
        return frozenset[str]().union(*(self.writes or {}).values())

    @property
    def once_stopped(self) -> type[Outcome] | None:
        """The outcome by which the node leaves a stopped run (`Cap.instead`); None if unknown."""
        return next((cap.instead for cap in self.caps.values() if cap.instead is not None), None)

    def never(self, outcome: type[Outcome]) -> bool:
        """Return whether the node's limits rule out every exit by `outcome`."""
        cap = self.caps.get(outcome)
        return cap is not None and cap.never

    def may_move(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return the moves that a visit may have made if it leaves by `outcome`."""
        moved = self.moves.get(outcome, NONE)
        return (moved.union(*self.moves.values()) if outcome in BREAKS else moved) - {"perhaps"}

    def moved(self, outcome: type[Outcome]) -> frozenset[Moves]:
        """Return the moves that a visit has surely made if it leaves by `outcome`."""
        moved = self.moves.get(outcome, NONE)
        return NONE if "perhaps" in moved else moved

    def keeps(self, outcome: type[Outcome]) -> bool:
        """Return whether an exit by `outcome` keeps noted feedback and the run's ending."""
        return not self.moves.get(outcome) and outcome not in BREAKS

    def written(self, outcome: type[Outcome]) -> frozenset[str]:
        """Return the fields that a visit has surely written if it leaves by `outcome`."""
        return (self.writes or {}).get(outcome, frozenset())


def contract_of(node: Node[S, Outcome]) -> Contract | None:
    """Return the contract in the attribute `contract` of a node, or None if it has none."""
    promised = getattr(node, "contract", None)
    return promised if isinstance(promised, Contract) else None


def needs_turn(node: Node[S, Outcome]) -> bool:
    """Return whether a model node needs another node to open its turn first."""
    promised = contract_of(node)
    if node.kind != "model" or promised is None:
        return False
    return not any("turn" in moved for moved in promised.moves.values())
