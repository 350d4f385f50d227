"""Functions that users give: whether they take what they will be given, and how to call them.

Signatures are read once, when a tool is defined, so that a call costs next to nothing and a wrong
function is refused before any model sees its tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from ..errors import ConfigError, ToolDefinitionError
from .parameters import Parameters

__all__ = ["Caller", "accepts", "awaited", "caller", "is_async", "refuse_generator", "yes_or_no"]

Caller: TypeAlias = Callable[[object, object], object]


def accepts(function: object, count: int) -> bool:
    """Whether `function` can be called with `count` positional arguments."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return count == 1  # Some builtins tell no signature.
    return True


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling `function`, or the object that stands for one, gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


async def awaited(answer: object) -> object:
    """Return what a function of the user's returned, whether it is asynchronous or not."""
    return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer


def yes_or_no(answer: object) -> bool:
    """Return the answer of a function that decides: only True is a yes, and only False a no.

    Raises:
        ConfigError: it is anything else; a forgotten `return` must not pass for a no.
    """
    if answer is True or answer is False:
        return answer
    raise ConfigError(
        f"expected True or False, found {answer!r:.80}. Fix: return one of them on every path."
    )


def caller(execute: Callable[..., object], parameters: Parameters, place: str) -> Caller:
    """Return how to call `execute`, decided once instead of at each call.

    Raises:
        ToolDefinitionError: `execute` takes neither the arguments nor the arguments and a context,
            or is a generator.
    """
    refuse_generator(execute, place)
    if parameters.keywords and parameters.context:
        given = parameters.context
        return lambda value, context: execute(**_keywords(value), **{given: context})
    if parameters.keywords:
        return lambda value, _: execute(**_keywords(value))
    if accepts(execute, 2):
        return execute
    if accepts(execute, 1):
        return lambda value, _: execute(value)
    raise ToolDefinitionError(
        f"{place}: execute must take the arguments as one parameter, and may take the context as "
        f"a second, found {execute!r}. Fix: give it one or two positional parameters."
    )


def refuse_generator(function: Callable[..., object], place: str) -> None:
    """Refuse a function that gives many results.

    Raises:
        ToolDefinitionError: it is a generator, or an object that is called as one.
    """
    for one in (function, type(function).__call__):
        if inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one):
            raise ToolDefinitionError(
                f"{place}: expected one result, found a generator. Fix: return a value."
            )


def _keywords(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value)  # `Parameters.keywords` promises it.
