"""Graph: a topology that can be drawn, checked and run.

The table and its rules are the kernel's (`graphloop.graph`); this adds the doors to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from .. import graph as kernel
from ..drivers.ports import Approval, Callback
from ..graph import Edges
from ..node import Node
from ..outcomes import Outcome
from ..tools import Toolbox
from ..views.dot import dot
from ..views.mermaid import mermaid
from .inputs import MessageInput
from .options import Model, RunOptions, reject_unknown
from .result import RunResult
from .runner import Runner
from .stream import RunStream

if TYPE_CHECKING:
    from ..proofs.report import Report

__all__ = ["Graph"]

S = TypeVar("S")


class Graph(kernel.Graph[S]):
    """A topology: nodes, and for each of their outcomes where it leads.

    In a row, `...` stands for every outcome not named there.

        loop = Graph("ask-once", start=prepare, edges={
            prepare: {Ready: model, ...: END},
            model: {Answered: append, ...: END},
            append: {...: END},
        })

    Args:
        name: the graph's name in journals and diagrams.
        start: the node that a run begins at.
        edges: for every node, where each of its outcomes leads: another node, or `END`.
        state_type: the type of the state that your own nodes carry, for journals.

    Raises:
        GraphError: with every problem found, each with its place and its fix.
    """

    @overload
    def __init__(
        self: Graph[None], name: str, start: Node[None, Outcome], edges: Edges[None]
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, start: Node[S, Outcome], edges: Edges[S], *, state_type: type[S]
    ) -> None: ...
    def __init__(
        self,
        name: str,
        start: Node[Any, Outcome],
        edges: Edges[Any],
        *,
        state_type: type[S] | None = None,
    ) -> None:
        # The overloads bind the state type; one implementation cannot say "S or None".
        super().__init__(name, start, edges)
        self.state_type = state_type

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return mermaid(self)

    def dot(self) -> str:
        """Return the graph in Graphviz' language."""
        return dot(self)

    def save(self, path: str | Path) -> Path:
        """Draw the graph into a file, by its suffix: svg, png, pdf, mmd or dot.

        Raises:
            ConfigError: another suffix, no such directory, or no Graphviz to be found.
        """
        import_module("graphloop.views.render").save(self, path)
        return Path(path)

    def check(self) -> Report:
        """Prove what can be proven of the graph; see `graphloop.check`."""
        report: Report = import_module("graphloop.proofs.check").check(self)
        return report

    def stream(
        self,
        state: S,
        *,
        model: Model,
        prompt: str | None = None,
        messages: Sequence[MessageInput] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        run_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunStream[S]:
        """Return the stream of a new run of this graph.

        Args:
            state: the state that your own nodes carry; None if there are none.
            model: the model of every node that names none.
            prompt: the question, or
            messages: the conversation so far.
            callbacks: your functions that nodes invoke, by the names the nodes give.
            run_id: the run's id in the store; made up if not given.
            options: see `RunOptions`.

        Raises:
            ConfigError: an option, the model or a tool cannot work.
        """
        runner = self._runner(model, callbacks, options)
        return _closing(runner.start(prompt, messages, state, run_id), runner, model)

    async def run(
        self,
        state: S,
        *,
        model: Model,
        prompt: str | None = None,
        messages: Sequence[MessageInput] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        run_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[S]:
        """Run this graph to its end; the arguments are those of `stream`.

        Raises:
            ConfigError: an option, the model or a tool cannot work; nothing has been sent.
            ProviderError: a model could not be asked, or did not answer completely.
        """
        runner = self._runner(model, callbacks, options)
        stream = runner.start(prompt, messages, state, run_id)
        return await _closing(stream, runner, model).result()

    async def resume(
        self,
        run: str | RunResult[S],
        *,
        model: Model,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
        callbacks: Mapping[str, Callback[S]] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[S]:
        """Take up a run of this graph that parked, or whose process died.

        Args:
            run: the run's id in the `store` among the options, or the result that parked.
            model: the model that the run was started with.
            approvals: decisions by the key of the pending call.
            tool_results: what client tools returned, by the key of the pending call.
            callbacks: as for `stream`.
            options: as for `stream`; the tools are those that the run was started with.

        Raises:
            StoreError: there is no such run, or its journal cannot be read.
            ConfigError: an answer, the model or a tool does not fit; nothing has changed.
        """
        runner = self._runner(model, callbacks, options)
        stream = runner.resume(run, approvals or {}, tool_results or {})
        return await _closing(stream, runner, model).result()

    def _runner(
        self, model: Model, callbacks: Mapping[str, Callback[S]] | None, options: RunOptions
    ) -> Runner[S]:
        reject_unknown(options, RunOptions, f"graph {self.name!r}")
        toolbox = Toolbox(options.get("tools", ()))
        return Runner(
            self, model, toolbox, options, callbacks=callbacks, state_type=self.state_type
        )


def _closing(stream: RunStream[S], runner: Runner[S], model: Model) -> RunStream[S]:
    """Have the stream close what was opened for it; a provider that was given stays open."""
    if isinstance(model, str):
        stream.on_over = runner.aclose
    return stream
