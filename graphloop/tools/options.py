"""The definition of a tool beside its parameters: name, kind, effect policy and other options.

Every option takes effect or is refused when the tool is defined.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias, TypedDict, final, get_args

from ..errors import ToolDefinitionError, nearest, not_among
from ..spending import is_number, is_whole
from ..values import ToolKind
from .signature import accepts, is_async

__all__ = [
    "NOT_DONE",
    "REPEATABLE",
    "UNKNOWN",
    "Approval",
    "EffectPolicy",
    "Found",
    "NotFound",
    "Reconcile",
    "Reconciliation",
    "ToolOptions",
    "ToolPolicy",
    "check_name",
    "definition_text",
    "kind_of",
    "legal_name",
    "reject_unknown",
    "tool_policy_of",
]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_CHARS_MAX = 64

EffectPolicy: TypeAlias = Literal[
    "pure", "idempotent", "at_least_once", "at_most_once", "reconcile"
]
"""How a call that started may be repeated after its process stopped.

A call without a result in the journal may have taken effect, or not. `pure`, `idempotent` and
`at_least_once` run it again. `at_most_once` leaves it unknown: the model reads so, or a human is
asked. `reconcile` asks the tool's own lookup.
"""

POLICIES: tuple[EffectPolicy, ...] = get_args(EffectPolicy)

REPEATABLE: Final[frozenset[EffectPolicy]] = frozenset({"pure", "idempotent", "at_least_once"})
"""Policies whose calls may run again unasked; the others need their start in the journal."""


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The call did take effect: the model reads `result`."""

    result: object


class NotFound(Enum):
    """The answers of a lookup without a result: use `NOT_DONE` and `UNKNOWN`."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


NOT_DONE: Final = NotFound.NOT_DONE
"""The call did not take effect, and never will: it may run now."""

UNKNOWN: Final = NotFound.UNKNOWN
"""The lookup cannot tell whether the call took effect."""

Reconciliation: TypeAlias = Found | NotFound
Reconcile: TypeAlias = Callable[..., Reconciliation | Awaitable[Reconciliation]]
Approval: TypeAlias = bool | Callable[..., bool | Awaitable[bool]]
Problems: TypeAlias = Iterator[tuple[bool, str]]


class ToolOptions(TypedDict, total=False):
    """How a tool is run: the options that `tool` and `Tool` share.

    `needs_approval`: whether a human must approve a call; a predicate gets the parsed arguments
    and the context. `timeout_s`: after how many seconds a call is given up
    (default: never). `thread`: run a plain function in a worker thread, because it blocks; without
    it, it runs inline. `result_chars_max`: where a result is cut (default 100,000 characters).

    `effect`: whether a call that started before its process stopped may run again.
    `pure`: yes, it changes nothing. `idempotent`: yes, a second call changes nothing more (by
    `ToolContext.idempotency_key`). `at_least_once`: yes, although it may change things twice.
    `at_most_once`: never (the default). `reconcile`: ask the function `reconcile`, which gets the
    parsed arguments and the context and returns `Found(result)`, `NOT_DONE` or `UNKNOWN`.

    `sequential`: run no two calls of the tool at once; a string is a lock that tools may share.
    `ends_run`: a turn in which only such tools ran, and all went well, is the run's last.
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


def check_name(name: object) -> None:
    """Refuse a name that some wire would refuse, and offer a legal name.

    Raises:
        ToolDefinitionError: the name is not 1 to 64 letters, digits, '_' or '-'.
    """
    legal = legal_name(name)
    if name != legal:
        raise ToolDefinitionError(
            f"tool {name!r}: a name must be 1 to {NAME_CHARS_MAX} letters, digits, '_' or '-'. "
            f"Fix: name it {legal!r}."
        )


