"""Stop conditions: small frozen values that a stop node evaluates, purely.

They end a run earlier than `max_steps`; they never extend it. One that could never hold, or always
would, raises `ConfigError` where it is made. `*_exceed(n)` holds from n on
(CONTRACT §9 #25): the names are the seeds', the comparison is `>=`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from msgspec import Struct

from .errors import ConfigError
from .limits import positive_number, whole_number
from .run import Spent, StepResult

__all__ = [
    "Condition",
    "CostExceeds",
    "DurationExceeds",
    "HasToolCall",
    "StepCountIs",
    "StopInfo",
    "TotalTokensExceed",
    "cost_exceeds",
    "duration_exceeds",
    "has_tool_call",
    "step_count_is",
    "total_tokens_exceed",
]


class StopInfo(Struct, frozen=True):
    """What a stop condition may look at. `elapsed_s` is by the run's own events."""

    steps: Sequence[StepResult]
    spent: Spent
    elapsed_s: float

    @property
    def step_count(self) -> int:
        """How many turns the run has taken."""
        return len(self.steps)


@runtime_checkable
class Condition(Protocol):
    """A pure stop condition: a named, frozen value."""

    @property
    def name(self) -> str:
        """The name reported in `stopped_by`."""
        ...

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run stops here."""
        ...


@dataclass(frozen=True, slots=True)
class StepCountIs:
    """Holds from the given number of turns on."""

    count: int
    name: str = "step_count_is"

    def __post_init__(self) -> None:
        """Refuse a condition that cannot work."""
        whole_number("stop.step_count_is", self.count)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has taken `count` turns."""
        return info.step_count >= self.count


@dataclass(frozen=True, slots=True)
class HasToolCall:
    """Holds when the latest turn called the tool, whatever became of the call."""

    tool: str
    name: str = "has_tool_call"

    def __post_init__(self) -> None:
        """Refuse a condition that cannot work."""
        if not isinstance(self.tool, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"`stop.has_tool_call` is the name of a tool; found {self.tool!r}")

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the latest turn called `tool`."""
        return any(call.name == self.tool for call in info.steps[-1].tool_calls)


@dataclass(frozen=True, slots=True)
class TotalTokensExceed:
    """Holds from the given number of tokens on, as providers reported them."""

    tokens_max: int
    name: str = "total_tokens_exceed"

    def __post_init__(self) -> None:
        """Refuse a condition that cannot work."""
        whole_number("stop.total_tokens_exceed", self.tokens_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has used `tokens_max` tokens."""
        return info.spent.usage.total_tokens >= self.tokens_max


@dataclass(frozen=True, slots=True)
class CostExceeds:
    """Holds from the given cost on, over all model calls of known price."""

    usd_max: float
    name: str = "cost_exceeds"

    def __post_init__(self) -> None:
        """Refuse a condition that cannot work."""
        positive_number("stop.cost_exceeds", self.usd_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has cost `usd_max` US dollars."""
        return info.spent.cost_usd >= self.usd_max


@dataclass(frozen=True, slots=True)
class DurationExceeds:
    """Holds from the given number of seconds since the run's first event on."""

    seconds_max: float
    name: str = "duration_exceeds"

    def __post_init__(self) -> None:
        """Refuse a condition that cannot work."""
        positive_number("stop.duration_exceeds", self.seconds_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run is `seconds_max` seconds old."""
        return info.elapsed_s >= self.seconds_max


def step_count_is(count: int) -> Condition:
    """Stop once the run has taken `count` turns."""
    return StepCountIs(count)


def has_tool_call(tool: str) -> Condition:
    """Stop after a turn that called `tool`; denied and failed calls count too."""
    return HasToolCall(tool)


def total_tokens_exceed(tokens_max: int) -> Condition:
    """Stop once the run has used at least `tokens_max` tokens."""
    return TotalTokensExceed(tokens_max)


def cost_exceeds(usd_max: float) -> Condition:
    """Stop once the run has cost at least `usd_max` US dollars."""
    return CostExceeds(usd_max)


def duration_exceeds(seconds_max: float) -> Condition:
    """Stop once the run is at least `seconds_max` seconds old, at the next boundary."""
    return DurationExceeds(seconds_max)
