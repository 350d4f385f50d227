"""assert_safe: raises an `AssertionError` with the report if a proof finds an error."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..agent import Agent, Graph
from ..graph import NodeGraph
from ..proofs import Ignore, Report, check, codes
from ..rules import Rules

__all__ = ["assert_safe"]


def assert_safe(
    graph: NodeGraph[Any] | Agent,  # The state may be of any type.
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    proven: Collection[str] = (),
) -> Report:
    """Assert that no proof finds an error in a graph, and return the report.

    Args:
        graph: a graph, or an agent with its graph.
        rules: temporal rules of your own.
        ignore: the reasons for setting findings aside, by node and code.
        proven: codes for which "unknown" is an error, too.

    Raises:
        AssertionError: a proof found an error, or a code of `proven` is unknown.
        ConfigError: an argument cannot work.
    """
    wanted_codes = codes("proven", proven)
    subject: NodeGraph[Any] = graph.graph if isinstance(graph, Agent) else graph
    if isinstance(subject, Graph):
        # A loaded graph has rules, and reasons to set findings aside, of its own.
        report = subject.check(rules=rules, ignore=ignore)
    else:
        report = check(subject, rules, ignore=ignore)
    lacking = [code for code in wanted_codes if code not in report.proven]
    if not report.ok or lacking:
        wanted = f"not proven: {', '.join(lacking)}\n" if lacking else ""
        raise AssertionError(f"{wanted}{report}")
    return report
