"""Graph: the kernel's `NodeGraph` with methods that draw, check and run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from ..tools import legal_name, run_sync
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
from .sub_agents import AgentTool, Place
from .terms import RunTerms

if TYPE_CHECKING:
    from ..proofs import Bound, Comparison, Endless, Ignore, Report
    from ..views import Level

__all__ = ["Graph"]

S = TypeVar("S")


class Graph(NodeGraph[S]):
    """Nodes, and a table that says where each outcome of a node leads.

    In a row of the table, `...` stands for all outcomes that the row does not list.

        loop = Graph("ask-once", start=prepare, edges={
            prepare: {Ready: model, Calls: append, ...: END},
            model: {Failed: END, ...: append},
            append: {...: END},
        })

    Args:
        name: the graph's name in journals and diagrams.
        start: the first node of each run.
        edges: maps each node to the target of each of its outcomes: a node, or `END`.
        state_type: the type of the state; by default the type that the `@node` functions declare.
        ignore: maps a node and a finding's code to the reason for ignoring this finding of `check`.
            A graph with an unbounded cycle (GL4) runs only if a reason is given for that cycle.

    Raises:
        GraphError: the graph is invalid; the message lists every problem with its place and fix.
        ConfigError: a finding is ignored without a reason.
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
        # The overloads infer the state type; one signature cannot express "S or None".
        super().__init__(name, start, edges)
        self.state_type, self._ignore = prepared(self, state_type, ignore)

    @property
    def prompt(self) -> str:
        """The default prompt of a run; empty unless the graph's topology file sets a prompt."""
        return ""

    @property
    def ignore(self) -> Ignore:
        """The reasons for ignoring findings of `check`, by node and code."""
        return self._ignore

    def unbounded(self, reason: str) -> Self:
        """Return a copy of this graph that may run despite its unbounded cycles (GL4)."""
        ignore = reasons_for_cycles(self, reason, self._ignore, self.endless)
        changed = copy(self)
        changed._ignore = ignore
        del changed.__dict__["endless"]
        return changed

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return views.mermaid_of(views.picture(self))

    def dot(self) -> str:
        """Return the graph as text in DOT, the language of Graphviz."""
        return views.dot_of(views.picture(self))

    def save(self, path: str | Path, *, level: Level = "node") -> Path:
        """Draw the graph into a file; its suffix sets the format: svg, png, pdf, mmd, dot, txt.

        Level `phase` draws each loop and each agent as a single box. Level `detail` adds the
        contract of each node, and the graphs that nodes run.
        """
        views.save(self, path, level=level)
        return Path(path)

    def diff(self, later: NodeGraph[S], *, rules: Rules | Iterable[Rules] = ()) -> Comparison:
        """Compare this graph with a later graph: return their differences and lost guarantees.

        Both graphs are checked against `rules`. A rule that fits neither graph is a ConfigError.
        """
        return proofs.compare(self, later, rules)

    def check(
        self,
        *,
        rules: Rules | Iterable[Rules] = (),
        ignore: Ignore | None = None,
        tools: Iterable[str | Named] = (),
    ) -> Report:
        """Check the graph, and return a report of findings and proofs; see `graphloop.check`."""
        return proofs.check(self, rules=rules, ignore=ignore or {}, tools=tools)

    @cached_property
    def endless(self) -> tuple[Endless, ...]:
        """The unbounded cycles without a reason in `ignore`; with such a cycle, no run starts."""
        return proofs.endless(self)

    def run_bound(self, **options: Unpack[BoundOptions[S]]) -> Bound:
        """Return the upper bound (model calls, tool calls, cost) of a run with these options.

        The bound includes the agents that the run may call. `graphloop.proofs.bound` returns the
        bound of the graph's table alone.
        """
        known = (options.get("context_window"), options.get("model_price"))
        return self._terms(options).bound(*known)

    def stream(self, state: S, **question: Unpack[GraphQuestion[S]]) -> RunStream[str, S]:
        """Return the stream of a new run of this graph.

        Args:
            state: the initial state for your own nodes; None if no node uses a state.
            question: the prompt or the conversation, and the options; see `GraphQuestion`.
        """
        return new_run(self, self._terms(question), state, question, self.prompt)

    async def run(self, state: S, **question: Unpack[GraphQuestion[S]]) -> RunResult[str, S]:
        """Run this graph until it ends or parks, and return the result.

        The arguments are those of `stream`, and the errors are those of `Agent.generate`.
        """
        return await self.stream(state, **question).result()

    def run_sync(self, state: S, **question: Unpack[GraphQuestion[S]]) -> RunResult[str, S]:
        """Run `run` in a new event loop and return its result, for synchronous callers.

        Raises:
            ConfigError: an event loop is running in this thread; await `Graph.run` there.
        """
        return run_sync(self.run(state, **question), "Graph.run")

    def resume_stream(
        self, run: str | RunResult[str, S], **answers: Unpack[GraphAnswers[S]]
    ) -> RunStream[str, S]:
        """Return the stream of a run that is resumed after it parked or its process died.

        Args:
            run: the run's id in the `store` option, or the `RunResult` of the parked run.
            answers: answers to pending calls, and the options that the run was started with; see
                `GraphAnswers`.
        """
        return resumed_run(self, self._terms(answers), run, answers)

    async def resume(
        self, run: str | RunResult[str, S], **answers: Unpack[GraphAnswers[S]]
    ) -> RunResult[str, S]:
        """Resume a run and return its result; the arguments are those of `resume_stream`."""
        return await self.resume_stream(run, **answers).result()

    def resume_sync(
        self, run: str | RunResult[str, S], **answers: Unpack[GraphAnswers[S]]
    ) -> RunResult[str, S]:
        """Run `resume` in a new event loop and return its result, for synchronous callers."""
        return run_sync(self.resume(run, **answers), "Graph.resume")

    def as_tool(  # noqa: PLR0913 - the options of `Agent.as_tool`
        self,
        state: S,
        *,
        description: str,
        name: str = "",
        needs_approval: NeedsApproval = False,
        takes_over: bool = False,
        deps: Callable[[Any], object] | None = None,
        place: Place = "here",
        **options: Unpack[GraphOptions[S]],
    ) -> AgentTool:
        """Return this graph as a tool that agents call, or as the agent of a `Child` node.

        Each call starts a child run with `state` as its initial state. The other arguments are
        those of `Agent.as_tool`, and `GraphOptions`.
        """
        return as_agent_tool(
            self._terms(options),
            state=state,
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
            deps=deps,
            place=place,
        )

    def as_sub_agent(self, name: str, options: Mapping[str, object]) -> AgentTool:
        """Return this graph as a tool for nodes that run it by `name`; it uses the run's model."""
        return as_agent_tool(self._terms(passed_on(options)), name=legal_name(name))

    def _terms(self, options: GraphOptions[S], own_gates: Policy | None = None) -> RunTerms[S]:
        return graph_terms(self, options, self.endless, own_gates)
