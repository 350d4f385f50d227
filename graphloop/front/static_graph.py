"""StaticGraph: what can be said of a topology before it runs: drawn, proven, bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ..contract import contract_of
from ..errors import ConfigError, GraphError
from ..graph import Edges, Graph
from ..model_price import ModelPrice
from ..naming import flaw_of
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import Named
from ..spending import Budget
from ..temporal import Rules
from ..views.dot import dot_of
from ..views.mermaid import mermaid_of
from ..views.picture import picture
from .node_parameters import odd_parameters

if TYPE_CHECKING:
    from ..overlays.levels import Level
    from ..proofs.compare import Comparison
    from ..proofs.endless import Endless
    from ..proofs.most import Bound
    from ..proofs.report import Report
    from ..proofs.suppression import Ignore

__all__ = ["StaticGraph"]

S = TypeVar("S")

GL4: Final = "GL4"
"""That every cycle is bounded."""


class StaticGraph(Graph[S]):
    """A topology that can be drawn and proven; `Graph` adds the doors to its runs.

    Args:
        name: the graph's name in journals and diagrams.
        start: the node that a run begins at.
        edges: for every node, where each of its outcomes leads.
        ignore: why findings of `check` are set aside, by node and code.

    Raises:
        GraphError: with every problem found.
        ConfigError: something is set aside for no reason.
    """

    def __init__(
        self, name: str, start: Node[S, Outcome], edges: Edges[S], ignore: Ignore | None = None
    ) -> None:
        odd = tuple(odd_parameters(edges))
        try:
            super().__init__(name, start, edges)
        except GraphError as error:
            raise GraphError(name, (*error.problems, *odd), error.written) from None
        if odd:
            raise GraphError(name, odd, str(self.source or ""))
        _refuse_odd_agents(self.nodes)
        self._ignore = _reasoned(ignore or {})

    @property
    def ignore(self) -> Ignore:
        """Why findings of the checker are set aside, by node and code."""
        return self._ignore

    def unbounded(self, reason: str) -> Self:
        """Return this graph with its cycles without a bound (GL4) set aside, so that it runs.

        Raises:
            ConfigError: there is no reason, or nothing to be set aside.
        """
        if not self.endless:
            raise ConfigError(f"graph {self.name!r} is bounded: it needs no reason to run")
        every = import_module("graphloop.proofs.endless").endless(self, every=True)
        reasons = {(one.node, GL4): reason for one in every}
        changed = copy(self)
        changed._ignore = _reasoned({**self._ignore, **reasons})
        del changed.__dict__["endless"]
        return changed

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return mermaid_of(picture(self))

    def dot(self) -> str:
        """Return the graph in Graphviz' language."""
        return dot_of(picture(self))

    def save(self, path: str | Path, *, level: Level = "node") -> Path:
        """Draw the graph into a file, by its suffix: svg, png, pdf, mmd, dot or txt.

        Args:
            path: the file.
            level: `phase` folds loops, agents or the phases of a loop into boxes; `detail` tells
                what each node promises, and draws the graphs that nodes run.

        Raises:
            ConfigError: another suffix, no such directory, or no Graphviz to be found.
        """
        import_module("graphloop.overlays.levels").draw(self, path, level=level)
        return Path(path)

    def diff(self, later: Graph[S], *, rules: Rules | Iterable[Rules] = ()) -> Comparison:
        """Return how a later graph differs from this one, and what it promises less.

        Args:
            later: what became of this graph.
            rules: temporal rules of your own, which are decided on both graphs.

        Raises:
            ConfigError: a rule means nothing in either graph.
        """
        module = import_module("graphloop.proofs.compare")
        comparison: Comparison = module.compare(self, later, rules)
        return comparison

    def check(
        self,
        *,
        rules: Rules | Iterable[Rules] = (),
        ignore: Ignore | None = None,
        tools: Iterable[str | Named] = (),
    ) -> Report:
        """Prove what can be proven of the graph; see `graphloop.check`.

        Args:
            rules: temporal rules of your own.
            ignore: reasons to set findings aside, by node and code, beside the graph's own.
            tools: all tools, or their names, that its runs may call.
        """
        module = import_module("graphloop.proofs.check")
        report: Report = module.check(self, rules=rules, ignore=ignore or {}, tools=tools)
        return report

    def bound(
        self,
        *,
        budget: Budget | None = None,
        max_tokens: int | None = None,
        context_window: int | None = None,
        price: ModelPrice | None = None,
        agents: Mapping[str, Bound] | None = None,
    ) -> Bound:
        """Return the most that one run can come to, or what has no bound and how to give it one.

        Agents that models call as tools are counted where the graph knows them; `run_bound` knows
        those of a run.

        Args:
            budget: what the run may spend.
            max_tokens: the token limit of one reply.
            context_window: how many tokens the largest of the models' windows holds.
            price: the price of the dearest of the models.
            agents: the bounds of agents that are known by name only.
        """
        bound: Bound = import_module("graphloop.proofs.bound").bound(
            self,
            budget=budget,
            max_tokens=max_tokens,
            context_window=context_window,
            price=price,
            agents=agents,
        )
        return bound

    @cached_property
    def endless(self) -> tuple[Endless, ...]:
        """The cycles that nothing bounds, and nobody has set aside: with one, it does not run."""
        # Who only runs agents never loads the proofs.
        look: Callable[[Graph[S]], tuple[Endless, ...]]
        look = import_module("graphloop.proofs.endless").endless
        return look(self)


def _refuse_odd_agents(nodes: Mapping[str, Node[S, Outcome]]) -> None:
    """Refuse agents by whose names nothing could be told of them: they stand before their nodes."""
    for name, node in nodes.items():
        promised = contract_of(node)
        if promised is None:
            continue
        for agent in (*promised.agents, *[child.name for child in promised.children]):
            if flaw := flaw_of(agent):
                raise ConfigError(
                    f"node {name!r} runs {agent!r:.80}, which is not an agent's name: {flaw}. "
                    "Fix: choose another"
                )


def _reasoned(ignore: Ignore) -> Ignore:
    for (node, code), reason in ignore.items():
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - users are not checked.
            raise ConfigError(
                f"`ignore` sets {code} of {node or 'the graph'!r} aside for no reason: say why, in "
                f"words; found {reason!r:.80}"
            )
    return dict(ignore)
