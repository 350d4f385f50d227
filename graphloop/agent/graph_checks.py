"""graph_checks: the conditions that a user's graph meets before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import proofs
from ..contract import contract_of
from ..errors import ConfigError
from ..graph import NodeGraph
from ..node_protocol import Node, flaw_of
from ..outcomes import Outcome
from .bindings import check_carried
from .states import state_type_of

if TYPE_CHECKING:
    from ..proofs import Endless, Ignore

__all__ = ["endless_refusal", "prepared", "reasons_for_cycles"]

S = TypeVar("S")


def prepared(
    graph: NodeGraph[S], state_type: type[S] | None, ignore: Ignore | None
) -> tuple[type[S] | None, Ignore]:
    """Return the type of a graph's state, and which findings are set aside.

    Raises:
        ConfigError: an agent's name cannot stand before the names of its nodes, or a finding is set
            aside for no reason.
        GraphError: two nodes bring different things under one name, or differ in their state.
    """
    _refuse_odd_agents(graph.nodes)
    set_aside = _reasoned(ignore or {})
    check_carried(graph)
    return cast("type[S] | None", state_type_of(graph, state_type)), set_aside


def reasons_for_cycles(
    graph: NodeGraph[S], reason: str, ignore: Ignore, endless: tuple[Endless, ...]
) -> Ignore:
    """Return what is set aside of a graph, with its cycles without a bound (GL4) for a reason."""
    if not endless:
        raise ConfigError(f"graph {graph.name!r} is bounded: it needs no reason to run")
    every = proofs.endless(graph, every=True)
    return _reasoned({**ignore, **{(one.node, "GL4"): reason for one in every}})


def endless_refusal(graph: NodeGraph[Any], found: tuple[Endless, ...]) -> ConfigError:
    """Return why a graph without a bound does not run, and the two ways out."""
    reasons = ", ".join(f'({one.node!r}, "GL4"): "why"' for one in found)
    return ConfigError(
        f"graph {graph.name!r} may run for ever, so it does not run: "
        f"{' '.join(one.words for one in found)} Or, if that is meant, say why: "
        f"Graph(…, ignore={{{reasons}}}), `ignore` in a topology's file, or --unbounded REASON on "
        "the command line."
    )


def _refuse_odd_agents(nodes: Mapping[str, Node[S, Outcome]]) -> None:
    """Refuse agents whose names could not stand before the names of their nodes.

    Raises:
        ConfigError: naming the agent, and its node.
    """
    for name, node in nodes.items():
        promised = contract_of(node)
        if promised is None:
            continue
        for agent in [child.name for child in promised.children]:
            if flaw := flaw_of(agent):
                raise ConfigError(
                    f"node {name!r} runs {agent!r:.80}, which is not an agent's name: {flaw}. "
                    "Fix: choose another"
                )


def _reasoned(ignore: Ignore) -> Ignore:
    """Return the findings that are set aside of a graph, each with its reason.

    Raises:
        ConfigError: something is set aside for no reason.
    """
    for (node, code), reason in ignore.items():
        if not reason.strip():
            raise ConfigError(
                f"`ignore` sets {code} of {node or 'the graph'!r} aside for no reason: say why, in "
                f"words; found {reason!r:.80}"
            )
    return dict(ignore)
