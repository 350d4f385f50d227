"""The name, the kind and the options of a tool.

An option that would have no effect is refused when the tool is defined.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Final, Literal, TypeAlias, TypedDict, final, get_args

from msgspec import Struct

from ..errors import ToolDefinitionError, nearest, not_among
from ..spending import is_number
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
    "json_of",
    "kind_of",
    "legal_name",
    "refuse_unknown",
    "tool_policy_of",
]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_CHARS_MAX = 64

EffectPolicy: TypeAlias = Literal[
    "pure", "idempotent", "at_least_once", "at_most_once", "reconcile"
]
"""Whether a call that had started when its process stopped may run again on resume.

The journal has no result of such a call, so its effect is not known. With `pure`, `idempotent` or
`at_least_once` the call runs again. With `at_most_once` the model reads that the effect is unknown,
or a human is asked. With `reconcile` the tool's own lookup function decides.
"""

POLICIES: tuple[EffectPolicy, ...] = get_args(EffectPolicy)

REPEATABLE: Final[frozenset[EffectPolicy]] = frozenset({"pure", "idempotent", "at_least_once"})
"""Policies whose calls may run again without a question.

Under the other policies the journal records the start of a call before the call runs.
"""


@final
class Found(Struct, frozen=True):
    """Lookup answer: the call took effect, and the model reads `result` as its result."""

    result: object


class NotFound(Enum):
    """Lookup answers that carry no result: use `NOT_DONE` and `UNKNOWN`."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


NOT_DONE: Final = NotFound.NOT_DONE
"""Lookup answer: the call did not take effect and never will, so it may run now."""

UNKNOWN: Final = NotFound.UNKNOWN
"""Lookup answer: it is not known whether the call took effect."""

Reconciliation: TypeAlias = Found | NotFound
Reconcile: TypeAlias = Callable[..., Reconciliation | Awaitable[Reconciliation]]
Approval: TypeAlias = bool | Callable[..., bool | Awaitable[bool]]
Problems: TypeAlias = tuple[tuple[bool, str], ...]
"""The possible faults of a tool's options: pairs of (the fault is present, its message)."""


class ToolOptions(TypedDict, total=False):
    """How a tool is run: the options that `tool` and `Tool` share.

    `needs_approval`: whether a human must approve a call; a predicate gets the parsed arguments
    and the context. `timeout_s`: the seconds after which a call is cancelled (default: no limit).
    `thread`: run a plain function that blocks in a worker thread; by default it runs inline.
    `result_chars_max`: the length at which a result is cut (default 100,000 characters).

    `effect`: whether a call that had started when its process stopped may run again.
    `pure`: yes, the tool changes nothing. `idempotent`: yes, a second call changes nothing more (by
    `ToolContext.idempotency_key`). `at_least_once`: yes, although it may change things twice.
    `at_most_once`: never (the default). `reconcile`: ask the function `reconcile`, which gets the
    parsed arguments and the context and returns `Found(result)`, `NOT_DONE` or `UNKNOWN`.

    `sequential`: run the tool's calls one after another; a string names a lock that tools share.
    `ends_run`: the run ends after a turn in which only such tools ran and all calls succeeded.
    `provider_options`: further JSON fields of the tool's definition that only some wire formats
    know, such as `{"cache_control": {"type": "ephemeral"}}` or `{"strict": True}`. A model on a
    wire format that does not know a field refuses the tool before a request is sent.

    `server`: the name of the foreign server that runs the tool; a person who approves reads it.
    """

    needs_approval: Approval
    timeout_s: float | None
    thread: bool
    result_chars_max: int
    effect: EffectPolicy
    reconcile: Reconcile | None
    sequential: bool | str
    ends_run: bool
    provider_options: Mapping[str, object] | None
    server: str


class ToolPolicy(Struct, frozen=True):
    """The options of one tool, with their defaults."""

    needs_approval: Approval = False
    timeout_s: float | None = None
    thread: bool = False
    result_chars_max: int = 100_000
    effect: EffectPolicy = "at_most_once"
    reconcile: Reconcile | None = None
    sequential: bool | str = False
    ends_run: bool = False
    provider_options: Mapping[str, object] | None = None
    server: str = ""

    def lock(self, name: str) -> str:
        """Return the name of the lock that calls of the tool `name` take; empty for no lock."""
        if isinstance(self.sequential, str):
            return self.sequential
        return name if self.sequential else ""


def check_name(name: object) -> None:
    """Refuse a tool name that a provider API would refuse, and suggest a legal name.

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
    """Return the name, changed where needed so that every provider API accepts it."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS_MAX] or "tool"


