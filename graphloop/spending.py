"""The spending of a run, and its limits: tokens, money, time, and calls.

`Usage` counts the tokens of model calls, `Spent` all that a run has spent, and `Budget` limits it.
"""

from __future__ import annotations

from math import isfinite
from operator import add, sub
from typing import Final, TypeGuard, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from .errors import ConfigError

__all__ = [
    "NOTHING_SPENT",
    "NO_DETAILS",
    "NO_USAGE",
    "Budget",
    "ChatSoFar",
    "Spent",
    "Usage",
    "UsageDetails",
    "budget",
    "is_number",
    "is_whole",
    "positive_number",
    "stricter",
    "whole_number",
]

N = TypeVar("N", int, float)


class UsageDetails(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """Counts of a `Usage` that may have a price of their own, named as genai-prices names them.

    All but `web_searches` are among the tokens of the `Usage`: sound, pictures and video of the
    prompt, of the part of the prompt that was in a cache, and of the reply; and tokens written to a
    cache that keeps them for an hour. `web_searches` is among the `server_tool_calls`.
    """

    input_audio_tokens: int = 0
    input_image_tokens: int = 0
    input_video_tokens: int = 0
    cache_audio_read_tokens: int = 0
    cache_image_read_tokens: int = 0
    cache_video_read_tokens: int = 0
    output_audio_tokens: int = 0
    output_image_tokens: int = 0
    output_video_tokens: int = 0
    cache_write_1h_tokens: int = 0
    web_searches: int = 0

    def __add__(self, other: UsageDetails) -> UsageDetails:
        return UsageDetails(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: UsageDetails) -> UsageDetails:
        if other is NO_DETAILS:
            return self
        return UsageDetails(*map(sub, astuple(self), astuple(other)))


NO_DETAILS: Final = UsageDetails()
"""No details: the default of a `Usage`, so that additions can skip it."""


class Usage(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """The tokens of one or more model calls.

    `input_tokens` excludes tokens read from or written to a prompt cache. `output_tokens` includes
    `reasoning_tokens`. (Providers count differently; codecs convert their counts to this form.)
    `server_tool_calls` counts calls, not tokens: the tool calls that the provider ran itself.
    `untold_attempts` counts attempts whose server sent content but reported no usage. `details`
    counts again what may have a price of its own.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    server_tool_calls: int = 0
    untold_attempts: int = 0
    details: UsageDetails = NO_DETAILS

    @property
    def total_tokens(self) -> int:
        """The sum of input, output and prompt-cache tokens."""
        cached = self.cache_read_tokens + self.cache_write_tokens
        return self.input_tokens + self.output_tokens + cached

    def __add__(self, other: Usage) -> Usage:
        if self is NO_USAGE:
            return other
        if other is NO_USAGE:
            return self
        details = self.details
        if other.details is not NO_DETAILS:
            details += other.details
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.server_tool_calls + other.server_tool_calls,
            self.untold_attempts + other.untold_attempts,
            details,
        )


NO_USAGE: Final = Usage()
"""No tokens: the default wherever usage is counted, so that additions can skip it."""


class Spent(Struct, frozen=True, gc=False):
    """The spending of a run so far, including its child runs.

    `unpriced_calls` counts model calls of unknown price. `seconds` is working time between the
    run's own events: waiting for people does not count, and each child run counts its own time.
    `tool_calls` includes interrupted calls, which have run or may have, but no calls of the loop's
    own tools, such as the one that gives a typed answer. `agent_calls` counts the child runs that
    models' calls started, not those that nodes started. `unreported_calls` counts model calls with
    an attempt whose server reported no usage; `usage` and `cost_usd` do not include such attempts.
    """

    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = NO_USAGE
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    seconds: float = 0.0
    agent_calls: int = 0
    unreported_calls: int = 0

    @property
    def told_usage(self) -> Usage | None:
        """The reported usage; None if models were called and no server reported any usage."""
        return None if self.unreported_calls and not self.usage.total_tokens else self.usage

    @classmethod
    def on(cls, usage: Usage, cost_usd: float | None, seconds: float = 0.0) -> Spent:
        """Return the spending of one model call; 0 tokens mean that no usage was reported."""
        unpriced = int(cost_usd is None or usage.untold_attempts > 0)
        untold = int(usage.untold_attempts > 0 or not usage.total_tokens)
        return cls(1, 0, usage, cost_usd or 0.0, unpriced, seconds, 0, untold)

    def with_model_call(self, usage: Usage, cost_usd: float | None, seconds: float) -> Spent:
        """Return this spending plus that of one model call; faster than `self + Spent.on(…)`."""
        untold = usage.untold_attempts > 0
        return Spent(
            self.model_calls + 1,
            self.tool_calls,
            self.usage + usage,
            self.cost_usd + (cost_usd or 0.0),
            self.unpriced_calls + (cost_usd is None or untold),
            self.seconds + seconds,
            self.agent_calls,
            # Most usage has output tokens; only without any, all tokens are summed.
            self.unreported_calls + (untold or not (usage.output_tokens or usage.total_tokens)),
        )

    def __add__(self, other: Spent) -> Spent:
        if other is NOTHING_SPENT:
            return self
        return Spent(
            self.model_calls + other.model_calls,
            self.tool_calls + other.tool_calls,
            self.usage + other.usage,
            self.cost_usd + other.cost_usd,
            self.unpriced_calls + other.unpriced_calls,
            self.seconds + other.seconds,
            self.agent_calls + other.agent_calls,
            self.unreported_calls + other.unreported_calls,
        )


NOTHING_SPENT: Final = Spent()
"""No spending: the default of events that may report some, so that additions can skip it."""


class ChatSoFar(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """The chat of a run, and its earlier runs, as the run of its next question counts them.

    `id` is the chat's id. `spent` is what all earlier runs have spent. `states` are the states of
    the chat's own temporal rules, which are the last rules of the setup. `heard` is the number of
    messages that the earlier runs had, after the instructions: the messages of the run that follow
    them are new.
    """

    id: str = ""
    spent: Spent = NOTHING_SPENT
    states: tuple[int, ...] = ()
    heard: int = 0


class Budget(Struct, frozen=True, gc=False):
    """Limits on the spending of a run; None is no limit. A child run gets a share of what is left.

    Tokens, money and time are checked between turns (by a `StopCheck`, and before each agent
    starts), so one turn can exceed these limits. The limits on tool calls and agent calls are never
    exceeded: a call beyond them does not run, and ends the run after its turn. An agent call is a
    child run, at any depth, that a model's call starts. Child runs that nodes start do not count:
    the graph bounds them. With `refuse_uncounted`, a model call that the limits on tokens or money
    cannot count ends the run after its turn.
    """

    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    tool_calls: int | None = None
    agent_calls: int | None = None
    refuse_uncounted: bool = False

    def tripped(self, spent: Spent) -> tuple[str, ...]:
        """Return the names of the reached limits, among those that are checked between turns."""
        if self.tokens is None and self.usd is None and self.seconds is None:
            return ()
        names: list[str] = []
        if self.tokens is not None and spent.usage.total_tokens >= self.tokens:
            names.append("budget.tokens")
        if self.usd is not None and spent.cost_usd >= self.usd:
            names.append("budget.usd")
        if self.seconds is not None and spent.seconds >= self.seconds:
            names.append("budget.seconds")
        unknown = (self.tokens is not None and spent.unreported_calls) or (
            self.usd is not None and spent.unpriced_calls
        )
        if self.refuse_uncounted and unknown:
            names.append("budget.uncounted")
        return tuple(names)

    def remaining(self, spent: Spent) -> Budget:
        """Return the remaining budget after this spending; no limit falls below 0."""
        tokens, tools, agents = spent.usage.total_tokens, spent.tool_calls, spent.agent_calls
        return self.without(Budget(tokens, spent.cost_usd, spent.seconds, tools, agents))

    def without(self, other: Budget) -> Budget:
        """Return this budget minus `other`; a limit that is None in `other` stays unchanged."""
        return Budget(
            _remaining_of(self.tokens, other.tokens),
            _remaining_of(self.usd, other.usd),
            _remaining_of(self.seconds, other.seconds),
            _remaining_of(self.tool_calls, other.tool_calls),
            _remaining_of(self.agent_calls, other.agent_calls),
            self.refuse_uncounted,
        )

    def share(self, parts: int, at: int) -> Budget:
        """Return the share with index `at`, counted from 0, of so many equal parts.

        The shares add up to this budget; the first get any remainder.
        """
        return Budget(
            _share_at(self.tokens, parts, at),
            None if self.usd is None else self.usd / parts,
            None if self.seconds is None else self.seconds / parts,
            _share_at(self.tool_calls, parts, at),
            _share_at(self.agent_calls, parts, at),
            self.refuse_uncounted,
        )

    def tightened(self, other: Budget) -> Budget:
        """Return a budget that has, in each field, the stricter limit of the two budgets."""
        return Budget(
            stricter(self.tokens, other.tokens),
            stricter(self.usd, other.usd),
            stricter(self.seconds, other.seconds),
            stricter(self.tool_calls, other.tool_calls),
            stricter(self.agent_calls, other.agent_calls),
            self.refuse_uncounted or other.refuse_uncounted,
        )


def budget(
    *,
    tokens: int | None = None,
    usd: float | None = None,
    seconds: float | None = None,
    tool_calls: int | None = None,
    agent_calls: int | None = None,
    refuse_uncounted: bool = False,
) -> Budget:
    """Return a budget for a run and all its child runs.

    Args:
        tokens: input and output tokens of all model calls, as providers report them.
        usd: the cost in US dollars of all model calls of known price.
        seconds: seconds of work; waiting for people does not count.
        tool_calls: executions of tools; the request for one more ends the run. The call that gives
            the answer of an `output_type` does not count.
        agent_calls: runs of agents that models call as tools, including handoffs and the calls of
            child agents; the request for one more ends the run.
        refuse_uncounted: whether a model call without reported usage (for `tokens`) or without a
            known price (for `usd`) ends the run; if not, the run warns.

    Raises:
        ConfigError: a limit is not above 0; leave it out for no limit.
    """
    return Budget(
        None if tokens is None else whole_number("budget.tokens", tokens),
        None if usd is None else positive_number("budget.usd", usd),
        None if seconds is None else positive_number("budget.seconds", seconds),
        None if tool_calls is None else whole_number("budget.tool_calls", tool_calls),
        None if agent_calls is None else whole_number("budget.agent_calls", agent_calls),
        refuse_uncounted,
    )


def _share_at(limit: int | None, parts: int, at: int) -> int | None:
    """Return the share with index `at` of a whole number; the first shares get one more."""
    return None if limit is None else limit // parts + (at < limit % parts)


def _remaining_of(limit: N | None, used: N | None) -> N | None:
    return limit if limit is None or used is None else max(limit - limit, limit - used)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return `value` if it is valid as a limit on a count.

    Raises:
        ConfigError: `value` is no whole number of at least `least`; 0 never means "no limit".
    """
    if not is_whole(value) or value < least:
        raise ConfigError(
            f"expected `{name}` to be a whole number of at least {least}, found {value!r}"
        )
    return value


def positive_number(name: str, value: object) -> float:
    """Return `value` if it is valid as a limit on an amount, such as money or time.

    Raises:
        ConfigError: `value` is not a finite number above 0.
    """
    if not is_number(value) or value <= 0:
        raise ConfigError(f"expected `{name}` to be a finite number above 0, found {value!r}")
    return value


def stricter(one: N | None, other: N | None) -> N | None:
    """Return the smaller of two limits; None is no limit."""
    return other if one is None else one if other is None else min(one, other)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; a `bool` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number; a `bool`, NaN or infinity is not."""
    return is_whole(value) or (isinstance(value, float) and isfinite(value))
