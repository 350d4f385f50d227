"""The bound of a run on the command line: told before it begins, or done without for a reason."""

from __future__ import annotations

import sys
from dataclasses import asdict

from msgspec.json import encode

from ..errors import ConfigError
from ..front.graph import Graph
from ..proofs.most import Bound
from .lines import clean, safe_json
from .status import tell

__all__ = ["allowed", "explain", "refuse_unbounded"]


def explain(bound: Bound, *, as_json: bool) -> None:
    """Tell what a run can come to: on stderr, or as the first of the run's JSON lines."""
    if as_json:
        sys.stdout.write(safe_json(encode({"type": "bound", **asdict(bound)}).decode()) + "\n")
        sys.stdout.flush()
    else:
        for line in str(bound).splitlines():
            tell(clean(line))


def allowed(graph: Graph[None], reason: str | None) -> Graph[None]:
    """Return `graph` as it may run: without a bound only for a reason.

    Raises:
        ConfigError: there is a reason, and the graph is bounded.
    """
    if reason is None:
        return graph
    try:
        return graph.unbounded(reason)
    except ConfigError as error:
        raise ConfigError(f"--unbounded would have no effect: {error}. Leave it out.") from error


def refuse_unbounded(reason: str | None) -> None:
    """Refuse a reason for an agent, whose loop is bounded by its `max_steps`.

    Raises:
        ConfigError: there is one.
    """
    if reason is not None:
        raise ConfigError(
            "--unbounded would have no effect: an agent's loop is bounded. Leave it out."
        )
