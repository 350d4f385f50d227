"""details: a graph drawn with all that is known of its nodes: what they do, read and promise.

It is what the proofs are built on, in words: who reads the picture sees what is promised, and what
nobody has promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from ..contract import ChildContract, Contract, contract_of
from ..graph import Graph
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from .drawing import notes
from .marks import Marks
from .picture import Picture, node_picture

__all__ = ["detailed_picture", "details"]

S = TypeVar("S")

WIDTH: Final = 44
"""How long a line in a node gets before it is broken at a comma."""

WAITS: Final = {
    "all": "waits for all of them",
    "first": "waits for the first",
    "collect": "waits for all, also for failures",
}


def detailed_picture(
    graph: Graph[Any], marks: Marks, prefix: str
) -> tuple[Picture, Mapping[str, str]]:
    """Draw one graph, each of its nodes as a box with all that is known of it."""
    drawn, ids = node_picture(graph, marks, prefix)
    names = {place: name for name, place in ids.items()}
    shapes = [
        shape
        if shape.kind is None
        else replace(shape, notes=(), details=tuple(details(graph.nodes[names[shape.id]])))
        for shape in drawn.shapes
    ]
    return replace(drawn, shapes=tuple(shapes)), ids


def details(node: Node[S, Outcome]) -> Iterator[str]:
    """Yield what is known of a node, a line each; never nothing, for its kind is known."""
    yield f"{node.kind}: {type(node).__name__}"
    contract = contract_of(node)
    if contract is None:
        yield "promises nothing"
    else:
        for line in (*_does(contract), *_data(contract), *_caps(contract)):
            yield from _broken(line)
        for child in contract.children:
            yield from _broken(_child(child))
    for note in notes(node):
        yield from _broken(note)
    for outcome in sorted(node.outcomes, key=outcome_name):
        if told := _fields(outcome):
            yield from _broken(f"{outcome_name(outcome)}({told})")


def _does(contract: Contract) -> Iterator[str]:
    if contract.model_calls is None:
        yield "may ask models any number of times"
    elif contract.model_calls:
        times = "once" if contract.model_calls == 1 else f"{contract.model_calls:,} times"
        yield f"asks a model {times} at most"
    if contract.tools:
        yield "runs tools"
    if contract.asks:
        yield "may wait for a person"
    known = {child.name for child in contract.children}
    if agents := [one for one in contract.agents if one not in known]:
        yield f"runs {', '.join(agents)}"
    if contract.join is not None:
        yield WAITS[contract.join]


def _data(contract: Contract) -> Iterator[str]:
    for word, touched in (("reads", contract.reads), ("writes", contract.writes)):
        if touched is None:
            yield f"{word} anything of the state"
        elif touched:
            yield f"{word} {', '.join(sorted(touched))}"


def _caps(contract: Contract) -> Iterator[str]:
    for outcome, cap in sorted(contract.caps.items(), key=lambda one: outcome_name(one[0])):
        times = "never" if cap.never else f"at most {cap.times:,}x"
        since = f" in a {'/'.join(sorted(cap.resets))}" if cap.resets and not cap.never else ""
        yield f"{outcome_name(outcome)} {times}{since}"


def _child(child: ChildContract) -> str:
    """Return what is known of a child, in one line."""
    runs = "any number of times" if child.runs is None else f"{child.runs:,}x"
    words = [f"runs {child.name}" if child.runs == 1 else f"runs {child.name} {runs} at most"]
    if child.many:
        words.append("side by side")
    if child.budget is not None:
        words.append("on a budget of its own")
    if child.gate_rules is not None:
        words.append("by rules of its own")
    for word, touched in (("reads", child.reads), ("writes", child.writes)):
        if touched:
            words.append(f"{word} {' '.join(sorted(touched))}")
    return ", ".join(words)


def _fields(outcome: type[Outcome]) -> str:
    """Return what an outcome carries, by the annotations of its class."""
    if not is_dataclass(outcome):
        return ""
    return ", ".join(f"{one.name}: {_type(one.type)}" for one in fields(outcome))


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _broken(line: str) -> Iterator[str]:
    """Yield a line in pieces that are not too long, as far as it has commas."""
    row = ""
    for word in line.split(", "):
        joined = f"{row}, {word}" if row else word
        if row and len(joined) > WIDTH:
            yield f"{row},"
            joined = f"  {word}"
        row = joined
    yield row
