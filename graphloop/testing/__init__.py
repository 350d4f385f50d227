"""Testing your agents and graphs: a scripted model, simulated runs under a seed, proofs, fuzzing.

Strategies for Hypothesis are in `graphloop.testing.strategies`, which needs it installed; with
pytest, the fixture `fuzz_graph` is there by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..drivers.sim import Simulation, World, simulate
from ..front.agent import Agent
from ..front.graph import Graph as FrontGraph
from ..fuzz.fuzzing import fuzz, replay_token
from ..fuzz.report import FuzzReport
from ..graph import Graph
from ..proofs.arguments import codes
from ..proofs.check import check
from ..proofs.report import Report
from ..proofs.suppression import Ignore
from ..providers.script import ScriptedModel
from ..temporal import Rules

__all__ = [
    "FuzzReport",
    "ScriptedModel",
    "Simulation",
    "World",
    "assert_safe",
    "fuzz",
    "replay_token",
    "simulate",
]


def assert_safe(
    graph: Graph[Any] | Agent,  # The state may be of any type.
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    proven: Collection[str] = (),
) -> Report:
    """Assert that no proof finds an error in a graph, and return the report.

    Args:
        graph: a graph, or an agent, whose graph is meant.
        rules: temporal rules of your own.
        ignore: the reasons for which findings are set aside, by node and code.
        proven: codes for which "unknown" is an error, too.

    Raises:
        AssertionError: with the whole report: an error was found, or one of `proven` is not.
        ConfigError: an argument cannot work.
    """
    wanted_codes = codes("proven", proven)
    subject: Graph[Any] = graph.graph if isinstance(graph, Agent) else graph
    if isinstance(subject, FrontGraph):
        # A loaded graph has rules, and reasons to set findings aside, of its own.
        report = subject.check(rules=rules, ignore=ignore)
    else:
        report = check(subject, rules, ignore=ignore)
    lacking = [code for code in wanted_codes if code not in report.proven]
    if not report.ok or lacking:
        wanted = f"not proven: {', '.join(lacking)}\n" if lacking else ""
        raise AssertionError(f"{wanted}{report}")
    return report
