"""The options of a tool: what each may be, and which of them cannot work together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypedDict, get_args

from ..errors import ToolDefinitionError, nearest, not_among
from ..spending import is_number, is_whole
from ..values import ToolKind
from .callables import accepts, is_async
from .repeats import EffectPolicy, Reconcile

__all__ = ["Approval", "ToolOptions", "ToolPolicy", "reject_unknown", "tool_policy_of"]

Approval: TypeAlias = bool | Callable[..., bool | Awaitable[bool]]
Problems: TypeAlias = Iterator[tuple[bool, str]]

POLICIES: tuple[EffectPolicy, ...] = get_args(EffectPolicy)


class ToolOptions(TypedDict, total=False):
    """How a tool is run: the options that `tool` and `Tool` share.

    `needs_approval`: whether a human must agree to a call; a predicate gets the parsed arguments
    and the context (CONTRACT §3.5). `timeout_s`: after how many seconds a call is given up
    (default: never). `thread`: run a plain function in a worker thread, because it blocks; without
    it, it runs inline. `result_chars_max`: where a result is cut (default 100,000 characters,
    CONTRACT §9 #57).

    `effect`: what may be done about a call that had begun when its process stopped (DURABLE §6.4):
    run it again, because that changes nothing (`pure`), or because it changes nothing twice
    (`idempotent`, by `ToolContext.idempotency_key`), or although it may (`at_least_once`); never
    (`at_most_once`, the default); or ask `reconcile`, a function of the parsed arguments and the
    context that returns `Found(result)`, `NOT_DONE` or `UNKNOWN`.

    `sequential`: run no two calls of the tool at once; a string is a lock that tools may share
    (CONTRACT §9 #35). `ends_run`: a turn in which only such tools ran, and all went well, is the
    run's last (CONTRACT §7.1 L22, L23).
    """

    needs_approval: Approval
    timeout_s: float | None
    thread: bool
    result_chars_max: int
    effect: EffectPolicy
    reconcile: Reconcile | None
    sequential: bool | str
    ends_run: bool


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """The options of one tool, with their defaults."""

    needs_approval: Approval = False
    timeout_s: float | None = None
    thread: bool = False
    result_chars_max: int = 100_000
    effect: EffectPolicy = "at_most_once"
    reconcile: Reconcile | None = None
    sequential: bool | str = False
    ends_run: bool = False

    def lock(self, name: str) -> str:
        """Return the lock that the calls of the tool `name` hold, or "" for none."""
        if isinstance(self.sequential, str):
            return self.sequential
        return name if self.sequential else ""


def tool_policy_of(
    options: ToolOptions, kind: ToolKind, execute: Callable[..., object] | None, place: str
) -> ToolPolicy:
    """Return the options of a tool with their defaults.

    Raises:
        ToolDefinitionError: there is no such option, or one cannot work; says what to do.
    """
    reject_unknown(options, place)
    policy = ToolPolicy(**options)
    for wrong, problem in _problems(policy, kind, execute):
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
        found = not_among(unknown, known)
        raise ToolDefinitionError(f"{place} has no option {found} Fix: use {', '.join(known)}.")


def _problems(
    policy: ToolPolicy, kind: ToolKind, execute: Callable[..., object] | None
) -> Problems:
    yield from _wrong_values(policy)
    yield from _wrong_effect(policy)
    if kind == "provider":
        yield policy != ToolPolicy(), "the provider runs it, by no option of ours. Fix: drop them."
    elif execute is None:
        yield from _needing_executor(policy, kind)
    else:
        yield from _wrong_executor(policy, execute)


def _wrong_values(policy: ToolPolicy) -> Problems:
    asks, limit_s, lock = policy.needs_approval, policy.timeout_s, policy.sequential
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
        policy.thread not in (True, False),
        f"thread must be True or False, found {policy.thread!r}. Fix: say True for a function that "
        "blocks.",
    )
    yield (
        not is_whole(policy.result_chars_max) or policy.result_chars_max < 1,
        f"result_chars_max must be at least 1, a whole number, found {policy.result_chars_max!r}. "
        "Fix: raise it, or leave it out.",
    )
    yield (
        not _is_lock(lock),
        f"sequential must be True, False or the name of a lock, found {lock!r}. Fix: say True for "
        "a lock of its own.",
    )
    yield (
        policy.ends_run not in (True, False),
        f"ends_run must be True or False, found {policy.ends_run!r}. Fix: say True for a tool that "
        "completes the run.",
    )


def _wrong_effect(policy: ToolPolicy) -> Problems:
    effect, reconcile = policy.effect, policy.reconcile
    hint = "" if effect in POLICIES else nearest(str(effect), POLICIES)
    yield (
        effect not in POLICIES,
        f"effect must be one of {', '.join(map(repr, POLICIES))}, found {effect!r}."
        f"{hint} Fix: leave it out for 'at_most_once'.",
    )
    yield (
        reconcile is not None and not accepts(reconcile, 2),
        f"reconcile must be a function of (arguments, context), found {reconcile!r}. "
        "Fix: give it these two parameters.",
    )
    yield (
        effect == "reconcile" and reconcile is None,
        "effect='reconcile' needs a function that looks a call up. Fix: add reconcile=…, or choose "
        "another effect.",
    )
    yield (
        effect != "reconcile" and reconcile is not None,
        f"reconcile would never be asked with effect={effect!r}. Fix: say effect='reconcile'.",
    )


def _needing_executor(policy: ToolPolicy, kind: ToolKind) -> Problems:
    yield (
        policy.timeout_s is not None or policy.thread,
        "timeout_s and thread need `execute`. Fix: drop them.",
    )
    yield (
        policy.effect != "at_most_once",
        "effect and reconcile need `execute`. Fix: drop them.",
    )
    yield (
        kind == "client" and policy.sequential is not False,
        "sequential needs `execute`: whoever answers a client tool's calls orders them. "
        "Fix: drop it.",
    )


def _wrong_executor(policy: ToolPolicy, execute: Callable[..., object]) -> Problems:
    timed, threaded = policy.timeout_s is not None, policy.thread
    yield not callable(execute), f"execute must be a function, found {execute!r}. Fix: pass it."
    yield (
        threaded and is_async(execute),
        "thread=True is for plain functions, found an async one. Fix: drop it.",
    )
    yield (
        timed and not threaded and not is_async(execute),
        "timeout_s cannot interrupt a plain function. Fix: add thread=True, or make it async.",
    )


def _is_lock(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value != "")