def legal_name(name: object) -> str:
    """Return the nearest name that every wire takes: a legal name itself."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS_MAX] or "tool"


def kind_of(kind: ToolKind | None, execute: Callable[..., object] | None, place: str) -> ToolKind:
    """Return the kind of a tool: without a `kind`, a function if it has an executor, else a client.

    Raises:
        ToolDefinitionError: the kind and the executor contradict each other.
    """
    if kind is None:
        return "client" if execute is None else "function"
    if (kind == "function") != (execute is not None):
        found = "none" if execute is None else repr(execute)
        raise ToolDefinitionError(
            f"{place}: expected an `execute` with kind 'function' and with no other kind, "
            f"found {found} with kind {kind!r}. Fix: leave `kind` out."
        )
    return kind


def definition_text(kind: ToolKind, definition: Mapping[str, object] | None, name: str) -> str:
    """Return the definition of a provider's tool as JSON text, as its wire will send it.

    Raises:
        ToolDefinitionError: it is not JSON, has no `type` or another `name`; or the provider does
            not run the tool.
    """
    place = f"tool {name!r}"
    if kind != "provider":
        if definition is None:
            return ""
        raise ToolDefinitionError(
            f"{place}: expected a definition with kind 'provider' only, found one with kind "
            f"{kind!r}. Fix: drop it, or use provider_tool(…)."
        )
    given = {} if definition is None else dict(definition)
    if given.get("name") != name or not isinstance(given.get("type"), str):
        raise ToolDefinitionError(
            f"{place}: expected a definition with a 'type' and the tool's own 'name', "
            f"found {definition!r}. Fix: add what is missing, and do not rename it."
        )
    try:
        return json.dumps(given, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(
            f"{place}: the definition is not JSON: {error}. Fix: use JSON values only."
        ) from error


def tool_policy_of(
    options: ToolOptions, kind: ToolKind, execute: Callable[..., object] | None, place: str
) -> ToolPolicy:
    """Return the options of a tool with their defaults.

    Raises:
        ToolDefinitionError: there is no such option, or an option cannot take effect.
    """
    reject_unknown(options, place)
    policy = ToolPolicy(**options)
    for wrong, problem in _problems(policy, kind, execute):
        if wrong:
            raise ToolDefinitionError(f"{place}: {problem}")
    return policy


def reject_unknown(given: Iterable[str], place: str) -> None:
    """Refuse unknown option names.

    Raises:
        ToolDefinitionError: naming each, with the nearest option.
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
        yield policy != ToolPolicy(), "the provider runs it, without options. Fix: drop them."
    elif execute is None:
        yield from _needing_executor(policy, kind)
    else:
        yield from _wrong_executor(policy, execute)


def _wrong_values(policy: ToolPolicy) -> Problems:
    approval, timeout_s, lock = policy.needs_approval, policy.timeout_s, policy.sequential
    yield (
        not isinstance(approval, bool) and not accepts(approval, 2),
        "needs_approval: expected True, False or a function of (arguments, context), "
        f"found {approval!r}. Fix: give it these two parameters.",
    )
    yield (
        timeout_s is not None and not (is_number(timeout_s) and timeout_s > 0),
        f"timeout_s: expected more than 0 seconds, found {timeout_s!r}. Fix: leave it out for no "
        "limit.",
    )
    yield (
        not is_whole(policy.result_chars_max) or policy.result_chars_max < 1,
        "result_chars_max: expected a whole number of at least 1, "
        f"found {policy.result_chars_max!r}. Fix: raise it, or leave it out.",
    )
    yield (
        not _is_lock(lock),
        f"sequential: expected True, False or the name of a lock, found {lock!r}. "
        "Fix: say True for a lock of its own.",
    )
    for name, switch in (("thread", policy.thread), ("ends_run", policy.ends_run)):
        yield (
            switch not in (True, False),
            f"{name}: expected True or False, found {switch!r}. Fix: say True or leave it out.",
        )


def _wrong_effect(policy: ToolPolicy) -> Problems:
    effect, reconcile = policy.effect, policy.reconcile
    hint = "" if effect in POLICIES else nearest(str(effect), POLICIES)
    yield (
        effect not in POLICIES,
        f"effect: expected one of {', '.join(map(repr, POLICIES))}, found {effect!r}."
        f"{hint} Fix: leave it out for 'at_most_once'.",
    )
    yield (
        reconcile is not None and not accepts(reconcile, 2),
        f"reconcile: expected a function of (arguments, context), found {reconcile!r}. "
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
        "sequential needs `execute`: the client orders the calls of its tools. Fix: drop it.",
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
