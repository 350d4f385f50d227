"""Dependencies: the types of `deps`, the object that a caller gives the functions of one run.

Another dependency is what a tool's function keeps open between runs, such as a connection. A run
never journals or prints its dependencies. Errors about them name types only.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec import Struct

from ..errors import ConfigError

__all__ = [
    "Closable",
    "DepsNeed",
    "check_deps",
    "deps_of_context",
    "deps_wanted",
    "kept_open",
    "kind_name",
    "refuse_undeclared",
    "uncovered",
]


@typing.runtime_checkable
class Closable(typing.Protocol):
    """An object that keeps something open, and can be used again after `aclose`."""

    async def aclose(self) -> None:
        """Close what is open in the running event loop."""


class DepsNeed(Struct, frozen=True):
    """A part of a program that reads `deps`, and the type that this part expects.

    Attributes:
        place: the part, in words: "tool 'refund'".
        kind: the expected type, as an annotation names it; a text if it is not found at runtime.
    """

    place: str
    kind: object


def deps_of_context(annotation: object, context: type) -> tuple[bool, object]:
    """Return whether an annotation is `context`, and the type of its dependencies.

    The type is `object` for a plain annotation, and for None: such a function reads no
    dependencies.

        deps_of_context(ToolContext[Deps] | None, ToolContext)  # (True, Deps)
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        annotation = members[0] if len(members) == 1 else annotation
    if annotation is context:
        return True, object
    if typing.get_origin(annotation) is not context:
        return False, object
    kind, *_ = typing.get_args(annotation)
    reads_none = kind in (typing.Any, types.NoneType) or isinstance(kind, typing.TypeVar)
    return True, object if reads_none else kind


def deps_wanted(function: Callable[..., object], context: type | None, place: int = 0) -> object:
    """Return the type of dependencies that a function expects of its context; `object` for none.

    A type that is not found at runtime, such as an import for type checkers alone, is returned as
    a text: the function reads dependencies nevertheless.

    Args:
        function: a function of the caller.
        context: the class of the context; None for a function that gets the dependencies alone.
        place: the place of either among the function's parameters.
    """
    try:
        parameters = (*inspect.signature(function).parameters.values(),)
    except (TypeError, ValueError):
        return object  # Some builtins have no readable signature.
    if place >= len(parameters) or parameters[place].kind is inspect.Parameter.VAR_POSITIONAL:
        return object
    holder = types.SimpleNamespace(__annotations__={"context": parameters[place].annotation})
    try:
        hints = typing.get_type_hints(holder, globalns=_names_known_to(function))
    except (NameError, AttributeError, SyntaxError, TypeError):
        return _unresolved_name(str(parameters[place].annotation), context)
    if context is None:
        return _alone(hints["context"])
    return deps_of_context(hints["context"], context)[1]


def _alone(kind: object) -> object:
    """Return the type of a parameter for dependencies; `object` if it may be None, or is untold."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    may_be_none = types.NoneType in (typing.get_args(kind) if is_union else (kind,))
    is_untold = kind is typing.Any or kind is inspect.Parameter.empty
    return object if may_be_none or is_untold or isinstance(kind, typing.TypeVar) else kind


def _names_known_to(function: Callable[..., object]) -> dict[str, object]:
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    called = inner if hasattr(inner, "__globals__") else inner.__call__
    return getattr(called, "__globals__", {})


def _unresolved_name(annotation: str, context: type | None) -> object:
    """Return the name of the dependencies in an annotation that cannot be resolved."""
    text = re.sub(r"ForwardRef\(|[)'\"]", "", annotation)
    if context is None:
        return object if re.search(r"\b(None|Optional)\b", text) else text
    named = re.search(rf"\b{context.__name__}\b(?:\[(.+)\])?", text)
    if named is None:
        return text
    kind: str | None = named[1]
    return object if kind in (None, "None", "Any", "object") else kind


def check_deps(
    needs: Iterable[DepsNeed], given: Mapping[str, object], place: str, *, refused: bool = False
) -> None:
    """Refuse a run whose `deps` are missing, have another type, or are undeclared.

    Args:
        needs: the parts that read the dependencies.
        given: the caller's keywords, with `deps` if the caller gives them.
        place: the agent or graph, in words.
        refused: whether it declares no `deps`, as an agent without a `deps_type` does.

    Raises:
        ConfigError: naming the parts and the types, never the object.
    """
    wanted = tuple(needs)
    if "deps" not in given:
        if wanted:
            raise ConfigError(
                f"`deps` of {place}: expected {kind_name(wanted[0].kind)}, which {wanted[0].place} "
                "reads, found none. Fix: pass `deps=…` to each start and each resume of the run, "
                "or to its worker; on the command line, define DEPS in the target's file."
            )
        return
    found = given["deps"]
    if refused and found is not None:
        raise ConfigError(
            f"`deps` of {place} have no effect: it declares none. Fix: declare their type, "
            f"Agent(…, deps_type={type(found).__name__}), or leave them out."
        )
    for need in wanted:
        if not _fits_kind(found, need.kind):
            raise ConfigError(
                f"`deps` of {place}: expected {kind_name(need.kind)}, which {need.place} reads, "
                f"found an object of type {type(found).__name__}. Fix: pass one of the type."
            )


def refuse_undeclared(needs: Iterable[DepsNeed], agent: str) -> None:
    """Refuse an agent without a `deps_type` of which a part reads `deps`.

    Raises:
        ConfigError: naming the first such part, and the type.
    """
    for need in needs:
        kind = kind_name(need.kind)
        fix = f"Agent(…, deps_type={kind})"
        if isinstance(need.kind, str):
            fix += f"; if it reads none, import {kind} outside `if TYPE_CHECKING`"
        raise ConfigError(
            f"agent {agent!r}: expected a `deps_type`, since {need.place} reads `deps` of type "
            f"{kind}, found none. Fix: {fix}."
        )


def uncovered(declared: object, needs: Iterable[DepsNeed]) -> DepsNeed | None:
    """Return the first part that `deps` of the declared type cannot serve; None if there is none.

    Only plain classes are compared: whether an object keeps a protocol shows at its use.
    """
    for need in needs:
        plain = [typing.cast("type", kind) for kind in (declared, need.kind) if _is_plain(kind)]
        if len(plain) == 2 and not issubclass(*plain):
            return need
    return None


def kind_name(kind: object) -> str:
    """Return a type as an error names it."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def _fits_kind(found: object, kind: object) -> bool:
    return not _is_plain(kind) or isinstance(found, typing.cast("type", kind))


def _is_plain(kind: object) -> bool:
    """Whether `isinstance` decides about this type: no protocol, no TypedDict, no generic alias."""
    return (
        isinstance(kind, type)
        and typing.get_origin(kind) is None
        and not getattr(kind, "_is_protocol", False)
        and not typing.is_typeddict(kind)
    )


def kept_open(execute: object) -> Closable | None:
    """Return the attribute `kept_open` of a tool's function, such as a connection."""
    found = getattr(execute, "kept_open", None)
    return found if isinstance(found, Closable) else None
