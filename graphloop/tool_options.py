"""The options of a tool: what each may be, and which of them cannot work together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from .errors import ToolDefinitionError, nearest
from .limits import is_number, is_whole
from .schemas import accepts, is_async

__all__ = ["Approval", "Policy", "ToolOptions", "policy_of", "reject_unknown"]

Approval: TypeAlias = bool | Callable[..., bool | Awaitable[bool]]


class ToolOptions(TypedDict, total=False):
    """How a tool is run: the options that `tool` and `Tool` share.

    `needs_approval`: whether a human must agree to a call; a predicate gets the parsed arguments
    and the context. `timeout_s`: after how many seconds a call is given up (default: never).
    `thread`: run a plain function in a worker thread, because it blocks; without it, it runs
    inline. `result_chars_max`: where a result is cut (default 100,000 characters).
    """

    needs_approval: Approval
    timeout_s: float | None
    thread: bool
    result_chars_max: int


@dataclass(frozen=True, slots=True)
class Policy:
    """The options of one tool, with their defaults."""

    needs_approval: Approval = False
    timeout_s: float | None = None
    thread: bool = False
    result_chars_max: int = 100_000


def policy_of(options: ToolOptions, execute: Callable[..., object] | None, place: str) -> Policy:
    """Return the options of a tool with their defaults.

    Raises:
        ToolDefinitionError: there is no such option, or one cannot work; says what to do.
    """
    reject_unknown(options, place)
    policy = Policy(**options)
    for wrong, problem in _problems(policy, execute):
        if wrong:
            raise ToolDefinitionError(f"{place}: {problem}")
    return policy


def reject_unknown(given: Iterable[str], place: str) -> None:
    """Raise for every option name that is none.

    Raises:
        ToolDefinitionError: naming each, with the nearest that exists.
    """
    known = ("name", "description", *ToolOptions.__annotations__)
    unknown = [name for name in given if name not in ToolOptions.__annotations__]
    if unknown:
        found = "; ".join(f"{name!r}.{nearest(name, known)}" for name in unknown)
        raise ToolDefinitionError(f"{place} has no option {found} Fix: use {', '.join(known)}.")


def _problems(policy: Policy, execute: Callable[..., object] | None) -> Iterator[tuple[bool, str]]:
    asks, limit_s = policy.needs_approval, policy.timeout_s
    timed, threaded = limit_s is not None, policy.thread
    yield (
        not isinstance(asks, bool) and not accepts(asks, 2),
        "needs_approval must be True, False or a function of (arguments, context), "
        f"found {asks!r}. Fix: give it these two parameters.",
    )
    yield (
        limit_s is not None and not (is_number(limit_s) and limit_s > 0),
        f"timeout_s must be more than 0 seconds, found {limit_s!r}. Fix: leave it out for no "
        "limit.",
    )
    yield (
        threaded not in (True, False),
        f"thread must be True or False, found {threaded!r}. Fix: say True for a function that "
        "blocks.",
    )
    yield (
        not is_whole(policy.result_chars_max) or policy.result_chars_max < 1,
        f"result_chars_max must be at least 1, a whole number, found {policy.result_chars_max!r}. "
        "Fix: raise it, or leave it out.",
    )
    if execute is None:
        yield timed or threaded, "timeout_s and thread need `execute`. Fix: drop them."
        return
    yield not callable(execute), f"execute must be a function, found {execute!r}. Fix: pass it."
    yield (
        threaded and is_async(execute),
        "thread=True is for plain functions, found an async one. Fix: drop it.",
    )
    yield (
        timed and not threaded and not is_async(execute),
        "timeout_s cannot interrupt a plain function. Fix: add thread=True, or make it async.",
    )
