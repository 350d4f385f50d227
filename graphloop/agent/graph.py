"""Graph: the kernel's `NodeGraph` with methods that draw, check and run it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from .. import proofs, views
from ..graph import Edges, NodeGraph
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import Named, Policy
from ..rules import Rules
from ..tools import Approval as NeedsApproval
from ..tools import legal_name
from .child_runs import as_agent_tool
from .graph_checks import prepared, reasons_for_cycles
from .graph_terms import (
    BoundOptions,
    GraphAnswers,
    GraphOptions,
    GraphQuestion,
    graph_terms,
    new_run,
    passed_on,
    resumed_run,
)
from .result import RunResult
from .stream import RunStream
from .sub_agents import AgentTool
from .terms import RunTerms

if TYPE_CHECKING:
    from ..proofs import Bound, Comparison, Endless, Ignore, Report
    from ..views import Level

__all__ = ["Graph"]

S = TypeVar("S")


class Graph(NodeGraph[S]):
    """Nodes, and a table that says where each outcome of a node leads.

    In a row of the table, `...` stands for every other outcome.

        loop = Graph("ask-once", start=prepare, edges={
            prepare: {Ready: model, Calls: append, ...: END},
            model: {Failed: END, ...: append},
            append: {...: END},
        })

    Args:
        name: the graph's name in journals and diagrams.
        start: the node that a run begins at.
        edges: for each node, where each of its outcomes leads: to a node, or to `END`.
        state_type: the type of the state, if no `@node` function among the nodes names it.
        ignore: the reasons to set findings of `check` aside, by node and code. A graph with an
            unbounded cycle (GL4) runs only with a reason for it.

    Raises:
        GraphError: naming every problem, with its place and its fix.
        ConfigError: a finding is set aside without a reason.
    """

    @overload
    def __init__(
        self: Graph[None],
        name: str,
        start: Node[None, Outcome],
        edges: Edges[None],
        *,
        ignore: Ignore | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        start: Node[S, Outcome],
        edges: Edges[S],
        *,
        state_type: type[S] | None = None,
        ignore: Ignore | None = None,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        start: Node[Any, Outcome],
        edges: Edges[Any],
        *,
        state_type: type[S] | None = None,
        ignore: Ignore | None = None,
    ) -> None:
        # The overloads bind the state type; one implementation cannot say "S or None".
        super().__init__(name, start, edges)
        self.state_type, self._ignore = prepared(self, state_type, ignore)

    @property
    def prompt(self) -> str:
        """The prompt of a run without `prompt=` and `messages=`; only a topology file gives one."""
        return ""

    @property
    def ignore(self) -> Ignore:
        """The reasons to set findings of `check` aside, by node and code."""
        return self._ignore

    def unbounded(self, reason: str) -> Self:
        """Return this graph with its unbounded cycles (GL4) set aside, so that it runs."""
        ignore = reasons_for_cycles(self, reason, self._ignore, self.endless)
        changed = copy(self)
        changed._ignore = ignore
        del changed.__dict__["endless"]
        return changed

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return views.mermaid_of(views.picture(self))

    def dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        return views.dot_of(views.picture(self))

    def save(self, path: str | Path, *, level: Level = "node") -> Path:
        """Draw the graph into a file, by its suffix: svg, png, pdf, mmd, dot or txt.

        The level `phase` folds loops and agents into boxes. `detail` shows the contract of each
        node, and draws the graphs that nodes run.
        """
        views.save(self, path, level=level)
        return Path(path)

    def diff(self, later: NodeGraph[S], *, rules: Rules | Iterable[Rules] = ()) -> Comparison:
        """Return how a later graph differs from this graph, and which promises it lost.

        The `rules` are decided on both graphs. A rule that fits neither is a ConfigError.
        """
        return proofs.compare(self, later, rules)

    def check(
        self,
        *,
        rules: Rules | Iterable[Rules] = (),
        ignore: Ignore | None = None,
        tools: Iterable[str | Named] = (),
    ) -> Report:
        """Return what is proven of the graph; see `graphloop.check`."""
        return proofs.check(self, rules=rules, ignore=ignore or {}, tools=tools)

    @cached_property
    def endless(self) -> tuple[Endless, ...]:
        """The unbounded cycles that are not set aside; with any, the graph does not run."""
        return proofs.endless(self)

    def run_bound(self, **options: Unpack[BoundOptions[S]]) -> Bound:
        """Return the worst case of a run with these options, with the agents that it may call.

        `graphloop.proofs.bound` gives the bound of the table alone.
        """
        known = (options.get("context_window"), options.get("model_price"))
        return self._terms(options).bound(*known)

    def stream(self, state: S, **question: Unpack[GraphQuestion[S]]) -> RunStream[S]:
        """Return the stream of a new run of this graph.

        Args:
            state: the state of your own nodes; None without such nodes.
            question: the prompt or the conversation, and the options; see `GraphQuestion`.
        """
        return new_run(self, self._terms(question), state, question, self.prompt)

    async def run(self, state: S, **question: Unpack[GraphQuestion[S]]) -> RunResult[S]:
        """Run this graph to its end; arguments as for `stream`, errors as for `Agent.generate`."""
        return await self.stream(state, **question).result()

    def resume_stream(
        self, run: str | RunResult[S], **answers: Unpack[GraphAnswers[S]]
    ) -> RunStream[S]:
        """Return the stream of a run of this graph that parked, or whose process died.

        Args:
            run: its id in the `store` of the options, or the result that parked.
            answers: the answers, and the options that the run started with; see `GraphAnswers`.
        """
        return resumed_run(self, self._terms(answers), run, answers)

    async def resume(
        self, run: str | RunResult[S], **answers: Unpack[GraphAnswers[S]]
    ) -> RunResult[S]:
        """Resume a run of this graph; arguments as for `resume_stream`."""
        return await self.resume_stream(run, **answers).result()

    def as_tool(
        self,
        state: S,
        *,
        description: str,
        name: str = "",
        needs_approval: NeedsApproval = False,
        takes_over: bool = False,
        **options: Unpack[GraphOptions[S]],
    ) -> AgentTool:
        """Return this graph as a tool of agents, or as the agent of a `Child` node.

        Each call is a child run, which begins with `state`. The other arguments are those of
        `Agent.as_tool`, and `GraphOptions`.
        """
        return as_agent_tool(
            self._terms(options),
            state=state,
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
        )

    def as_sub_agent(self, name: str, options: Mapping[str, object]) -> AgentTool:
        """Return this graph for nodes that name it; it asks the run's model."""
        return as_agent_tool(self._terms(passed_on(options)), name=legal_name(name))

    def _terms(self, options: GraphOptions[S], own_gates: Policy | None = None) -> RunTerms[S]:
        return graph_terms(self, options, self.endless, own_gates)
