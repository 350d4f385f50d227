"""A tool's function is called as it wants to be, and given up when it is too slow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import cast

import pytest

from graphloop.errors import ConfigError
from graphloop.tools.execution import look_up, run_sync, yes_or_no
from graphloop.tools.options import Found, Reconciliation, ToolPolicy
from graphloop.tools.tool import Tool, ToolOutcome, tool
from tests.unit.tools.doubles import CONTEXT, run, search


@pytest.mark.parametrize("answer", [None, 0, 1, "", "yes", [], object()])
def test_only_true_is_a_yes_and_only_false_a_no(answer: object) -> None:
    """A forgotten `return` must not pass for a no."""
    assert (True, False) == (yes_or_no(True), yes_or_no(False))
    with pytest.raises(ConfigError, match="expected True or False, found "):
        yes_or_no(answer)


def raising(error: BaseException) -> ToolOutcome:
    async def fail() -> str:
        raise error

    return run(tool(fail))


def test_a_timeout_is_told_with_its_seconds() -> None:
    """A model that knows a tool was too slow can ask for less."""

    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    outcome = run(tool(hang, timeout_s=0.001))

    assert outcome.status == "timeout"
    assert "0.001 seconds" in str(outcome.content)


@pytest.mark.parametrize("error", [None, ValueError("late")], ids=["returns", "raises"])
def test_a_tool_that_swallows_its_cancellation_is_still_too_late(
    error: Exception | None,
) -> None:
    """What comes after the limit is no result: the limit would bound nothing."""

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
        return "too late"

    outcome = run(tool(stubborn, timeout_s=0.001))

    assert outcome.status == "timeout"
    assert "gave no result within 0.001 seconds" in str(outcome.content)


def test_a_tool_in_time_is_not_touched_by_its_timeout() -> None:
    """The limit must not change the answer."""
    assert run(tool(search, timeout_s=1e6), '{"text": "a"}').content == "a:10"


def test_a_tools_own_timeout_error_is_an_ordinary_error() -> None:
    """Only our own limit is reported as a timeout."""

    async def slow_service() -> str:
        raise TimeoutError("service")

    assert run(tool(slow_service, timeout_s=1e6)) == ToolOutcome("TimeoutError: service", "error")
    assert raising(TimeoutError("service")).status == "error"


def test_a_plain_function_runs_inline_or_in_a_thread() -> None:
    """Threads are for functions that block; the others should not pay."""

    def where() -> int:
        return threading.get_ident()

    here = str(threading.get_ident())

    assert run(tool(where)).content == here
    assert run(tool(where, thread=True)).content != here
    assert run(tool(where, thread=True, timeout_s=1e6)).status == "ok"


@pytest.mark.parametrize("thread", [False, True])
def test_stop_iteration_cannot_hang_a_run(*, thread: bool) -> None:
    """asyncio's futures refuse StopIteration: a thread that raised it would never be heard."""

    def exhausted() -> object:
        return next(iter(()))

    outcome = run(tool(exhausted, thread=thread))

    assert outcome.status == "error"
    assert "StopIteration" in str(outcome.content)


def test_a_builtin_without_signature_takes_the_arguments() -> None:
    """Some C functions tell no signature; they get the arguments."""
    builtin = cast("Callable[[object], object]", dict)  # Its own type is generic.
    one = Tool(name="d", parameters={"type": "object"}, execute=builtin)

    assert run(one, '{"a": 1}').content == '{"a":1}'


def found_where(_: object, __: object) -> Reconciliation:
    return Found(threading.get_ident())


async def found_here(_: object, __: object) -> Reconciliation:
    return Found(threading.get_ident())


def test_a_lookup_that_blocks_runs_in_a_thread_like_its_tool() -> None:
    """It asks the same service, by the same means; an async one never blocks."""
    here = Found(threading.get_ident())

    assert asyncio.run(look_up(found_where, ToolPolicy(), {}, CONTEXT)) == here
    assert asyncio.run(look_up(found_where, ToolPolicy(thread=True), {}, CONTEXT)) != here
    assert asyncio.run(look_up(found_here, ToolPolicy(thread=True), {}, CONTEXT)) == here


def test_an_error_of_a_synchronous_call_has_no_error_of_ours_before_it() -> None:
    """A traceback that begins with another error sends its reader to the wrong place."""

    async def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        run_sync(fail(), "fail")

    assert caught.value.__context__ is None
