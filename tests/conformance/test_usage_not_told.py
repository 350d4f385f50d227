"""Servers that tell no usage, over real sockets: not told is not zero, and bounds say so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graphloop import Agent, RunResult, tool
from graphloop.conversation.compaction import Compaction
from graphloop.limits import stop
from graphloop.limits.model_price import ModelPrice
from graphloop.parts.kinds import Finish, StepStart, Warned
from graphloop.providers.base import TextDelta
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.run import EndReason
from graphloop.spending import budget
from graphloop.values import Reply
from tests.wire_server import Answer, WireServer, sse

PRICES = {"m": ModelPrice(1.0, 2.0)}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4}


def answer(delta: dict[str, object], finish: str, *, told: bool) -> Answer:
    """Return an answer, with its usage or without."""
    chunks: list[object] = [
        {"model": "m", "choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        *([{"choices": [], "usage": USAGE}] if told else []),
    ]
    return Answer(sse(*map(json.dumps, chunks), "[DONE]"))


def calls(*, told: bool = False) -> Answer:
    """Return an answer that asks for the tool."""
    function = {"name": "look", "arguments": "{}"}
    return answer({"tool_calls": [{"id": "a", "function": function}]}, "tool_calls", told=told)


def text(*, told: bool = False) -> Answer:
    """Return an answer that says something."""
    return answer({"content": "Done."}, "stop", told=told)


@tool
def look() -> str:
    """Look."""
    return "seen"


async def with_agent(
    answers: list[Answer], use: Callable[[Agent, WireServer], Awaitable[Any]], **options: Any
) -> Any:
    """Return what comes of using an agent whose server gives these answers."""
    async with WireServer(answers) as server:
        model = HttpProvider(OpenAIChat("m"), Endpoint(server.url))
        try:
            priced: dict[str, Any] = (
                options if "price" in options else {"prices": PRICES, **options}
            )
            return await use(Agent(model, tools=[look], **priced), server)
        finally:
            await model.aclose()


def result_of(answers: list[Answer], **options: Any) -> RunResult[Any, Any]:
    """Return the result of a run."""

    async def use(agent: Agent, server: WireServer) -> RunResult[Any, Any]:
        return await agent.generate("Go.")

    found: RunResult[Any, Any] = asyncio.run(with_agent(answers, use, **options))
    return found


def test_a_usage_that_no_server_told_is_none_and_so_is_its_cost() -> None:
    """0 tokens at $0.00 would be read as a free run."""
    result = result_of([calls(), text()])

    assert (None, None, None) == (result.usage, result.total_usage, result.cost_usd)
    assert 2 == result.run.spent.unreported_calls


def test_an_untold_usage_has_no_known_cost() -> None:
    """A function of the usage says 0 of it, whoever wrote the function."""

    def by_tokens(reply: Reply) -> float:
        return reply.usage.total_tokens * 1e-6

    def by_call(reply: Reply) -> float:
        return 0.5

    assert result_of([text()], price=by_tokens).cost_usd is None
    assert 0.5 == result_of([text()], price=by_call).cost_usd


def test_a_usage_told_in_part_has_no_cost() -> None:
    """The tokens are known to be so many at least; a sum of money that lacks a call is no sum."""
    result = result_of([calls(told=True), text()])

    assert result.usage is not None
    assert 13 == result.usage.total_tokens
    assert result.cost_usd is None


@pytest.mark.parametrize(
    ("bound", "options"),
    [
        ("budget(tokens=1)", {"budget": budget(tokens=1)}),
        ("budget(usd=1e-06)", {"budget": budget(usd=1e-6)}),
        ("stop.total_tokens_exceed(1)", {"stop_when": stop.total_tokens_exceed(1)}),
        ("stop.cost_exceeds(1e-06)", {"stop_when": stop.cost_exceeds(1e-6)}),
        ("Compaction", {"compaction": Compaction(context_window=100_000)}),
    ],
)
def test_a_bound_that_cannot_be_counted_says_so_at_once(
    bound: str, options: dict[str, Any]
) -> None:
    """A person who watches can stop the run; at its end it would be too late."""

    async def use(agent: Agent, server: WireServer) -> None:
        asked: list[tuple[str, int]] = []
        async for part in agent.stream("Go.").full_stream:
            if isinstance(part, Warned):
                asked.append((part.message, len(server.requests)))
            if isinstance(part, StepStart):
                asked.append(("step", len(server.requests)))
            if isinstance(part, Finish):
                assert part.usage is None
        warned = [one for one in asked if one[0].startswith(bound)]
        assert [1] == [requests for _, requests in warned]
        second = [at for at, one in enumerate(asked) if one[0] == "step"][1]
        assert asked.index(warned[0]) < second

    asyncio.run(with_agent([calls(), text()], use, **options))


def test_a_bound_that_can_be_counted_says_nothing() -> None:
    """A warning on each run would be read by nobody."""
    result = result_of([calls(told=True), text(told=True)], budget=budget(tokens=900, usd=1.0))

    assert () == result.warnings


@pytest.mark.parametrize(("tokens", "usd"), [(9_000, None), (None, 9.0)])
def test_a_budget_may_refuse_to_go_on_uncounted(tokens: int | None, usd: float | None) -> None:
    """Then a run ends after the first model call that it cannot count."""
    limit = budget(tokens=tokens, usd=usd, refuse_uncounted=True)

    result = result_of([calls(), text()], budget=limit)

    assert (EndReason.BUDGET, ("budget.uncounted",)) == (result.end_reason, result.stopped_by)
    assert 1 == len(result.steps)


def test_a_budget_that_refuses_lets_counted_calls_go_on() -> None:
    """Only what is not known ends the run."""
    limit = budget(tokens=9_000, usd=9.0, refuse_uncounted=True)

    result = result_of([calls(told=True), text(told=True)], budget=limit)

    assert EndReason.COMPLETED is result.end_reason


def test_an_aborted_call_keeps_its_text_and_has_no_known_cost() -> None:
    """A person has read the text, and the server may bill it; but it is no answer."""
    gate = asyncio.Event()
    half = Answer(sse(json.dumps({"choices": [{"delta": {"content": "Half"}}]})), gates={1: gate})

    async def use(agent: Agent, server: WireServer) -> RunResult[Any, Any]:
        stream = agent.stream("Go.")
        async for part in stream.full_stream:
            if isinstance(part, TextDelta):
                stream.abort("enough")
        return await stream.result()

    result: RunResult[Any, Any] = asyncio.run(with_agent([half], use))

    assert EndReason.ABORTED is result.end_reason
    assert (None, None) == (result.usage, result.cost_usd)
    assert 1 == result.run.spent.unreported_calls
    assert ("", "Half", ()) == (result.text, result.partial_text, result.messages)
