"""What a user's function takes is known before it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from graphloop.errors import ConfigError, ToolDefinitionError
from graphloop.tools.callables import (
    accepts,
    awaited,
    caller,
    is_async,
    refuse_generator,
    yes_or_no,
)
from graphloop.tools.parameters import Parameters

ONE = Parameters("{}", str)
KEYWORDS = Parameters("{}", str, keywords=True)
WITH_CONTEXT = Parameters("{}", str, keywords=True, context="here")


async def later(value: object) -> object:
    return value


class Service:
    async def __call__(self, value: object) -> object:
        return value


def pair(value: object, context: object) -> tuple[object, object]:
    return value, context


def named(*, text: str, here: object = None) -> tuple[object, object]:
    return text, here


def many(value: object) -> Iterator[object]:
    yield value


@pytest.mark.parametrize(
    ("function", "count", "expected"),
    [(pair, 2, True), (pair, 1, False), (dict, 1, True), (dict, 2, False), ("pair", 1, False)],
)
def test_a_function_is_asked_how_many_arguments_it_takes(
    function: object, count: int, expected: bool
) -> None:
    """A builtin that tells no signature takes one."""
    assert accepts(function, count) is expected


def test_an_object_with_an_async_call_is_async() -> None:
    """A timeout can interrupt it."""
    assert [is_async(one) for one in (later, Service(), pair)] == [True, True, False]


@pytest.mark.parametrize(
    ("execute", "parameters", "value", "expected"),
    [
        (pair, ONE, "v", ("v", "context")),
        (repr, ONE, "v", "'v'"),
        (named, KEYWORDS, {"text": "v"}, ("v", None)),
        (named, WITH_CONTEXT, {"text": "v"}, ("v", "context")),
    ],
)
def test_a_function_gets_what_it_takes(
    execute: Callable[..., object], parameters: Parameters, value: object, expected: object
) -> None:
    """One value or keywords, with the context or without."""
    assert caller(execute, parameters, "here")(value, "context") == expected


def test_a_function_that_takes_something_else_is_refused() -> None:
    """When its tool is defined, not when it runs."""

    def three(one: object, two: object, more: object) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"here: .*one parameter.* Fix: "):
        caller(three, ONE, "here")


def test_a_generator_is_refused() -> None:
    """A call has one result."""
    refuse_generator(pair, "here")
    with pytest.raises(ToolDefinitionError, match=r"here: .*found a generator.* Fix: "):
        refuse_generator(many, "here")
    with pytest.raises(ToolDefinitionError, match="found a generator"):
        caller(many, ONE, "here")


def test_what_can_be_awaited_is() -> None:
    """And everything else is the answer itself."""
    assert "v" == asyncio.run(awaited("v"))
    assert "v" == asyncio.run(awaited(later("v")))


@pytest.mark.parametrize("answer", [None, 0, 1, "", "yes", [], object()])
def test_only_true_is_a_yes_and_only_false_a_no(answer: object) -> None:
    """A forgotten `return` must not pass for a no."""
    assert (True, False) == (yes_or_no(True), yes_or_no(False))
    with pytest.raises(ConfigError, match="expected True or False, found "):
        yes_or_no(answer)
