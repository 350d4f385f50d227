"""The gallery of topologies as the tests see it: each loaded once, from Python and from YAML."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

from graphloop import Approval, ModelPrice, RunResult, budget
from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.cli.target import Target, load_target
from graphloop.proofs.bounds import bound
from graphloop.proofs.call_bounds import Bound
from graphloop.questions.pending import Pending
from graphloop.testing import ScriptedModel
from graphloop.topology import registry
from graphloop.topology.loaded import Topology, load
from tests.unit.cli.command_line import ROOT

__all__ = ["GALLERY", "NAMES", "Exhibit", "exhibits", "page", "registered_for_now"]

GALLERY = ROOT / "examples" / "topologies"
NAMES = (
    "prompt_chain",
    "routing",
    "parallel_voting",
    "orchestrator_workers",
    "evaluator_optimizer",
    "plan_approve_execute",
    "supervisor",
    "debate",
    "escalation",
    "react",
    "reflexion",
)
PRICE = ModelPrice(input_usd=3.0, output_usd=15.0)
FIRST_LINE = re.compile(r'"""(.*)')


@dataclass(frozen=True)
class Exhibit:
    """One topology, as Python builds it and as its file says it."""

    name: str
    target: Target
    loop: Agent | Graph[None]
    written: Topology

    @property
    def graph(self) -> Graph[None]:
        """The graph that Python builds, with the rules and the agents that it brings."""
        return self.loop.graph if isinstance(self.loop, Agent) else self.loop

    @property
    def table(self) -> Graph[Any]:
        """The graph alone."""
        graph = self.graph
        return cast("Graph[Any]", graph.document.graph) if isinstance(graph, Topology) else graph

    @property
    def bound(self) -> Bound:
        """The worst case of what the file says, with the numbers that are not in a graph."""
        return bound(
            self.written,
            budget=budget(tool_calls=20),
            max_tokens=4_000,
            context_window=200_000,
            price=PRICE,
        )

    @property
    def summary(self) -> str:
        """What it is, in the first line of its file."""
        found = FIRST_LINE.match((GALLERY / self.name / "topology.py").read_text("utf-8"))
        assert found is not None
        return found[1]

    def model(self) -> ScriptedModel:
        """Return the model that answers offline."""
        assert self.target.script is not None
        return ScriptedModel.from_file(self.target.script)

    def run(self, *, written: bool) -> RunResult[Any, Any]:
        """Run it to its end; a person says no to what promises money, and yes to all else."""
        prompt, model = self.target.prompt, self.model()
        assert prompt is not None
        if written:
            run = self.written.run(None, model=model, prompt=prompt, approve_tool_call=approve)
        elif isinstance(self.loop, Agent):
            return self.loop.with_options(approve_tool_call=approve).generate_sync(prompt)
        else:
            run = self.loop.run(
                None,
                model=model,
                prompt=prompt,
                tools=self.target.tools,
                approve_tool_call=approve,
            )
        return asyncio.run(run)


def approve(call: Pending) -> bool | Approval:
    """Decide like a careful person."""
    return call.decline("Promise no money.") if "400" in str(call.arguments) else True


@contextmanager
def registered_for_now() -> Generator[None]:
    """Forget afterwards what files have registered meanwhile."""
    known = {category: {**names} for category, names in vars(registry)["_known"].items()}
    with patch.object(registry, "_known", known):
        yield


@contextmanager
def exhibits() -> Generator[dict[str, Exhibit]]:
    """Yield the gallery; what its files register is forgotten afterwards."""
    with registered_for_now():
        yield {name: _exhibit(name) for name in NAMES}


def page(gallery: dict[str, Exhibit]) -> str:
    """Return the gallery's README."""
    head = (GALLERY / "README.md").read_text("utf-8").partition("<!-- gallery:begin -->")[0]
    rows = [
        f"| [{one.name}]({one.name}/topology.py) | {one.summary.partition(': ')[2]} "
        f"| {one.bound.model_calls} | {one.bound.tool_calls} |"
        for one in gallery.values()
    ]
    table = "\n".join(
        ("| topology | what it does | model calls | tool calls |", "|---|---|---|---|", *rows)
    )
    parts = [_part(one) for one in gallery.values()]
    return f"{head}<!-- gallery:begin -->\n\n{table}\n\n" + "\n".join(parts)


def _part(one: Exhibit) -> str:
    return (
        f"## {one.name}\n\n{one.summary}\n"
        f"[Python]({one.name}/topology.py), [YAML]({one.name}/topology.yaml)\n\n"
        f"```mermaid\n{one.table.mermaid().rstrip()}\n```\n\n```text\n{one.bound}\n```\n"
    )


def _exhibit(name: str) -> Exhibit:
    target = load_target(os.path.relpath(GALLERY / name))
    assert target.script is not None
    loop = target.loop(ScriptedModel.from_file(target.script))
    return Exhibit(name, target, loop, load(GALLERY / name / "topology.yaml"))
