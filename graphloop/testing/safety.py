"""assert_safe: a test assertion that the static proofs (`check`) find no error in a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..agent import Agent, Graph
from ..graph import NodeGraph
from ..proofs import Ignore, Report, check, codes
from ..rules import Rules

__all__ = ["assert_safe"]


def assert_safe(
    graph: NodeGraph[Any] | Agent[Any, Any],  # The state may be of any type.
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    proven: Collection[str] = (),
) -> Report:
    """Prove a graph safe with `check`, and return the report; raise if a proof finds an error.

    Args:
        graph: a graph, or an agent with its graph.
        rules: further temporal rules that every run of the graph must keep.
        ignore: maps the node and code of a finding to the reason why it is ignored.
        proven: codes of findings that must be proven absent; for these, "unknown" fails too.

    Raises:
        AssertionError: a proof found an error, or a code in `proven` is not proven.
        ConfigError: an argument is invalid.
    """
    wanted_codes = codes("proven", proven)
    subject: NodeGraph[Any] = graph.graph if isinstance(graph, Agent) else graph
    if isinstance(subject, Graph):
        # `Graph.check` also applies the graph's own rules and its own ignored findings.
        report = subject.check(rules=rules, ignore=ignore)
    else:
        report = check(subject, rules, ignore=ignore)
    lacking = [code for code in wanted_codes if code not in report.proven]
    if not report.ok or lacking:
        wanted = f"not proven: {', '.join(lacking)}\n" if lacking else ""
        raise AssertionError(f"{wanted}{report}")
    return report
