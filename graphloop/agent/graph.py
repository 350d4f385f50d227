"""Graph: a topology that can be drawn, checked and run.

The table and its rules are the kernel's (`graphloop.graph`); this adds the doors to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

from .. import graph as kernel
from .. import proofs, views
from ..driver import Callback
from ..errors import ConfigError
from ..events import Event
from ..graph import Edges
from ..limits import ModelPrice
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import Approval, Named, Policy
from ..rules import Rules
from ..run import Run
from ..spending import Budget
from ..stores import Posted, Store
from ..tools import Approval as NeedsApproval
from ..tools import legal_name
from ..views import dot_of, mermaid_of, picture
from .answers import Answers
from .bindings import check_carried
from .graph_runner import reasoned, refuse_odd_agents, runner_of
from .hooks import Model
from .inputs import MessageInput
from .options import PASSED_ON, RunOptions
from .result import RunResult
from .runner import Question, Runner
from .runs import Runs
from .states import state_type_of
from .stream import RunStream
from .sub_agents import AgentTool, as_agent_tool

if TYPE_CHECKING:
    from ..proofs import Bound, Comparison, Endless, Ignore, Report
    from ..views import Level

__all__ = ["Graph"]

S = TypeVar("S")


class Graph(kernel.Graph[S]):
    """A topology: nodes, and for each of their outcomes where it leads.

    In a row, `...` stands for every outcome not named there.

        loop = Graph("ask-once", start=prepare, edges={
            prepare: {Ready: model, Calls: append, ...: END},
            model: {Failed: END, ...: append},
            append: {...: END},
        })

    Args:
        name: the graph's name in journals and diagrams.
        start: the node that a run begins at.
        edges: for every node, where each of its outcomes leads: another node, or `END`.
        state_type: the type of the state, where no function among the nodes (`@node`) tells it.
        ignore: why findings of `check` are set aside, by node and code. A graph with a cycle that
            nothing bounds (GL4) runs only if the reason stands here.

    Raises:
        GraphError: with every problem found, each with its place and its fix.
        ConfigError: something is set aside for no reason.
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
        refuse_odd_agents(self.nodes)
        self._ignore = reasoned(ignore or {})
        check_carried(self)
        self.state_type = cast("type[S] | None", state_type_of(self, state_type))

    @property
    def prompt(self) -> str:
        """The prompt of a run without one; empty, unless its file says it."""
        return ""

    @property
    def ignore(self) -> Ignore:
        """Why findings of the checker are set aside, by node and code."""
        return self._ignore

    def unbounded(self, reason: str) -> Self:
        """Return this graph with its cycles without a bound (GL4) set aside, so that it runs."""
        if not self.endless:
            raise ConfigError(f"graph {self.name!r} is bounded: it needs no reason to run")
        every = proofs.endless(self, every=True)
        reasons = {(one.node, "GL4"): reason for one in every}
        changed = copy(self)
        changed._ignore = reasoned({**self._ignore, **reasons})
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

        `phase` folds loops, agents or the phases of a loop into boxes; `detail` tells what each
        node promises, and draws the graphs that nodes run.
        """
        views.draw(self, path, level=level)
        return Path(path)

    def diff(self, later: kernel.Graph[S], *, rules: Rules | Iterable[Rules] = ()) -> Comparison:
        """Return how a later graph differs from this one, and what it promises less.

        `rules` are decided on both graphs; one that means nothing in either is a ConfigError.
        """
        return proofs.compare(self, later, rules)

    def check(
        self,
        *,
        rules: Rules | Iterable[Rules] = (),
        ignore: Ignore | None = None,
        tools: Iterable[str | Named] = (),
    ) -> Report:
        """Prove what can be proven of the graph; see `graphloop.check`."""
        return proofs.check(self, rules=rules, ignore=ignore or {}, tools=tools)

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

        Agents that models call as tools count where the graph knows them; see `run_bound`. Counted
        are `max_tokens` of one reply, the largest `context_window`, the dearest `price`, and
        `agents` that are known by name only.
        """
        return proofs.bound(
            self,
            budget=budget,
            max_tokens=max_tokens,
            context_window=context_window,
            price=price,
            agents=agents,
        )

    @cached_property
    def endless(self) -> tuple[Endless, ...]:
        """The cycles without a bound that are not set aside: with one, the graph does not run."""
        return proofs.endless(self)

    def run_bound(
        self,
        *,
        model: Model | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        context_window: int | None = None,
        model_price: ModelPrice | None = None,
        **options: Unpack[RunOptions],
    ) -> Bound:
        """Return the most that a run with these options can come to, with the agents it may call.

        `model`, `callbacks` and the options are those of `stream`; the rest is of `bound`.
        """
        runner = self._runner(model, callbacks, options)
        return runner.bound(context_window=context_window, price=model_price)

    def stream(
        self,
        state: S,
        *,
        model: Model | None = None,
        prompt: str | None = None,
        messages: Sequence[MessageInput] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        run_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunStream[S]:
        """Return the stream of a new run of this graph.

        Args:
            state: the state that your own nodes carry; None if there are none.
            model: the model of every node that names none; not needed where no node asks one.
            prompt: the question, or
            messages: the conversation so far; neither is needed where no node asks a model, or
                the graph's file has a `prompt`.
            callbacks: the functions that nodes invoke by name; those of `@node` come along.
            run_id: the run's id in the store; made up if not given.
            options: see `RunOptions`.
        """
        runner = self._runner(model, callbacks, options)
        return _closing(runner.start(self._question(prompt, messages, run_id), state), runner)

    async def run(
        self,
        state: S,
        *,
        model: Model | None = None,
        prompt: str | None = None,
        messages: Sequence[MessageInput] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        run_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[S]:
        """Run this graph to its end; arguments as for `stream`, errors as for `Agent.generate`."""
        runner = self._runner(model, callbacks, options)
        stream = runner.start(self._question(prompt, messages, run_id), state)
        return await _closing(stream, runner).result()

    async def resume(
        self,
        run: str | RunResult[S],
        *,
        model: Model | None = None,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[S]:
        """Take up a run of this graph that parked, or whose process died.

        `run` is its id in the `store` of the options, or the result that parked. `model`,
        `callbacks` and options are those it started with; the rest is of `Agent.resume`.
        """
        stream = self.resume_stream(
            run,
            model=model,
            approvals=approvals,
            tool_results=tool_results,
            callbacks=callbacks,
            **options,
        )
        return await stream.result()

    def as_tool(  # noqa: PLR0913 - a tool's parts, and what a run of the graph needs
        self,
        state: S,
        *,
        model: Model | None = None,
        description: str,
        name: str = "",
        needs_approval: NeedsApproval = False,
        takes_over: bool = False,
        callbacks: Mapping[str, Callback[S]] | None = None,
        **options: Unpack[RunOptions],
    ) -> AgentTool:
        """Return this graph as a tool of agents, or as the agent of a `Child` node.

        Each call is a child run, which begins with `state`. `model`, `callbacks` and the options
        are those of `stream`, the rest is of `Agent.as_tool`.
        """
        return as_agent_tool(
            self._runner(model, callbacks, options, state),
            name=name or self.name,
            description=description,
            needs_approval=needs_approval,
            takes_over=takes_over,
        )

    def as_sub_agent(
        self, name: str, model: Model | None, options: Mapping[str, object]
    ) -> AgentTool:
        """Return this graph, which asks the run's model, for the nodes that name it."""
        passed = cast("RunOptions", {key: options[key] for key in PASSED_ON if key in options})
        runner = self._runner(model, None, passed)
        return as_agent_tool(runner, name=legal_name(name), description="")

    def resume_stream(
        self,
        run: str | RunResult[S],
        *,
        model: Model | None = None,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunStream[S]:
        """Return the stream of a run taken up again; the arguments are those of `resume`."""
        runner = self._runner(model, callbacks, options)
        stream = runner.resume(run, Answers.given(approvals, tool_results))
        return _closing(stream, runner)

    async def replay(
        self,
        run: str | Sequence[Event],
        *,
        store: Store | str | Path | None = None,
        upto: int | None = None,
    ) -> Run[S]:
        """Return a run of this graph as it stood after event `upto`; see `Runs.replay`."""
        return await Runs(store, self).replay(run, upto=upto)

    async def fork(
        self,
        run_id: str,
        *,
        store: Store | str | Path,
        at: int,
        new_id: str | None = None,
        share_approvals: bool = False,
    ) -> str:
        """Copy a run of this graph up to event `at`, and return the new id; see `Runs.fork`."""
        runs = Runs(store, self)
        return await runs.fork(run_id, at=at, new_id=new_id, share_approvals=share_approvals)

    async def approve(
        self,
        run_id: str,
        key: str,
        answer: bool | Approval = True,  # noqa: FBT001, FBT002 - `approve(run, key, False)` denies
        *,
        store: Store | str | Path,
    ) -> Posted:
        """Answer a call that a parked run waits for, without driving it; see `Runs.approve`."""
        return await Runs(store, self).approve(run_id, key, answer)

    def _runner(
        self,
        model: Model | None,
        callbacks: Mapping[str, Callback[S]] | None,
        options: RunOptions,
        child_state: S | None = None,
    ) -> Runner[S]:
        return runner_of(
            self,
            model,
            callbacks or {},
            options,
            own_gates=self._own_gates(),
            child_state=child_state,
            endless=self.endless,
        )

    def _question(
        self, prompt: str | None, messages: Sequence[MessageInput] | None, run_id: str | None
    ) -> Question:
        if prompt is None and messages is None:
            prompt = self.prompt or None
        return Question(prompt, messages, None, run_id)

    def _own_gates(self) -> Policy | None:
        return None


def _closing(stream: RunStream[S], runner: Runner[S]) -> RunStream[S]:
    """Have the stream close what was opened for it; a provider that was given stays open."""
    stream.on_over = partial(runner.aclose, shared=False)
    return stream
