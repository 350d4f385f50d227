"""most: the bound of a run, number by number, and why a number is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, final

__all__ = ["Bound", "Called"]


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """The most that one run of the graph of that name can come to; None is not bounded.

    Attributes:
        graph: the graph's name.
        model_calls: how many models are asked, children included.
        tool_calls: how many tools run, children included.
        tokens: what models read and write.
        usd: what that costs.
        visits: how often each node is visited that runs arrive at.
        why: what the model calls follow from.
        missing: for each number that is None, why, and how to give it.
        cycles: the cycles that nothing bounds, in words; those of its children among them.
        alone: how many models are asked without those of agents that models call as tools.
        each_call: how many one such call asks at most, without those of the calls in it.
        beyond: for each number that is more than its budget, why.
    """

    graph: str
    model_calls: int | None
    tool_calls: int | None
    tokens: int | None
    usd: float | None
    visits: Mapping[str, int | None]
    why: tuple[str, ...]
    missing: Mapping[str, str]
    cycles: tuple[str, ...] = ()
    alone: int | None = None
    each_call: int | None = None
    beyond: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def unknown(cls, agent: str) -> Bound:
        """Return the bound of an agent whose graph nobody knows."""
        why = f"nobody knows the graph of the agent {agent!r}."
        missing: dict[str, str] = dict.fromkeys(("model_calls", "tool_calls", "tokens", "usd"), why)
        return cls(agent, None, None, None, None, {}, (), missing)

    @property
    def ends(self) -> bool:
        """Whether every run is over after so many visits."""
        return not self.cycles

    def to_json(self) -> str:
        """Return the bound as a JSON object with the fields of this class."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return a line a number, for each that is missing why, and what has no bound."""
        lines = [f"graph {self.graph!r}: at most"]
        for name, value in (
            ("model_calls", self.model_calls),
            ("tool_calls", self.tool_calls),
            ("tokens", self.tokens),
            ("usd", self.usd),
        ):
            word = name.replace("_", " ")
            if value is None:
                lines.append(f"  {word}: unknown: {self.missing[name]}")
            else:
                lines.append(f"  {word}: {round(value, 6):,}")
                lines += [f"    {self.beyond[name]}"] if name in self.beyond else []
            if name == "model_calls":
                lines += [f"    {reason}" for reason in self.why]
        lines += [f"  not bounded: the cycle {cycle}" for cycle in self.cycles]
        return "\n".join(lines)


class Called(NamedTuple):
    """The bounds of the agents that models call as tools: those that answer, and take over."""

    tools: Mapping[str, Bound] = {}
    handoffs: Mapping[str, Bound] = {}
