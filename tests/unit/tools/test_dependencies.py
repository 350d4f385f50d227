"""The types of `deps` that functions read, and objects that fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ForwardRef, Generic, Protocol, TypedDict, TypeVar

import pytest

from graphloop.errors import ConfigError
from graphloop.tools import (
    DepsNeed,
    Tool,
    ToolContext,
    check_deps,
    deps_of_context,
    deps_wanted,
    kind_name,
    tool,
    uncovered,
)

T = TypeVar("T")


@dataclass
class Desk:
    """Some dependencies."""

    user: str = "canary"


class Better(Desk):
    """More of them."""


class Named(Protocol):
    user: str


class Row(TypedDict):
    user: str


class Box(Generic[T]):
    """A generic class."""


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (ToolContext, (True, object)),
        (ToolContext[Desk], (True, Desk)),
        (ToolContext[Desk] | None, (True, Desk)),
        (ToolContext | None, (True, object)),
        (ToolContext[Any], (True, object)),
        (ToolContext[None], (True, object)),
        (ToolContext[T], (True, object)),  # type: ignore[valid-type]  # pyright: ignore[reportGeneralTypeIssues]
        (ToolContext[Desk | None], (True, Desk | None)),
        (Desk, (False, object)),
        (Desk | None, (False, object)),
        (list[ToolContext[Desk]], (False, object)),
    ],
)
def test_an_annotation_names_the_type_of_the_deps(annotation: object, found: object) -> None:
    assert found == deps_of_context(annotation, ToolContext)


def raw(arguments: Mapping[str, object], context: ToolContext[Desk]) -> str:
    return context.deps.user


def unread(arguments: Mapping[str, object], context: ToolContext) -> bool:
    return True


def unresolved(arguments: Mapping[str, object], context: ToolContext) -> bool:
    return True


unresolved.__annotations__["context"] = "ToolContext[Missing]"


class Asking:
    """An object that can be called like a function."""

    def __call__(self, arguments: Mapping[str, object], context: ToolContext[Desk]) -> bool:
        return bool(context.deps.user)


SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("execute", "approval", "kind"),
    [
        (raw, False, Desk),
        (unread, False, object),
        (unread, raw, Desk),
        (unread, unread, object),
        (unresolved, unread, "Missing"),
        (unread, unresolved, "Missing"),
        (unread, Asking(), Desk),
        (partial(raw), False, Desk),
        (print, True, object),
    ],
)
def test_a_tool_knows_the_deps_that_its_functions_read(
    execute: Callable[..., Any], approval: Any, kind: object
) -> None:
    made = Tool(name="t", parameters=SCHEMA, execute=execute, needs_approval=approval)

    assert kind == made.deps_type == made.renamed("other").deps_type


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ({"context": "ToolContext[Missing]"}, "Missing"),
        ({"context": 'ToolContext["Missing"]'}, "Missing"),
        ({"context": ToolContext[ForwardRef("Missing")]}, "Missing"),  # type: ignore[misc]  # pyright: ignore[reportInvalidTypeForm, reportInvalidTypeArguments]
        ({"context": "missing.ToolContext[Desk | None] | None"}, "Desk | None"),
        ({"context": "Alias"}, "Alias"),
        ({"context": "missing.ToolContext"}, object),
        ({"context": "missing.ToolContext[None]"}, object),
        ({"arguments": "Missing", "return": "Missing"}, object),
        ({"arguments": "Missing", "context": "ToolContext[Desk]"}, Desk),
    ],
)
def test_a_type_that_is_missing_at_runtime_counts_as_read(
    annotations: Mapping[str, object], kind: object
) -> None:
    """An import for type checkers alone would else start a run whose function then fails."""

    def asks(arguments: object, context: object) -> bool:
        return True

    asks.__annotations__.update(annotations)

    assert kind == deps_wanted(asks, ToolContext, 1)


def test_a_tool_of_a_function_knows_the_deps_too() -> None:
    @tool
    def look(context: ToolContext[Desk]) -> str:
        """Look."""
        return context.deps.user

    assert Desk == look.deps_type


@pytest.mark.parametrize(
    ("kind", "fits"),
    [(Desk, True), (Better, False), (Named, True), (Row, True), (Box[int], True), (int, False)],
)
def test_only_a_plain_class_refuses_an_object(kind: object, fits: bool) -> None:
    """Whether an object keeps a protocol, or a mapping is a row, shows at its use."""
    need = DepsNeed("tool 't'", kind)
    given = {"deps": Desk()}
    if fits:
        check_deps([need], given, "'agent'")
        return

    with pytest.raises(
        ConfigError, match=f"expected {kind_name(kind)}, .* of type Desk"
    ) as refused:
        check_deps([need], given, "'agent'")

    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("declared", "needed", "covered"),
    [
        (Better, Desk, True),
        (Desk, Better, False),
        (Desk, Named, True),
        (Named, Desk, True),
        (Desk | None, Desk, True),
    ],
)
def test_a_declared_type_covers_its_base_classes(
    declared: object, needed: object, covered: bool
) -> None:
    need = DepsNeed("tool 't'", needed)

    assert (None if covered else need) == uncovered(declared, [need])


async def test_a_test_calls_a_tool_with_the_deps_alone() -> None:
    """The other facts of a call have values that name no run."""

    @tool
    async def seat(context: ToolContext[Desk]) -> Desk:
        return context.deps

    desk = Desk()

    assert desk is await seat(ToolContext(deps=desk))
    assert ToolContext("", "", "", 0, ()) == ToolContext()