def kind_of(kind: ToolKind | None, execute: Callable[..., object] | None, place: str) -> ToolKind:
    """Return the kind of a tool: the given kind, or a default.

    The default is "function" with an `execute`, and "client" without.

    Raises:
        ToolDefinitionError: the kind and the `execute` contradict each other.
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


def definition_text(
    kind: ToolKind, definition: Mapping[str, object] | None, name: str, wire: str = ""
) -> str:
    """Return a provider tool's definition as compact JSON; empty for a tool of another kind.

    Raises:
        ToolDefinitionError: the definition is missing, is not JSON, or has another `name`; or a
            tool of another kind has a definition or a wire.
    """
    place = f"tool {name!r}"
    if kind != "provider":
        if definition is None and not wire:
            return ""
        raise ToolDefinitionError(
            f"{place}: expected a definition and a wire with kind 'provider' only, found one with "
            f"kind {kind!r}. Fix: drop it, or use provider_tool(…)."
        )
    fields = {} if definition is None else dict(definition)
    if not fields or fields.get("name", name) != name:
        raise ToolDefinitionError(
            f"{place}: expected a definition whose 'name', if it has one, is the tool's own, "
            f"found {definition!r}. Fix: give the definition, and do not rename it."
        )
    return json_of(fields, f"{place}: the definition")


def json_of(fields: Mapping[str, object] | None, place: str) -> str:
    """Return fields as compact JSON; empty without fields.

    Raises:
        ToolDefinitionError: a value is not JSON; the message begins with `place`.
    """
    try:
        return json.dumps(dict(fields), allow_nan=False, separators=(",", ":")) if fields else ""
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(
            f"{place} is not JSON: {error}. Fix: use JSON values only."
        ) from error


def tool_policy_of(
    options: ToolOptions, kind: ToolKind, execute: Callable[..., object] | None, place: str
) -> ToolPolicy:
    """Return the checked options of a tool, completed with the defaults.

    Raises:
        ToolDefinitionError: an option is unknown, has a wrong value, or would have no effect.
    """
    refuse_unknown(options, place)
    policy = ToolPolicy(**options)
    problems = [*_wrong_values(policy), *_without_effect(policy, kind, execute)]
    for wrong, problem in problems:
        if wrong:
            raise ToolDefinitionError(f"{place}: {problem}")
    return policy


def refuse_unknown(options: Iterable[str], place: str) -> None:
    """Refuse unknown option names.

    Raises:
        ToolDefinitionError: an option is unknown; the message suggests the nearest known option.
    """
    known = ("name", "description", *ToolOptions.__annotations__)
    unknown = [name for name in options if name not in ToolOptions.__annotations__]
    if unknown:
        found = not_among(unknown, known)
        raise ToolDefinitionError(f"{place} has no option {found} Fix: use {', '.join(known)}.")


def _wrong_values(policy: ToolPolicy) -> Problems:
    """Return the possible faults in option values, for a tool of any kind.

    With a wrong `needs_approval` or `effect`, a call could run that must not run.
    """
    approval, timeout_s, effect = policy.needs_approval, policy.timeout_s, policy.effect
    hint = "" if effect in POLICIES else nearest(str(effect), POLICIES)
    return (
        (
            not isinstance(approval, bool) and not accepts(approval, 2),
            "needs_approval: expected True, False or a function of (arguments, context), "
            f"found {approval!r}. Fix: give it these two parameters.",
        ),
        (
            timeout_s is not None and not (is_number(timeout_s) and timeout_s > 0),
            f"timeout_s: expected more than 0 seconds, found {timeout_s!r}. Fix: leave it out for "
            "no limit.",
        ),
        (
            policy.result_chars_max < 1,
            "result_chars_max: expected a whole number of at least 1, "
            f"found {policy.result_chars_max!r}. Fix: raise it, or leave it out.",
        ),
        (
            policy.sequential == "",
            "sequential: expected True, False or the name of a lock, found ''. Fix: say True for a "
            "lock of its own.",
        ),
        (
            effect not in POLICIES,
            f"effect: expected one of {', '.join(map(repr, POLICIES))}, found {effect!r}."
            f"{hint} Fix: leave it out for 'at_most_once'.",
        ),
        (
            policy.reconcile is not None and not accepts(policy.reconcile, 2),
            f"reconcile: expected a function of (arguments, context), found {policy.reconcile!r}. "
            "Fix: give it these two parameters.",
        ),
    )


def _without_effect(
    policy: ToolPolicy, kind: ToolKind, execute: Callable[..., object] | None
) -> Problems:
    """Return the possible faults of options that have no effect on a tool of this kind."""
    effect, timed, threaded = policy.effect, policy.timeout_s is not None, policy.thread
    is_plain = execute is not None and not is_async(execute)
    runs_elsewhere = kind != "provider" and execute is None
    return (
        (
            (effect == "reconcile") != (policy.reconcile is not None),
            f"reconcile: expected effect='reconcile' and a function that looks a call up, or "
            f"neither, found effect={effect!r} and {policy.reconcile!r}. Fix: give both.",
        ),
        (
            kind == "provider" and policy != ToolPolicy(),
            "the provider runs it, without options. Fix: drop them.",
        ),
        (
            runs_elsewhere and (timed or threaded or effect != "at_most_once"),
            "timeout_s, thread, effect and reconcile need `execute`. Fix: drop them.",
        ),
        (
            kind == "client" and policy.sequential is not False,
            "sequential needs `execute`: the client orders the calls of its tools. Fix: drop it.",
        ),
        (
            threaded and not is_plain,
            "thread=True is for plain functions, found an async one. Fix: drop it.",
        ),
        (
            timed and not threaded and is_plain,
            "timeout_s cannot interrupt a plain function. Fix: add thread=True, or make it async.",
        ),
    )
