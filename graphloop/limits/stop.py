"""Stop conditions: frozen values that a stop node evaluates without side effects.

A stop condition ends a run earlier than `max_steps` and never extends the run. A condition that can
never hold, or always holds, raises `ConfigError` when it is made. `total_tokens_exceed`,
`cost_exceeds` and `duration_exceeds` hold once the limit is reached (`>=`), as the specifications
in docs/seeds.md define it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ..errors import ConfigError
from ..run import Run, Spent
from ..spending import positive_number, whole_number
from ..turn import StepResult

__all__ = [
    "AllOf",
    "AnyOf",
    "CostExceeds",
    "CountedLimit",
    "DurationExceeds",
    "HasToolCall",
    "LimitsSpending",
    "Not",
    "StepCountIs",
    "StopCondition",
    "StopInfo",
    "TotalTokensExceed",
    "all_of",
    "any_of",
    "cost_exceeds",
    "counted_in",
    "duration_exceeds",
    "has_tool_call",
    "not_",
    "step_count_is",
    "tools_in",
    "total_tokens_exceed",
]

CountedLimit: TypeAlias = tuple[bool, str]
"""A limit of a node: whether it is one on costs (else on tokens), and its text."""


@runtime_checkable
class LimitsSpending(Protocol):
    """A node with limits on costs or tokens, which cannot count calls of unknown cost or usage."""

    @property
    def counted_limits(self) -> tuple[CountedLimit, ...]:
        """The node's limits on costs and tokens; a warning names those that counted too little."""
        ...


class StopInfo(Struct, frozen=True):
    """The facts of a run that a stop condition reads.

    Attributes:
        steps: the turns of the run so far.
        spent: the usage and the cost of the run so far.
        elapsed_s: the seconds that the run has worked, without the time of waiting for people.
    """

    steps: Sequence[StepResult]
    spent: Spent
    elapsed_s: float

    @classmethod
    def of(cls, run: Run[Any]) -> StopInfo:
        """Build the stop info from a run's record and spending."""
        return cls(run.record.steps, run.spent, run.spent.seconds)

    @property
    def step_count(self) -> int:
        """The number of turns that the run has taken."""
        return len(self.steps)


@runtime_checkable
class StopCondition(Protocol):
    """A pure stop condition: a named, frozen value."""

    @property
    def name(self) -> str:
        """The name of this condition, which `stopped_by` has if the condition ends the run."""
        ...

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run must stop after its latest turn."""
        ...


class StepCountIs(Struct, frozen=True):
    """Stop once the run has taken `count` turns."""

    count: int
    name: str = "step_count_is"

    def __post_init__(self) -> None:
        whole_number("stop.step_count_is", self.count)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has taken `count` turns."""
        return info.step_count >= self.count


class HasToolCall(Struct, frozen=True):
    """Stop after a turn that called `tool`, even if the call failed or was denied."""

    tool: str
    name: str = "has_tool_call"

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the latest turn called `tool`."""
        last = info.steps[-1].tool_calls if info.steps else ()
        return any(call.name == self.tool for call in last)


class TotalTokensExceed(Struct, frozen=True):
    """Stop once the run has used at least `tokens_max` tokens."""

    tokens_max: int
    name: str = "total_tokens_exceed"

    def __post_init__(self) -> None:
        whole_number("stop.total_tokens_exceed", self.tokens_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has used at least `tokens_max` tokens."""
        return info.spent.usage.total_tokens >= self.tokens_max


class CostExceeds(Struct, frozen=True):
    """Stop once the run has cost at least `usd_max` US dollars.

    Only model calls with a known price count.
    """

    usd_max: float
    name: str = "cost_exceeds"

    def __post_init__(self) -> None:
        positive_number("stop.cost_exceeds", self.usd_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has cost at least `usd_max` US dollars."""
        return info.spent.cost_usd >= self.usd_max


class DurationExceeds(Struct, frozen=True):
    """Stop once the run has worked for at least `seconds_max` seconds.

    The time of waiting for people does not count.
    """

    seconds_max: float
    name: str = "duration_exceeds"

    def __post_init__(self) -> None:
        positive_number("stop.duration_exceeds", self.seconds_max)

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the run has worked for at least `seconds_max` seconds."""
        return info.elapsed_s >= self.seconds_max


step_count_is = StepCountIs
has_tool_call = HasToolCall
total_tokens_exceed = TotalTokensExceed
cost_exceeds = CostExceeds
duration_exceeds = DurationExceeds


class AnyOf(Struct, frozen=True):
    """Stop once at least one of the conditions holds."""

    conditions: tuple[StopCondition, ...]

    def __post_init__(self) -> None:
        _check_conditions("stop.any_of", self.conditions)

    @property
    def name(self) -> str:
        """The name of this condition, which `stopped_by` has if the condition ends the run."""
        return f"any_of({', '.join([condition.name for condition in self.conditions])})"

    def holds(self, info: StopInfo, /) -> bool:
        """Whether at least one of the conditions holds."""
        return any(condition.holds(info) for condition in self.conditions)


class AllOf(Struct, frozen=True):
    """Stop once all of the conditions hold at the same time."""

    conditions: tuple[StopCondition, ...]

    def __post_init__(self) -> None:
        _check_conditions("stop.all_of", self.conditions)

    @property
    def name(self) -> str:
        """The name of this condition, which `stopped_by` has if the condition ends the run."""
        return f"all_of({', '.join([condition.name for condition in self.conditions])})"

    def holds(self, info: StopInfo, /) -> bool:
        """Whether all of the conditions hold."""
        return all(condition.holds(info) for condition in self.conditions)


class Not(Struct, frozen=True):
    """Stop once the condition does not hold."""

    condition: StopCondition

    def __post_init__(self) -> None:
        _check_conditions("stop.not_", (self.condition,))

    @property
    def name(self) -> str:
        """The name of this condition, which `stopped_by` has if the condition ends the run."""
        return f"not_({self.condition.name})"

    def holds(self, info: StopInfo, /) -> bool:
        """Whether the inner condition does not hold."""
        return not self.condition.holds(info)


not_ = Not


def tools_in(conditions: Iterable[StopCondition]) -> tuple[str, ...]:
    """Return the tools that these conditions name."""
    return tuple(
        [part.tool for part in _simple_conditions(conditions) if isinstance(part, HasToolCall)]
    )


def counted_in(conditions: Iterable[StopCondition]) -> tuple[CountedLimit, ...]:
    """Return the limits on costs and tokens in these conditions."""
    found: list[CountedLimit] = []
    for part in _simple_conditions(conditions):
        if isinstance(part, CostExceeds):
            found.append((True, f"stop.cost_exceeds({part.usd_max:g})"))
        elif isinstance(part, TotalTokensExceed):
            found.append((False, f"stop.total_tokens_exceed({part.tokens_max})"))
    return tuple(found)


def _simple_conditions(conditions: Iterable[StopCondition]) -> tuple[StopCondition, ...]:
    """Return the simple conditions in these, also inside `AnyOf`, `AllOf` and `Not`."""
    found: list[StopCondition] = []
    for condition in conditions:
        match condition:
            case AnyOf(conditions=inner) | AllOf(conditions=inner):
                found += _simple_conditions(inner)
            case Not(condition=inner):
                found += _simple_conditions((inner,))
            case _:
                found.append(condition)
    return tuple(found)


def any_of(*conditions: StopCondition) -> StopCondition:
    """Return a condition that stops once at least one of these conditions holds."""
    return AnyOf(conditions)


def all_of(*conditions: StopCondition) -> StopCondition:
    """Return a condition that stops once all of these conditions hold at the same time."""
    return AllOf(conditions)


def _check_conditions(name: str, given: tuple[object, ...]) -> None:
    if not given:
        raise ConfigError(f"`{name}`: expected conditions, found none. Fix: give at least one.")
    for condition in given:
        if isinstance(condition, type) or not isinstance(condition, StopCondition):
            raise ConfigError(
                f"`{name}`: expected conditions of graphloop.stop, found {condition!r:.80}. "
                "Fix: put a function beside it in `stop_when`."
            )
